import fs from 'node:fs';
import type { ServerResponse } from 'node:http';
import path from 'node:path';
import type { Context } from './books/context.ts';
import { awaitsBank, type Decision, decideChallenge, findIntent } from './books/payments.ts';
import { decideSetupChallenge } from './books/setups.ts';
import { returnParameters as hyperswitchReturn } from './hyperswitch/payment.ts';
import type { Kept } from './store.ts';

/** A request from a browser. */
export type Page = {
  method: string;
  url: URL;
  publicUrl: string;
  pageOrigins: string[];
  publishableKey: string;
  readBody(): Promise<string>;
  context(): Context;
};

const browserFolder = path.join(import.meta.dirname, 'browser');

function asset(name: string): Buffer {
  return fs.readFileSync(path.join(browserFolder, name));
}

/**
 * The script of one API, with the card form that both APIs share. All names are local to a block.
 */
function apiScript(name: string): Buffer {
  const code = ['card-element.js', name]
    .map((file) =>
      asset(file)
        .toString('utf8')
        .replace(/^import .*$|^export /gm, ''),
    )
    .join('\n');
  return Buffer.from(`'use strict';\n{\n${code}}\n`);
}

const assets: Record<string, { type: string; content: Buffer }> = {
  '/v1/tranche.js': { type: 'text/javascript', content: apiScript('tranche.js') },
  '/v1/HyperLoader.js': { type: 'text/javascript', content: apiScript('HyperLoader.js') },
  '/v1/card-frame.js': { type: 'text/javascript', content: asset('card-frame.js') },
  '/v1/card-fields.js': { type: 'text/javascript', content: asset('card-fields.js') },
  '/v1/card-frame.css': { type: 'text/css', content: asset('card-frame.css') },
  '/v1/challenge.css': { type: 'text/css', content: asset('challenge.css') },
};

const cardFrame = asset('card-frame.html').toString('utf8');

/** Serves the scripts, the card frame and the issuer's page. Returns false for other requests. */
export async function servePage(page: Page, response: ServerResponse): Promise<boolean> {
  const { method, url } = page;
  const found = method === 'GET' || method === 'HEAD' ? assets[url.pathname] : undefined;
  if (found !== undefined) {
    response.writeHead(200, {
      'Content-Type': `${found.type}; charset=utf-8`,
      'Content-Length': found.content.length,
      'Cache-Control': 'no-cache',
      'X-Content-Type-Options': 'nosniff',
      // The payment page may demand isolation from other origins' resources.
      'Cross-Origin-Resource-Policy': 'cross-origin',
    });
    response.end(method === 'HEAD' ? undefined : found.content);
    return true;
  }
  if (method === 'GET' && url.pathname === '/v1/card-frame') {
    html(response, 200, cardFrame, {
      scripts: "'self'",
      connect: "'self'",
      ancestors: page.pageOrigins.join(' ') || "'none'",
    });
    return true;
  }
  const challenge = /^\/challenge\/([^/]+)\/([^/]+)$/.exec(url.pathname);
  if (challenge === null || (method !== 'GET' && method !== 'POST')) return false;
  const [, id = '', secret = ''] = challenge;
  const context = page.context();
  const intent = intentOf(context, id, secret);
  if (intent === null) {
    html(response, 404, issuerPage('Unknown payment', '<p>There is no such payment.</p>'));
    return true;
  }
  if (method === 'POST') {
    const decision = new URLSearchParams(await page.readBody()).get('decision');
    if (decision !== 'approve' && decision !== 'decline' && decision !== 'close') {
      html(response, 400, challengePage(context, intent));
      return true;
    }
    goBack(response, decide(context, id, secret, decision), decision);
    return true;
  }
  // The bank takes no answer any more, but the page was opened: from the browser's history, or in a
  // second tab.
  if (awaitsBank(context, intent)) html(response, 200, challengePage(context, intent));
  else goBack(response, intent, 'approve');
  return true;
}

type Challenged = Kept<'payment_intent'> | Kept<'setup_intent'>;

