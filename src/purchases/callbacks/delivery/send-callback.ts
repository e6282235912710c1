import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import type { Clock } from '#platform/shared/clock.ts';
import {
  type Connection,
  connectionOf,
  guardedConnector,
  type Phase,
  stopwatch,
} from './connection-guard.ts';
import { createDeadlines } from './deadlines.ts';
import { type AllowedRange, explainBadNotifyUrl } from './destination.ts';
import { failureReason } from './failure-reason.ts';
import {
  deadlineSeconds,
  keepAliveMilliseconds,
  responseBodyBytesMax,
  responseHeaderBytesMax,
} from './limits.ts';
import { createResolve, type Resolve } from './resolve-name.ts';

/**
 * The result of one exchange with a receiver. `reason` says why it does not count as delivered.
 * `timings` are milliseconds: for each phase of the exchange, until the last piece of a body that was
 * sent in pieces, and in total.
 */
export type Exchange = {
  delivered: boolean;
  reason: string | null;
  address: string | null;
  tls_version: string | null;
  status: number | null;
  headers: Record<string, string | string[]> | null;
  body: Buffer | null;
  /**
   * How long the body was. If the rest was not read, the declared length, or without one the number
   * of bytes that arrived.
   */
  body_bytes: number | null;
  /** The response was longer than what is read of it. */
  truncated: boolean;
  timings: Partial<Record<Phase | 'sent' | 'first_byte' | 'total', number>>;
};

export type SendCallback = (message: {
  url: string;
  headers: Record<string, string>;
  body: Buffer;
  /** Sends the body in pieces with a pause between them, as a bad network delivers it. */
  dribble?: { pieces: number; pauseMilliseconds: number };
  /** Called when the request leaves. Not called if no connection was made. */
  whenSent?: () => void;
}) => Promise<Exchange>;

export type CallbackSenderOptions = {
  resolve?: Resolve;
  /** Certificates to trust instead of the system's: for tests with an authority of their own. */
  authorities?: string[];
  /** Shorter than in production: for tests that wait for it. */
  deadlineMilliseconds?: number;
  /** Longer than in production: for tests of connections that are used again. */
  idleMilliseconds?: number;
};

/** We end the exchange ourselves. */
class CutOff extends Error {}

// A response does not say over which socket it came, and connections are used again. undici reports
// every request that it writes, with its socket; the body identifies ours.
const onSent = new WeakMap<object, (socket: Socket) => void>();
subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as { request: { body: object }; socket: Socket };
  onSent.get(request.body)?.(socket);
});

/**
 * Posts callbacks to addresses that merchants chose. The connection guard decides which addresses
 * may be reached. Redirects are not followed, responses are not decompressed, and the proxy settings
 * of the environment are not used.
 */
