import assert from 'node:assert/strict';
import type { EventKind } from '#merchants/integrations/integration.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';

/**
 * A callback tells the merchant that a checkout ended `successful` or `cancelled`. If the
 * integration asked for events, callbacks also report every change to a refund, a dispute or a
 * payout. A callback is `pending` until a receiver answers 2xx (`delivered`) or every attempt of a
 * run has failed (`exhausted`). An operator may begin a new run of a callback in any status.
 */
export const callbackStatuses = ['pending', 'delivered', 'exhausted'] as const;
export type CallbackStatus = (typeof callbackStatuses)[number];

export const eventNames = {
  refunds: 'refund.updated',
  disputes: 'dispute.updated',
  payouts: 'payout.updated',
} as const satisfies Record<EventKind, string>;
export type EventName = (typeof eventNames)[EventKind];

export type Callback = {
  merchant_id: string;
  id: string;
  /** Null for the event of a payout. */
  checkout_id: string | null;
  integration_id: string;
  notify_url: string;
  payload: Buffer;
  status: CallbackStatus;
  created_at: Timestamp;
  due_at: Timestamp | null;
  attempts: number;
  run: number;
  run_attempts: number;
  /** How many of its attempts were deleted after their retention period. */
  attempts_expired: number;
  host: string;
  redirect_url: string | null;
  delivered_at: Timestamp | null;
  lease: string | null;
  leased_until: Timestamp | null;
  /**
   * The number of the last attempt that was sent and had no answer after `markSentMilliseconds`. If
   * its process dies, the callback is not sent again at once.
   */
  sent_attempt: number | null;
  /** The sealed `transaction_verify` of a v1 form (decision 0040); null for v2's JSON. */
  sealed_verify: Buffer | null;
  /** Null for the contract's own callback, which reports how a checkout ended. */
  event: EventName | null;
  /** The refund, dispute or payout that changed. */
  subject_id: string | null;
  /** Counts the changes of the subject that this integration is told about, from 1. */
  sequence: number | null;
  /** The id of the checkout; for an event, the callback's own id. */
  listed_id: string;
};

/** A callback without the columns that follow from the others. */
type NewCallback = Omit<Callback, 'host' | 'listed_id'>;

/**
 * Adds the columns that follow from the others. They are not generated columns, because PostgreSQL
 * 18 parses the expressions of generated columns again for every row that an UPDATE changes. For a
 * delivered callback that took 20 µs of 120.
 */
export function newCallback(callback: NewCallback): Callback {
  const { id, checkout_id, notify_url, event } = callback;
  const listed_id = event === null ? checkout_id : id;
  assert(listed_id !== null);
  const [, host = ''] = /^[^:]+:\/\/([^/?#]*)/.exec(notify_url) ?? [];
  return { ...callback, host: host.toLowerCase(), listed_id };
}

export const callbackTriggers = ['first', 'retry', 'operator'] as const;
export type CallbackTrigger = (typeof callbackTriggers)[number];

/** `unknown` until the attempt is recorded, and for ever if its process died before that. */
export const attemptOutcomes = ['unknown', 'delivered', 'failed'] as const;
export type AttemptOutcome = (typeof attemptOutcomes)[number];

export type CallbackAttempt = {
  merchant_id: string;
  id: string;
  callback_id: string;
  number: number;
  run: number;
  trigger: CallbackTrigger;
  operator: string | null;
  started_at: Timestamp;
  finished_at: Timestamp | null;
  outcome: AttemptOutcome;
  reason: string | null;
  request_headers: Record<string, string>;
  address: string | null;
  tls_version: string | null;
  response_status: number | null;
  /** The first headers and the beginning of the body; limits.ts has their sizes. */
  response_headers: Record<string, string | string[]> | null;
  response_body: Buffer | null;
  /**
   * The length of all headers and of the whole body; null without a response. If the body had no
   * declared length and we stopped reading it, the length is what we had read.
   */
  response_header_bytes: number | null;
  response_body_bytes: number | null;
  timings: Record<string, number> | null;
};

/** The bytes that every attempt sends: compact JSON, members in the contract's order. */
export function callbackPayload(checkout: Checkout): Buffer {
  const { status, amount, currency, client_reference_id, number_of_payments } = checkout;
  return Buffer.from(
    JSON.stringify({ status, amount, currency, client_reference_id, number_of_payments }),
  );
}

/**
 * The bytes of an event: its name, id and time, the number of the change, the merchant, and the
 * object as the API presents it. A receiver drops an event whose id it has seen, or whose number is
 * lower than one that it has seen for the object.
 */
export function eventPayload(
  { event, id, sequence, created_at, merchant_id }: Callback,
  data: object,
): Buffer {
  return Buffer.from(JSON.stringify({ event, id, sequence, created_at, merchant_id, data }));
}

/** The members that a callback has before its first delivery. */
export const undelivered = {
  status: 'pending',
  attempts: 0,
  run: 1,
  run_attempts: 0,
  attempts_expired: 0,
  sent_attempt: null,
  redirect_url: null,
  delivered_at: null,
  lease: null,
  leased_until: null,
} as const satisfies Partial<Callback>;
