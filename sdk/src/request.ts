import type { Endpoints, IntermediaryEndpoints } from './api.ts';
import { ConnectionError, errorOf, RateLimitedError, ServerError, TrancheError } from './errors.ts';
import { checkSecret, sign } from './signature.ts';

export type TrancheOptions = {
  /** `http://localhost:3000` for a sandbox on your machine. */
  baseUrl: string;
  /** `cs_…`: says who is calling. */
  clientSecret: string;
  /** `sig_…`: signs what is sent. */
  signingKey: string;
  /** How long one attempt may take; 10,000 unless given. */
  timeoutMs?: number | undefined;
  /** How often a request is sent again at most; 3 unless given. */
  maxRetries?: number | undefined;
  /**
   * How long to wait at most before one of these; 10,000 unless given. A limit that needs longer
   * is thrown as a `RateLimitedError` at once.
   */
  maxWaitMs?: number | undefined;
  /** Instead of the global one. */
  fetch?: typeof globalThis.fetch | undefined;
};

export type CallOptions = {
  /** Ends the call, its retries and its waiting; rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  maxWaitMs?: number | undefined;
};

type Api = Endpoints & Omit<IntermediaryEndpoints, keyof Endpoints>;

export type Request<E extends keyof Api> = CallOptions & {
  /** What stands for the `{…}` of the path. */
  parameter?: string;
  query?: string;
  body?: Api[E]['body'];
  idempotencyKey?: string;
};

export type Send = <E extends keyof Api>(
  endpoint: E,
  request?: Request<E>,
) => Promise<Api[E]['answer']>;

const firstPauseMs = 250;
const longestPauseMs = 8_000;

/** What keeps the credentials: nothing that it returns shows them. */
export function createSend(options: TrancheOptions): Send {
  const baseUrl = checkBaseUrl(options.baseUrl);
  const clientSecret = checkSecret('clientSecret', options.clientSecret, 'cs');
  const signingKey = checkSecret('signingKey', options.signingKey, 'sig');
  const environments = [clientSecret, signingKey].map((secret) => secret.split('_')[1]);
  if (environments.includes('sandbox') && environments.includes('production')) {
    throw new TypeError('clientSecret and signingKey are of different environments.');
  }

  return async (endpoint, request = {}) => {
    const [method = '', template = ''] = endpoint.split(' ');
    const path = template.replace(/\{\w+\}/, () => checkParameter(request.parameter));
    const headers: Record<string, string> = { authorization: `Bearer ${clientSecret}` };
    const init: RequestInit = { method, headers, redirect: 'manual' };
    if (request.body) {
      // Serialised once: what is signed is what is sent, to the byte, also when it is sent again.
      init.body = JSON.stringify(request.body);
      headers['content-type'] = 'application/json';
      headers['x-signature'] = await sign(init.body, signingKey);
      headers['idempotency-key'] = request.idempotencyKey ?? crypto.randomUUID();
    }
    const url = `${baseUrl}${path}${request.query ?? ''}`;
    return (await sendUntilAnswered(url, init, { ...options, ...given(request) })) as never;
  };
}

const given = ({ signal, timeoutMs, maxRetries, maxWaitMs }: CallOptions): CallOptions => ({
  signal,
  ...(timeoutMs !== undefined && { timeoutMs }),
  ...(maxRetries !== undefined && { maxRetries }),
  ...(maxWaitMs !== undefined && { maxWaitMs }),
});

async function sendUntilAnswered(
  url: string,
  init: RequestInit,
  options: CallOptions & Pick<TrancheOptions, 'fetch'>,
): Promise<unknown> {
  const { signal, maxRetries = 3, maxWaitMs = 10_000 } = options;
  for (let retries = 0; ; retries += 1) {
    signal?.throwIfAborted();
    try {
      return await sendOnce(url, init, options);
    } catch (error) {
      signal?.throwIfAborted();
      const pause = error instanceof TrancheError ? pauseBeforeRetry(error, retries) : null;
      if (pause === null || retries >= maxRetries || pause > maxWaitMs) throw error;
      await sleep(pause, signal);
    }
  }
}

/**
 * How long to wait before the same request is sent again, or null when that is no use. It is safe:
 * reading changes nothing, and a create carries the same key each time.
 */
function pauseBeforeRetry(error: TrancheError, retries: number): number | null {
  const isTransient =
    error instanceof RateLimitedError ||
    error instanceof ServerError ||
    error instanceof ConnectionError;
  if (!isTransient) return null;
  const asked = (error.retryAfterSeconds ?? 0) * 1000;
  const pause = Math.min(firstPauseMs * 2 ** retries, longestPauseMs);
  // Chance keeps many clients that failed together from coming back together.
  return asked > 0 ? asked + Math.random() * firstPauseMs : pause * (0.5 + Math.random() / 2);
}

async function sendOnce(
  url: string,
  init: RequestInit,
  { signal, timeoutMs = 10_000, fetch = globalThis.fetch }: Parameters<typeof sendUntilAnswered>[2],
): Promise<unknown> {
  const attempt = new AbortController();
  const stop = () => attempt.abort();
  const timer = setTimeout(stop, timeoutMs);
  signal?.addEventListener('abort', stop);
  try {
    const response = await fetch(url, { ...init, signal: attempt.signal });
    const text = await response.text();
    if (!response.ok) throw errorOf(response.status, response.headers, text);
    return readAnswer(response, text);
  } catch (error) {
    if (error instanceof TrancheError) throw error;
    const isLate = attempt.signal.aborted;
    throw new ConnectionError({
      status: null,
      code: isLate ? 'timeout' : 'connection_failed',
      detail: isLate
        ? `No whole answer came within ${timeoutMs} milliseconds.`
        : `${new URL(url).origin} could not be reached, or did not answer.`,
      requestId: null,
      cause: error,
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
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
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new TypeError('baseUrl must be the http or https address of the service.');
  }
  return url.href.replace(/\/+$/, '');
}

/** An empty one would ask for the list, and dots for the path above. */
function checkParameter(value: unknown): string {
  if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) {
    throw new TypeError('An id must be a string that is not empty.');
  }
  return encodeURIComponent(value);
}
