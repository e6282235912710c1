import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { hasCommitted } from '#platform/database/deadline.ts';
import { FateUnknown, isContended, isTransient } from '#platform/database/transaction.ts';
import { type Quota, showQuota } from './quota.ts';

const titles = {
  bad_request: 'Bad request',
  unauthorized: 'Unauthorized',
  forbidden: 'Forbidden',
  not_found: 'Not found',
  unprocessable_entity: 'Unprocessable entity',
  internal_server_error: 'Internal server error',
  service_unavailable: 'Service unavailable',
} as const;

/** A refusal with an answer for the caller: one error object per detail. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: keyof typeof titles;
  readonly details: string[];
  /** Whether this repeats the stored answer of an Idempotency-Key. */
  readonly replayed: boolean;
  /** Whether the same body always gets this refusal, whatever the time and our state. */
  readonly lasting: boolean;
  /** Set for a refusal that has its own count, such as a failed login. */
  readonly quota: Quota | undefined;

  constructor(
    status: number,
    code: keyof typeof titles,
    details: string[],
    { replayed, lasting, quota }: { replayed?: boolean; lasting?: boolean; quota?: Quota } = {},
  ) {
    super(details.join(' '));
    this.status = status;
    this.code = code;
    this.details = details;
    this.replayed = replayed ?? false;
    this.lasting = lasting ?? false;
    this.quota = quota;
  }
}

export const badRequest = (detail: string) => new ApiError(400, 'bad_request', [detail]);
export const unauthorized = (detail: string, quota?: Quota) =>
  new ApiError(401, 'unauthorized', [detail], quota && { quota });
/** This is not part of the merchants' contract: only pages for people answer with it. */
export const forbidden = (detail: string) => new ApiError(403, 'forbidden', [detail]);
export const notFound = (detail: string) => new ApiError(404, 'not_found', [detail]);
export const nothingHere = () => notFound('There is nothing at this method and path.');
export const unprocessable = (...details: string[]) =>
  new ApiError(422, 'unprocessable_entity', details);

export const rateLimitedText = (windowSeconds: number) =>
  `Rate limit exceeded. Try again in ${windowSeconds} seconds.`;

/**
 * Too many requests. This is not an ApiError, because the contract gives a 429 a body of another
 * form.
 */
export class RateLimited extends Error {
  readonly quota: Quota;

  constructor(windowSeconds: number, quota: Quota, text = rateLimitedText(windowSeconds)) {
    super(text);
    this.quota = quota;
  }
}

export function presentErrors(error: ApiError): object {
  return {
    errors: error.details.map((detail) => ({
      status: String(error.status),
      code: error.code,
      title: titles[error.code],
      detail,
    })),
  };
}

/** Fastify's own 4xx errors (a truncated body, a bad header) become a 400 in our envelope. */
function fromFastify(error: { statusCode?: number; message: string }): ApiError | null {
  const status = error.statusCode ?? 500;
  return status >= 400 && status < 500 ? badRequest(`Malformed request: ${error.message}.`) : null;
}

export function handleErrors(app: FastifyInstance, metrics: { countUnknownOutcome(): void }): void {
  app.setErrorHandler((error: Error, request, reply) => {
    if (!isOutcomeUnknown(error)) return answerError(error, request, reply);
    request.log.error({ err: error }, 'the outcome is unknown: closing without an answer');
    metrics.countUnknownOutcome();
    reply.hijack();
    request.raw.socket.destroy();
  });
  app.setNotFoundHandler((_request, reply) => answerNotFound(reply));
}

export function answerNotFound(reply: FastifyReply): void {
  reply.code(404).send(presentErrors(nothingHere()));
}

/** How long a client should wait after a 503. */
export const retryAfterSeconds = 5;

/** Either the database did not answer, or it works and other requests were ahead of this one. */
export function unavailable(error?: Error): ApiError {
  const what =
    error && isContended(error)
      ? 'The service could not do this in time'
      : 'The service cannot reach its database';
  return new ApiError(503, 'service_unavailable', [
    `${what} and nothing was changed. Try again in ${retryAfterSeconds} seconds.`,
  ]);
}

/**
 * A 500 or 503 promises that nothing was changed (decision 0013). We cannot promise that when
 * COMMIT got no answer, or when an earlier transaction of this request was committed: for example,
 * the payment was made, and then the page could not be read.
 */
function isOutcomeUnknown(error: Error): boolean {
  if (error instanceof FateUnknown) return true;
  const isAnswer = error instanceof ApiError || error instanceof RateLimited || fromFastify(error);
  return !isAnswer && hasCommitted();
}

function answerError(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof RateLimited) {
    showQuota(reply, error.quota);
    reply.code(429).header('retry-after', error.quota.resetSeconds).send({ error: error.message });
    return;
  }
  if (isTransient(error)) {
    request.log.error({ err: error }, 'a request was not done in time');
    reply
      .header('retry-after', retryAfterSeconds)
      .code(503)
      .send(presentErrors(unavailable(error)));
    return;
  }
  const known = error instanceof ApiError ? error : fromFastify(error);
  if (!known) request.log.error({ err: error }, 'internal error');
  const answer =
    known ??
    new ApiError(500, 'internal_server_error', [
      'Something went wrong on our side and nothing was changed. Try again with backoff.',
    ]);
  if (answer.quota) showQuota(reply, answer.quota);
  if (answer.replayed) reply.header('idempotent-replayed', 'true');
  if (answer.status === 401) reply.header('www-authenticate', 'Bearer');
  reply.code(answer.status).send(presentErrors(answer));
}
