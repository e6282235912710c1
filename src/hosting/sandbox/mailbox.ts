import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Database } from '#platform/database/database.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import {
  findMailboxEntry,
  listMailbox,
  type MailboxEntry,
} from '#purchases/messages/sending/mailbox.sql.ts';

/**
 * Most of a story's callbacks go here, because the story's own receiver ends with the story. All of
 * them are accepted.
 */
export const callbackPath = '/callback';

/** The page shows this many of the newest messages. Older ones stay in the database. */
const entriesMax = 200;

const file = (name: string) =>
  readFileSync(new URL(`../../../web/mailbox/${name}`, import.meta.url));
const assets: Record<string, { type: string; body: Buffer }> = {
  '/': { type: 'text/html; charset=utf-8', body: file('mailbox.html') },
  '/mailbox.css': { type: 'text/css; charset=utf-8', body: file('mailbox.css') },
  '/mailbox.js': { type: 'text/javascript; charset=utf-8', body: file('mailbox.js') },
};

const pagePolicy =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/**
 * A message is shown as a mail client would show it: its own styles, the merchant's logo, no
 * script.
 */
const messagePolicy = (pageOrigin: string) =>
  `default-src 'none'; style-src 'unsafe-inline'; img-src ${pageOrigin}; base-uri 'none'; form-action 'none'; sandbox allow-popups allow-popups-to-escape-sandbox`;

/**
 * Shows the mail that a sandbox would have sent, as a page and as JSON. It listens
 * on loopback only: the messages contain links that act for a shopper.
 */
export async function startMailbox(
  deps: { database: Database; log: Logger; baseUrl: string },
  port: number,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    answer(deps, request, response).catch((error) => {
      deps.log.error({ err: error }, 'the mailbox could not answer');
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, 'localhost', resolve);
  });
  const address = server.address();
  const actualPort = typeof address === 'object' && address ? address.port : port;
  return {
    url: `http://localhost:${actualPort}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(
  { database: { db }, baseUrl }: { database: Database; baseUrl: string },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const headers = {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': pagePolicy,
  };
  const send = (status: number, type: string, body: string | Buffer, more = {}) => {
    response.writeHead(status, { ...headers, 'content-type': type, ...more });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
  // A page on another site whose host name resolves to this machine must not read the messages.
  if (!isLoopback(hostOf(request))) {
    return send(421, 'text/plain', 'This mailbox answers on localhost only.\n');
  }
  const [path = '/', query] = (request.url ?? '/').split('?');
  if (request.method === 'POST' && path === callbackPath) {
    request.resume();
    return send(200, 'text/plain', 'Received.\n');
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return send(405, 'text/plain', 'This mailbox can only be read.\n', { allow: 'GET, HEAD' });
  }
  const asset = assets[path];
  if (asset) return send(200, asset.type, asset.body);
  if (path === '/messages') {
    // A text in PostgreSQL cannot contain a zero character, and no e-mail address contains one.
    const to = (new URLSearchParams(query).get('to') ?? '').replaceAll('\0', ' ');
    const data = (await listMailbox(db, { to, limit: entriesMax })).map(present);
    return send(200, 'application/json', JSON.stringify({ data }));
  }
  const [, id = '', part] = /^\/messages\/([^/]+)\/(html|text)$/.exec(path) ?? [];
  const entry = isUuid(id) ? await findMailboxEntry(db, id) : null;
  if (!entry) return send(404, 'text/plain', 'There is no such message.\n');
  if (part === 'text') return send(200, 'text/plain; charset=utf-8', entry.text);
  // Links open in a new tab, not inside the mailbox.
  const html = entry.html.replace('<head>', '<head><base target="_blank">');
  const policy = messagePolicy(new URL(baseUrl).origin);
  return send(200, 'text/html; charset=utf-8', html, { 'content-security-policy': policy });
}

function hostOf({ headers }: IncomingMessage): string {
  return URL.parse(`http://${headers.host ?? ''}`)?.hostname ?? '';
}

const present = ({ id, recipient, sender, subject, text, html, sent_at }: MailboxEntry) => ({
  id,
  to: recipient,
  from: sender,
  subject,
  text,
  html,
  sent_at,
});
