import { subscribe } from 'node:diagnostics_channel';
import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { Agent, buildConnector, type Dispatcher, errors } from 'undici';
import type { Clock } from '../../shared/clock.ts';
import { deadlineSeconds } from '../callback.ts';
import { type AllowedRange, explainBadNotifyUrl, isReachable } from '../destination.ts';
import { createResolve, type Resolve } from './resolve-name.ts';

/**
 * What became of one exchange with a receiver. `reason` says why it does not count as delivered.
 * `timings` are milliseconds: of each phase that this exchange went through, until the last piece of
 * a body that went in pieces, and in total.
 */
export type Exchange = {
  delivered: boolean;
  reason: string | null;
  address: string | null;
  tls_version: string | null;
  status: number | null;
  headers: Record<string, string | string[]> | null;
  body: Buffer | null;
  /** The answer was longer than what is read of it. */
  truncated: boolean;
  timings: Partial<Record<Phase | 'sent' | 'first_byte' | 'total', number>>;
};

type Phase = 'dns' | 'connect' | 'tls';

export type SendCallback = (message: {
  url: string;
  headers: Record<string, string>;
  body: Buffer;
  /** In so many pieces with a pause between them, as a bad network delivers it. */
  dribble?: { pieces: number; pauseMilliseconds: number };
}) => Promise<Exchange>;

export type CallbackSenderOptions = {
  resolve?: Resolve;
  /** Certificates to trust instead of the system's: for tests with an authority of their own. */
  authorities?: string[];
  /** Shorter than in production: for tests that wait for it. */
  deadlineMilliseconds?: number;
};

const mostBodyBytes = 64 * 1024;
const mostHeaderBytes = 16 * 1024;

class Blocked extends Error {}
class Unresolved extends Error {}
/** We have heard enough. */
class CutOff extends Error {}

/** How a connection came about, or how far it got. */
type Connection = {
  phases: Partial<Record<Phase, number>>;
  address: string | null;
  tls_version: string | null;
  isUsed: boolean;
};

const connections = new WeakMap<object, Connection>();

// An answer does not say over which socket it came, and connections are used again. What is told
// about every request that is written says so; ours is known by its body.
const onSent = new WeakMap<object, (socket: Socket) => void>();
subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as { request: { body: object }; socket: Socket };
  onSent.get(request.body)?.(socket);
});

/**
 * Posts callbacks to addresses that merchants chose, which is to say to anybody. Names are resolved
 * by us and every address that one has must be allowed; the socket goes to one of these and is
 * looked at again. Redirects are not followed, nothing is decompressed, proxies of the environment
 * are not asked.
 */
