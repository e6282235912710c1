import type { FastifyReply, FastifyRequest } from 'fastify';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { MoneyStopped } from '#gateway/guard-gateway.ts';
import { BadInput, NotFound } from '#operating/operations/viewer.ts';
import { LinkEnded } from '#operating/people/sign-in.ts';
import { NotRecognised } from '#operating/people/webauthn.ts';
import { hasCommitted } from '#platform/database/deadline.ts';
import { FateUnknown, isTransient } from '#platform/database/transaction.ts';
import { ApiError, RateLimited, retryAfterSeconds, unavailable } from '#platform/http/errors.ts';
import { DoneInPart, OperatorError, SessionEnded } from '#record/actions/operate.ts';
import { NotPermitted } from '#record/alerts/lift-review.ts';

/** A refusal with a code for the application and a sentence for the person. */
export class ConsoleError extends Error {
  readonly status: number;
  readonly code: string;
  /** Further members of the error, such as the names of the wrong fields. */
  readonly more: object;

  constructor(status: number, code: string, message: string, more: object = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.more = more;
  }
}

export const notSignedIn = () => new ConsoleError(401, 'signed_out', 'Sign in first.');
export const forbidden = (message = 'Your roles do not allow this. Ask an administrator.') =>
  new ConsoleError(403, 'forbidden', message);
/**
 * This is also the answer for rows outside of the person's scope, so that the answer does not
 * reveal that these rows exist.
 */
export const notFound = (message = 'There is nothing here.') =>
  new ConsoleError(404, 'not_found', message);
export const conflict = (message: string, code = 'conflict') =>
  new ConsoleError(409, code, message);
export const invalid = (fields: { path: string; problem: string }[]) => {
  const sentences = fields.map(({ path, problem }) => `${path ? `${path} ` : ''}${problem}.`);
  return new ConsoleError(422, 'invalid', sentences.join(' '), { fields });
};

/** The action was done, but its answer could not be made. */
class DoneWithoutAnswer extends Error {}

/**
 * Makes the answer to an action that is done. After this point, an error must not say that the
 * action failed.
 */
export async function afterAction<T>(answer: () => Promise<T> | T): Promise<T> {
  try {
    return await answer();
  } catch (cause) {
    throw new DoneWithoutAnswer('', { cause });
  }
}

const refusals = new WeakMap<FastifyRequest, string>();

/** Keeps the reason for a refusal for the security events. */
export function noteRefusal(request: FastifyRequest, code: string): void {
  refusals.set(request, code);
}
export const refusalOf = (request: FastifyRequest) => refusals.get(request) ?? null;

export function answerConsoleError(
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { status, code, message, more } = toConsoleError(error, request);
  noteRefusal(request, code);
  if (error instanceof RateLimited) reply.header('retry-after', error.quota.resetSeconds);
  // After an unknown outcome no header suggests a retry, because the person has to check first
  // whether the action was done.
  if (code === 'unavailable') reply.header('retry-after', retryAfterSeconds);
  reply.code(status).send({ error: { code, message, ...more } });
}

function toConsoleError(error: Error, request: FastifyRequest): ConsoleError {
  if (error instanceof ConsoleError) return error;
  if (error instanceof NotFound) return notFound(error.shown);
  if (error instanceof BadInput) {
    return invalid([{ path: error.member, problem: error.message }]);
  }
  if (error instanceof NotPermitted) return forbidden(error.message);
  if (error instanceof SessionEnded) return new ConsoleError(401, 'signed_out', error.message);
  if (error instanceof DoneInPart) {
    request.log.error({ err: error }, 'an action was done in part');
    return new ConsoleError(503, 'outcome_unknown', error.message);
  }
  // The sentence is written for operators. The command line prints the same one.
  if (error instanceof OperatorError) return conflict(error.message, 'refused');
  if (error instanceof LinkEnded) {
    const text = 'This link was already used or has expired. Ask an administrator for a new one.';
    return new ConsoleError(404, 'link_ended', text);
  }
  if (error instanceof NotRecognised) {
    // The reason would help an attacker more than the person, so only the log has it.
    request.log.warn({ err: error.cause ?? error }, 'a sign-in or a re-authentication was refused');
    return new ConsoleError(
      403,
      'not_recognised',
      'We could not confirm that it is you. Try again.',
    );
  }
  if (error instanceof RateLimited) {
    return new ConsoleError(429, 'too_many_requests', error.message);
  }
  if (error instanceof ApiError) return new ConsoleError(error.status, error.code, error.message);
  // Nothing was sent, and the message says what an operator can do about it.
  if (error instanceof MoneyStopped) return conflict(error.message, 'refused');
  if (error instanceof OutcomeUnknown) {
    request.log.warn({ err: error }, 'the outcome of a request to the gateway is unknown');
    const text =
      'The gateway did not answer. The action may have been done: check before you repeat it.';
    return new ConsoleError(503, 'outcome_unknown', text);
  }
  if (error instanceof RequestRefused) {
    request.log.warn({ err: error }, 'the gateway refused a request');
    return conflict('The gateway refused this. The log of the service says why.', 'refused');
  }
  const isAway = isTransient(error);
  if (isAway && !hasCommitted()) {
    request.log.error({ err: error }, 'a request was not done in time');
    return new ConsoleError(503, 'unavailable', unavailable(error).message);
  }
  if (isAway || error instanceof FateUnknown) {
    request.log.error({ err: error }, 'the fate of a commit is unknown');
    const text = 'It is not known whether this was done. Check before you repeat it.';
    return new ConsoleError(503, 'outcome_unknown', text);
  }
  if (error instanceof DoneWithoutAnswer) {
    request.log.error({ err: error.cause }, 'an action was done, and its result could not be read');
    const text = 'This was done, but its result could not be read. Load the page again.';
    return new ConsoleError(503, 'outcome_unknown', text);
  }
  const { statusCode = 500 } = error as { statusCode?: number };
  if (statusCode >= 400 && statusCode < 500) {
    return new ConsoleError(400, 'bad_request', `Malformed request: ${error.message}.`);
  }
  request.log.error({ err: error }, 'internal error');
  if (request.method === 'GET') {
    return new ConsoleError(500, 'internal_error', 'Something went wrong. Try again.');
  }
  // The action may have been committed before this error.
  const text = 'Something went wrong. Check whether this was done before you repeat it.';
  return new ConsoleError(500, 'outcome_unknown', text);
}
