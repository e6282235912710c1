import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import {
  createIntegration,
  type IssuedCredentials,
} from '#merchants/integrations/create-integration.ts';
import { FateUnknown, isTransient } from '#platform/database/transaction.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type Answer, liftLimits, movableClock, type Service } from './service.ts';

// Assertions and set-up that several test files share.

const codes: Record<number, [string, string]> = {
  400: ['bad_request', 'Bad request'],
  401: ['unauthorized', 'Unauthorized'],
  404: ['not_found', 'Not found'],
  422: ['unprocessable_entity', 'Unprocessable entity'],
  500: ['internal_server_error', 'Internal server error'],
};

/** Whether the service reports this failure to a worker's log or to an operator, and carries on. */
export const isReported = (error: unknown): boolean =>
  error instanceof OperatorError ||
  error instanceof OutcomeUnknown ||
  error instanceof RequestRefused ||
  error instanceof FateUnknown ||
  isTransient(error);

/** The whole body of a refusal: one error object with exactly four members per detail. */
export function errorBody(status: number, ...details: string[]): object {
  const [code, title] = codes[status] ?? [];
  return { errors: details.map((detail) => ({ status: String(status), code, title, detail })) };
}

export function assertRefused(answer: Answer, status: number, ...details: string[]): void {
  assert.deepEqual(answer.body, errorBody(status, ...details));
  assert.equal(answer.status, status);
}

/** Asserts a refusal with one error object whose detail matches a pattern. */
export function assertRefusedLike(answer: Answer, status: number, detail: RegExp): void {
  const text = answer.body?.errors?.[0]?.detail;
  assertRefused(answer, status, String(text));
  assert.match(text, detail);
}

export function assertLimited(answer: Answer, windowSeconds: number): void {
  assert.equal(answer.status, 429);
  assert.deepEqual(answer.body, {
    error: `Rate limit exceeded. Try again in ${windowSeconds} seconds.`,
  });
  const left = Number(answer.headers['retry-after']);
  assert.ok(Number.isInteger(left) && left >= 1 && left <= windowSeconds, `retry-after ${left}`);
}

export const noCheckout = 'There is no checkout with that ID.';
export const noRefund = 'There is no refund request with that ID.';
export const noSuchCheckout = 'There is no checkout with that checkout_id.';
export const notManaged = 'There is no merchant with that ID that this integration manages.';
export const nothingHere = 'There is nothing at this method and path.';
export const invalidToken = 'Provide a valid Bearer token in the Authorization header.';
export const mustSign =
  'Signing has become mandatory for this integration: every POST must carry an X-Signature header.';

export const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
export const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A clock on which no time passes until a test moves it, not even monotonic time. */
export function frozenClock(start?: string): ReturnType<typeof movableClock> {
  const clock = movableClock(start);
  return { ...clock, monotonic: () => clock.now().epochMilliseconds };
}

export async function createIntermediary(
  { deps }: Pick<Service, 'deps'>,
  managed_merchant_ids: string[],
  options: { refund_mode?: 'manual' | 'auto'; limits?: 'spec' | 'none' } = {},
): Promise<IssuedCredentials> {
  const credentials = await createIntegration(deps, 'test', {
    managed_merchant_ids,
    refund_mode: options.refund_mode ?? 'manual',
  });
  if (options.limits !== 'spec') await liftLimits(deps, credentials.id);
  return credentials;
}

/** A request for every endpoint: method, path, body. The IDs do not exist. */
export const everyEndpoint: ['GET' | 'POST', string, object?][] = [
  ['GET', '/api/config'],
  ['GET', `/api/merchants/${randomUUID()}/config`],
  ['POST', '/api/checkouts', { checkout: {} }],
  ['GET', `/api/checkouts/${randomUUID()}`],
  ['GET', '/api/checkouts'],
  ['POST', '/api/refunds', { checkout_id: randomUUID(), amount: 1 }],
  ['GET', `/api/refunds/${randomUUID()}`],
  ['GET', '/api/refunds'],
  ['GET', `/api/payouts/${randomUUID()}`],
  ['GET', '/api/payouts'],
];

export function randomSecret(environment: 'sandbox' | 'production'): string {
  return `cs_${environment}_${randomBytes(32).toString('base64url')}`;
}

/** Runs `one` this many times at once. */
export function inParallel<T>(count: number, one: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => one(index)));
}

export function countStatuses(answers: Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
