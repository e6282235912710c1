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
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { type Destinations, explainBadNotifyUrl } from './destination.ts';
import { failureReason } from './failure-reason.ts';
import {
  announcedKeepAliveMillisecondsMax,
  deadlineSeconds,
  keepAliveMilliseconds,
  responseBodyBytesMax,
  responseHeaderBytesMax,
} from './limits.ts';
import { createResolve, type Resolve } from './resolve-name.ts';

/**
 * The result of one exchange with a receiver. `reason` says why it does not count as delivered.
 * `timings` are in milliseconds: each phase of the exchange, the sending of a body in pieces, and
 * the total.
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
   * The length of the body. If the rest was not read, this is the declared length. If no length was
   * declared, it is the number of bytes that arrived.
   */
  body_bytes: number | null;
  /** Whether the response was longer than what we read. */
  truncated: boolean;
  timings: Partial<Record<Phase | 'sent' | 'first_byte' | 'total', number>>;
};

export type SendCallback = (message: {
  url: string;
  headers: Record<string, string>;
  body: Buffer;
  /** Sends the body in pieces with a pause between them, like a bad network. */
  dribble?: { pieces: number; pauseMilliseconds: number };
  /** Called when the request is sent. Not called if no connection was made. */
  whenSent?: () => void;
}) => Promise<Exchange>;

export type CallbackSenderOptions = {
  resolve?: Resolve;
  /** Certificates to trust instead of the system's: for tests with an authority of their own. */
  authorities?: string[];
  /** Tests that wait for the deadline set a shorter one. */
  deadlineMilliseconds?: number;
  /** Tests of connections that are used again set a longer time. */
  idleMilliseconds?: number;
};

/** The error for an exchange that we end ourselves. */
class CutOff extends Error {}

// A response does not tell which socket it came over, because connections are reused. undici
// reports every request that it writes, with the socket; the body identifies our request.
const onSent = new WeakMap<object, (socket: Socket) => void>();
subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as { request: { body: object }; socket: Socket };
  onSent.get(request.body)?.(socket);
});

type Message = Parameters<SendCallback>[0];

type Sender = {
  clock: Clock;
  allowed: Destinations;
  agent: Agent;
  deadlines: Deadlines;
};

/**
 * Posts callbacks to addresses that merchants chose. The connection guard decides which addresses
 * may be reached. Redirects are not followed, responses are not decompressed, and the proxy
 * settings of the environment are not used.
 */
export function createCallbackSender(
  deps: { clock: Clock; allowed: Destinations } & CallbackSenderOptions,
): { send: SendCallback; close(): Promise<void> } {
  const { clock, allowed } = deps;
  const deadlineMilliseconds = deps.deadlineMilliseconds ?? deadlineSeconds * 1000;
  const idleMilliseconds = deps.idleMilliseconds ?? keepAliveMilliseconds;
  const resolve = deps.resolve ?? createResolve();
  const deadlines = createDeadlines(clock, deadlineMilliseconds);
  const agent = new Agent({
    connect: guardedConnector({ ...deps, resolve, deadlineMilliseconds }),
    pipelining: 1,
    maxHeaderSize: responseHeaderBytesMax,
    keepAliveTimeout: idleMilliseconds,
    keepAliveMaxTimeout: Math.max(idleMilliseconds, announcedKeepAliveMillisecondsMax),
    headersTimeout: deadlineMilliseconds,
    bodyTimeout: deadlineMilliseconds,
  });
  return {
    send: (message) => send({ clock, allowed, agent, deadlines }, message),
    async close() {
      deadlines.close();
      await agent.destroy();
    },
  };
}

/** An exchange that has not ended. */
type Sending = {
  deadlines: Deadlines;
  elapsed: () => number;
  /** Becomes the result. Each event adds to it. */
  exchange: Exchange;
  /** The pieces of the response's body, and their length. */
  chunks: Buffer[];
  length: number;
  /** Whether the request was sent. Set when undici reports it. */
  isSent: boolean;
  /** Whether the result was returned. Later events change nothing. Only `finish` sets it. */
  isOver: boolean;
  /** The handle that tells undici to stop. Null until the request starts. */
  controller: Dispatcher.DispatchController | null;
  /** Ends the exchange at its deadline. */
  cutOff(): void;
  answer(exchange: Exchange): void;
};

