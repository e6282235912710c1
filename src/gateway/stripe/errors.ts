import Stripe from 'stripe';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';

// Reads the SDK's errors.

export function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Stripe.errors.StripeError && codes.includes(error.code ?? '');
}

/** Whether the gateway refuses the checkout's amount or currency (decision 0011). */
export function isDataRefused(
  error: unknown,
): error is InstanceType<typeof Stripe.errors.StripeInvalidRequestError> {
  if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) return false;
  if (error.statusCode !== 400) return false;
  if (error.code === 'parameter_unknown' || error.code === 'parameter_missing') return false;
  return (
    error.param === 'amount' ||
    error.param === 'currency' ||
    isCode(error, 'amount_too_large', 'amount_too_small', 'invalid_charge_amount')
  );
}

/** Whether the gateway refuses the card's token: it is unknown, or was used before. */
export function isTokenRefused(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeInvalidRequestError && error.param === 'confirmation_token'
  );
}

/**
 * Whether the key was used with other parameters: by a process with another public URL or master
 * key, or before the database was restored from a backup.
 */
export function isOtherRequest(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeIdempotencyError && error.statusCode === 400;
}

export const differs = (what: string, ours: number, theirs: number) =>
  new RequestRefused(`the gateway made this ${what} for ${theirs} cents, not ${ours} cents`);

/** Whether the gateway repeats an error that it stored with the key. */
export const isRepeated = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeError && error.headers?.['idempotent-replayed'] === 'true';

/** Whether the gateway repeats a stored 500: the request has ended, but its outcome is unknown. */
export const isRepeatedFailure = (error: unknown): boolean =>
  isRepeated(error) && ((error as Stripe.errors.StripeError).statusCode ?? 0) >= 500;

export function isContactRefused(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeInvalidRequestError &&
    error.statusCode === 400 &&
    ['email', 'name', 'phone'].includes(error.param ?? '')
  );
}

/** Returns the pause that `Retry-After` asks for, if it is a number of seconds. */
function retryAfterOf({ headers }: InstanceType<typeof Stripe.errors.StripeError>): number | null {
  const seconds = headers?.['retry-after'];
  return seconds !== undefined && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** Throws without the error's message, headers and body, because they may repeat what we sent. */
export function fail(error: unknown): never {
  if (!(error instanceof Stripe.errors.StripeError)) throw error;
  const { type, statusCode, code, param, requestId } = error;
  const facts = Object.entries({ type, status: statusCode, code, param, request: requestId })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
  const unknown =
    error instanceof Stripe.errors.StripeConnectionError ||
    statusCode === undefined ||
    statusCode >= 500 ||
    // There were too many requests, or the key is in use. This call did nothing, but another one
    // may have.
    statusCode === 409 ||
    statusCode === 429;
  if (unknown) {
    const isAnswer = statusCode === 409 || statusCode === 429;
    const why = !isAnswer ? 'no_answer' : statusCode === 429 ? 'too_many' : 'undecided';
    const retryAfterMs = why === 'too_many' ? retryAfterOf(error) : null;
    throw new OutcomeUnknown(`the gateway did not say what happened (${facts})`, why, retryAfterMs);
  }
  throw new RequestRefused(`the gateway refused the request (${facts})`);
}
