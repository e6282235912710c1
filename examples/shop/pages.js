// The shop's pages. `html` escapes every value that it did not build itself.

import { amountOf, linesOf } from './cart.js';
import { products } from './products.js';

class Markup extends String {}

/** @returns {string} */
function html(strings, ...values) {
  const texts = values.map((value) => [value].flat().map(escaped).join(''));
  return /** @type {any} */ (new Markup(String.raw({ raw: strings }, ...texts)));
}

function escaped(value) {
  if (value instanceof Markup) return String(value);
  if (value === null || value === undefined || value === false) return '';
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const trusted = (text) => new Markup(text);

/** The mailbox in which a sandbox keeps the mails to shoppers. Other services have none. */
const mailbox = process.env.MAILBOX_URL;

// ---------------------------------------------------------------------------------------------
// Money and time

const rand = new Intl.NumberFormat('en-ZA', { style: 'currency', currency: 'ZAR' });
const money = (cents) => html`<span class="money">${rand.format(cents / 100)}</span>`;

const clock = new Intl.DateTimeFormat('en-ZA', {
  dateStyle: 'long',
  timeStyle: 'medium',
  timeZone: 'Africa/Johannesburg',
});
const time = (at) => html`<time datetime="${at}">${clock.format(new Date(at))}</time>`;

/** The terms of the band that contains the amount whose payments are at least R 10. */
function termsFor(amount, rules) {
  const rule = rules.find(({ from_amount, to_amount }) => {
    return from_amount <= amount && amount <= to_amount;
  });
  return rule?.terms.filter((term) => monthly(amount, term) >= 1000) ?? [];
}

/** The monthly amount. The first payment also includes the cents that do not divide. */
const monthly = (amount, term) => Math.floor(amount / term);

function fromMonthly(amount, rules) {
  const term = Math.max(...termsFor(amount, rules), 1);
  if (term === 1) return '';
  return html`<p class="from">or from <b class="whole">${money(monthly(amount, term))} a month</b></p>`;
}

/** One filled bar for today's payment, outlined bars for the later ones. */
function bars(term) {
  const bar = (index) => html`<i class="${index === 0 ? 'full' : ''}"></i>`;
  return html`<span class="bars" aria-hidden="true">${Array.from({ length: term }, (_, index) => bar(index))}</span>`;
}

function plans(amount, rules) {
  const terms = termsFor(amount, rules);
  if (terms.length === 0) return '';
  return html`<section class="plans" aria-labelledby="plans">
    <h2 id="plans">Pay over time</h2>
    <ul>
      ${terms.map(
        (term) => html`<li class="plan">
          ${bars(term)}
          <span>${term === 1 ? 'Once, today' : `${term} payments`}</span>
          <span class="each">${money(monthly(amount, term))}${term > 1 && html` <small>a month</small>`}</span>
        </li>`,
      )}
    </ul>
    <p class="small">You choose on the next page, and pay the first one today by card.</p>
  </section>`;
}

// ---------------------------------------------------------------------------------------------
// Pages

const brand = html`<svg viewBox="0 0 40 40" aria-hidden="true"><circle cx="20" cy="20" r="20" fill="#C8623A"/><circle cx="27" cy="14" r="5" fill="#F3DFA8"/><path d="M2 28 14 15l7 8 5-5 12 10a20 20 0 0 1-36 0z" fill="#F6EAD6"/></svg>`;

function layout({ title, cart, main, className = '' }) {
  const count = [...(cart ?? [])].reduce((sum, [, quantity]) => sum + quantity, 0);
  const text = html`<!doctype html>
<html lang="en-ZA">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>${title} · Karoo Outfitters</title>
  <link rel="stylesheet" href="/tokens.css">
  <link rel="stylesheet" href="/shop.css">
  <link rel="icon" href="/icon.svg">
  <script type="module" src="/shop.js"></script>
</head>
<body>
  <a class="skip" href="#main">Skip to content</a>
  <header>
  <p class="ribbon">Demo shop on a Tranche sandbox. No real money moves: pay with <b class="whole">4242 4242 4242 4242</b>.${mailbox && html` Mail to shoppers is in the <a href="${mailbox}">mailbox</a>.`}</p>
  <div class="top">
    <a class="brand" href="/">${brand}<span>Karoo Outfitters</span></a>
    <nav aria-label="Shop">
      <a href="/orders">Orders</a>
      <a class="cart" href="/cart">Cart${count > 0 && html` <span class="count">${count}<span class="unseen"> items</span></span>`}</a>
    </nav>
  </div>
  </header>
  <main id="main" class="${className}">${main}</main>
  <footer>
    <p>Payments by <svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect class="paid" x="4.25" y="5.25" width="5.5" height="21.5" rx="1.5"/><rect x="13.25" y="5.25" width="5.5" height="21.5" rx="1.5"/><rect x="22.25" y="5.25" width="5.5" height="21.5" rx="1.5"/></svg> <b>Tranche</b></p>
    <p>This shop is a few short files: read them in <code>examples/shop</code>.</p>
  </footer>
</body>
</html>`;
  return String(text);
}

function picture({ ground, picture }, className = '') {
  return html`<svg class="picture ${ground} ${className}" viewBox="0 0 240 180" preserveAspectRatio="xMidYMid slice" aria-hidden="true">${trusted(picture)}</svg>`;
}

const landscape = html`<svg class="landscape" viewBox="0 0 1200 420" preserveAspectRatio="xMaxYMax slice" aria-hidden="true">
  <defs><linearGradient id="sky" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#F7E3C0"/><stop offset="1" stop-color="#F2B98A"/></linearGradient></defs>
  <path d="M0 0h1200v420H0z" fill="url(#sky)"/>
  <circle cx="1116" cy="98" r="48" fill="#FFF3D6"/>
  <path d="M0 262h90l40-40h160l34 40h210l30-64h150l36 64h170l26-36h120l28 36h106v160H0z" fill="#D98A5F"/>
  <path d="M0 306c150-40 260-8 400-18s210-50 370-26 250 34 430 6v152H0z" fill="#B5623C"/>
  <path d="M0 352c190-36 330 10 520-6s310-36 680-2v76H0z" fill="#7A3F28"/>
  <path d="M0 388c240-24 520 12 760-6s300-10 440-2v40H0z" fill="#4E2A1D"/>
  <g transform="translate(191 74) scale(.8)"><g stroke="#4E2A1D" stroke-width="4" fill="none"><path d="m1040 372 16-132 16 132m-28-40h24m-20-36h16"/></g>
  <g fill="#4E2A1D"><circle cx="1056" cy="236" r="6"/><path d="m1056 236-6-46h12zm0 0 46-6v12zm0 0 6 46h-12zm0 0-46 6v-12zm0 0 28-37 9 9zm0 0 37 28-9 9zm0 0-28 37-9-9zm0 0-37-28 9-9z"/></g></g>
</svg>`;

export function home(all, rules, cart) {
  const longest = Math.max(1, ...rules.flatMap(({ terms }) => terms));
  return layout({
    title: 'Gear for the long way round',
    cart,
    className: 'home',
    main: html`
    <section class="hero">
      ${landscape}
      <div class="words">
        <h1>Gear for the long way round</h1>
        ${longest > 1 && html`<p>Take it today. Pay in up to ${longest} monthly payments.</p>`}
        <a class="button" href="#shelves">See what is on the shelves</a>
      </div>
    </section>
    <h2 id="shelves" class="unseen">On the shelves</h2>
    <ul class="shelves">
      ${all.map(
        (product) => html`<li class="card">
          ${picture(product)}
          <div class="about">
            <h3><a href="/products/${product.id}">${product.name}</a></h3>
            <p class="price">${money(product.amount)}</p>
            ${fromMonthly(product.amount, rules)}
          </div>
        </li>`,
      )}
    </ul>`,
  });
}

export function product(one, rules, cart) {
  return layout({
    title: one.name,
    cart,
    className: 'product',
    main: html`
    ${picture(one, 'large')}
    <div class="details">
      <h1>${one.name}</h1>
      <p class="price large">${money(one.amount)}</p>
      <p class="lead">${one.about}</p>
      <form method="post" action="/cart">
        <input type="hidden" name="product" value="${one.id}">
        <button class="button wide">Add to cart</button>
      </form>
      ${plans(one.amount, rules)}
    </div>`,
  });
}

export function cart(content, rules, attempt = undefined) {
  const amount = amountOf(content);
  const title = 'Your cart';
  if (content.size === 0) {
    const main = html`<div class="receipt empty"><h1>${title}</h1><p>There is nothing in it yet.</p>
      <a class="button" href="/">See what is on the shelves</a></div>`;
    return layout({ title, cart: content, main, className: 'narrow' });
  }
  const canPay = rules.length === 0 || termsFor(amount, rules).length > 0;
  return layout({
    title,
    cart: content,
    className: 'checkout',
    main: html`
    <section aria-labelledby="cart">
      <h1 id="cart">${title}</h1>
      <ul class="lines">
        ${linesOf(content).map((line) => {
          const own = products.find(({ id }) => id === line.id);
          return html`<li>
            ${picture(own, 'tiny')}
            <div><b>${line.name}</b><span class="small">${money(line.amount)} each</span></div>
            <form method="post" action="/cart" class="quantity">
              <input type="hidden" name="product" value="${line.id}">
              <button name="quantity" value="${line.quantity - 1}" aria-label="One ${line.name} less">−</button>
              <output aria-label="How many">${line.quantity}</output>
              <button name="quantity" value="${line.quantity + 1}" aria-label="One ${line.name} more" ${line.quantity >= 9 && trusted('disabled')}>+</button>
            </form>
            <span class="sum">${money(line.amount * line.quantity)}</span>
          </li>`;
        })}
      </ul>
      <p class="total"><span>Total</span> ${money(amount)}</p>
    </section>
    <section class="receipt" aria-labelledby="pay">
      <h2 id="pay">Check out</h2>
      ${attempt && html`<p class="notice" role="alert">${explain(attempt.error)}</p>`}
      ${canPay ? '' : html`<p class="notice" role="alert">${outOfBands(rules)}</p>`}
      <form method="post" action="/orders">
        <label>First name <input name="first_name" autocomplete="given-name" maxlength="255" value="${attempt?.first_name}"></label>
        <label>E-mail address <input name="email" type="email" autocomplete="email" required value="${attempt?.email}"></label>
        <button class="button wide" ${!canPay && trusted('disabled')}>Check out</button>
      </form>
      ${plans(amount, rules)}
    </section>`,
  });
}

function explain(error) {
  if (error.status === 422) return `That did not work: ${error.detail} Nothing was charged.`;
  return 'That did not work, and it is our mistake. Nothing was charged and your cart is still here.';
}

function outOfBands(rules) {
  const from = Math.min(...rules.map(({ from_amount }) => from_amount));
  const to = Math.max(...rules.map(({ to_amount }) => to_amount));
  return html`Orders from ${money(from)} to ${money(to)} can be paid here.`;
}

export function orders(all, cart) {
  const title = 'Orders';
  return layout({
    title,
    cart,
    className: 'narrow',
    main: html`<h1>${title}</h1>
    ${all.length === 0 && html`<p class="lead">There are no orders yet.</p>`}
    <ul class="orders">
      ${all.map(
        (one) => html`<li>
          <a href="/orders/${one.id}">${one.id}</a>
          <span class="small">${one.lines.map(({ name, quantity }) => `${quantity} × ${name}`).join(', ')}</span>
          <span class="status ${standing(one).tone}">${standing(one).short}</span>
          <span class="sum">${money(one.amount)}</span>
        </li>`,
      )}
    </ul>`,
  });
}

/** The order's status in the shopper's words. */
function standing({ status, refund, payment_url }) {
  if (refund?.status === 'complete') {
    return {
      tone: 'done',
      short: 'Refunded',
      title: 'Refunded',
      text: 'The whole amount is on its way back to you.',
    };
  }
  if (refund?.status === 'requested' || refund?.status === 'pending') {
    const text =
      refund.status === 'requested'
        ? 'Your refund was requested and is waiting for approval.'
        : 'Your refund was approved and is being processed.';
    return { tone: 'waiting', short: 'Refund in progress', title: 'Refund in progress', text };
  }
  if (status === 'paid') {
    const text = refund
      ? 'The refund did not work. Ask again, or talk to us.'
      : 'We are packing it.';
    return {
      tone: refund ? 'bad' : 'done',
      short: refund ? 'Refund failed' : 'Paid',
      title: 'Thank you',
      text,
    };
  }
  if (status === 'cancelled') {
    return {
      tone: 'bad',
      short: 'Cancelled',
      title: 'Not paid',
      text: 'This order was cancelled. Nothing was charged.',
    };
  }
  return {
    tone: 'waiting',
    short: 'Waiting',
    title: 'Waiting for your payment',
    text: payment_url
      ? 'This page updates by itself as soon as you have paid.'
      : 'The payment page cannot be reached at the moment. We keep trying, and this page updates by itself.',
  };
}

const symbols = {
  done: '<path d="m9 16.5 5 5 9.5-11"/>',
  waiting: '<path d="M16 9v7.5l5 3"/>',
  bad: '<path d="m11 11 10 10m0-10L11 21"/>',
};

/** The part of an order's page that is updated live. */
export function orderBody(one) {
  const { tone, title, text } = standing(one);
  const { number_of_payments: term, refund } = one;
  const mayRefund = one.status === 'paid' && (!refund || refund.status === 'failed');
  return String(html`
    <div class="outcome ${tone}">
      <svg viewBox="0 0 32 32" aria-hidden="true"><circle cx="16" cy="16" r="15"/>${trusted(symbols[tone])}</svg>
      <div><h1>${title}</h1><p>${text}</p></div>
    </div>
    <p class="amount">${money(one.amount)}</p>
    <dl>
      <div><dt>Order</dt><dd>${one.id}</dd></div>
      ${one.lines.map(({ name, quantity, amount }) => html`<div><dt>${quantity} × ${name}</dt><dd>${money(quantity * amount)}</dd></div>`)}
      ${one.status === 'paid' && html`<div><dt>Paid in</dt><dd>${term === 1 ? 'one payment' : html`${bars(term)} ${term} monthly payments`}</dd></div>`}
      ${refund && html`<div><dt>Refund</dt><dd>${refund.status}</dd></div>`}
    </dl>
    ${refund?.status === 'requested' && html`<p class="small">In a sandbox you are the operator as well. Approve it with <code>bin/tranche refunds approve ${refund.id}</code></p>`}
    ${one.status === 'pending' && one.payment_url && html`<a class="button wide" href="${one.payment_url}">Continue to payment</a>`}
    ${one.status === 'cancelled' && html`<a class="button wide" href="/cart">Back to the cart</a>`}
    ${mayRefund && html`<form method="post" action="/orders/${one.id}/refund"><button class="button wide quiet">Refund ${money(one.amount)}</button></form>`}
    <section class="events" aria-labelledby="events">
      <h2 id="events">What this shop has seen</h2>
      <ol>${one.events.map(({ at, text: what }) => html`<li><span>${what}</span> ${time(at)}</li>`)}</ol>
    </section>`);
}

export function order(one, cart) {
  return layout({
    title: `Order ${one.id}`,
    cart,
    className: 'narrow',
    main: html`<div class="receipt" id="order" data-events="/orders/${one.id}/events" data-seen="${one.events.length}" aria-live="polite">${trusted(orderBody(one))}</div>`,
  });
}

function note(title, text, cart) {
  const main = html`<div class="receipt empty"><h1>${title}</h1><p>${text}</p><a class="button" href="/">Back to the shop</a></div>`;
  return layout({ title, cart, main, className: 'narrow' });
}

export const nothingHere = (cart) =>
  note('Nothing here', 'There is no such page in this shop.', cart);
export const refused = (cart) =>
  note('Not accepted', 'That came from another site, so nothing was done.', cart);
export const broken = () =>
  note('That did not work', 'Something is wrong on our side. Try again in a moment.', new Map());