function intentOf(context: Context, id: string, secret: string): Challenged | null {
  const intent = findIntent(context, id) ?? context.store.find('setup_intent', id);
  return intent !== null && intent.hidden.challenge === secret ? intent : null;
}

/** The intent is read again inside the transaction, because the form may have been sent twice. */
function decide(context: Context, id: string, secret: string, decision: Decision): Challenged {
  return context.store.transaction(() => {
    const intent = intentOf(context, id, secret);
    if (intent === null) throw new Error('an intent is never deleted');
    return isSetup(intent)
      ? decideSetupChallenge(context, intent, decision)
      : decideChallenge(context, intent, decision);
  });
}

/** The parameters that Stripe adds to the return URL after a challenge. */
function stripeReturn({ object }: Challenged, decision: Decision): Record<string, string> {
  const succeeded = object.status === 'requires_capture' || object.status === 'succeeded';
  const status = decision === 'close' && object.status === 'requires_action' ? 'pending' : 'failed';
  return {
    [object.object]: object.id,
    [`${object.object}_client_secret`]: object.client_secret ?? '',
    redirect_status: succeeded ? 'succeeded' : status,
  };
}

function goBack(response: ServerResponse, intent: Challenged, decision: Decision): void {
  const url = new URL(intent.hidden.return_url ?? 'about:blank');
  const parameters = intent.hidden.hyperswitch
    ? hyperswitchReturn(intent)
    : stripeReturn(intent, decision);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  response.writeHead(303, {
    Location: url.href,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'Content-Length': 0,
  });
  response.end();
}

const isSetup = (intent: Challenged): intent is Kept<'setup_intent'> =>
  intent.object.object === 'setup_intent';

function challengePage({ store }: Context, intent: Challenged): string {
  const { object } = intent;
  const last4 = store.find('payment_method', String(object.payment_method))?.object.card?.last4;
  const card = last4 ? `your card ending ${escapeHtml(last4)}` : 'your card';
  const question = isSetup(intent)
    ? `<p>A shop asks to store ${card} for later payments.</p>`
    : `<p>A shop asks to hold this amount on ${card}.</p>
      <p class="amount">${escapeHtml(amountOf(intent))}</p>`;
  return issuerPage(
    isSetup(intent) ? 'Confirm your card' : 'Confirm your payment',
    `${question}
      <form method="post">
        <button class="main" name="decision" value="approve">Approve</button>
        <button name="decision" value="decline">Decline</button>
        <button class="quiet" name="decision" value="close">Close</button>
      </form>
      <p class="note">This is the bank's page of the test gateway. No real money moves. Close returns without an answer.</p>`,
  );
}

function amountOf({ object }: Kept<'payment_intent'>): string {
  return new Intl.NumberFormat('en-ZA', {
    style: 'currency',
    currency: object.currency.toUpperCase(),
  }).format(object.amount / 100);
}

function issuerPage(title: string, content: string): string {
  return `<!doctype html>
<html lang="en-ZA">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title} – Test bank</title>
    <link rel="stylesheet" href="/v1/challenge.css">
    <link rel="icon" href="data:,">
  </head>
  <body>
    <main>
      <p class="bank"><span aria-hidden="true"></span>Test bank</p>
      <h1>${title}</h1>
      ${content}
    </main>
  </body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/**
 * The policy has no form-action, because a browser would apply it to every redirect after a form,
 * and the bank's form redirects to the payment page and from there to the merchant's.
 */
function html(
  response: ServerResponse,
  status: number,
  content: string,
  allow: { scripts?: string; connect?: string; ancestors?: string } = {},
): void {
  const policy = [
    "default-src 'none'",
    `script-src ${allow.scripts ?? "'none'"}`,
    `connect-src ${allow.connect ?? "'none'"}`,
    "style-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    `frame-ancestors ${allow.ancestors ?? "'none'"}`,
  ];
  const body = Buffer.from(content);
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
    'Cache-Control': 'no-store',
    'Content-Security-Policy': policy.join('; '),
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(body);
}
