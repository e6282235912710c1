// A shop that takes payment in instalments, using only Node and @tranche/merchant. This file has,
// in order: placing an order, the callback, look-ups, refunds, pages. Tranche's `npm start` starts
// it; to start it by hand, use the settings below.

import { randomBytes } from 'node:crypto';
import {
  callbackHandlers,
  RefuseCallback,
  Tranche,
  TrancheError,
  UnprocessableError,
} from '@tranche/merchant';
import { amountOf, linesOf, writeCart } from './cart.js';
import { openStore } from './orders.js';
import * as pages from './pages.js';
import { products } from './products.js';
import { createWebServer, nothingHere, page, seeOther } from './web.js';

const port = Number(process.env.SHOP_PORT ?? 3002);
const host = process.env.SHOP_HOST ?? 'localhost';
const store = openStore(process.env.SHOP_FILE ?? 'shop.json');
// One key, or two separated by a comma during a rotation, the newer one first.
const signingKeys = (process.env.SIGNING_KEY ?? '').split(',');
const trancheUrl = process.env.TRANCHE_URL ?? 'http://localhost:3000';
const tranche = new Tranche({
  baseUrl: trancheUrl,
  clientSecret: process.env.CLIENT_SECRET ?? '',
  signingKey: signingKeys[0] ?? '',
});
let shopUrl = process.env.SHOP_URL ?? `http://localhost:${port}`;

// ---------------------------------------------------------------------------------------------
// Placing an order

/** Stores the order before creating the checkout, so that every callback finds its order. */
function placeOrder(cart, customer) {
  return store.add({
    id: `KO-${randomBytes(4).toString('hex').toUpperCase()}`,
    cart: writeCart(cart),
    lines: linesOf(cart),
    amount: amountOf(cart),
    customer,
    status: 'pending',
  });
}

async function createCheckout(order) {
  const asked = tranche.checkouts.create(
    {
      amount: order.amount,
      currency: 'ZAR',
      client_reference_id: order.id,
      notify_url: `${shopUrl}/callback`,
      success_url: `${shopUrl}/orders/${order.id}`,
      cancel_url: `${shopUrl}/orders/${order.id}`,
      customer: order.customer,
      line_items: order.lines.map(({ name, amount, quantity }) => ({ name, amount, quantity })),
    },
    // However often the shop retries, this order gets only one checkout.
    { idempotencyKey: order.id },
  );
  const checkout = await asked.catch((error) => {
    const isRefused = error.status >= 400 && error.status < 500 && error.status !== 429;
    if (isRefused && order.status === 'pending') {
      // The detail of another refusal is for the shop's developer, not for its shoppers.
      const why = error.status === 422 ? error.detail : 'see the shop’s log';
      store.change(order, { status: 'cancelled' }, `No checkout was created: ${why}`);
    }
    throw error;
  });
  // The callback carries only the order number. A look-up needs the checkout's id.
  const { id: checkout_id, payment_url } = checkout;
  if (!order.checkout_id) store.change(order, { checkout_id, payment_url }, 'Checkout created');
}

// ---------------------------------------------------------------------------------------------
// The callback: how a checkout ended

const callbacks = callbackHandlers({
  signingKey: signingKeys,
  onCallback({ client_reference_id, status, amount, currency, number_of_payments }) {
    const order = store.find(client_reference_id);
    // An unknown order is acknowledged, because a retry would not help.
    if (!order) return;
    if (amount !== order.amount || currency !== 'ZAR') {
      throw new RefuseCallback(
        `${order.id} is for ${order.amount} cents, not ${amount} ${currency}`,
      );
    }
    settle(order, status, number_of_payments, 'Signed callback verified');
  },
  // Events are sent only if the operator enabled them: tranche integrations events ID --enable
  // refunds
  onEvent({ event, sequence, data }) {
    if (event !== 'refund.updated') return;
    const order = store.list().find(({ refund }) => refund?.id === data.id);
    // Events may overtake each other. An older one says nothing new.
    if (!order || sequence <= (order.refund.sequence ?? 0)) return;
    noteRefund(order, data.attributes.status, sequence);
  },
});

