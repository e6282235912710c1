// The few parts of a web framework that the shop needs.

import { readFileSync } from 'node:fs';
import http from 'node:http';
import { readCart } from './cart.js';
import * as pages from './pages.js';

const types = {
  'tokens.css': 'text/css',
  'shop.css': 'text/css',
  'shop.js': 'text/javascript',
  'icon.svg': 'image/svg+xml',
};
const assets = new Map(
  Object.entries(types).map(([name, type]) => {
    const body = readFileSync(new URL(`./public/${name}`, import.meta.url));
    return [`/${name}`, { headers: { 'content-type': type }, body }];
  }),
);

export function page(html, status = 200, newCart = undefined) {
  const headers = { 'content-type': 'text/html; charset=utf-8', ...cartHeader(newCart) };
  return { status, headers, body: html };
}

export function seeOther(location, newCart = undefined) {
  return { status: 303, headers: { location, ...cartHeader(newCart) } };
}

function cartHeader(cart) {
  return cart === undefined ? {} : { 'set-cookie': `cart=${cart}; Path=/; HttpOnly; SameSite=Lax` };
}

export const nothingHere = (cart) => page(pages.nothingHere(cart), 404);

/**
 * Routes are named like `GET /orders/:id`. `rawRoutes` are named by path and get Node's own request
 * with the body unread. `formsLeadTo` is the only other origin that a form may lead to.
 */
export function createWebServer({ routes, rawRoutes, ownOrigin, formsLeadTo, logError }) {
  const always = {
    'content-security-policy': `default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self' ${formsLeadTo}; base-uri 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store',
  };

  async function answer(request) {
    const [pathname] = request.url.split('?');
    const asset = assets.get(pathname);
    if (asset && request.method === 'GET') return asset;
    const [, first, id, last] = pathname.split('/');
    const pattern = `/${[first, id && ':id', last].filter(Boolean).join('/')}`;
    const route = routes[`${request.method} ${pattern}`];
    const cart = readCart(request.headers.cookie);
    if (!route) return nothingHere(cart);
    if (request.method === 'POST' && isForeign(request.headers)) {
      return page(pages.refused(cart), 403);
    }
    const form = request.method === 'POST' ? await readForm(request) : new URLSearchParams();
    return await route({ id, cart, form, request });
  }

  /** A form on another site, or on another port of this host, must not buy or refund anything. */
  function isForeign({ origin, 'sec-fetch-site': site }) {
    if (origin !== undefined && origin !== ownOrigin()) return true;
    return site !== undefined && site !== 'same-origin' && site !== 'none';
  }

  const server = http.createServer(async (request, response) => {
    const raw = rawRoutes[request.url];
    if (raw) return await raw(request, response);
    const found = await answer(request).catch((error) => {
      logError(error);
      return page(pages.broken(), 500);
    });
    if (found.stream) return found.stream(response);
    response.writeHead(found.status ?? 200, { ...always, ...found.headers }).end(found.body);
  });

  const stop = () => {
    server.close(() => process.exit());
    server.closeAllConnections();
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
  // The process that started the shop has ended.
  process.once('disconnect', stop);
  return server;
}

async function readForm(request) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > 10_000) throw new Error('The form is too long.');
  }
  return new URLSearchParams(text);
}