function send(sender: Sender, message: Message): Promise<Exchange> {
  const { promise, resolve } = Promise.withResolvers<Exchange>();
  const sending = newSending(sender, resolve);
  const url = URL.parse(message.url);
  if (url === null || explainBadNotifyUrl(url, sender.allowed) !== null) {
    finish(sending, 'blocked_address');
    return promise;
  }
  const { origin, pathname, search } = url;
  const body = bodyOf(sender, message, sending);
  // If the body is bytes, undici adds the length itself.
  const headers = message.dribble
    ? { ...message.headers, 'content-length': String(message.body.length) }
    : message.headers;
  onSent.set(body, (socket) => {
    sending.isSent = true;
    message.whenSent?.();
    const connection = connectionOf(socket);
    if (!connection) return;
    note(sending, connection);
    connection.isUsed = true;
  });
  sender.deadlines.add(sending.cutOff);
  try {
    const options = { origin, path: pathname + search, method: 'POST' as const, headers, body };
    sender.agent.dispatch(options, handlerOf(sending));
  } catch (error) {
    fail(sending, error as Error);
  }
  return promise;
}

function newSending({ clock, deadlines }: Sender, answer: Sending['answer']): Sending {
  const sending: Sending = {
    deadlines,
    elapsed: stopwatch(clock),
    exchange: {
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
    },
    chunks: [],
    length: 0,
    isSent: false,
    isOver: false,
    controller: null,
    cutOff() {
      finish(sending, 'timeout');
      sending.controller?.abort(new CutOff());
    },
    answer,
  };
  return sending;
}

/**
 * A body that is an object of this exchange alone, so that `onSent` can find the exchange by it: a
 * view of the bytes, or a stream of pieces.
 */
function bodyOf(
  { clock }: Sender,
  { body, dribble }: Message,
  { exchange, elapsed }: Sending,
): Readable | Buffer {
  if (!dribble) return body.subarray();
  const noteSent = () => {
    exchange.timings.sent = elapsed();
  };
  return Readable.from(inPieces(clock, body, dribble, noteSent));
}

function handlerOf(sending: Sending): Dispatcher.DispatchHandler {
  const { exchange, chunks, elapsed } = sending;
  return {
    onRequestStart(started) {
      sending.controller = started;
      if (sending.isOver) started.abort(new CutOff());
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
      sending.length += chunk.length;
      if (sending.length <= responseBodyBytesMax) return;
      // The exchange ends without the rest of the body.
      exchange.truncated = true;
      conclude(sending);
      reading.abort(new CutOff());
    },
    onResponseEnd: () => conclude(sending),
    onResponseError: (_controller, error) => fail(sending, error),
  };
}

function note({ exchange }: Sending, { phases, address, tls_version, isUsed }: Connection): void {
  exchange.address = address;
  exchange.tls_version = tls_version;
  if (!isUsed) Object.assign(exchange.timings, phases);
}

function conclude(sending: Sending): void {
  const { status } = sending.exchange;
  const isSuccess = status !== null && status >= 200 && status < 300;
  finish(sending, isSuccess ? null : `http_${status}`);
}

function fail(sending: Sending, error: Error): void {
  const connection = connectionOf(error);
  if (connection && !sending.isOver) note(sending, connection);
  finish(sending, failureReason(error, sending.isSent));
}

function finish(sending: Sending, reason: string | null): void {
  if (sending.isOver) return;
  sending.isOver = true;
  const { deadlines, exchange, length } = sending;
  deadlines.remove(sending.cutOff);
  exchange.timings.total = sending.elapsed();
  if (exchange.status !== null) {
    exchange.body = joined(sending.chunks);
    const declared = exchange.truncated ? Number(exchange.headers?.['content-length']) : 0;
    exchange.body_bytes = Number.isSafeInteger(declared) ? Math.max(declared, length) : length;
  }
  sending.answer({ ...exchange, delivered: reason === null, reason });
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
