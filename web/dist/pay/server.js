// node_modules/preact/dist/preact.mjs
var n;
var t$1;
var r$1;
var u$3;
var i$2;
var f$3;
var o$3;
var e$1;
var l$2;
var c$2;
var a$3;
var h$2 = Symbol.for("pv");
var p$2 = {};
var y$2 = [];
var v$2 = /^m(i|n|o|s|text|space)$/;
var w$2 = Array.isArray;
var d$2 = y$2.slice;
var _$2 = Object.assign;
function g$2(n) {
	n && n.parentNode && n.remove();
}
function k$2(n, t, r) {
	var u, i, f, o = {}, e = arguments.length;
	for (f in t) "key" == f ? u = t[f] : "ref" == f && "function" != typeof n ? i = t[f] : o[f] = t[f];
	return e > 2 && (o.children = e > 3 ? d$2.call(arguments, 2) : r), m$2(n, o, u, i, null);
}
function m$2(r, u, i, f, o) {
	var e = {
		type: r,
		props: u,
		key: i,
		ref: f,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: h$2,
		__v: o || ++t$1,
		__i: -1,
		__u: 0
	};
	return !o && n.vnode && n.vnode(e), e;
}
function $$1(n) {
	return n.children;
}
function x$1(n, t) {
	this.props = n, this.context = t, this.__g = 0;
}
function S(n, t) {
	if (null == t) return n.__ && S(n.__, n.__i + 1);
	for (var r; t < n.__k.length; t++) if ((r = n.__k[t]) && r.__e) return r.__e;
	return "function" != typeof n.type || n.props.__P ? null : S(n);
}
function C$1(t) {
	var r, u = t.__v, i = u.__e, f = [], o = [], e = t.__P;
	e && ((r = _$2({ constructor: h$2 }, u)).__v = u.__v + 1, n.vnode && n.vnode(r), z$2(e, r, u, t.__n, e.namespaceURI, 32 & u.__u ? [i] : null, f, i || S(u), 32 & u.__u, o), r.__v = u.__v, r.__.__k[r.__i] = r, E$1(f, r, o), u.__ = u.__e = null, r.__e != i && j$1(r));
}
function j$1(n) {
	if ((n = n.__) && n.__c && !n.props.__P) return n.__e = null, n.__k.some(function(t) {
		return t && (n.__e = t.__e);
	}), j$1(n);
}
function L(t) {
	(8 & t.__g || (t.__g |= 8, u$3.push(t), f$3++)) && i$2 == n.debounceRendering || ((i$2 = n.debounceRendering) || queueMicrotask)(H$1);
}
function H$1() {
	try {
		for (var n, t = 1; u$3.length;) u$3.length > t && u$3.sort(o$3), n = u$3.shift(), t = u$3.length, 8 & n.__g && C$1(n);
	} finally {
		(f$3 = u$3.length) && (i$2 || queueMicrotask)(H$1);
	}
}
function I$1(n, t, r, u, i, f, o, e, l, c, a) {
	var s, h, v, w, d, _, g = u.__k || y$2, k = t.length;
	for (l = q$1(r, t, g, l, k), s = 0; s < k; s++) null != (v = r.__k[s]) && (h = ~v.__i && g[v.__i] || p$2, v.__i = s, _ = z$2(n, v, h, i, f, o, e, l, c, a), w = v.__e, (h.ref != v.ref || 8 & h.__u) && (h.ref && G$1(h.ref, null, v, h), v.ref && a.push(v.ref, v.__c || w, v)), d = d || w, 4 & v.__u ? (l = A$1(v, l, n, !h.__v), h.__e && (h.__e = null)) : "function" == typeof v.type && void 0 !== _ ? l = _ : w && (l = w.nextSibling), v.__u &= -21);
	return r.__e = d, l;
}
function q$1(n, t, r, u, i) {
	var f, o, e, l, c, a, s, p, y, v = r.length, d = v, _ = 0, g = 0, k = n.__k = Array(i);
	for (f = 0; f < i; f++) null != (o = t[f]) && "boolean" != typeof o && "function" != typeof o ? ("object" != typeof o || o.constructor === String ? o = k[f] = m$2(null, o) : w$2(o) ? o = k[f] = m$2($$1, { children: o }) : o.constructor === h$2 && o.__b ? o = k[f] = m$2(o.type, o.props, o.key, o.ref, o.__v) : k[f] = o, l = f + _, o.__ = n, o.__b = n.__b + 1, e = null, ~(c = o.__i = P$1(o, r, l, d)) && (d--, (e = r[c]) && (e.__u |= 2)), e && e.__v ? (o.__u |= 16, c == l - 1 ? _-- : c == l + 1 ? _++ : c != l && (c > l ? _-- : _++, g = 1)) : (~c || (i > v ? _-- : i < v && _++), "function" != typeof o.type && (o.__u |= 4))) : k[f] = null;
	if (g) {
		for (a = [], s = [], f = 0; f < i; f++) if ((o = k[f]) && 16 & o.__u) {
			for (_ = 0, p = a.length; _ < p;) a[y = _ + p >> 1] < o.__i ? _ = y + 1 : p = y;
			a[_] = o.__i, s[f] = _ + 1;
		}
		for (_ = a.length; f--;) s[f] && (s[f] == _ ? _-- : k[f].__u |= 4);
	}
	if (d) for (f = 0; f < v; f++) !(e = r[f]) || 2 & e.__u || (e.__e == u && (u = S(e)), J(e, e));
	return u;
}
function A$1(n, t, r, u) {
	var i, f, o, e;
	if ("function" == typeof n.type) {
		if (n.props.__P) return t;
		if (i = n.__k) for (f = 0; f < i.length; f++) i[f] && (i[f].__ = n, t = A$1(i[f], t, r, !1));
		return t;
	}
	for (t && !t.parentNode && (t = S(n)) && !t.parentNode && (t = null), o = n.__e, e = t; e && 8 == e.nodeType;) e = e.nextSibling;
	for (o != e && (!u && r.moveBefore && o.parentNode ? r.moveBefore(o, t) : r.insertBefore(o, t || null)), t = o; (t = t && t.nextSibling) && 8 == t.nodeType && !t.data.startsWith("$s"););
	return t;
}
function P$1(n, t, r, u) {
	var i, f = n.key, o = n.type, e = t[r], l = e && !(2 & e.__u);
	if (null === e && null == f || l && f == e.key && o == e.type) return r;
	if (u > (l ? 1 : 0)) {
		for (i = r - 1; i >= 0; i--) if ((e = t[i]) && !(2 & e.__u) && f == e.key && o == e.type) return i;
		for (i = r + 1; i < t.length; i++) if ((e = t[i]) && !(2 & e.__u) && f == e.key && o == e.type) return i;
	}
	return -1;
}
function T$2(n, t, r) {
	r ??= "", "-" == t[0] ? n.setProperty(t, r) : n[t] = r;
}
function N$1(n, t, r, u, i) {
	var f, o;
	if ("style" == t) if ("string" == typeof r) n.style.cssText = r;
	else {
		if ("string" == typeof u && (n.style.cssText = u = ""), u) for (t in u) r && t in r || T$2(n.style, t);
		if (r) for (t in r) u && r[t] == u[t] || T$2(n.style, t, r[t]);
	}
	else if ("o" == t[0] && "n" == t[1]) "function" != typeof r && (r = null), "function" != typeof u && (u = null), (n.__e || (n.__e = {}))[t] = r, r && u || (o = a$3[t] || (a$3[t] = V$1(t)), (n.__a || (n.__a = {}))[t] = c$2, f = t != (t = t.replace(l$2, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), r ? n.addEventListener(t, o, f) : n.removeEventListener(t, o, f));
	else {
		if ("http://www.w3.org/2000/svg" == i) t = t.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
		else if ("width" != t && "height" != t && "href" != t && "list" != t && "form" != t && "tabIndex" != t && "download" != t && "rowSpan" != t && "colSpan" != t && "role" != t && "popover" != t && t in n) try {
			n[t] = null == r ? "" : r;
			return;
		} catch (n) {}
		if ("function" == typeof r) return;
		null == r || !1 === r && "-" != t[4] ? n.removeAttribute(t) : n.setAttribute(t, "popover" == t && 1 == r ? "" : r);
	}
}
function V$1(t) {
	return function(r) {
		var u = this.__e;
		if (u) {
			if (u = u[t], null == r[e$1]) r[e$1] = c$2++;
			else if (r[e$1] < this.__a[t]) return;
			return u(n.event ? n.event(r) : r);
		}
	};
}
function z$2(t, r, u, i, f, o, e, l, c, a) {
	var s, p, v, d, k, b, m, M, C, j, L, H, q, A, O, P, T, N, V = r.type;
	if (r.constructor !== h$2) return null;
	128 & u.__u && (c = 32 & u.__u, s = u.__c.__z) && (r.__u |= c, p = o = [], 8 == s.nodeType ? l = B$2(s, o) : o.push(s), l = o[0] || l), (s = n.__b) && s(r);
	n: if ("function" == typeof V) {
		v = e.length;
		try {
			if (M = r.props, C = (s = V.prototype) && s.render, j = (s = V.contextType) && i[s.__c], L = s ? j ? j.props.value : s.__ : i, (d = u.__c) ? (r.__c = d, 2 & d.__g && (d.__g |= 1)) : (C ? r.__c = d = new V(M, L) : (r.__c = d = new x$1(M, L), d.constructor = V, d.render = K), j && j.sub(d), d.state || (d.state = {}), d.__n = i, d.__g |= 8, d.__h = [], d.__k = []), C && (d.__s || (d.__s = d.state), V.getDerivedStateFromProps && (d.__s == d.state && (d.__s = _$2({}, d.__s)), _$2(d.__s, V.getDerivedStateFromProps(M, d.__s)))), k = d.props, b = d.state, d.__v = r, u.__c) {
				if (M !== k && C && !V.getDerivedStateFromProps && d.componentWillReceiveProps && d.componentWillReceiveProps(M, L), r.__v == u.__v && !(8 & d.__g) || !(4 & d.__g) && d.shouldComponentUpdate && !1 === d.shouldComponentUpdate(M, d.__s, L)) {
					r.__v != u.__v && (d.props = M, d.state = d.__s, d.__g &= -9), r.__e = u.__e, r.__k = u.__k, r.__k.some(function(n) {
						n && (n.__ = r);
					}), y$2.push.apply(d.__h, d.__k), d.__k = [], d.__h.length && e.push(d), l = S(u);
					break n;
				}
				d.componentWillUpdate && d.componentWillUpdate(M, d.__s, L), C && d.componentDidUpdate && d.__h.push(function() {
					d.componentDidUpdate(k, b, m);
				});
			} else C && !V.getDerivedStateFromProps && d.componentWillMount && d.componentWillMount(), C && d.componentDidMount && d.__h.push(d.componentDidMount);
			d.context = L, d.props = M, d.__P = t, d.__g &= -5, H = n.__r, q = C ? 25 : 0;
			do
				d.__g &= -9, H && H(r), s = d.render(d.props, d.state = d.__s, d.context);
			while (8 & d.__g && ++q < 25);
			C && (y$2.push.apply(d.__h, d.__k), d.__k = []), d.state = d.__s, d.getChildContext && (i = _$2({}, i, d.getChildContext())), C && u.__c && d.getSnapshotBeforeUpdate && (m = d.getSnapshotBeforeUpdate(k, b)), A = s && s.type === $$1 && null == s.key ? s.props.children : s, M.__P && (s = l, f = (t = M.__P).namespaceURI, c = o = null, u.props && u.props.__P != t && (u.__k.some(function(n) {
				n && J(n, n);
			}), u.__k = null), l = u.__k ? S(u, 0) : null), l = I$1(t, w$2(A) ? A : [A], r, u, i, f, o, e, l, c, a), M.__P && (r.__e = null, l = s), r.__u &= -161, p && p.some(g$2), d.__h.length && e.push(d), 1 & d.__g && (d.__g &= -4);
		} catch (t) {
			if (e.length = v, r.__v = null, c || o) if (t && t.then) {
				if (r.__u |= 128 | c, o) {
					for (~(T = o.indexOf(l || void 0)) || (T = o.length); (N = o[T - 1]) && 8 == N.nodeType;) T--;
					for (; T < o.length; T++) if (N = o[T]) if (o[T] = null, O) {
						if (N == P) break;
					} else {
						if (8 != N.nodeType) break;
						N.data.startsWith("$s") && (P = B$2(O = N));
					}
				}
				if (!O) {
					for (; l && 8 == l.nodeType && l.nextSibling;) l = l.nextSibling;
					O = l;
				}
				(s = B$2(O = r.__c.__z || (r.__c.__z = O))) ? (r.__e = O, l = s) : r.__e = l, l = l && l.nextSibling;
			} else o && o.some(g$2);
			else r.__e = u.__e;
			r.__k || (r.__k = u.__k || []), t && t.then || D$1(r), n.__e(t, r, u);
		}
	} else l = r.__e = F$1(u.__e, r, u, i, f, o, e, c, a, t);
	return (s = n.diffed) && s(r), l;
}
function B$2(n, t) {
	if (n && 8 == n.nodeType && n.data.startsWith("$s")) for (var r = 1; n = n.nextSibling;) {
		if (8 == n.nodeType) {
			if (n.data.startsWith("$s")) r++;
			else if (n.data.startsWith("/$s") && !--r) return n;
		}
		t && t.push(n);
	}
}
function D$1(n) {
	n && (n.__c && (n.__c.__g |= 4), n.__k && n.__k.some(D$1));
}
function E$1(t, r, u) {
	for (var i = 0; i < u.length;) G$1(u[i++], u[i++], u[i++]);
	n.__c && n.__c(r, t), t.some(function(r) {
		try {
			t = r.__h, r.__h = [], t.some(function(n) {
				n.call(r);
			});
		} catch (t) {
			n.__e(t, r.__v);
		}
	});
}
function F$1(t, r, u, i, f, o, e, l, c, a) {
	var s, h, y, _, k, b, m, M, $ = u.props || p$2, x = r.props, C = r.type;
	if ("svg" == C ? f = "http://www.w3.org/2000/svg" : "math" == C ? f = "http://www.w3.org/1998/Math/MathML" : f || (f = "http://www.w3.org/1999/xhtml"), o) {
		for (s = 0; s < o.length; s++) if ((k = o[s]) && (C ? k.localName == C : 3 == k.nodeType)) {
			t = k, o[s] = null;
			break;
		}
	}
	if (!t) {
		if (M = a.ownerDocument || document, !C) return M.createTextNode(x);
		t = M.createElementNS(f, C, x.is ? x : a), l && (n.__m && n.__m(r, o), l = !1), o = null;
	}
	if (C) {
		if (a = "template" == C && t.content || t, o = "textarea" == C && null != x.defaultValue ? null : o && d$2.call(a.childNodes), !l && o) for ($ = {}, s = 0; s < t.attributes.length; s++) $[(k = t.attributes[s]).name] = k.value;
		for (s in $) k = $[s], "dangerouslySetInnerHTML" == s ? y = k : "children" == s || s in x || "value" == s && "defaultValue" in x || "checked" == s && "defaultChecked" in x || N$1(t, s, null, k, f);
		for (s in x) k = x[s], "children" == s ? _ = k : "dangerouslySetInnerHTML" == s ? h = k : "value" == s ? b = k : "checked" == s ? m = k : l && "function" != typeof k || $[s] === k || N$1(t, s, k, $[s], f);
		h ? (l || y && (h.__html == y.__html || h.__html == t.innerHTML) || (t.innerHTML = h.__html), r.__k = []) : (y && (t.textContent = ""), ("foreignObject" == C || "http://www.w3.org/1998/Math/MathML" == f && v$2.test(C)) && (f = "http://www.w3.org/1999/xhtml"), I$1(a, w$2(_) ? _ : [_], r, u, i, f, o, e, o ? o[0] : u.__k && S(u, 0), l, c), o && o.some(g$2)), l && "textarea" != C || (s = "value", "progress" == C && null == b ? t.removeAttribute(s) : null == b || b === t[s] && ("progress" != C || b) || N$1(t, s, b, $[s], f), s = "checked", null != m && m != t[s] && N$1(t, s, m, $[s], f));
	} else $ === x || l && t.data == x || (t.data = x);
	return t;
}
function G$1(t, r, u, i) {
	try {
		"function" == typeof t ? r ? r.__x = t(r) || 1 : i && (i = i.__c || i.__e) && (r = i.__x) && (i.__x = null, "function" == typeof r ? r() : t(null)) : t.current = r;
	} catch (t) {
		n.__e(t, u);
	}
}
function J(t, r, u) {
	var i, f, o, e;
	if (n.unmount && n.unmount(t), !(i = t.ref) || i.current && i.current != t.__e || G$1(i, null, r, t), i = t.__c) {
		if (i.componentWillUnmount) try {
			i.componentWillUnmount();
		} catch (t) {
			n.__e(t, r);
		}
		i.__P = i.__n = null;
	}
	if (i = t.__k) for (e = 0; e < i.length; e++) i[e] && J(i[e], r, "function" != typeof t.type || u && !t.props.__P);
	!u && (i = t.__c) && (i = i.__z) && (f = B$2(i, o = [])) && (i == t.__e && o.some(g$2), g$2(f), g$2(i)), u || g$2(t.__e), t.__e = t.__c = t.__ = null;
}
function K(n, t, r) {
	return this.constructor(n, r);
}
n = { __e: function(n, t, r, u) {
	for (var i, o, e; t = t.__;) if ((i = t.__c) && !(1 & i.__g)) {
		i.__g |= 4;
		try {
			if ((e = (o = i.constructor) && o.getDerivedStateFromError) && i.setState(o.getDerivedStateFromError(n)), i.componentDidCatch && (i.componentDidCatch(n, u || {}), e = 1), e && 8 & i.__g) return void (i.__g |= 2);
		} catch (t) {
			n = t;
		}
	}
	throw f$3 = 0, n;
} }, t$1 = 0, r$1 = function(n) {
	return null != n && n.constructor === h$2;
}, x$1.prototype.setState = function(n, t) {
	var r = this.__s;
	r && r != this.state || (r = this.__s = _$2({}, this.state)), "function" == typeof n && (n = n(_$2({}, r), this.props)), n && (_$2(r, n), this.__v && (t && this.__k.push(t), L(this)));
}, x$1.prototype.forceUpdate = function(n) {
	this.__v && (this.__g |= 4, n && this.__h.push(n), L(this));
}, x$1.prototype.render = $$1, u$3 = [], f$3 = 0, o$3 = function(n, t) {
	return n.__v.__b - t.__v.__b;
}, e$1 = Symbol(), l$2 = /(PointerCapture)$|Capture$/i, c$2 = 0, a$3 = {};
// node_modules/preact-render-to-string/dist/index.mjs
var o$2 = "__s";
var i$1 = "__c";
var a$2 = "__k";
var u$2 = "__d";
var c$1 = "__s";
var f$2 = /[\s\n\\/='"\0<>]/;
var s$1 = /^(xlink|xmlns|xml)([A-Z])/;
var l$1 = /^(?:accessK|auto[A-Z]|cell|ch|col|cont|cross|dateT|encT|form[A-Z]|frame|hrefL|inputM|maxL|minL|noV|playsI|popoverT|readO|rowS|src[A-Z]|tabI|useM|item[A-Z])/;
var p$1 = /^ac|^ali|arabic|basel|cap|clipPath$|clipRule$|color|dominant|enable|fill|flood|font|glyph[^R]|horiz|image|letter|lighting|marker[^WUH]|overline|panose|pointe|paint|rendering|shape|stop|strikethrough|stroke|text[^L]|transform|underline|unicode|units|^v[^i]|^w|^xH/;
var h$1 = /* @__PURE__ */ new Set(["draggable", "spellcheck"]);
function d$1(e) {
	void 0 !== e.__g ? e.__g |= 8 : e[u$2] = !0;
}
function v$1(e) {
	void 0 !== e.__g ? e.__g &= -9 : e[u$2] = !1;
}
function m$1(e) {
	return void 0 !== e.__g ? !!(8 & e.__g) : !0 === e[u$2];
}
var y$1 = /["&<]/;
function _$1(e) {
	if (0 === e.length || !1 === y$1.test(e)) return e;
	for (var t = 0, n = 0, r = "", o = ""; n < e.length; n++) {
		switch (e.charCodeAt(n)) {
			case 34:
				o = "&quot;";
				break;
			case 38:
				o = "&amp;";
				break;
			case 60:
				o = "&lt;";
				break;
			default: continue;
		}
		n !== t && (r += e.slice(t, n)), r += o, t = n + 1;
	}
	return n !== t && (r += e.slice(t, n)), r;
}
var g$1 = {};
var k$1 = /* @__PURE__ */ new Set([
	"animation-iteration-count",
	"border-image-outset",
	"border-image-slice",
	"border-image-width",
	"box-flex",
	"box-flex-group",
	"box-ordinal-group",
	"column-count",
	"fill-opacity",
	"flex",
	"flex-grow",
	"flex-negative",
	"flex-order",
	"flex-positive",
	"flex-shrink",
	"flood-opacity",
	"font-weight",
	"grid-column",
	"grid-row",
	"line-clamp",
	"line-height",
	"opacity",
	"order",
	"orphans",
	"stop-opacity",
	"stroke-dasharray",
	"stroke-dashoffset",
	"stroke-miterlimit",
	"stroke-opacity",
	"stroke-width",
	"tab-size",
	"widows",
	"z-index",
	"zoom"
]);
var b = /[A-Z]/g;
function x(e) {
	var t = "";
	for (var n in e) {
		var r = e[n];
		if (null != r && "" !== r) {
			var o = "-" == n[0] ? n : g$1[n] || (g$1[n] = n.replace(b, "-$&").toLowerCase()), i = ";";
			"number" != typeof r || o.startsWith("--") || k$1.has(o) || (i = "px;"), t = t + o + ":" + r + i;
		}
	}
	return t || void 0;
}
function w$1() {
	this.__d = !0;
}
function H(e, t) {
	return {
		__v: e,
		context: t,
		props: e.props,
		setState: w$1,
		forceUpdate: w$1,
		__d: !0,
		__h: new Array(0)
	};
}
var T$1 = {};
var j = [];
var P = Array.isArray;
var $ = Object.assign;
var U = "";
var Z = "<!--$s-->";
var F = "<!--/$s-->";
function M(e) {
	return "string" == typeof e ? Z + e + F : P(e) ? (e.unshift(Z), e.push(F), e) : e && "function" == typeof e.then ? e.then(M) : Z + e + F;
}
function W() {
	return {
		beforeDiff: n.__b,
		afterDiff: n.diffed,
		renderHook: n.__r,
		unmountHook: n.unmount,
		rootHook: n.__,
		commitHook: n.__c,
		catchError: n.__e,
		errorBoundaries: n.errorBoundaries
	};
}
function B$1(e) {
	var t = n[o$2];
	n[o$2] = !0;
	try {
		return e();
	} finally {
		n[o$2] = t;
	}
}
function z$1(n, r, o) {
	var i = W();
	try {
		var u = B$1(function() {
			var u, c = k$2($$1, null);
			return c[a$2] = [n], i.rootHook && i.rootHook(n, ((u = {})[a$2] = c, u.nodeType = 1, u)), q(n, r || T$1, !1, void 0, c, !1, o, i);
		});
		return P(u) ? u.join(U) : u;
	} catch (e) {
		if (e.then) throw new Error("Use \"renderToStringAsync\" for suspenseful rendering.");
		throw e;
	} finally {
		i.commitHook && B$1(function() {
			return i.commitHook(n, j);
		}), j.length = 0;
	}
}
function N(e, t, n) {
	var r, o = e.type, a = !0;
	return e[i$1] ? (a = !1, (r = e[i$1]).state = r[c$1]) : r = new o(e.props, t), e[i$1] = r, r.__v = e, r.props = e.props, r.context = t, d$1(r), r.state ?? (r.state = T$1), r[c$1] ?? (r[c$1] = r.state), o.getDerivedStateFromProps ? r.state = $({}, r.state, o.getDerivedStateFromProps(r.props, r.state)) : a && r.componentWillMount ? (r.componentWillMount(), r.state = r[c$1] !== r.state ? r[c$1] : r.state) : !a && r.componentWillUpdate && r.componentWillUpdate(), n.renderHook && n.renderHook(e), r.render(r.props, r.state, t);
}
function q(e, n, o, u, y, g, k, b) {
	if (null == e || !0 === e || !1 === e || e === U) return U;
	var w = typeof e;
	if ("object" != w) return "function" == w ? U : "string" == w ? _$1(e) : e + U;
	if (P(e)) {
		var C, D = U;
		y[a$2] = e;
		for (var A = e.length, S = 0; S < A; S++) {
			var E = e[S];
			if (null != E && "boolean" != typeof E) {
				var L, j = q(E, n, o, u, y, g, k, b);
				"string" == typeof j ? D += j : (C || (C = new Array(A)), D && C.push(D), D = U, P(j) ? (L = C).push.apply(L, j) : C.push(j));
			}
		}
		return C ? (D && C.push(D), C) : D;
	}
	if (!r$1(e)) return U;
	e.__ = y, b.beforeDiff && b.beforeDiff(e);
	var Z = e.type, F = e.props;
	if ("function" == typeof Z) {
		var W, z, O, R = n;
		if (Z === $$1) {
			if ("tpl" in F) {
				for (var K, G = U, J = 0; J < F.tpl.length; J++) if (G += F.tpl[J], F.exprs && J < F.exprs.length) {
					var Q = F.exprs[J];
					if (null == Q) continue;
					if ("object" == typeof Q && (r$1(Q) || P(Q))) {
						var X, Y = q(Q, n, o, u, e, g, k, b);
						"string" == typeof Y ? G += Y : (K || (K = []), G && K.push(G), G = U, P(Y) ? (X = K).push.apply(X, Y) : K.push(Y));
					} else G += Q;
				}
				return K ? (G && K.push(G), K) : G;
			}
			if ("UNSTABLE_comment" in F) return "<!--" + _$1(F.UNSTABLE_comment) + "-->";
			z = F.children;
		} else {
			if (null != (W = Z.contextType)) {
				var ee = n[W.__c];
				R = ee ? ee.props.value : W.__;
			}
			var te = Z.prototype && "function" == typeof Z.prototype.render;
			if (te) z = N(e, R, b), O = e[i$1];
			else {
				e[i$1] = O = H(e, R);
				for (var ne = 0; m$1(O) && ne++ < 25;) {
					v$1(O), b.renderHook && b.renderHook(e);
					try {
						z = Z.call(O, F, R);
					} catch (t) {
						throw g && t && "function" == typeof t.then && (e._suspended = !0), t;
					}
				}
				d$1(O);
			}
			if (null != O.getChildContext && (n = $({}, n, O.getChildContext())), te && b.errorBoundaries && (Z.getDerivedStateFromError || O.componentDidCatch)) {
				z = null != z && z.type === $$1 && null == z.key && null == z.props.tpl ? z.props.children : z;
				try {
					return q(z, n, o, u, e, g, !1, b);
				} catch (r) {
					return Z.getDerivedStateFromError && (O[c$1] = Z.getDerivedStateFromError(r)), O.componentDidCatch && O.componentDidCatch(r, T$1), m$1(O) ? (z = N(e, n, b), null != (O = e[i$1]).getChildContext && (n = $({}, n, O.getChildContext())), q(z = null != z && z.type === $$1 && null == z.key && null == z.props.tpl ? z.props.children : z, n, o, u, e, g, k, b)) : U;
				} finally {
					b.afterDiff && b.afterDiff(e), b.unmountHook && b.unmountHook(e);
				}
			}
		}
		z = null != z && z.type === $$1 && null == z.key && null == z.props.tpl ? z.props.children : z;
		try {
			var re = q(z, n, o, u, e, g, k, b);
			return b.afterDiff && b.afterDiff(e), b.unmountHook && b.unmountHook(e), e._suspended ? M(re) : re;
		} catch (t) {
			if (!g && k && k.onError) {
				var oe = function t(r) {
					return k.onError(r, e, function(e, r) {
						try {
							return B$1(function() {
								return q(e, n, o, u, r, g, k, b);
							});
						} catch (e) {
							return t(e);
						}
					});
				}(t);
				return void 0 !== oe ? oe : (b.catchError && b.catchError(t, e), U);
			}
			if (!g) throw t;
			if (!t || "function" != typeof t.then) throw t;
			return t.then(function t() {
				try {
					var r = B$1(function() {
						return q(z, n, o, u, e, g, k, b);
					});
					return e._suspended ? M(r) : r;
				} catch (e) {
					if (!e || "function" != typeof e.then) throw e;
					return e.then(t);
				}
			});
		}
	}
	var ie, ae = "<" + Z, ue = U;
	for (var ce in F) {
		var fe = F[ce];
		if ("function" != typeof (fe = V(fe) ? fe.value : fe) || "class" === ce || "className" === ce) {
			switch (ce) {
				case "children":
					ie = fe;
					continue;
				case "key":
				case "ref":
				case "__self":
				case "__source": continue;
				case "htmlFor":
					if ("for" in F) continue;
					ce = "for";
					break;
				case "className":
					if ("class" in F) continue;
					ce = "class";
					break;
				case "defaultChecked":
					ce = "checked";
					break;
				case "defaultSelected":
					ce = "selected";
					break;
				case "defaultValue":
				case "value":
					switch (ce = "value", Z) {
						case "textarea":
							ie = fe;
							continue;
						case "select":
							u = fe;
							continue;
						case "option": u != fe || "selected" in F || (ae += " selected");
					}
					break;
				case "dangerouslySetInnerHTML":
					ue = fe && fe.__html;
					continue;
				case "style":
					"object" == typeof fe && (fe = x(fe));
					break;
				case "acceptCharset":
					ce = "accept-charset";
					break;
				case "httpEquiv":
					ce = "http-equiv";
					break;
				default:
					if (f$2.test(ce)) continue;
					s$1.test(ce) ? ce = ce.replace(s$1, "$1:$2").toLowerCase() : "-" !== ce[4] && !h$1.has(ce) || null == fe ? o ? p$1.test(ce) && (ce = "panose1" === ce ? "panose-1" : ce.replace(/([A-Z])/g, "-$1").toLowerCase()) : l$1.test(ce) && (ce = ce.toLowerCase()) : fe += U;
			}
			null != fe && !1 !== fe && (ae = !0 === fe || fe === U ? ae + " " + ce : ae + " " + ce + "=\"" + _$1(fe + U) + "\"");
		}
	}
	if (f$2.test(Z)) throw new Error(Z + " is not a valid HTML tag name in " + ae + ">");
	if (ue || ("string" == typeof ie ? ue = _$1(ie) : null != ie && !1 !== ie && !0 !== ie && (ue = q(ie, n, "svg" === Z || "foreignObject" !== Z && o, u, e, g, k, b))), b.afterDiff && b.afterDiff(e), b.unmountHook && b.unmountHook(e), !ue && I.has(Z)) return ae + "/>";
	var se = "</" + Z + ">", le = ae + ">";
	return P(ue) ? [le].concat(ue, [se]) : "string" != typeof ue ? [
		le,
		ue,
		se
	] : le + ue + se;
}
var I = /* @__PURE__ */ new Set([
	"area",
	"base",
	"br",
	"col",
	"command",
	"embed",
	"hr",
	"img",
	"input",
	"keygen",
	"link",
	"meta",
	"param",
	"source",
	"track",
	"wbr"
]);
function V(e) {
	return null !== e && "object" == typeof e && "function" == typeof e.peek && "value" in e;
}
// src/docs/mark.svg?inline
var mark_default = "data:image/svg+xml,%3csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2032%2032'%20fill='none'%20stroke='%230B6B5F'%20stroke-width='2.5'%3e%3ctitle%3eTranche%3c/title%3e%3cstyle%3e@media%20(prefers-color-scheme:%20dark)%20{%20svg%20{%20stroke:%20%235FD3BF%20}%20.paid%20{%20fill:%20%235FD3BF%20}%20}%3c/style%3e%3crect%20class='paid'%20x='4.25'%20y='5.25'%20width='5.5'%20height='21.5'%20rx='1.5'%20fill='%230B6B5F'/%3e%3crect%20x='13.25'%20y='5.25'%20width='5.5'%20height='21.5'%20rx='1.5'/%3e%3crect%20x='22.25'%20y='5.25'%20width='5.5'%20height='21.5'%20rx='1.5'/%3e%3c/svg%3e";
// node_modules/preact/hooks/dist/hooks.mjs
var t;
var r;
var u$1;
var i;
var o$1 = Object.is;
var f$1 = 0;
var c = [];
var e = [];
var a$1 = n;
var v = a$1.__b;
var l = a$1.__r;
var m = a$1.diffed;
var h = a$1.__c;
var s = a$1.unmount;
var p = a$1.__;
function y(n, t) {
	a$1.__h && a$1.__h(r, n, f$1 || t), f$1 = 0;
	var u = r.__H || (r.__H = {
		__: [],
		__h: []
	});
	return n >= u.__.length && u.__.push({}), u.__[n];
}
function d(n) {
	return f$1 = 1, _(G, n);
}
function _(n, u, i) {
	var f = y(t++, 2);
	if (f.t = n, !f.__c && (f.__ = [i ? i(u) : G(void 0, u), function(n) {
		var t = (f.__N || f.__)[0], r = f.t(t, n);
		o$1(t, r) || (f.__N = [r, f.__[1]], f.__c.setState({}));
	}], f.__c = r, !r.__f)) {
		r.__f = !0;
		var c = r.shouldComponentUpdate;
		r.shouldComponentUpdate = function(n, t, r) {
			var u = this.__H;
			if (!u) return !0;
			var i = !1, f = this.props != n;
			if (u.__.some(function(n) {
				n.__N && (i = !0, o$1(n.__[0], n.__N[0]) || (f = !0));
			}), c) {
				var e = c.call(this, n, t, r);
				return i ? e || f : e;
			}
			return !i || f;
		};
	}
	return f.__;
}
function A(n, u) {
	var i = y(t++, 3);
	!a$1.__s && E(i.__H, u) && (i.__P = !0, i.__ = n, i.u = u, r.__H.__h.push(i));
}
function T(n) {
	return f$1 = 5, w(function() {
		return { current: n };
	}, []);
}
function w(n, r) {
	var u = y(t++, 7);
	return E(u.__H, r) && (u.__ = n(), u.__H = r), u.__;
}
function g() {
	var n;
	do {
		for (; n = e.shift();) try {
			C(n);
		} catch (t) {
			a$1.__e(t, { __: (n = n.__P) && n.__v });
		}
		for (; n = c.shift();) {
			var t = n.__H;
			if (n.__P && t) try {
				t.__h.some(C), t.__h.some(D), t.__h = [];
			} catch (r) {
				t.__h = [], a$1.__e(r, n.__v);
			}
		}
	} while (e.length);
}
a$1.__b = function(n) {
	r = null, v && v(n);
}, a$1.__ = function(n, t) {
	n && t.__k && t.__k.__m && (n.__m = t.__k.__m), p && p(n, t);
}, a$1.__r = function(n) {
	l && l(n), t = 0;
	var i = (r = n.__c).__H;
	i && (u$1 == r ? r.__h = [] : (i.__h.some(C), i.__h.some(D), t = 0), i.__h = [], i.__.some(function(n) {
		n.__N && (n.__ = n.__N), n.u = n.__N = void 0;
	})), u$1 = r;
}, a$1.diffed = function(n) {
	m && m(n);
	var t = n.__c;
	t && t.__H && (t.__H.__h.length && B(c.push(t)), t.__H.__.some(function(n) {
		n.u && (n.__H = n.u);
	})), u$1 = r = null;
}, a$1.__c = function(n, t) {
	t.some(function(n) {
		try {
			n.__h.some(C), n.__h = n.__h.filter(function(n) {
				return !n.__ || D(n);
			});
		} catch (t) {
			n.__h = [function() {
				throw t;
			}];
		}
	}), h && h(n, t);
}, a$1.unmount = function(n) {
	s && s(n);
	var t, r, u = n.__c;
	u && u.__H && (u.__H.__.some(function(u) {
		try {
			if (u.__P && u.__c) {
				if (void 0 === r) {
					for (r = n.__; r && (!r.__c || !r.__c.__P);) r = r.__;
					r = r && r.__c;
				}
				u.__P = r, B(e.push(u));
			} else C(u);
		} catch (n) {
			t = n;
		}
	}), u.__H = void 0, t && a$1.__e(t, u.__v));
};
var k = "function" == typeof requestAnimationFrame;
function z(n) {
	var t, r = function() {
		clearTimeout(u), k && cancelAnimationFrame(t), setTimeout(n);
	}, u = setTimeout(r, 35);
	k && (t = requestAnimationFrame(r));
}
function B(n) {
	1 != n && i == a$1.requestAnimationFrame || ((i = a$1.requestAnimationFrame) || z)(g);
}
function C(n) {
	var t = r, u = n.__c;
	"function" == typeof u && (n.__c = void 0, u()), r = t;
}
function D(n) {
	var t = r;
	n.__c = n.__(), r = t;
}
function E(n, t) {
	return !n || n.length != t.length || t.some(function(t, r) {
		return !o$1(t, n[r]);
	});
}
function G(n, t) {
	return "function" == typeof t ? t(n) : t;
}
// web/pay/card-entry.ts
var patienceMilliseconds = 2e4;
/** Resolves once the frame can be typed into; rejects when it cannot be had. */
async function mountCard(page, place, charge) {
	await loadScript(page.card_entry.scriptUrl);
	if (window.Stripe === void 0) throw new Error("the card script did not start");
	const stripe = window.Stripe(page.card_entry.publicKey);
	const elements = stripe.elements({
		mode: "payment",
		currency: page.currency.toLowerCase(),
		captureMethod: "manual",
		paymentMethodTypes: ["card"],
		locale: page.locale.slice(0, 2),
		appearance: appearance(),
		...chargeOptions(charge)
	});
	const element = elements.create("payment", { terms: { card: "never" } });
	await new Promise((resolve, reject) => {
		const impatience = setTimeout(() => reject(/* @__PURE__ */ new Error("the card frame did not answer")), patienceMilliseconds);
		element.on("ready", () => {
			clearTimeout(impatience);
			resolve();
		});
		element.on("loaderror", () => {
			clearTimeout(impatience);
			reject(/* @__PURE__ */ new Error("the card frame did not load"));
		});
		element.mount(place);
	}).catch((error) => {
		element.destroy?.();
		throw error;
	});
	place.querySelector("iframe")?.setAttribute("title", "Card details");
	const darkness = matchMedia("(prefers-color-scheme: dark)");
	const recolour = () => elements.update?.({ appearance: appearance() });
	darkness.addEventListener("change", recolour);
	return {
		update: (next) => elements.update?.(chargeOptions(next)),
		async createToken() {
			const checked = await elements.submit();
			if (checked.error) return { problem: problemOf(checked) };
			const made = await stripe.createConfirmationToken({ elements });
			return made.confirmationToken ? { token: made.confirmationToken.id } : { problem: problemOf(made) };
		},
		destroy() {
			darkness.removeEventListener("change", recolour);
			element.destroy?.();
		}
	};
}
function chargeOptions({ amount, storeCard }) {
	return {
		amount,
		setupFutureUsage: storeCard ? "off_session" : null
	};
}
function problemOf({ error }) {
	return error?.message ?? "Check the card details and try again.";
}
var script = null;
/** Once for the page; after a failure the next call tries again. */
function loadScript(url) {
	script ??= new Promise((resolve, reject) => {
		const tag = document.createElement("script");
		tag.src = url;
		tag.async = true;
		tag.onload = () => resolve();
		tag.onerror = () => {
			tag.remove();
			script = null;
			reject(/* @__PURE__ */ new Error("the card script did not load"));
		};
		document.head.append(tag);
	});
	return script;
}
/** The frame belongs to the gateway; this makes it look as if it belonged to the page. */
function appearance() {
	const style = getComputedStyle(document.documentElement);
	const token = (name) => style.getPropertyValue(`--${name}`).trim();
	return {
		theme: matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "stripe",
		variables: {
			colorPrimary: token("accent"),
			colorBackground: token("surface"),
			colorText: token("ink"),
			colorTextSecondary: token("quiet"),
			colorDanger: token("danger"),
			fontFamily: token("sans"),
			borderRadius: token("radius-control")
		}
	};
}
// web/pay/payment.ts
function firstView(page) {
	return {
		page,
		activity: "idle",
		returning: false,
		problem: null,
		unfinished: false,
		anotherCard: false,
		slow: false
	};
}
function isBusy({ page, activity }) {
	return activity !== "idle" || page?.status === "paying";
}
var answerMilliseconds = 6e4;
var slowMilliseconds = 8e3;
var returnMilliseconds = 1800;
/** How long to wait before the next question, the last for all further ones. */
var pauses = [
	800,
	1e3,
	1500,
	2e3,
	3e3,
	5e3,
	8e3,
	1e4
];
function startPayment(first, path, show) {
	let view = firstView(first);
	/** What this tab asked for and has not seen the end of. */
	let asked = null;
	/** The number of the newest question: an answer to an older one is out of date. */
	let newest = 0;
	let pause = 0;
	let pollTimer;
	let slowTimer;
	let lastLook = performance.now();
	function set(change) {
		const wasBusy = isBusy(view);
		view = {
			...view,
			...change
		};
		if (!isBusy(view)) {
			clearTimeout(slowTimer);
			view.slow = false;
		} else if (!wasBusy) slowTimer = setTimeout(() => set({ slow: true }), slowMilliseconds);
		show(view);
	}
	/** Null: no answer that can be relied on. Undefined: overtaken by a newer question. */
	async function ask(step, body) {
		newest += 1;
		const mine = newest;
		clearTimeout(pollTimer);
		lastLook = performance.now();
		const limit = new AbortController();
		const timer = setTimeout(() => limit.abort(), answerMilliseconds);
		let page = null;
		let known = true;
		try {
			const response = await fetch(`${path}/${step}`, {
				signal: limit.signal,
				cache: "no-store",
				...body && {
					method: "POST",
					headers: { "content-type": "application/json" },
					body: JSON.stringify(body)
				}
			});
			if (response.status === 200) page = await response.json();
			else if (response.status === 404 && step === "state") known = false;
		} catch {} finally {
			clearTimeout(timer);
		}
		if (mine !== newest) return void 0;
		if (!known) set({
			page: null,
			activity: "idle"
		});
		return known ? page : void 0;
	}
	function accept(page) {
		const awaited = asked !== null || view.page?.status === "paying" || remembers(path);
		switch (page.status) {
			case "paying":
				set({
					page,
					activity: "idle"
				});
				pollLater();
				return;
			case "challenge":
				if (asked === "pay" && page.challenge_url !== null) {
					set({
						page,
						activity: "leaving",
						anotherCard: false
					});
					leave(page.challenge_url);
				} else set({
					page,
					activity: "idle"
				});
				asked = null;
				return;
			case "open":
				set({
					page,
					activity: "idle",
					unfinished: asked === "pay" && page.decline === null
				});
				asked = null;
				forget();
				return;
			default: {
				const returns = page.status === "successful" || page.status === "cancelled";
				const returning = view.returning || returns && awaited && page.return_url !== null;
				asked = null;
				forget();
				if (returning && !view.returning) setTimeout(() => leave(page.return_url, "replace"), returnMilliseconds);
				set({
					page,
					activity: "idle",
					returning
				});
			}
		}
	}
	async function look() {
		const page = await ask("state");
		if (page) accept(page);
		else if (page === null && isWaiting()) {
			if (pause > 1) set({ activity: "lost" });
			pollLater();
		}
	}
	function isWaiting() {
		return view.activity === "lost" || view.page?.status === "paying";
	}
	function pollLater() {
		clearTimeout(pollTimer);
		pollTimer = setTimeout(look, pauses[Math.min(pause, pauses.length - 1)]);
		pause += 1;
	}
	async function submit(step, body) {
		asked = step;
		pause = 0;
		remember(path);
		const page = await ask(step, body);
		if (page) accept(page);
		else if (page === null) {
			set({ activity: "lost" });
			pollLater();
		}
	}
	/** For the moments at which another tab, or time, may have changed things. */
	function glance() {
		if (view.page === null || view.returning) return;
		if (isWaiting()) look();
		else if (view.activity === "idle" && performance.now() - lastLook > 2e3) look();
	}
	if (first.status === "paying") pollLater();
	else if (first.status === "open") forget();
	else if (first.status !== "challenge" && remembers(path)) accept(first);
	addEventListener("pageshow", (event) => {
		if (!event.persisted) return;
		asked = null;
		set({
			activity: "idle",
			returning: false
		});
		look();
	});
	addEventListener("online", glance);
	addEventListener("focus", () => {
		if (document.activeElement?.tagName !== "IFRAME") glance();
	});
	document.addEventListener("visibilitychange", () => {
		if (document.visibilityState === "visible") glance();
	});
	const untilExpiry = Date.parse(first.expires_at) - Date.now();
	if (untilExpiry > 0 && untilExpiry < 864e5) setTimeout(glance, untilExpiry + 1e3);
	return {
		async pay(request, createToken) {
			if (isBusy(view)) return;
			newest += 1;
			set({
				activity: "checking",
				problem: null,
				unfinished: false
			});
			const made = await createToken().catch(() => ({ problem: "The card form does not answer. Check your connection and try again." }));
			if ("problem" in made) {
				set({
					activity: "idle",
					problem: made.problem
				});
				return;
			}
			set({ activity: "paying" });
			await submit("pay", {
				...request,
				card_token: made.token
			});
		},
		async cancel(request) {
			if (view.activity !== "idle") return;
			set({
				activity: "cancelling",
				problem: null,
				unfinished: false
			});
			await submit("cancel", request);
		},
		continueAtBank() {
			if (!view.page?.challenge_url) return;
			remember(path);
			leave(view.page.challenge_url);
		},
		useAnotherCard() {
			set({ anotherCard: true });
		}
	};
}
/** The only way out of the page: to an address that the server named, on the web. */
function leave(url, how = "assign") {
	if (url !== null && /^https?:\/\//i.test(url)) location[how](url);
}
var storageKey = "tranche-paying";
function remember(path) {
	try {
		sessionStorage.setItem(storageKey, path);
	} catch {}
}
function forget() {
	try {
		sessionStorage.removeItem(storageKey);
	} catch {}
}
function remembers(path) {
	try {
		return sessionStorage.getItem(storageKey) === path;
	} catch {
		return false;
	}
}
// src/shared/money.ts
/** An amount as people of the territory read it (D40): `R 1 500,00`. */
function showMoney(cents, territory) {
	const format = new Intl.NumberFormat(territory.locale, {
		style: "currency",
		currency: territory.currency
	});
	const digits = String(cents).padStart(3, "0");
	return format.format(`${digits.slice(0, -2)}.${digits.slice(-2)}`);
}
// web/pay/words.ts
function money(cents, page) {
	return showMoney(cents, page);
}
/** `15 December 2026`, of a local date that has no time zone any more. */
function date(day, page) {
	return new Intl.DateTimeFormat(page.locale, {
		day: "numeric",
		month: "long",
		year: "numeric",
		timeZone: "UTC"
	}).format(/* @__PURE__ */ new Date(`${day}T00:00:00Z`));
}
function findPlan(page, term) {
	return page.plans.find((each) => each.number_of_payments === term) ?? page.plans[0] ?? {
		number_of_payments: 1,
		payments: []
	};
}
function firstPayment(plan, page) {
	return plan.payments[0]?.amount ?? page.amount;
}
function paymentCount(count) {
	return count === 1 ? "1 payment" : `${count} payments`;
}
/** What a term costs. The cents that do not divide are in the first payment (D22): it says so. */
function planPrice(plan, page) {
	const first = money(firstPayment(plan, page), page);
	const [, second] = plan.payments;
	if (second === void 0) return `${first} today`;
	if (second.amount === plan.payments[0]?.amount) return `${first} a month`;
	return `${first} today, then ${money(second.amount, page)} a month`;
}
/** The consent to the later charges, in one sentence; null when there are none. */
function consentSentence(plan, page) {
	const later = plan.payments.slice(1);
	const [next] = later;
	const last = later.at(-1);
	if (next === void 0 || last === void 0) return null;
	return `By paying you agree that this card is also charged ${later.length <= 3 ? list(later.map((payment) => `${money(payment.amount, page)} on ${on(payment, page)}`)) : `${later.length} monthly payments of ${money(next.amount, page)} each, on the dates listed above, from ${on(next, page)} to ${on(last, page)}`}, without asking you again.`;
}
function on(payment, page) {
	return date(payment.due_on, page).replaceAll(" ", "\xA0");
}
function list(parts) {
	return parts.length === 1 ? `${parts[0]}` : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
/** What happened, and what to do about it besides using another card. */
var declines = {
	generic: {
		happened: "Your bank declined this card.",
		advice: "Try again"
	},
	insufficient_funds: {
		happened: "Your bank declined this card: not enough funds.",
		advice: "Try again"
	},
	lost_card: {
		happened: "Your bank declined this card.",
		advice: null
	},
	stolen_card: {
		happened: "Your bank declined this card.",
		advice: null
	},
	velocity_exceeded: {
		happened: "Your bank declined this card: it has reached its limit for now.",
		advice: "Try again later"
	},
	expired_card: {
		happened: "Your bank declined this card: it has expired.",
		advice: "Check the expiry date"
	},
	incorrect_cvc: {
		happened: "Your bank declined this card: the security code is not right.",
		advice: "Check the code"
	},
	incorrect_number: {
		happened: "Your bank declined this card: the number is not right.",
		advice: "Check the number"
	},
	processing_error: {
		happened: "Your bank could not handle the payment just now.",
		advice: "Try again in a moment"
	},
	authentication_failed: {
		happened: "Your bank could not confirm that it was you.",
		advice: "Try again"
	},
	authentication_required: {
		happened: "Your bank wants you to confirm the payment, and that did not happen.",
		advice: "Try again"
	}
};
function declineWords(decline) {
	const { happened, advice } = declines[decline.reason];
	return {
		happened,
		next: `Nothing was charged. ${advice === null || !decline.may_retry ? "Use another card." : `${advice} or use another card.`}`
	};
}
// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var f = Symbol.for("pv");
var o = 0;
Array.isArray;
function a(t, e, n$1, u, a, i) {
	e || (e = {});
	var c, l, p = e;
	if ("ref" in p && "function" != typeof t) for (l in p = {}, e) "ref" == l ? c = e[l] : p[l] = e[l];
	var s = {
		type: t,
		props: p,
		key: n$1,
		ref: c,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: f,
		__v: --o,
		__i: -1,
		__u: 0
	};
	return (a || i) && (s.__source = a, s.__self = i), n.vnode && n.vnode(s), s;
}
// web/pay/form.tsx
/** Where a shopper chooses a term, enters a card and pays. It stays as it is while paying. */
function PayForm({ view, page, payment, term, choose }) {
	const plan = findPlan(page, term);
	const first = firstPayment(plan, page);
	const card = useCard(page, {
		amount: first,
		storeCard: plan.number_of_payments > 1
	});
	const consent = consentSentence(plan, page);
	const busy = isBusy(view);
	const mayPay = payment !== null && card.form !== null && !busy;
	function pay(event) {
		event.preventDefault();
		if (!mayPay || card.form === null) return;
		const request = {
			number_of_payments: plan.number_of_payments,
			consent: consent === null ? null : {
				version: page.consent_version,
				payments: plan.payments
			}
		};
		payment.pay(request, card.form.createToken);
	}
	return /* @__PURE__ */ a("form", {
		class: "pay-form",
		autocomplete: "off",
		noValidate: true,
		onSubmit: pay,
		children: [
			/* @__PURE__ */ a("fieldset", {
				class: "terms",
				disabled: busy,
				children: [/* @__PURE__ */ a("legend", { children: /* @__PURE__ */ a("h1", {
					tabIndex: -1,
					children: page.plans.length > 1 ? "How do you want to pay?" : "How you pay"
				}) }), page.plans.map((each) => /* @__PURE__ */ a(Term, {
					plan: each,
					page,
					chosen: each.number_of_payments === plan.number_of_payments,
					choose
				}, each.number_of_payments))]
			}),
			/* @__PURE__ */ a(Trouble, {
				view,
				page
			}),
			/* @__PURE__ */ a("section", {
				class: "card-details",
				"aria-labelledby": "card-heading",
				inert: busy,
				children: [
					/* @__PURE__ */ a("h2", {
						id: "card-heading",
						children: "Card details"
					}),
					/* @__PURE__ */ a("div", {
						class: "card-frame",
						"aria-busy": card.state === "loading",
						children: [
							card.state === "loading" && /* @__PURE__ */ a("div", {
								class: "card-loading",
								children: [
									/* @__PURE__ */ a("span", {}),
									/* @__PURE__ */ a("span", {}),
									/* @__PURE__ */ a("span", {}),
									/* @__PURE__ */ a("p", {
										class: "unseen",
										children: "The card form is loading."
									})
								]
							}),
							/* @__PURE__ */ a("div", {
								ref: card.place,
								hidden: card.state === "failed"
							}),
							card.state === "failed" && /* @__PURE__ */ a("div", {
								class: "notice danger",
								role: "alert",
								children: [/* @__PURE__ */ a("p", { children: [/* @__PURE__ */ a("strong", { children: "The card form did not load." }), " Nothing was charged. Check your connection, and that nothing in your browser blocks it."] }), /* @__PURE__ */ a("button", {
									type: "button",
									class: "link",
									onClick: card.retry,
									children: "Load it again"
								})]
							})
						]
					}),
					/* @__PURE__ */ a("p", {
						class: "small",
						children: [
							"Your card details go straight to the card processor. ",
							/* @__PURE__ */ a("bdi", { children: page.merchant_name }),
							" does not see them."
						]
					})
				]
			}),
			consent !== null && /* @__PURE__ */ a("p", {
				class: "consent",
				id: "consent",
				children: consent
			}),
			/* @__PURE__ */ a("button", {
				type: "submit",
				class: busy ? "button busy" : "button",
				"aria-disabled": !mayPay,
				...consent !== null && { "aria-describedby": "consent" },
				children: /* @__PURE__ */ a("span", { children: buttonWords(view) ?? `Pay ${money(first, page)} now` })
			}),
			/* @__PURE__ */ a("p", {
				class: "next",
				children: busy ? view.slow ? "This is taking longer than usual. Keep this page open: your bank may still answer." : "Keep this page open until it is done." : /* @__PURE__ */ a($$1, { children: [
					"Next, your bank may ask you to confirm. Then you return to",
					" ",
					/* @__PURE__ */ a("bdi", { children: page.merchant_name }),
					"."
				] })
			}),
			/* @__PURE__ */ a(CancelButton, {
				view,
				page,
				payment,
				term: plan.number_of_payments
			})
		]
	});
}
function buttonWords({ page, activity }) {
	switch (activity) {
		case "checking": return "Checking the card…";
		case "paying": return "Asking your bank…";
		case "cancelling": return "Cancelling…";
		case "lost": return "Finding out what happened…";
		case "leaving": return "Taking you to your bank…";
		case "idle": return page?.status === "paying" ? "Asking your bank…" : null;
	}
}
function Term({ plan, page, chosen, choose }) {
	const term = plan.number_of_payments;
	return /* @__PURE__ */ a("div", {
		class: chosen ? "term chosen" : "term",
		children: [/* @__PURE__ */ a("label", { children: [/* @__PURE__ */ a("input", {
			type: "radio",
			name: "term",
			value: term,
			checked: chosen,
			onChange: () => choose(term)
		}), /* @__PURE__ */ a("span", {
			class: "term-words",
			children: [
				/* @__PURE__ */ a("span", {
					class: "term-count",
					children: paymentCount(term)
				}),
				" ",
				/* @__PURE__ */ a("span", {
					class: "term-price",
					children: planPrice(plan, page)
				})
			]
		})] }), chosen && /* @__PURE__ */ a(Timeline, {
			plan,
			page
		}, term)]
	});
}
var paymentsAtMost = 12;
var paymentsAtFirst = 6;
/** One dot per payment: today, then each date. */
function Timeline({ plan, page }) {
	const [all, setAll] = d(plan.payments.length <= paymentsAtMost);
	return /* @__PURE__ */ a("div", {
		class: "timeline",
		children: [
			/* @__PURE__ */ a("ol", { children: (all ? plan.payments : [...plan.payments.slice(0, paymentsAtFirst), ...plan.payments.slice(-1)]).map((payment, index) => /* @__PURE__ */ a("li", {
				class: !all && index === paymentsAtFirst ? "after-gap" : "",
				children: [/* @__PURE__ */ a("span", { children: [index === 0 && "Today, ", /* @__PURE__ */ a("time", {
					dateTime: payment.due_on,
					children: date(payment.due_on, page)
				})] }), /* @__PURE__ */ a("span", {
					class: "price",
					children: money(payment.amount, page)
				})]
			}, payment.number)) }),
			!all && /* @__PURE__ */ a("button", {
				type: "button",
				class: "link",
				onClick: () => setAll(true),
				children: [
					"Show all ",
					plan.payments.length,
					" payments"
				]
			}),
			plan.payments.length > 1 && /* @__PURE__ */ a("p", {
				class: "sum",
				children: [
					"The payments add up to ",
					money(page.amount, page),
					"."
				]
			})
		]
	});
}
/** What went wrong, whether anything was charged, and what to do. */
function Trouble({ view, page }) {
	const place = T(null);
	const words = isBusy(view) && view.activity !== "lost" ? null : troubleWords(view, page);
	const happened = words?.happened ?? null;
	const settled = T(false);
	A(() => {
		if (settled.current && happened !== null) place.current?.focus();
		settled.current = true;
	}, [happened]);
	if (words === null) return null;
	return /* @__PURE__ */ a("div", {
		class: `notice ${words.tone}`,
		role: "alert",
		tabIndex: -1,
		ref: place,
		children: /* @__PURE__ */ a("p", { children: [
			/* @__PURE__ */ a("strong", { children: words.happened }),
			" ",
			words.next
		] })
	});
}
function troubleWords(view, page) {
	if (view.activity === "lost") return {
		tone: "warning",
		happened: "The connection was lost.",
		next: "We are finding out whether your payment went through. Keep this page open, and do not pay again elsewhere."
	};
	if (view.problem !== null) return {
		tone: "danger",
		happened: view.problem,
		next: "Nothing was charged."
	};
	if (view.unfinished) return {
		tone: "danger",
		happened: "Your payment did not go through.",
		next: "Nothing was charged. You can try again."
	};
	return page.decline === null ? null : {
		tone: "danger",
		...declineWords(page.decline)
	};
}
function CancelButton({ view, page, payment, term }) {
	const mayCancel = payment !== null && view.activity === "idle";
	return /* @__PURE__ */ a("button", {
		type: "button",
		class: "button quiet",
		"aria-disabled": !mayCancel,
		onClick: () => mayCancel && payment.cancel({ number_of_payments: term }),
		children: /* @__PURE__ */ a("span", { children: ["Cancel and return to ", /* @__PURE__ */ a("bdi", { children: page.merchant_name })] })
	});
}
function useCard(page, charge) {
	const place = T(null);
	const [state, setState] = d("loading");
	const [form, setForm] = d(null);
	const [tries, setTries] = d(0);
	A(() => {
		let gone = false;
		let mounted = null;
		if (place.current === null) return;
		mountCard(page, place.current, charge).then((made) => {
			mounted = made;
			if (gone) return made.destroy();
			setForm(made);
			setState("ready");
		}, () => {
			if (!gone) setState("failed");
		});
		return () => {
			gone = true;
			mounted?.destroy();
		};
	}, [tries]);
	A(() => form?.update(charge), [
		form,
		charge.amount,
		charge.storeCard
	]);
	return {
		place,
		state,
		form,
		retry() {
			setState("loading");
			setTries(tries + 1);
		}
	};
}
// web/pay/mark.tsx
/** Three bars, the first one full: one paid, two to come. */
function Mark() {
	return /* @__PURE__ */ a("svg", {
		class: "mark",
		viewBox: "0 0 32 32",
		"aria-hidden": "true",
		focusable: "false",
		children: [
			/* @__PURE__ */ a("rect", {
				class: "paid",
				x: "4.25",
				y: "5.25",
				width: "5.5",
				height: "21.5",
				rx: "1.5"
			}),
			/* @__PURE__ */ a("rect", {
				x: "13.25",
				y: "5.25",
				width: "5.5",
				height: "21.5",
				rx: "1.5"
			}),
			/* @__PURE__ */ a("rect", {
				x: "22.25",
				y: "5.25",
				width: "5.5",
				height: "21.5",
				rx: "1.5"
			})
		]
	});
}
// web/pay/order.tsx
var itemsAtFirst = 5;
/** Whom to pay, how much, and for what. Folded on a phone, open on a desktop. */
function Order({ page }) {
	const [open, setOpen] = d(false);
	const [all, setAll] = d(false);
	const items = page.line_items;
	const shown = all ? items : items.slice(0, itemsAtFirst);
	const rest = page.amount - items.reduce((sum, item) => sum + item.amount * item.quantity, 0);
	return /* @__PURE__ */ a("header", {
		class: "order",
		children: [
			/* @__PURE__ */ a("p", {
				class: "merchant",
				children: ["Pay ", /* @__PURE__ */ a("bdi", { children: page.merchant_name })]
			}),
			/* @__PURE__ */ a("p", {
				class: "amount",
				children: money(page.amount, page)
			}),
			/* @__PURE__ */ a("button", {
				type: "button",
				class: "order-toggle",
				"aria-expanded": open,
				"aria-controls": "order",
				onClick: () => setOpen(!open),
				children: [open ? "Hide the order" : "Show the order", items.length > 0 && /* @__PURE__ */ a("span", {
					class: "count",
					children: [
						" ",
						"(",
						items.length,
						" ",
						items.length === 1 ? "item" : "items",
						")"
					]
				})]
			}),
			/* @__PURE__ */ a("div", {
				id: "order",
				class: open ? "order-detail open" : "order-detail",
				children: [
					items.length > 0 && /* @__PURE__ */ a("ul", {
						class: "items",
						children: shown.map((item, index) => /* @__PURE__ */ a(Item, {
							item,
							page
						}, index))
					}),
					shown.length < items.length && /* @__PURE__ */ a("button", {
						type: "button",
						class: "link",
						onClick: () => setAll(true),
						children: [
							"Show all ",
							items.length,
							" items"
						]
					}),
					/* @__PURE__ */ a("dl", {
						class: "totals",
						children: [
							items.length > 0 && rest !== 0 && Number.isSafeInteger(rest) && /* @__PURE__ */ a("div", { children: [/* @__PURE__ */ a("dt", { children: rest > 0 ? "Other charges" : "Discounts" }), /* @__PURE__ */ a("dd", { children: [rest < 0 && "−", money(Math.abs(rest), page)] })] }),
							/* @__PURE__ */ a("div", {
								class: "total",
								children: [/* @__PURE__ */ a("dt", { children: "Total" }), /* @__PURE__ */ a("dd", { children: money(page.amount, page) })]
							}),
							/* @__PURE__ */ a("div", {
								class: "reference",
								children: [/* @__PURE__ */ a("dt", { children: "Order" }), /* @__PURE__ */ a("dd", { children: /* @__PURE__ */ a("bdi", { children: page.client_reference_id }) })]
							})
						]
					})
				]
			})
		]
	});
}
function Item({ item, page }) {
	const total = item.amount * item.quantity;
	return /* @__PURE__ */ a("li", { children: [/* @__PURE__ */ a("span", {
		class: "item",
		children: [/* @__PURE__ */ a("bdi", { children: item.name }), item.quantity > 1 && /* @__PURE__ */ a("span", {
			class: "each",
			children: [
				item.quantity,
				" at ",
				money(item.amount, page)
			]
		})]
	}), Number.isSafeInteger(total) && /* @__PURE__ */ a("span", {
		class: "price",
		children: money(total, page)
	})] });
}
// web/pay/outcome.tsx
/** Drawn on a 32 by 32 ground. */
var signs = {
	done: "M9 16.5l5 5 9.5-11",
	stopped: "M10 10l12 12M22 10L10 22",
	late: "M16 9v7.5l5 3",
	bank: "M7 13l9-5 9 5M8.5 23h15M10.5 14v8M16 14v8M21.5 14v8"
};
function Card({ sign, title, children }) {
	return /* @__PURE__ */ a("section", {
		class: "outcome",
		children: [
			/* @__PURE__ */ a("svg", {
				class: `sign ${sign}`,
				viewBox: "0 0 32 32",
				"aria-hidden": "true",
				focusable: "false",
				children: [/* @__PURE__ */ a("circle", {
					cx: "16",
					cy: "16",
					r: "15"
				}), /* @__PURE__ */ a("path", { d: signs[sign] })]
			}),
			/* @__PURE__ */ a("h1", {
				tabIndex: -1,
				children: title
			}),
			children
		]
	});
}
function UnknownLink() {
	return /* @__PURE__ */ a(Card, {
		sign: "stopped",
		title: "This link leads nowhere",
		children: /* @__PURE__ */ a("p", { children: "It may be incomplete or mistyped. Nothing was charged through it. Go back to the shop and start the payment again." })
	});
}
function Waiting({ view, page, payment }) {
	const lost = view.activity === "lost";
	return /* @__PURE__ */ a("section", {
		class: "outcome",
		children: [
			/* @__PURE__ */ a("h1", {
				tabIndex: -1,
				children: buttonWords(view) ?? "Asking your bank…"
			}),
			/* @__PURE__ */ a("div", {
				class: "progress",
				role: "progressbar",
				"aria-label": "Waiting for your bank"
			}),
			/* @__PURE__ */ a("p", { children: lost ? "The connection was lost. We are finding out whether your payment went through. Do not pay again elsewhere." : "A payment for this order is under way. You see here how it ends." }),
			/* @__PURE__ */ a("p", { children: [
				"Keep this page open",
				view.slow && ": it is taking longer than usual",
				"."
			] }),
			/* @__PURE__ */ a(CancelButton, {
				view,
				page,
				payment,
				term: page.number_of_payments
			})
		]
	});
}
function Challenge({ view, page, payment }) {
	const amount = money(firstPayment(findPlan(page, page.number_of_payments), page), page);
	return /* @__PURE__ */ a(Card, {
		sign: "bank",
		title: "Your bank wants to hear from you",
		children: [
			/* @__PURE__ */ a("p", { children: view.activity === "leaving" ? "You are being taken to your bank to confirm the payment." : `It asks you to confirm the payment of ${amount}. Nothing is charged until you do.` }),
			/* @__PURE__ */ a("button", {
				type: "button",
				class: "button",
				"aria-disabled": payment === null || view.activity === "cancelling",
				onClick: () => payment?.continueAtBank(),
				children: /* @__PURE__ */ a("span", { children: "Continue at your bank" })
			}),
			/* @__PURE__ */ a("button", {
				type: "button",
				class: "button plain",
				"aria-disabled": payment === null || view.activity === "cancelling",
				onClick: () => payment?.useAnotherCard(),
				children: /* @__PURE__ */ a("span", { children: "Use another card" })
			}),
			/* @__PURE__ */ a(CancelButton, {
				view,
				page,
				payment,
				term: page.number_of_payments
			})
		]
	});
}
/** The ends: each says what became of the money first. */
function Outcome({ view, page }) {
	const name = /* @__PURE__ */ a("bdi", { children: page.merchant_name });
	switch (page.status) {
		case "successful": return /* @__PURE__ */ a(Card, {
			sign: "done",
			title: view.returning ? "Payment approved" : "This order is already paid",
			children: [
				/* @__PURE__ */ a("p", { children: view.returning ? /* @__PURE__ */ a($$1, { children: [
					"Thank you. You are being taken back to ",
					name,
					"."
				] }) : "Your payment was approved. There is nothing more to do here." }),
				view.returning && /* @__PURE__ */ a("div", { class: "progress" }),
				/* @__PURE__ */ a(ReturnLink, { page })
			]
		});
		case "cancelled": return /* @__PURE__ */ a(Card, {
			sign: "stopped",
			title: "Payment cancelled",
			children: [
				/* @__PURE__ */ a("p", { children: [
					"Nothing was charged.",
					" ",
					view.returning ? /* @__PURE__ */ a($$1, { children: [
						"You are being taken back to ",
						name,
						"."
					] }) : /* @__PURE__ */ a($$1, { children: [
						"To buy after all, start again at ",
						name,
						"."
					] })
				] }),
				view.returning && /* @__PURE__ */ a("div", { class: "progress" }),
				/* @__PURE__ */ a(ReturnLink, { page })
			]
		});
		case "expired": return /* @__PURE__ */ a(Card, {
			sign: "late",
			title: "The time to pay is over",
			children: [/* @__PURE__ */ a("p", { children: [
				"Nothing was charged. To buy after all, go back to ",
				name,
				" and start again."
			] }), /* @__PURE__ */ a(ReturnLink, { page })]
		});
		default: return /* @__PURE__ */ a(Card, {
			sign: "stopped",
			title: "This order cannot be paid",
			children: [/* @__PURE__ */ a("p", { children: [
				"Something in what ",
				name,
				" sent us about it is not right. Nothing was charged. Go back to",
				" ",
				name,
				" and start again."
			] }), /* @__PURE__ */ a(ReturnLink, { page })]
		});
	}
}
function ReturnLink({ page }) {
	if (page.return_url === null || !/^https?:\/\//i.test(page.return_url)) return null;
	return /* @__PURE__ */ a("a", {
		class: "button plain",
		href: page.return_url,
		children: /* @__PURE__ */ a("span", { children: ["Return to ", /* @__PURE__ */ a("bdi", { children: page.merchant_name })] })
	});
}
// web/pay/test-cards.tsx
var cards = [
	["4242 4242 4242 4242", "approved"],
	["4000 0025 0000 3155", "the bank asks first; later payments work"],
	["4000 0000 0000 9995", "declined: not enough funds"],
	["4000 0000 0000 0002", "declined, no reason given"],
	["4000 0000 0000 9987", "declined for good: lost card"],
	["4000 0000 0000 0069", "declined: expired"],
	["4000 0000 0000 0127", "declined: wrong security code"],
	["4000 0084 0000 1629", "the bank asks first, then declines"],
	["4000 0000 0077 7005", "approved; the later payments are declined"]
];
function TestRibbon() {
	const [copied, setCopied] = d(null);
	async function copy(number) {
		try {
			await navigator.clipboard.writeText(number.replaceAll(" ", ""));
			setCopied(number);
		} catch {}
	}
	return /* @__PURE__ */ a("aside", {
		class: "ribbon",
		"aria-label": "Test mode",
		children: /* @__PURE__ */ a("details", { children: [/* @__PURE__ */ a("summary", { children: [/* @__PURE__ */ a("span", { children: [/* @__PURE__ */ a("strong", { children: "Test mode" }), ": no real money moves."] }), /* @__PURE__ */ a("span", {
			class: "ribbon-more",
			children: "Test cards"
		})] }), /* @__PURE__ */ a("div", {
			class: "test-cards",
			children: [
				/* @__PURE__ */ a("p", { children: "Any expiry date in the future and any security code will do." }),
				/* @__PURE__ */ a("ul", { children: cards.map(([number, does]) => /* @__PURE__ */ a("li", { children: [/* @__PURE__ */ a("span", {
					class: "test-card",
					children: [
						/* @__PURE__ */ a("code", { children: number }),
						" ",
						/* @__PURE__ */ a("span", { children: does })
					]
				}), /* @__PURE__ */ a("button", {
					type: "button",
					onClick: () => copy(number),
					children: [copied === number ? "Copied" : "Copy", /* @__PURE__ */ a("span", {
						class: "unseen",
						children: [" ", number]
					})]
				})] }, number)) }),
				/* @__PURE__ */ a("p", {
					class: "unseen",
					role: "status",
					children: copied === null ? "" : "The card number is copied."
				})
			]
		})] })
	});
}
// web/pay/app.tsx
function App({ page: first, path, pickedTerm }) {
	const [view, setView] = d(() => firstView(first));
	const [payment, setPayment] = d(null);
	const [term, setTerm] = d(first?.number_of_payments ?? 1);
	const [hasForm, setHasForm] = d(first?.status === "open");
	const { page } = view;
	A(() => {
		if (first !== null) setPayment(startPayment(first, path, setView));
		if (pickedTerm !== void 0) setTerm(pickedTerm);
	}, []);
	const scene = sceneOf(view, hasForm);
	const main = T(null);
	const seen = T(scene);
	A(() => {
		if (scene === "form") setHasForm(true);
		document.title = title(view);
		if (seen.current === scene) return;
		seen.current = scene;
		main.current?.querySelector("h1")?.focus();
	}, [scene, view]);
	return /* @__PURE__ */ a($$1, { children: [page?.test_mode && /* @__PURE__ */ a(TestRibbon, {}), /* @__PURE__ */ a("div", {
		class: page === null ? "page alone" : "page",
		children: [
			page !== null && /* @__PURE__ */ a(Order, { page }),
			/* @__PURE__ */ a("main", {
				ref: main,
				children: [page === null ? /* @__PURE__ */ a(UnknownLink, {}) : scene === "form" ? /* @__PURE__ */ a(PayForm, {
					view,
					page,
					payment,
					term,
					choose: setTerm
				}) : scene === "waiting" ? /* @__PURE__ */ a(Waiting, {
					view,
					page,
					payment
				}) : scene === "challenge" ? /* @__PURE__ */ a(Challenge, {
					view,
					page,
					payment
				}) : /* @__PURE__ */ a(Outcome, {
					view,
					page
				}), /* @__PURE__ */ a("p", {
					class: "unseen",
					role: "status",
					children: buttonWords(view)
				})]
			}),
			/* @__PURE__ */ a("footer", { children: [/* @__PURE__ */ a(Mark, {}), " Tranche"] })
		]
	})] });
}
function sceneOf({ page, anotherCard }, hasForm) {
	if (page === null) return "unknown";
	if (page.status === "open") return "form";
	if (page.status === "challenge") return anotherCard ? "form" : "challenge";
	if (page.status === "paying") return hasForm ? "form" : "waiting";
	return page.status;
}
function title({ page, returning }) {
	if (page === null) return "Unknown link";
	const what = {
		open: "Pay",
		paying: "Asking your bank",
		challenge: "Confirm at your bank",
		expired: "The time to pay is over",
		successful: returning ? "Payment approved" : "Already paid",
		cancelled: "Payment cancelled",
		invalid_payload: "Cannot be paid"
	}[page.status];
	return `${page.status === "open" && page.decline !== null ? "Declined: " : ""}${what} · ${page.merchant_name}`;
}
// web/pay/pay.css?inline
var pay_default = ":root{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light dark;--ground:#f6f7f5;--surface:#fff;--ink:#10201e;--quiet:#55635f;--line:#dde3e0;--line-strong:#84918d;--accent:#0b6b5f;--accent-strong:#08574d;--on-accent:#fff;--accent-ground:#e6f2ef;--danger:#b3261e;--danger-ground:#fcedeb;--warning:#8a5a00;--warning-ground:#fdf3dd;--shadow:0 1px 2px #10201e0f, 0 4px 16px #10201e0f;--sans:system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", sans-serif;--mono:ui-monospace, \"SF Mono\", Menlo, Consolas, \"DejaVu Sans Mono\", monospace;--radius-card:12px;--radius-control:8px}@media (prefers-color-scheme:dark){:root{--lightningcss-light: ;--lightningcss-dark:initial;--ground:#0c1413;--surface:#131d1c;--ink:#e8efed;--quiet:#9db0ab;--line:#25322f;--line-strong:#6b7c77;--accent:#5fd3bf;--accent-strong:#84e0d0;--on-accent:#0c1413;--accent-ground:#12302b;--danger:#ff8a80;--danger-ground:#331a19;--warning:#f4bf5f;--warning-ground:#2e2512;--shadow:0 1px 2px #0006, 0 4px 16px #0000003d}}*,:before,:after{box-sizing:border-box}html{-webkit-text-size-adjust:100%;-moz-text-size-adjust:100%;text-size-adjust:100%;background:var(--surface)}body{color:var(--ink);font:16px / 1.5 var(--sans);font-variant-numeric:tabular-nums;margin:0}h1,h2,p,ol,ul,dl,dd,fieldset{margin:0;padding:0}ol,ul{list-style:none}fieldset{border:0;min-width:0}legend{padding:0}h1{letter-spacing:-.01em;font-size:20px;font-weight:650;line-height:1.3}h2{font-size:16px;font-weight:650}bdi,p,dd,button span{overflow-wrap:anywhere}button{font:inherit;color:inherit}:focus-visible{outline:2px solid var(--accent);outline-offset:2px}h1:focus,.notice:focus{outline:none}.unseen{clip-path:inset(50%);white-space:nowrap;width:1px;height:1px;position:absolute;overflow:hidden}.small,.next,.consent{color:var(--quiet);font-size:14px}.price{white-space:nowrap}.page{flex-direction:column;min-height:100dvh;display:flex}main{flex:1;width:100%;max-width:508px;margin:0 auto;padding:24px}footer{color:var(--quiet);justify-content:center;align-items:center;gap:8px;padding:8px 24px 32px;font-size:14px;font-weight:600;display:flex}.mark{fill:none;width:18px;height:18px;stroke:var(--accent);stroke-width:2.5px}.mark .paid{fill:var(--accent)}.order{background:var(--accent-ground);padding:24px max(24px,50% - 230px)}.merchant{color:var(--quiet);-webkit-line-clamp:3;-webkit-box-orient:vertical;display:-webkit-box;overflow:hidden}.merchant bdi{color:var(--ink);font-weight:600}.amount{letter-spacing:-.02em;overflow-wrap:anywhere;font-size:40px;font-weight:700;line-height:1.2}.order-toggle,.link{min-height:32px;color:var(--accent);text-align:start;cursor:pointer;background:0 0;border:0;border-radius:4px;padding:4px 0;font-size:14px;font-weight:600}.order-toggle:hover,.link:hover{text-underline-offset:3px;text-decoration:underline}.order-toggle:after{content:\"\";border:2px solid;border-width:0 2px 2px 0;width:7px;height:7px;margin:0 0 3px 10px;display:inline-block;transform:rotate(45deg)}.order-toggle[aria-expanded=true]:after{margin-bottom:-1px;transform:rotate(225deg)}.order-toggle .count{font-weight:400}.order-detail{padding-top:12px;font-size:14px;display:none}.order-detail.open{display:block}.items li,.totals div{justify-content:space-between;gap:24px;padding:6px 0;display:flex}.item,.totals dd{min-width:0}.item bdi{-webkit-line-clamp:3;-webkit-box-orient:vertical;display:-webkit-box;overflow:hidden}.each{color:var(--quiet);font-size:13px;display:block}.items{border-bottom:1px solid color-mix(in srgb, var(--accent) 18%, transparent);margin-bottom:6px;padding-bottom:6px}.totals dd{text-align:end}.totals .total{font-weight:650}.totals .reference{color:var(--quiet);font-size:13px}.pay-form{flex-direction:column;display:flex}.terms{flex-direction:column;gap:8px;margin-bottom:28px;display:flex}.terms legend{margin-bottom:12px}.term{border:1px solid var(--line);border-radius:var(--radius-card);background:var(--surface)}.term.chosen{border-color:var(--accent);box-shadow:inset 0 0 0 1px var(--accent)}.term:not(.chosen):hover{border-color:var(--line-strong)}.term label{cursor:pointer;align-items:center;gap:12px;min-height:52px;padding:10px 16px;display:flex}.term input{width:20px;height:20px;accent-color:var(--accent);flex:none;margin:0}.term label:has(:focus-visible){outline:2px solid var(--accent);outline-offset:3px;border-radius:var(--radius-card)}.term input:focus-visible{outline:none}.term-words{flex-wrap:wrap;flex:1;justify-content:space-between;column-gap:12px;min-width:0;display:flex}.term-count{font-weight:600}.term-price{color:var(--quiet)}.chosen .term-price{color:var(--ink)}.timeline{padding:2px 16px 14px 48px;font-size:14px;animation:.15s ease-out open}.timeline li{color:var(--quiet);flex-wrap:wrap;justify-content:space-between;column-gap:12px;padding:4px 0;display:flex;position:relative}.timeline li:first-child{color:var(--ink);font-weight:600}.timeline li:before,.timeline li:after{content:\"\";position:absolute}.timeline li:before{border:2px solid var(--accent);background:var(--surface);border-radius:50%;width:10px;height:10px;inset:10px auto auto -27px}.timeline li:first-child:before{background:var(--accent)}.timeline li:not(:last-child):after{background:color-mix(in srgb, var(--accent) 35%, transparent);width:2px;inset:20px auto -10px -23px}.timeline li:has(+.after-gap):after{border-inline-start:2px dotted var(--accent);background:0 0}.sum{border-top:1px solid var(--line);margin-top:6px;padding-top:8px;font-weight:600}.card-details h2{margin-bottom:12px}.card-frame{min-height:176px;position:relative}.card-frame iframe{display:block}.card-loading{grid-template-rows:48px 48px;grid-template-columns:1fr 1fr;gap:40px 12px;padding-top:28px;display:grid;position:absolute;inset:0}.card-loading span{border:1px solid var(--line);border-radius:var(--radius-control);background:var(--ground)}.card-loading span:first-child{grid-column:1/-1}.card-details .small{margin-top:8px}.consent{color:var(--ink);margin-top:20px}.next{text-align:center;min-height:42px;margin-top:12px}.button{border-radius:var(--radius-control);background:var(--accent);width:100%;min-height:52px;color:var(--on-accent);text-align:center;cursor:pointer;border:1px solid #0000;justify-content:center;align-items:center;padding:10px 20px;font-size:16px;font-weight:650;text-decoration:none;display:flex;position:relative;overflow:hidden}.pay-form .button:not(.quiet){margin-top:16px}.button:hover{background:var(--accent-strong)}.button.plain{background:var(--surface);border-color:var(--line-strong);color:var(--ink)}.button.plain:hover{border-color:var(--accent)}.button.quiet{min-height:48px;color:var(--quiet);background:0 0;font-size:14px;font-weight:500}.button.quiet span{-webkit-line-clamp:2;-webkit-box-orient:vertical;display:-webkit-box;overflow:hidden}.button.quiet:hover{color:var(--ink);text-underline-offset:3px;text-decoration:underline}.button[aria-disabled=true]{cursor:default}.button:not(.quiet,.busy)[aria-disabled=true]{opacity:.6}.button.quiet[aria-disabled=true]{opacity:.6;text-decoration:none}.button.busy:after,.progress:after{content:\"\";opacity:.75;background:currentColor;border-radius:2px;width:40%;height:4px;animation:1.4s ease-in-out infinite run;position:absolute;inset:auto auto 0 0}.progress{background:var(--accent-ground);width:100%;height:4px;color:var(--accent);border-radius:2px;position:relative;overflow:hidden}.notice{border-radius:var(--radius-control);border-inline-start:4px solid;margin-bottom:24px;padding:14px 16px;font-size:14px}.notice p{color:var(--ink)}.notice.danger{border-color:var(--danger);background:var(--danger-ground)}.notice.danger strong{color:var(--danger)}.notice.warning{border-color:var(--warning);background:var(--warning-ground)}.notice.warning strong{color:var(--warning)}.notice .link{margin-top:4px}.card-frame .notice{margin:0}.outcome{text-align:center;flex-direction:column;align-items:center;gap:16px;padding:32px 0;display:flex}.outcome h1{overflow-wrap:anywhere;font-size:28px;font-weight:700;line-height:1.2}.outcome p{max-width:38ch;color:var(--quiet)}.outcome .button:first-of-type,.outcome .progress{margin-top:8px}.outcome .button+.button{margin-top:-4px}.sign{fill:none;width:56px;height:56px;stroke:var(--quiet);stroke-width:2px;stroke-linecap:round;stroke-linejoin:round}.sign circle{stroke:none;fill:var(--ground)}.sign.done,.sign.bank{stroke:var(--accent)}.sign.done circle,.sign.bank circle{fill:var(--accent-ground)}.sign.late{stroke:var(--warning)}.sign.late circle{fill:var(--warning-ground)}.ribbon{z-index:1;background:var(--warning-ground);border-bottom:1px solid color-mix(in srgb, var(--warning) 30%, transparent);color:var(--ink);font-size:14px;position:relative}.ribbon summary{cursor:pointer;flex-wrap:wrap;justify-content:center;align-items:center;gap:0 12px;min-height:40px;padding:4px 16px;list-style:none;display:flex}.ribbon summary::-webkit-details-marker{display:none}.ribbon summary:focus-visible{outline-offset:-4px}.ribbon strong{color:var(--warning)}.ribbon-more{color:var(--warning);text-underline-offset:3px;font-weight:600;text-decoration:underline}.test-cards{max-width:508px;margin:0 auto;padding:4px 24px 16px}.test-cards li{border-top:1px solid color-mix(in srgb, var(--warning) 20%, transparent);justify-content:space-between;align-items:center;gap:12px;padding:6px 0;display:flex}.test-cards ul{margin-top:8px}.test-card{flex-wrap:wrap;column-gap:12px;display:flex}.test-cards code{font:600 14px / 1.5 var(--mono);white-space:nowrap}.test-cards button{border:1px solid var(--warning);border-radius:var(--radius-control);min-width:64px;min-height:32px;color:var(--warning);cursor:pointer;background:0 0;flex:none;padding:2px 10px;font-size:13px;font-weight:600}.noscript{max-width:460px;color:var(--danger);margin:0 auto;padding:0 24px 32px}@media (width>=900px){.page{grid-template-rows:1fr auto;grid-template-columns:1fr 1fr;display:grid}.page.alone{grid-template-columns:1fr}.order{flex-direction:column;grid-row:1/3;align-items:flex-end;padding:72px 64px 112px 40px;display:flex}.order>*{width:100%;max-width:400px}.order-toggle{display:none}.order-detail{padding-top:32px;display:block}main{max-width:588px;margin:0;padding:72px 64px 32px}.alone main{margin:0 auto}.alone footer{justify-content:center;position:static}.outcome{padding:56px 0}footer{grid-area:2/1;justify-content:flex-start;width:100%;max-width:504px;margin-inline-start:auto;padding:0 64px 40px 40px}}@keyframes open{0%{opacity:0;transform:translateY(-4px)}}@keyframes run{0%{transform:translate(-100%)}to{transform:translate(250%)}}@media (prefers-reduced-motion:reduce){.timeline{animation:none}.button.busy:after,.progress:after{width:100%;animation:2s ease-in-out infinite alternate breathe}@keyframes breathe{0%{opacity:.2}}}@media (forced-colors:active){.term.chosen{outline:2px solid highlight}.button{border-color:buttontext}}";
// web/pay/server.tsx
/**
* The whole document. It paints before any script has loaded: the styles are in it, and all that a
* shopper sees first.
*/
var renderPayPage = (page, { path, nonce, script }) => {
	const body = z$1(/* @__PURE__ */ a(App, {
		page,
		path
	}));
	const takesCard = page?.status === "open";
	return `<!doctype html>
<html lang="${escape(page?.locale ?? "en")}">
<head>
<meta charset="utf-8">
<title>${escape(title(firstView(page)))}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<meta name="format-detection" content="telephone=no">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${mark_default}">
${page === null ? "" : `<script type="module" src="${script.path}" integrity="${script.integrity}" nonce="${nonce}"><\/script>`}
${takesCard ? `<link rel="preload" as="script" href="${escape(page.card_entry.scriptUrl)}" nonce="${nonce}">` : ""}
<style nonce="${nonce}">${pay_default}</style>
</head>
<body>
<div id="root">${body}</div>
${page === null ? "" : `<noscript><p class="noscript">Paying needs JavaScript, so that your card details go straight to the card processor. Switch it on and load this page again. Nothing was charged.</p></noscript>
<script type="application/json" id="pay-page">${json({
		page,
		path
	})}<\/script>`}
</body>
</html>
`;
};
function escape(text) {
	return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;");
}
/** JSON that no text in it can end early. */
function json(value) {
	return JSON.stringify(value).replaceAll("<", "\\u003c");
}
export { renderPayPage };
