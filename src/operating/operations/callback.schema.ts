import Type from 'typebox';
import { callbackStatuses, eventNames } from '#purchases/callbacks/callback.ts';
import { instalmentStatuses } from '#purchases/instalments/instalment.ts';
import { Cents, Day, Id, nullable, oneOf, owner, paging, Time } from './list.schema.ts';

export const EventName = oneOf(Object.values(eventNames));

/**
 * GET /api/callbacks. Pending callbacks are ordered by their next attempt, all others newest first.
 */
export const CallbacksQuery = Type.Object({
  ...paging,
  status: Type.Optional(oneOf(callbackStatuses)),
  /** Only exhausted callbacks, and one merchant's pending ones, can be filtered by host. */
  host: Type.Optional(Type.String({ maxLength: 255 })),
});

export const CallbackRow = Type.Object({
  id: Id,
  /** Null for the event of a payout, which names the payout's reference instead of an order. */
  checkout_id: nullable(Id),
  /** Null for the callback that reports how a checkout ended. */
  event: nullable(EventName),
  ...owner,
  status: oneOf(callbackStatuses),
  notify_url: Type.String(),
  host: Type.String(),
  attempts: Type.Integer(),
  created_at: Time,
  due_at: nullable(Time),
  delivered_at: nullable(Time),
  /** Why the last attempt failed. */
  reason: nullable(Type.String()),
  response_status: nullable(Type.Integer()),
});
export type CallbackRow = Type.Static<typeof CallbackRow>;

/**
 * GET /api/destinations: each merchant's receivers by host, with their recent results
 * (`destinationDays`).
 */
export const DestinationsQuery = Type.Object(paging);
export const DestinationRow = Type.Object({
  merchant_id: Id,
  merchant_name: Type.String(),
  host: Type.String(),
  attempts: Type.Integer(),
  delivered: Type.Integer(),
  /** The share of attempted callbacks that were delivered, 0 to 1. Null if none was attempted. */
  success_rate: nullable(Type.Number()),
  /** At least 95 % of the answers came within this time; an upper bound from a histogram. */
  p95_ms: nullable(Type.Integer()),
  last_attempt_at: nullable(Time),
  last_error: nullable(Type.String()),
  last_error_at: nullable(Time),
  failures_in_a_row: Type.Integer(),
});
export type DestinationRow = Type.Static<typeof DestinationRow>;

/** POST /api/callbacks/retry-all: resends the exhausted callbacks that match, as a bulk action. */
export const RetryCallbacks = Type.Object({
  merchant: Type.Optional(Id),
  host: Type.Optional(Type.String({ maxLength: 255 })),
});

/** POST /api/callbacks/:id/retry */
export const RetriedCallback = Type.Object({
  id: Id,
  status: oneOf(callbackStatuses),
  due_at: nullable(Time),
  /** Why the delivery failed; null if it did not. */
  reason: nullable(Type.String()),
});
export type RetriedCallback = Type.Static<typeof RetriedCallback>;

/** GET /api/overdue. The longest overdue first. */
export const OverdueQuery = Type.Object(paging);
export const OverdueRow = Type.Object({
  checkout_id: Id,
  number: Type.Integer(),
  ...owner,
  number_of_payments: Type.Integer(),
  /** The amount to be collected: the payment minus the part that refunds cancelled. */
  amount: Cents,
  currency: Type.String(),
  due_on: Day,
  days_late: Type.Integer(),
  status: oneOf(instalmentStatuses),
  /** Why the last attempt was declined. */
  reason: nullable(Type.String()),
  last_tried_at: nullable(Time),
  /** Why the service is not collecting it now. Until that has ended, a retry is refused. */
  paused_by: nullable(oneOf(['dispute', 'difference', 'refund', 'shopper'] as const)),
  /** Whether a retry could succeed: a card is stored, and may be charged now. */
  is_retry_sensible: Type.Boolean(),
  /** Whether a retry is refused only for some time, because of earlier declines. */
  waits: Type.Boolean(),
  /** Why a retry could succeed or not, in one sentence. */
  advice: Type.String(),
});
export type OverdueRow = Type.Static<typeof OverdueRow>;

/** POST /api/instalments/:checkout/:number/retry */
export const InstalmentParams = Type.Object({
  checkout: Id,
  number: Type.Integer({ minimum: 1, maximum: 999 }),
});
export const RetriedInstalment = Type.Object({
  checkout_id: Id,
  number: Type.Integer(),
  status: oneOf(instalmentStatuses),
  /** Why it was declined again; null if it was not. */
  reason: nullable(Type.String()),
});
export type RetriedInstalment = Type.Static<typeof RetriedInstalment>;