/** A refund's status may arrive by an event and by a look-up; it counts once. */
function noteRefund(order, status, sequence = order.refund.sequence) {
  const isKnown = order.refund.status === status;
  order.refund = { ...order.refund, status, sequence };
  if (!isKnown) store.change(order, {}, `Refund ${status}`);
}

/**
 * The same outcome may arrive twice, by callback and by look-up; it counts once. Money decides:
 * nothing cancels a paid order, and a payment makes even a cancelled order paid.
 */
function settle(order, status, number_of_payments, how) {
  if (status === 'successful' && order.status !== 'paid') {
    store.change(order, { status: 'paid', number_of_payments }, `${how}: paid`);
  }
  if (status === 'cancelled' && order.status === 'pending') {
    store.change(order, { status: 'cancelled' }, `${how}: cancelled`);
  }
}

// ---------------------------------------------------------------------------------------------
// Look-ups: for callbacks that did not arrive, and for refunds without events

/** The limit is five look-ups of each kind a minute, so there is one every thirteen seconds. */
const lookUpSeconds = 13;

/**
 * Finishes an order whose checkout was requested but got no answer, for example before a restart.
 */
async function finishOneOrder() {
  const order = store.nextToLookUp(({ status, checkout_id }) => {
    return status === 'pending' && checkout_id === undefined;
  });
  if (order) await createCheckout(order);
}

async function lookUpOneOrder() {
  // A real shop would wait for an hour; in a demo the visitor is watching.
  const order = store.nextToLookUp(({ status, checkout_id }) => {
    return status === 'pending' && checkout_id !== undefined;
  });
  if (!order) return;
  const { attributes } = await tranche.checkouts.get(order.checkout_id);
  const { status, number_of_payments, created_at, expires_at } = attributes;
  // Tranche's clock may differ from ours, as in a sandbox whose clock was moved. So only the time
  // between its two dates counts here, from when we had the checkout.
  const pageOpen = Date.parse(expires_at) - Date.parse(created_at);
  const lastChance = Date.parse(order.events.at(-1).at) + pageOpen + 15 * 60_000;
  if (status === 'successful' || status === 'cancelled') {
    settle(order, status, number_of_payments, 'Found by look-up');
  } else if (status === 'invalid_payload' || Date.now() > lastChance) {
    settle(order, 'cancelled', null, 'Not paid in time');
  }
}

async function lookUpOneRefund() {
  const order = store.nextToLookUp(({ refund }) => {
    return refund?.status === 'requested' || refund?.status === 'pending';
  });
  if (!order) return;
  const { attributes } = await tranche.refunds.get(order.refund.id);
  noteRefund(order, attributes.status);
}

async function lookUpNow() {
  for (const step of [finishOneOrder, lookUpOneOrder, lookUpOneRefund]) {
    await step().catch(logError);
  }
}

/** Refunds the whole order. A real shop would allow this only to its staff. */
async function refundOrder(order) {
  if (order.status !== 'paid' || (order.refund && order.refund.status !== 'failed')) return;
  const before = order.refunds ?? 0;
  // A second click uses the same key. Once the key has been answered, the next refund needs a new
  // one.
  const answered = (fields, text) => {
    if (before === (order.refunds ?? 0)) {
      store.change(order, { ...fields, refunds: before + 1 }, text);
    }
  };
  try {
    const { id, attributes } = await tranche.refunds.create(
      { checkout_id: order.checkout_id, amount: order.amount },
      { idempotencyKey: `${order.id} refund ${before}` },
    );
    answered({ refund: { id, status: attributes.status } }, `Refund ${attributes.status}`);
  } catch (error) {
    if (!(error instanceof UnprocessableError)) throw error;
    answered({}, `Refund refused: ${error.detail}`);
  }
}

const hour = 3_600_000;
let readingRules = null;
let askedForRulesAt = 0;

/**
 * Bands and terms, for "from … a month". The limit is five requests an hour, so the answer is kept
 * for an hour, and after a failure the next request waits for a quarter of an hour. A page waits
 * for Tranche only until the first answer; later it shows the last one.
 */