export function createCallbackSender(
  deps: { clock: Clock; allowed: AllowedRange[] } & CallbackSenderOptions,
): { send: SendCallback; close(): Promise<void> } {
  const resolve = deps.resolve ?? createResolve();
  const deadlineMilliseconds = deps.deadlineMilliseconds ?? deadlineSeconds * 1000;

  const stopwatch = () => {
    const start = deps.clock.monotonic();
    return () => Math.round((deps.clock.monotonic() - start) * 10) / 10;
  };

  async function findAddresses(hostname: string): Promise<LookupAddress[]> {
    const found = await resolve(hostname).catch((error) => {
      throw new Unresolved('', { cause: error });
    });
    if (found.length === 0) throw new Unresolved();
    // One forbidden address among good ones is a trap, not an accident.
    if (!found.every(({ address }) => isReachable(address, deps.allowed))) throw new Blocked();
    return found;
  }

  const connect: buildConnector.connector = (options, callback) => {
    const elapsed = stopwatch();
    const connection: Connection = { phases: {}, address: null, tls_version: null, isUsed: false };
    const { phases } = connection;
    const sinceLast = () => {
      const sum = Object.values(phases).reduce((total, one) => total + one, 0);
      return Math.round((elapsed() - sum) * 10) / 10;
    };
    const fail = (error: Error) => {
      connections.set(error, connection);
      callback(error, null);
    };
    const hostname = options.hostname.replace(/^\[|\]$/g, '');
    const isLiteral = isIP(hostname) !== 0;
    // Nobody looks up a literal address, so nothing below would see it before the socket opens.
    if (isLiteral && !isReachable(hostname, deps.allowed)) return fail(new Blocked());

    const lookUp: LookupFunction = (_hostname, { all }, done) => {
      findAddresses(hostname).then(
        (found) => {
          phases.dns = sinceLast();
          const [first] = found as [LookupAddress];
          if (all) done(null, found);
          else done(null, first.address, first.family);
        },
        (error) => done(error, ''),
      );
    };
    const connectTo = buildConnector({
      timeout: deadlineMilliseconds / 2,
      allowH2: false,
      maxCachedSessions: 0,
      lookup: lookUp,
      autoSelectFamily: true,
      ...(deps.authorities && { ca: deps.authorities }),
    });
    const opening = connectTo({ ...options, hostname }, (...[error, socket]) => {
      if (error) {
        const isSlow = error instanceof errors.ConnectTimeoutError;
        return fail(isSlow && !isLiteral && phases.dns === undefined ? new Unresolved() : error);
      }
      // A name may have been bound anew between the look-up and now: this is who it is.
      if (!isReachable(socket.remoteAddress ?? '', deps.allowed)) {
        socket.destroy();
        return fail(new Blocked());
      }
      if ('getProtocol' in socket) {
        phases.tls = sinceLast();
        connection.tls_version = (socket as TLSSocket).getProtocol();
      }
      connections.set(socket, connection);
      return callback(null, socket);
    }) as unknown as Socket;
    // Before whoever writes the request hears of it.
    opening.prependOnceListener('connect', () => {
      phases.connect = sinceLast();
      connection.address = opening.remoteAddress ?? null;
    });
  };

  const agent = new Agent({
    connect,
    pipelining: 1,
    maxHeaderSize: mostHeaderBytes,
    // Shorter than servers keep theirs: one that closes under a callback fails it.
    keepAliveTimeout: 1_000,
    keepAliveMaxTimeout: 1_000,
    headersTimeout: deadlineMilliseconds,
    bodyTimeout: deadlineMilliseconds,
  });

  // Every exchange has the same time, so they run out of it in the order in which they began, and
  // one timer does for all.
  const runningOut = new Map<() => void, number>();
  const closing = new AbortController();
  let isWatching = false;
  async function watchDeadlines(): Promise<void> {
    if (isWatching) return;
    isWatching = true;
    for (const [cutOff, end] of runningOut) {
      const left = end - deps.clock.monotonic();
      if (left > 0) await deps.clock.sleep(left, closing.signal);
      if (closing.signal.aborted) break;
      if (runningOut.delete(cutOff)) cutOff();
    }
    isWatching = false;
  }

  function send(message: Parameters<SendCallback>[0]): Promise<Exchange> {
    const { promise, resolve } = Promise.withResolvers<Exchange>();
    const elapsed = stopwatch();
    const exchange: Exchange = {
      delivered: false,
      reason: null,
      address: null,
      tls_version: null,
      status: null,
      headers: null,
      body: null,
      truncated: false,
      timings: {},
    };
    const url = URL.parse(message.url);
    if (url === null || explainBadNotifyUrl(url, deps.allowed) !== null) {
      resolve({ ...exchange, reason: 'blocked_address', timings: { total: elapsed() } });
      return promise;
    }
    const { origin, pathname, search } = url;
    // The same bytes, in an object that only this exchange has.
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
      const connection = connections.get(socket);
      if (!connection) return;
      note(connection);
      connection.isUsed = true;
    });
    const finish = (reason: string | null) => {
      if (isOver) return;
      isOver = true;
      runningOut.delete(cutOff);
      exchange.timings.total = elapsed();
      if (exchange.status !== null) exchange.body = joined(chunks);
      resolve({ ...exchange, delivered: reason === null, reason });
    };
    const conclude = () => {
      const { status } = exchange;
      const isSuccess = status !== null && status >= 200 && status < 300;
      finish(isSuccess ? null : `http_${status}`);
    };
    const fail = (error: Error) => {
      const connection = connections.get(error);
      if (connection && !isOver) note(connection);
      finish(reasonOf(error, isSent));
    };
    const cutOff = () => {
      finish('timeout');
      controller?.abort(new CutOff());
    };

    runningOut.set(cutOff, deps.clock.monotonic() + deadlineMilliseconds);
    void watchDeadlines();
    try {
      agent.dispatch(
        { origin, path: pathname + search, method: 'POST', headers, body },
        {
          onRequestStart(started) {
            controller = started;
            if (isOver) started.abort(new CutOff());
          },
          onResponseStart(_controller, status, answered) {
            // A hint that the answer will come is none.
            if (status < 200) return;
            exchange.timings.first_byte = elapsed();
            exchange.status = status;
            exchange.headers = answered as Record<string, string | string[]>;
          },
          onResponseData(reading, chunk) {
            chunks.push(chunk);
            length += chunk.length;
            if (length <= mostBodyBytes) return;
            // The rest is not waited for.
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
      closing.abort();
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

const joined = (chunks: Buffer[]) => Buffer.concat(chunks).subarray(0, mostBodyBytes);

const tlsCodes =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|EPROTO|HOSTNAME_MISMATCH|ERR_OSSL)/;

function reasonOf(error: unknown, isSent: boolean): string {
  const { code = '', cause } = error as { code?: string; cause?: unknown };
  if (error instanceof Blocked) return 'blocked_address';
  if (error instanceof Unresolved) return 'dns';
  if (error instanceof errors.HeadersOverflowError) return 'response_too_large';
  if (
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError
  ) {
    return 'timeout';
  }
  // We are stopping, and nobody waits for the answer any more.
  if (error instanceof errors.ClientDestroyedError || error instanceof errors.ClientClosedError) {
    return 'interrupted';
  }
  // Beside what the parser refuses, a switch of protocols that nobody asked for.
  if (error instanceof errors.HTTPParserError || code === 'ERR_ASSERTION')
    return 'invalid_response';
  if (isSent) return 'connection_closed';
  if (tlsCodes.test(code)) return 'tls';
  if (cause !== undefined && cause !== error) return reasonOf(cause, isSent);
  return 'connect';
}
