// A shop that takes payment in instalments, with Node and @tranche/merchant and nothing else.
// Read on from here: placing an order, the callback, what the callback missed, refunds, pages. It is
// started by Tranche's own `npm start`, or by hand with the settings below.

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
// One key, or two with a comma between them while they are being rotated, the newer one first.
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

/** The order is written down before the checkout is created, so no callback meets a stranger. */
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
    // However often we ask, this order gets one checkout. Another attempt is another order.
    { idempotencyKey: order.id },
  );
  const checkout = await asked.catch((error) => {
    const isRefused = error.status >= 400 && error.status < 500 && error.status !== 429;
    if (isRefused && order.status === 'pending') {
      store.change(order, { status: 'cancelled' }, `No checkout was created: ${error.detail}`);
    }
    throw error;
  });
  // The callback carries our order number only. To ask about the checkout we need its id.
  const { id: checkout_id, payment_url } = checkout;
  if (!order.checkout_id) store.change(order, { checkout_id, payment_url }, 'Checkout created');
}

// ---------------------------------------------------------------------------------------------
// The callback: how a checkout ended

const callbacks = callbackHandlers({
  signingKey: signingKeys,
  onCallback({ client_reference_id, status, amount, currency, number_of_payments }) {
    const order = store.find(client_reference_id);
    // Not one of ours, and trying again would not make it so.
    if (!order) return;
    if (amount !== order.amount || currency !== 'ZAR') {
      throw new RefuseCallback(
        `${order.id} is for ${order.amount} cents, not ${amount} ${currency}`,
      );
    }
    settle(order, status, number_of_payments, 'Signed callback verified');
  },
});

/**
 * The same news, order and status, may come twice, and from two sides: it counts once. Money decides:
 * nothing cancels what was paid, and what was paid is paid, whatever we took it for before.
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
// What the callback missed, and refunds, which have none: we ask

/** Five questions a minute is the limit for each kind, so one every thirteen seconds. */
const secondsBetweenQuestions = 13;

/** The answer never came, or we were stopped while we waited for it. */
async function finishOneOrder() {
  const order = store.longestUnasked(({ status, checkout_id }) => {
    return status === 'pending' && checkout_id === undefined;
  });
  if (order) await createCheckout(order);
}

async function askAboutOneOrder() {
  // Callbacks are quick. A real shop would wait for an hour; here somebody is looking.
  const order = store.longestUnasked(({ status, checkout_id }) => {
    return status === 'pending' && checkout_id !== undefined;
  });
  if (!order) return;
  const { attributes } = await tranche.checkouts.get(order.checkout_id);
  const { status, number_of_payments, expires_at } = attributes;
  const lastChance = Date.parse(expires_at) + 15 * 60_000;
  if (status === 'successful' || status === 'cancelled') {
    settle(order, status, number_of_payments, 'Learned by asking');
  } else if (status === 'invalid_payload' || Date.now() > lastChance) {
    settle(order, 'cancelled', null, 'Nobody paid in time');
  }
}

async function askAboutOneRefund() {
  const order = store.longestUnasked(({ refund }) => {
    return refund?.status === 'requested' || refund?.status === 'pending';
  });
  if (!order) return;
  const { attributes } = await tranche.refunds.get(order.refund.id);
  if (attributes.status === order.refund.status) return;
  const refund = { ...order.refund, status: attributes.status };
  store.change(order, { refund }, `Refund ${attributes.status}`);
}

async function askNow() {
  const questions = [finishOneOrder, askAboutOneOrder, askAboutOneRefund];
  for (const ask of questions) await ask().catch(complain);
}

/** The whole order. A real shop would let only its staff do this. */
async function refundOrder(order) {
  if (order.status !== 'paid' || (order.refund && order.refund.status !== 'failed')) return;
  const before = order.refunds ?? 0;
  // Once a key has its answer, yes or no, the next refund needs another. A second click has the same.
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

/** Bands and terms, for "from … a month". It may be asked five times an hour, so it is kept. */
async function readRules() {
  const kept = store.config();
  if (kept && Date.now() - kept.at < 3_600_000) return kept.rules;
  try {
    const { attributes } = await tranche.config({ maxRetries: 0 });
    store.keepConfig({ at: Date.now(), rules: attributes.rules });
    return attributes.rules;
  } catch (error) {
    complain(error);
    return kept?.rules ?? [];
  }
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
      complain(error);
      // Nobody refused it: we go on asking, and its page shows when we have an answer.
      if (order.status === 'pending') return seeOther(`/orders/${order.id}`);
      const status = error.status === 422 ? 422 : 503;
      return page(pages.cart(cart, await readRules(), { error, email, first_name }), status);
    }
  },
  'GET /orders': ({ cart }) => page(pages.orders(store.list(), cart)),
  'GET /orders/:id': ({ id, cart }) => {
    const order = store.find(id);
    if (!order) return nothingHere(cart);
    // What was bought leaves the cart, unless something else is in it by now.
    const isBought = order.status === 'paid' && order.cart === writeCart(cart);
    return page(pages.order(order, isBought ? new Map() : cart), 200, isBought ? '' : undefined);
  },
  'GET /orders/:id/events': ({ id, cart, request }) => {
    return store.find(id)
      ? { stream: (response) => tell(id, request, response) }
      : nothingHere(cart);
  },
  'POST /orders/:id/refund': async ({ id, cart }) => {
    const order = store.find(id);
    if (!order) return nothingHere(cart);
    await refundOrder(order);
    return seeOther(`/orders/${id}`);
  },
};

/** An order page shows what happens to its order while it is open. */
function tell(id, request, response) {
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

function complain(error) {
  console.error(error instanceof TrancheError ? error.message : error);
}

const server = createWebServer({
  routes,
  rawRoutes: { '/callback': callbacks.node },
  ownOrigin: () => new URL(shopUrl).origin,
  formsLeadTo: new URL(trancheUrl).origin,
  complain,
});
server.listen(port, host, () => {
  const { port: actual } = /** @type {import('node:net').AddressInfo} */ (server.address());
  if (port === 0) shopUrl = `http://localhost:${actual}`;
  console.log(JSON.stringify({ url: shopUrl }));
  // What happened while we were away comes first.
  void askNow();
  setInterval(askNow, secondsBetweenQuestions * 1000);
});
