import type { Endpoints, IntermediaryEndpoints } from './api.ts';
import { ConnectionError, errorOf, RateLimitedError, ServerError, TrancheError } from './errors.ts';
import { checkSecret, sign } from './signature.ts';

export type TrancheOptions = {
  /** `https://…`, or `http://localhost:3000` for a sandbox on your machine. */
  baseUrl: string;
  /** `cs_…`: authenticates the caller. */
  clientSecret: string;
  /** `sig_…`: signs requests. */
  signingKey: string;
  /** How long one attempt may take; default 10,000. */
  timeoutMs?: number | undefined;
  /** The maximum number of retries of a request; default 3. */
  maxRetries?: number | undefined;
  /**
   * The longest wait before a retry; default 10,000, and 90,000 for the pages of a list. If a rate
   * limit asks for a longer wait, the call throws a `RateLimitedError` at once.
   */
  maxWaitMs?: number | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
};

export type CallOptions = {
  /** Ends the call, its retries and its waits; the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  maxWaitMs?: number | undefined;
};

type Api = Endpoints & Omit<IntermediaryEndpoints, keyof Endpoints>;

export type Request<E extends keyof Api> = CallOptions & {
  /** The value for the `{…}` in the path. */
  parameter?: string;
  query?: string;
  body?: Api[E]['body'];
  idempotencyKey?: string;
  /** The longest wait if neither the client nor the call sets one. */
  usualWaitMs?: number;
};

export type Send = <E extends keyof Api>(
  endpoint: E,
  request?: Request<E>,
) => Promise<Api[E]['answer']>;

const firstPauseMs = 250;
const pauseMaxMs = 8_000;

/** The credentials stay in a closure, so that printing a client never shows them. */
export function createSend(options: TrancheOptions): Send {
  const baseUrl = checkBaseUrl(options.baseUrl);
  const clientSecret = checkSecret('clientSecret', options.clientSecret, 'cs');
  const signingKey = checkSecret('signingKey', options.signingKey, 'sig');
  checkNumbers(options);
  if (options.fetch !== undefined && typeof options.fetch !== 'function') {
    throw new TypeError('fetch must be a function.');
  }
  const environments = [clientSecret, signingKey].map((secret) => secret.split('_')[1]);
  if (environments.includes('sandbox') && environments.includes('production')) {
    throw new TypeError('clientSecret and signingKey belong to different environments.');
  }

  return async (endpoint, request = {}) => {
    checkNumbers(request);
    const [method = '', template = ''] = endpoint.split(' ');
    const path = template.replace(/\{\w+\}/, () => checkParameter(request.parameter));
    const headers: Record<string, string> = { authorization: `Bearer ${clientSecret}` };
    const init: RequestInit = { method, headers, redirect: 'manual' };
    if (request.body) {
      // The body is serialised once: the signed bytes are the sent bytes, even on a retry.
      init.body = JSON.stringify(request.body);
      headers['content-type'] = 'application/json';
      headers['x-signature'] = await sign(init.body, signingKey);
      headers['idempotency-key'] = checkKey(request.idempotencyKey);
    }
    const url = `${baseUrl}${path}${request.query ?? ''}`;
    return (await sendUntilAnswered(url, init, {
      signal: request.signal,
      timeoutMs: request.timeoutMs ?? options.timeoutMs ?? 10_000,
      maxRetries: request.maxRetries ?? options.maxRetries ?? 3,
      maxWaitMs: request.maxWaitMs ?? options.maxWaitMs ?? request.usualWaitMs ?? 10_000,
      fetch: options.fetch ?? globalThis.fetch,
    })) as never;
  };
}

type Settings = {
  signal: AbortSignal | undefined;
  timeoutMs: number;
  maxRetries: number;
  maxWaitMs: number;
  fetch: typeof globalThis.fetch;
};

