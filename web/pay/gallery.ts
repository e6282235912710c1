// Shows every state of the hosted page without a service, for people and for tests:
//
//   node web/pay/gallery.ts [port]   after `npm run build:web`

import { readFileSync } from 'node:fs';
import http from 'node:http';
import { pathToFileURL } from 'node:url';
import type { CardEntry } from '#gateway/gateway.ts';
import type { Language } from '#platform/shared/language.ts';
import { words } from '#platform/shared/words/words.ts';
import { loadPayHtml } from '#purchases/shoppers/pay-html.ts';
import { startTestGateway } from '../../test-gateway/gateway.ts';
import type { Answer, GalleryState, GalleryStates } from './gallery/state.ts';
import { galleryStates } from './gallery/states.ts';

type Gallery = {
  html: Awaited<ReturnType<typeof loadPayHtml>>;
  states: GalleryStates;
  /** Every request that the pages sent, in order. */
  asked: { path: string; body: unknown }[];
  /** States whose page has sent a request that changes something. Later answers differ. */
  acted: Set<string>;
  /** Whether shoppers stay on this page when they are done: the shop has no page for them. */
  staysOnPage: boolean;
};

export async function startGallery(
  card_entry: CardEntry,
  { port = 0, staysOnPage = false }: { port?: number; staysOnPage?: boolean } = {},
) {
  const html = await loadPayHtml();
  const gallery: Gallery = { html, states: {}, asked: [], acted: new Set(), staysOnPage };
  const server = http.createServer((request, response) => serve(gallery, request, response));
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  gallery.states = galleryStates(card_entry, `${url}/shop`);
  return {
    url,
    states: gallery.states,
    asked: gallery.asked,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serve(
  gallery: Gallery,
  request: http.IncomingMessage,
  response: http.ServerResponse,
) {
  const { html, states, asked } = gallery;
  const { pathname } = new URL(request.url ?? '/', 'http://gallery');
  const asset = html.assets.find((each) => pathname === `/pay/assets/${each.name}`);
  if (asset) {
    const headers = { 'content-type': asset.type, 'cache-control': 'max-age=31536000, immutable' };
    return response.writeHead(200, headers).end(asset.bytes);
  }
  if (pathname === '/favicon.ico') {
    const icon = new URL('../../src/operating/docs/favicon.ico', import.meta.url);
    return response.writeHead(200, { 'content-type': 'image/x-icon' }).end(readFileSync(icon));
  }
  const [, place, name = '', ...steps] = pathname.split('/');
  const step = steps.at(-1);
  if (place === 'shop' && gallery.staysOnPage) return response.writeHead(204).end();
  if (place === 'shop') return page(response, '<title>The shop</title><h1>The shop</h1>');
  if (place !== 'pay') {
    const links = Object.keys(states).map((each) => `<li><a href="/pay/${each}">${each}</a>`);
    return page(response, `<title>Gallery</title><h1>Gallery</h1><ul>${links.join('')}</ul>`);
  }
  if (step === undefined || step === 'manage') return openState(gallery, name, response);
  let body = '';
  for await (const chunk of request) body += chunk;
  asked.push({ path: pathname, body: body === '' ? null : JSON.parse(body) });
  const state = states[name];
  if (step === 'language' && state?.page) {
    const { language } = JSON.parse(body) as { language: Language };
    return json(response, { page: { ...state.page, language }, words: words[language].page });
  }
  if (step === 'session' && state?.link === 'ended') return response.writeHead(422).end();
  if (step === 'report' && state?.report === 'limited') return response.writeHead(429).end();
  if (step !== 'state') gallery.acted.add(name);
  if (step === 'link' || step === 'report' || step === 'session') {
    return response.writeHead(202).end();
  }
  const answer = answerTo(step, state, gallery.acted.has(name));
  if (answer === 'never') return;
  if (answer === 'broken') return response.destroy();
  if (!answer) return response.writeHead(404).end();
  json(response, answer);
}

function openState({ html, states, acted }: Gallery, name: string, response: http.ServerResponse) {
  const state = states[name];
  acted.delete(name);
  const { html: text, csp } = html.render(state?.page ?? null, {
    token: name,
    nonce: crypto.randomUUID(),
    language: state?.page?.language ?? 'en',
  });
  page(response, text, { 'content-security-policy': csp });
}

function answerTo(
  step: string,
  state: GalleryState | undefined,
  hasActed: boolean,
): Answer | null | undefined {
  if (step === 'pay' || step === 'card') return state?.pay;
  if (step === 'cancel') return state?.cancel;
  return hasActed ? (state?.state ?? state?.pay ?? state?.cancel) : state?.page;
}

function page(
  response: http.ServerResponse,
  text: string | Buffer,
  headers: Record<string, string> = {},
) {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(text);
}

function json(response: http.ServerResponse, body: object) {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Card entry as in the sandbox: the test gateway, in memory. */
export async function startCardEntry() {
  const pageOrigins: string[] = [];
  const gateway = await startTestGateway({
    port: 0,
    stateFile: ':memory:',
    secretKey: 'sk_test_gallery',
    publishableKey: 'pk_test_gallery',
    pageOrigins,
  });
  const origins = [gateway.url];
  const cardEntry: CardEntry = {
    form: 'stripe',
    entersCard: 'before',
    scriptUrl: `${gateway.url}/v1/tranche.js`,
    publicKey: 'pk_test_gallery',
    scriptOrigins: origins,
    frameOrigins: origins,
    connectOrigins: origins,
  };
  return { cardEntry, pageOrigins, stop: () => gateway.close() };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { cardEntry, pageOrigins } = await startCardEntry();
  const gallery = await startGallery(cardEntry, { port: Number(process.argv[2] ?? 4400) });
  pageOrigins.push(gallery.url);
  process.stdout.write(`${gallery.url}\n`);
}
