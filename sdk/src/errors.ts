import type { ErrorObject } from './api.ts';

/**
 * The facts about a failed request. They contain no secrets, so they can be logged. After a wrong
 * signature, `detail` shows the expected signature, which is valid for that body alone.
 */
type Failure = {
  /** The HTTP status; null when no answer came. */
  status: number | null;
  /**
   * `bad_request`, `unprocessable_entity` and so on; one of the SDK's own codes if the API gives
   * none.
   */
  code: string;
  detail: string;
  /** The request's id in the service's logs. Quote it when you ask for help. */
  requestId: string | null;
  /** Every error object of the answer; a 422 has one for each bad field. */
  errors?: readonly ErrorObject[];
  retryAfterSeconds?: number | null;
  cause?: unknown;
};

/** Any request that did not succeed. */
export class TrancheError extends Error {
  readonly status: number | null;
  readonly code: string;
  readonly detail: string;
  readonly requestId: string | null;
  readonly errors: readonly ErrorObject[];
  /** How long the service asked the client to wait; null if it did not. */
  readonly retryAfterSeconds: number | null;

  constructor(failure: Failure) {
    const { status, code, detail, requestId, cause } = failure;
    const where = requestId === null ? '' : ` (request ${requestId})`;
    const what = status === null ? code : `${status} ${code}`;
    super(`${what}: ${detail}${where}`, cause === undefined ? {} : { cause });
    this.name = new.target.name;
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.requestId = requestId;
    this.errors = failure.errors ?? [];
    this.retryAfterSeconds = failure.retryAfterSeconds ?? null;
  }
}

/** 400: malformed, or the signature does not match. `detail` says which. */
export class BadRequestError extends TrancheError {}

/** 401: the client secret is missing, wrong, revoked, or belongs to the other environment. */
export class UnauthorizedError extends TrancheError {}

/** 404: the resource does not exist, or it belongs to another merchant. */
export class NotFoundError extends TrancheError {}

/** 422: well-formed but not acceptable; `errors` has one entry for each problem. */
export class UnprocessableError extends TrancheError {}

/** 429: too many requests; `retryAfterSeconds` says when to retry. */
export class RateLimitedError extends TrancheError {}

/**
 * 500 and above. A 500 or 503 from the service changed nothing. A 502 or 504 comes from a proxy
 * that got no answer: the outcome is unknown, unless the request is a GET or has an idempotency
 * key. The SDK gives every create a key, so its retries are safe.
 */
export class ServerError extends TrancheError {}

/** No answer came. `code` is `connection_failed` or `timeout`. */
export class ConnectionError extends TrancheError {}

const classes: Record<number, typeof TrancheError> = {
  400: BadRequestError,
  401: UnauthorizedError,
  404: NotFoundError,
  422: UnprocessableError,
  429: RateLimitedError,
};

/** The error for an answer. A proxy's answer is classified only by its status. */
export function errorOf(status: number, headers: Headers, text: string): TrancheError {
  const { errors, error } = readBody(text);
  const [first] = errors;
  const own = status === 429 ? 'rate_limited' : `http_${status}`;
  const Class = classes[status] ?? (status >= 500 ? ServerError : TrancheError);
  return new Class({
    status,
    code: first?.code ?? own,
    detail: errors.map(({ detail }) => detail).join(' ') || error || 'No explanation was given.',
    requestId: headers.get('x-request-id'),
    errors,
    retryAfterSeconds: readRetryAfter(headers.get('retry-after')),
  });
}

function readBody(text: string): { errors: ErrorObject[]; error: string } {
  try {
    const body = JSON.parse(text);
    const listed: unknown[] = Array.isArray(body?.errors) ? body.errors : [];
    const errors = listed.filter(isErrorObject);
    return { errors, error: typeof body?.error === 'string' ? body.error : '' };
  } catch {
    return { errors: [], error: '' };
  }
}

const isErrorObject = (value: unknown): value is ErrorObject =>
  typeof (value as ErrorObject | null)?.detail === 'string';

/** Reads a number of seconds or a date. */
function readRetryAfter(value: string | null): number | null {
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value);
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, Math.ceil((date - Date.now()) / 1000));
}