async function sendUntilAnswered(
  url: string,
  init: RequestInit,
  settings: Settings,
): Promise<unknown> {
  const { signal, maxRetries, maxWaitMs } = settings;
  for (let retries = 0; ; retries += 1) {
    signal?.throwIfAborted();
    try {
      return await sendOnce(url, init, settings);
    } catch (error) {
      signal?.throwIfAborted();
      const pause = error instanceof TrancheError ? pauseBeforeRetry(error, retries) : null;
      if (pause === null || retries >= maxRetries || pause > maxWaitMs) throw error;
      await sleep(pause, signal);
    }
  }
}

/**
 * How long to wait before a retry; null if a retry cannot help. A retry is safe: reading changes
 * nothing, and every attempt at a create carries the same key.
 */
function pauseBeforeRetry(error: TrancheError, retries: number): number | null {
  const isTransient =
    error instanceof RateLimitedError ||
    error instanceof ServerError ||
    error instanceof ConnectionError;
  if (!isTransient) return null;
  const asked = (error.retryAfterSeconds ?? 0) * 1000;
  const pause = Math.min(firstPauseMs * 2 ** retries, pauseMaxMs);
  // Jitter keeps many clients that failed together from retrying together.
  return asked > 0 ? asked + Math.random() * firstPauseMs : pause * (0.5 + Math.random() / 2);
}

async function sendOnce(
  url: string,
  init: RequestInit,
  { signal, timeoutMs, fetch }: Settings,
): Promise<unknown> {
  let response: Response;
  let text: string;
  const attempt = new AbortController();
  const stop = () => attempt.abort();
  const timer = setTimeout(stop, timeoutMs);
  signal?.addEventListener('abort', stop);
  try {
    response = await fetch(url, { ...init, signal: attempt.signal });
    text = await response.text();
  } catch (error) {
    // Any other bad argument was refused earlier, so this is a failed connection.
    const isLate = attempt.signal.aborted;
    throw new ConnectionError({
      status: null,
      code: isLate ? 'timeout' : 'connection_failed',
      detail: isLate
        ? `No complete answer came within ${timeoutMs} milliseconds.`
        : `${new URL(url).origin} could not be reached, or did not answer.`,
      requestId: null,
      cause: error,
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
  if (!response.ok) throw errorOf(response.status, response.headers, text);
  return readAnswer(response, text);
}

function readAnswer(response: Response, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new TrancheError({
      status: response.status,
      code: 'not_json',
      detail: 'The answer is not JSON: baseUrl may be the address of something else.',
      requestId: response.headers.get('x-request-id'),
    });
  }
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', abort, { once: true });
  });
}

function checkBaseUrl(value: unknown): string {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null;
  const hasMore = url && (url.username || url.password || url.search || url.hash);
  if (!url || !/^https?:$/.test(url.protocol) || hasMore) {
    throw new TypeError('baseUrl must be the https address of the service and nothing more.');
  }
  // Every request contains the client secret, which plain http would expose.
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new TypeError('baseUrl must be https, unless it is localhost.');
  }
  return url.href.replace(/\/+$/, '');
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** The largest delay of a timer; a larger one would fire at once. */
const numberMax = 2 ** 31 - 1;

function checkNumbers(options: CallOptions): void {
  for (const name of ['timeoutMs', 'maxRetries', 'maxWaitMs'] as const) {
    const value: unknown = options[name];
    if (value === undefined) continue;
    if (typeof value !== 'number' || !(value >= 0 && value <= numberMax)) {
      throw new TypeError(`${name} must be a number from 0 to ${numberMax}.`);
    }
  }
}

/** An empty key is the caller's mistake, which generating a key would hide. */
function checkKey(value: unknown): string {
  if (value === undefined) return crypto.randomUUID();
  const isKey = typeof value === 'string' && /^[ -~]{1,255}$/.test(value) && value.trim() === value;
  if (!isKey) {
    throw new TypeError(
      'idempotencyKey must be 1 to 255 printable ASCII characters, without spaces at its ends.',
    );
  }
  return value;
}

/** An empty id would request the list, and dots would request the parent path. */
function checkParameter(value: unknown): string {
  if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) {
    throw new TypeError('An id must be a string that is not empty.');
  }
  return encodeURIComponent(value);
}
