import { createHmac, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

// A merchant's receiver, written only with Node, as a shop would write it.

/** A request as it was received. */
export type Received = {
  path: string;
  headers: http.IncomingHttpHeaders;
  raw: Buffer;
  at: number;
};

export type Reply = {
  status?: number;
  headers?: Record<string, string>;
  body?: string | Buffer;
};

export type Answering = (
  received: Received,
  count: number,
) => Reply | 'hang' | 'close' | Promise<Reply | 'hang' | 'close'>;

export type Receiver = {
  url: string;
  received: Received[];
  /** The number of unanswered requests whose connection is open. */
  inFlight(): number;
  /** The requests to a path. */
  at(path: string): Received[];
  answer: Answering;
  close(): Promise<void>;
};

/** Starts a receiver that answers 200 by default. */
export async function startReceiver(answer: Answering = () => ({})): Promise<Receiver> {
  let inFlight = 0;
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      const received = {
        path: request.url ?? '',
        headers: request.headers,
        raw: Buffer.concat(chunks),
        at: performance.now(),
      };
      receiver.received.push(received);
      inFlight += 1;
      response.once('close', () => {
        inFlight -= 1;
      });
      const count = receiver.at(received.path).length;
      const reply = await receiver.answer(received, count);
      if (reply === 'hang') return;
      if (reply === 'close') return void request.socket.destroy();
      response.writeHead(reply.status ?? 200, reply.headers).end(reply.body ?? '');
    });
  });
  // A pause of this process must not end a connection that is about to be used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}`,
    received: [],
    inFlight: () => inFlight,
    at: (path) => receiver.received.filter((one) => one.path === path),
    answer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

function equal(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Verifies the raw bytes, in constant time (contract, Authentication, rule 8). */
export function isSigned({ headers, raw }: Received, signingKey: string): boolean {
  const given = Buffer.from(String(headers['x-signature'] ?? ''), 'base64');
  return equal(given, createHmac('sha512', signingKey).update(raw).digest());
}

/**
 * Checks a signature of Standard Webhooks, which covers an id and a time and so protects against
 * replays.
 */
export function isSignedStandardly({ headers, raw }: Received, signingKey: string): boolean {
  const [version, given = ''] = String(headers['webhook-signature'] ?? '').split(',');
  const prefix = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
  const expected = createHmac('sha256', signingKey).update(prefix).update(raw).digest();
  return version === 'v1' && equal(Buffer.from(given, 'base64'), expected);
}