async function readRules() {
  const kept = store.config();
  const isOld = !kept || Date.now() - kept.at >= hour;
  if (isOld && !readingRules && Date.now() - askedForRulesAt >= hour / 4) {
    askedForRulesAt = Date.now();
    readingRules = tranche
      .config({ maxRetries: 0 })
      .then(({ attributes }) => store.keepConfig({ at: Date.now(), rules: attributes.rules }))
      .catch(logError)
      .finally(() => {
        readingRules = null;
      });
  }
  if (!kept) await readingRules;
  return store.config()?.rules ?? [];
}

// ---------------------------------------------------------------------------------------------
// Pages

const routes = {
  'GET /': async ({ cart }) => page(pages.home(products, await readRules(), cart)),
  'GET /products/:id': async ({ id, cart }) => {
    const product = products.find((one) => one.id === id);
    return product ? page(pages.product(product, await readRules(), cart)) : nothingHere(cart);
  },
  'POST /cart': ({ form, cart }) => {
    const quantity = form.get('quantity') ?? (cart.get(form.get('product')) ?? 0) + 1;
    cart.set(form.get('product'), Number(quantity));
    return seeOther('/cart', writeCart(cart));
  },
  'GET /cart': async ({ cart }) => page(pages.cart(cart, await readRules())),
  'POST /orders': async ({ cart, form }) => {
    if (cart.size === 0) return seeOther('/cart');
    const email = form.get('email') ?? '';
    const first_name = form.get('first_name') || undefined;
    const order = placeOrder(cart, { email, first_name });
    try {
      await createCheckout(order);
      return seeOther(order.payment_url);
    } catch (error) {
      if (!(error instanceof TrancheError)) throw error;
      logError(error);
      // The service has not refused the order: the shop retries, and the order's page shows the
      // outcome.
      if (order.status === 'pending') return seeOther(`/orders/${order.id}`);
      const status = error.status === 422 ? 422 : 503;
      return page(pages.cart(cart, await readRules(), { error, email, first_name }), status);
    }
  },
  'GET /orders': ({ cart }) => page(pages.orders(store.list(), cart)),
  'GET /orders/:id': ({ id, cart }) => {
    const order = store.find(id);
    if (!order) return nothingHere(cart);
    // The cart is emptied after the purchase, unless its contents have changed since.
    const isBought = order.status === 'paid' && order.cart === writeCart(cart);
    return page(pages.order(order, isBought ? new Map() : cart), 200, isBought ? '' : undefined);
  },
  'GET /orders/:id/events': ({ id, cart, request }) => {
    return store.find(id)
      ? { stream: (response) => streamOrder(id, request, response) }
      : nothingHere(cart);
  },
  'POST /orders/:id/refund': async ({ id, cart }) => {
    const order = store.find(id);
    if (!order) return nothingHere(cart);
    await refundOrder(order);
    return seeOther(`/orders/${id}`);
  },
};

/** Streams the order's changes to its open page. */
function streamOrder(id, request, response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const send = () => {
    const order = store.find(id);
    const message = { seen: order.events.length, html: pages.orderBody(order) };
    response.write(`data: ${JSON.stringify(message)}\n\n`);
  };
  store.changes.on(id, send);
  request.on('close', () => store.changes.off(id, send));
  send();
}

function logError(error) {
  console.error(error instanceof TrancheError ? error.message : error);
}

const server = createWebServer({
  routes,
  rawRoutes: { '/callback': callbacks.node },
  ownOrigin: () => new URL(shopUrl).origin,
  formsLeadTo: new URL(trancheUrl).origin,
  logError,
});
server.listen(port, host, () => {
  const { port: actual } = /** @type {import('node:net').AddressInfo} */ (server.address());
  if (port === 0) shopUrl = `http://localhost:${actual}`;
  console.log(JSON.stringify({ url: shopUrl }));
  // The shop first catches up with what happened while it was down.
  void lookUpNow();
  setInterval(lookUpNow, lookUpSeconds * 1000);
});