export function createCallbackSender(
  deps: { clock: Clock; allowed: AllowedRange[] } & CallbackSenderOptions,
): { send: SendCallback; close(): Promise<void> } {
  const deadlineMilliseconds = deps.deadlineMilliseconds ?? deadlineSeconds * 1000;
  const idleMilliseconds = deps.idleMilliseconds ?? keepAliveMilliseconds;
  const resolve = deps.resolve ?? createResolve();
  const deadlines = createDeadlines(deps.clock, deadlineMilliseconds);
  const agent = new Agent({
    connect: guardedConnector({ ...deps, resolve, deadlineMilliseconds }),
    pipelining: 1,
    maxHeaderSize: responseHeaderBytesMax,
    keepAliveTimeout: idleMilliseconds,
    keepAliveMaxTimeout: idleMilliseconds,
    headersTimeout: deadlineMilliseconds,
    bodyTimeout: deadlineMilliseconds,
  });

  function send(message: Parameters<SendCallback>[0]): Promise<Exchange> {
    const { promise, resolve } = Promise.withResolvers<Exchange>();
    const elapsed = stopwatch(deps.clock);
    const exchange: Exchange = {
      delivered: false,
      reason: null,
      address: null,
      tls_version: null,
      status: null,
      headers: null,
      body: null,
      body_bytes: null,
      truncated: false,
      timings: {},
    };
    const url = URL.parse(message.url);
    if (url === null || explainBadNotifyUrl(url, deps.allowed) !== null) {
      resolve({ ...exchange, reason: 'blocked_address', timings: { total: elapsed() } });
      return promise;
    }
    const { origin, pathname, search } = url;
    // A view of the bytes that only this exchange has, by which `onSent` finds it.
    const body = message.dribble
      ? Readable.from(
          inPieces(deps.clock, message.body, message.dribble, () => {
            exchange.timings.sent = elapsed();
          }),
        )
      : message.body.subarray();
    const headers = { ...message.headers, 'content-length': String(message.body.length) };
    const chunks: Buffer[] = [];
    let length = 0;
    let isSent = false;
    let isOver = false;
    let controller: Dispatcher.DispatchController | null = null;

    const note = ({ phases, address, tls_version, isUsed }: Connection) => {
      exchange.address = address;
      exchange.tls_version = tls_version;
      if (!isUsed) Object.assign(exchange.timings, phases);
    };
    onSent.set(body, (socket) => {
      isSent = true;
      message.whenSent?.();
      const connection = connectionOf(socket);
      if (!connection) return;
      note(connection);
      connection.isUsed = true;
    });
    const finish = (reason: string | null) => {
      if (isOver) return;
      isOver = true;
      deadlines.remove(cutOff);
      exchange.timings.total = elapsed();
      if (exchange.status !== null) {
        exchange.body = joined(chunks);
        const declared = exchange.truncated ? Number(exchange.headers?.['content-length']) : 0;
        exchange.body_bytes = Number.isSafeInteger(declared) ? Math.max(declared, length) : length;
      }
      resolve({ ...exchange, delivered: reason === null, reason });
    };
    const conclude = () => {
      const { status } = exchange;
      const isSuccess = status !== null && status >= 200 && status < 300;
      finish(isSuccess ? null : `http_${status}`);
    };
    const fail = (error: Error) => {
      const connection = connectionOf(error);
      if (connection && !isOver) note(connection);
      finish(failureReason(error, isSent));
    };
    const cutOff = () => {
      finish('timeout');
      controller?.abort(new CutOff());
    };

    deadlines.add(cutOff);
    try {
      agent.dispatch(
        { origin, path: pathname + search, method: 'POST', headers, body },
        {
          onRequestStart(started) {
            controller = started;
            if (isOver) started.abort(new CutOff());
          },
          onResponseStart(_controller, status, answered) {
            // A 1xx response is not an answer; keep waiting.
            if (status < 200) return;
            exchange.timings.first_byte = elapsed();
            exchange.status = status;
            exchange.headers = answered as Record<string, string | string[]>;
          },
          onResponseData(reading, chunk) {
            chunks.push(chunk);
            length += chunk.length;
            if (length <= responseBodyBytesMax) return;
            // Do not wait for the rest.
            exchange.truncated = true;
            conclude();
            reading.abort(new CutOff());
          },
          onResponseEnd: conclude,
          onResponseError: (_controller, error) => fail(error),
        },
      );
    } catch (error) {
      fail(error as Error);
    }
    return promise;
  }

  return {
    send,
    async close() {
      deadlines.close();
      await agent.destroy();
    },
  };
}

async function* inPieces(
  clock: Clock,
  body: Buffer,
  { pieces, pauseMilliseconds }: { pieces: number; pauseMilliseconds: number },
  onLast: () => void,
): AsyncGenerator<Buffer> {
  const size = Math.ceil(body.length / pieces);
  for (let from = 0; from < body.length; from += size) {
    if (from > 0) await clock.sleep(pauseMilliseconds);
    if (from + size >= body.length) onLast();
    yield body.subarray(from, from + size);
  }
}

const joined = (chunks: Buffer[]) => Buffer.concat(chunks).subarray(0, responseBodyBytesMax);
