// Says what a page shows, so that axe need not look at it again. Everything here is run by the page.

export type Survey = {
  /** Each kind of visible element, as a number. */
  kinds: number[];
  /** The texts whose contrast axe has not measured, each with the kind of its element. */
  texts: [text: number, ofKind: number][];
  /** How many frames are visible. */
  frames: number;
};

const hashScript = `(text) => {
  let hash = 7;
  for (let at = 0; at < text.length; at += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return hash;
}`;

/**
 * The kind of an element is everything that decides what the rules of axe find in it: its tag, its
 * classes, its parent, the names of its attributes, whether it has a name, and whether what it
 * refers to is there.
 */
const kindScript = `(element, levels, ids) => {
  const roleOf = (one) => one?.getAttribute('role') ?? '';
  const shapeOf = (one) => one && [one.localName, [...one.classList].sort().join('.'), roleOf(one)].join();
  const attributes = [...element.attributes].map(({ name }) => name)
    .filter((name) => name !== 'style' && !name.startsWith('data-')).sort();
  const isNamed = (element.firstElementChild === null || element.matches('a, button, label, th, h1, h2, h3, h4, h5, h6'))
    && element.textContent.trim() !== '';
  const referring = ['aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-owns', 'for'];
  const lost = referring.filter((name) => element.hasAttribute(name)
    && !element.getAttribute(name).trim().split(/\\s+/).every((id) => ids.get(id) > 0));
  const empty = ['alt', 'title', 'aria-label', 'lang'].filter((name) => element.getAttribute(name) === '');
  const [, level] = /^h([1-6])$/.exec(element.localName) ?? [];
  const before = level === undefined ? 0 : levels.at(-1);
  if (level !== undefined) levels.push(Number(level));
  const isHidden = element.closest('[aria-hidden="true"], [inert]') !== null;
  const isRepeated = ids.get(element.id) > 1;
  return [shapeOf(element), shapeOf(element.parentElement), attributes, element.type, element.lang, isNamed,
    element.labels?.length > 0, lost, empty, before, isHidden, isRepeated].join(' ');
}`;

/** What the rules about a whole page look at. */
const pageScript = `(visible) => [
  document.documentElement.lang, document.title.trim() !== '', document.compatMode,
  ...['h1', 'main', 'header', 'footer', 'nav', 'aside'].map((name) =>
    visible.filter((one) => one.localName === name).length),
].join(' ')`;

/**
 * Measuring the contrast of text takes axe as long as all other rules together, and the contrast is
 * the same wherever the colours, the font and the backgrounds are the same. So axe measures each
 * combination once in a process. If asked to, this marks one text of each combination that is not
 * known. A text that axe could not judge twice, for example because something covers it, is not shown
 * to it again in an element of the same kind.
 */
export const surveyScript = `([known, doubtful, isMarking]) => {
  const hashOf = ${hashScript};
  const kindOf = ${kindScript};
  const backgrounds = new Map();
  const backgroundOf = (element) => {
    if (element === null) return '';
    if (!backgrounds.has(element)) {
      const style = getComputedStyle(element);
      const own = [style.backgroundColor, style.backgroundImage, style.opacity].join();
      backgrounds.set(element, own + ' ' + backgroundOf(element.parentElement));
    }
    return backgrounds.get(element);
  };
  const fields = 'textarea, select, input:not([type=checkbox], [type=radio], [type=hidden], [type=file])';
  const [kinds, texts, levels, ids] = [new Set(), new Map(), [0], new Map()];
  for (const { id } of document.querySelectorAll('[id]')) ids.set(id, (ids.get(id) ?? 0) + 1);
  // Axe does not measure a hidden text, which must therefore not stand for a visible one.
  const visible = [...document.querySelectorAll('body, body :not(svg *)')]
    .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }));
  for (const element of visible) {
    const kind = kindOf(element, levels, ids);
    kinds.add(hashOf(kind));
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText && !element.matches(fields)) continue;
    if (element.closest(':disabled, [aria-disabled="true"]')) continue;
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const look = [color, fontSize, fontWeight, textShadow, backgroundOf(element)].join();
    const [text, doubt] = [hashOf(look), hashOf(look + kind)];
    if (known.includes(text) || doubtful.includes(doubt) || texts.has(text)) continue;
    texts.set(text, doubt);
    if (isMarking) element.setAttribute('data-measured', text + ' ' + doubt);
  }
  kinds.add(hashOf((${pageScript})(visible)));
  const frames = visible.filter((element) => element.localName === 'iframe').length;
  return { kinds: [...kinds], texts: [...texts], frames };
}`;
