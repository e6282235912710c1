import type { Checkout } from '../checkouts/checkout.ts';
import type { Timestamp } from '../shared/clock.ts';

/**
 * What a merchant is told once a checkout ended `successful` or `cancelled`: `pending` until a
 * receiver answered 2xx (`delivered`) or every try of a run failed (`exhausted`). An operator may
 * begin a new run of either.
 */
export const callbackStatuses = ['pending', 'delivered', 'exhausted'] as const;
export type CallbackStatus = (typeof callbackStatuses)[number];

export type Callback = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  integration_id: string;
  notify_url: string;
  payload: Buffer;
  status: CallbackStatus;
  created_at: Timestamp;
  due_at: Timestamp | null;
  attempts: number;
  run: number;
  run_attempts: number;
  host: string;
  redirect_url: string | null;
  delivered_at: Timestamp | null;
  lease: string | null;
  leased_until: Timestamp | null;
  /** Of the v1 form (D32); null for v2's JSON. */
  sealed_verify: Buffer | null;
};

export const callbackTriggers = ['first', 'retry', 'operator'] as const;
export type CallbackTrigger = (typeof callbackTriggers)[number];

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
  response_headers: Record<string, string | string[]> | null;
  response_body: Buffer | null;
  timings: Record<string, number> | null;
};

/** The first delivery of a run and its retries (D24). */
export const mostRunAttempts = 19;
export const retryMinutes = 10;
const mostPostponeMinutes = 60;

/** One deadline for the whole exchange, the answer's body included (D25). Nobody waits longer. */
export const deadlineSeconds = 10;

/** Longer than an exchange with a receiver may take, with room to record it. */
export const leaseSeconds = 15;

/** The bytes that will be sent, whenever that is: members in the spec's order, compact. */
export function callbackPayload(checkout: Checkout): Buffer {
  const { status, amount, currency, client_reference_id, number_of_payments } = checkout;
  return Buffer.from(
    JSON.stringify({ status, amount, currency, client_reference_id, number_of_payments }),
  );
}

/**
 * When to try again: ten minutes after the attempt before it, so that an outage of ours never
 * makes them bunch up. A receiver that asks for patience gets it, up to an hour, never less.
 */
export function nextTry(
  startedAt: Temporal.Instant,
  asked: Temporal.Instant | null = null,
): Temporal.Instant {
  const regular = startedAt.add({ minutes: retryMinutes });
  if (asked === null || Temporal.Instant.compare(asked, regular) <= 0) return regular;
  const latest = startedAt.add({ minutes: mostPostponeMinutes });
  return Temporal.Instant.compare(asked, latest) > 0 ? latest : asked;
}

const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * For how many seconds a 429 or a 503 asks us to stay away, if it does: a number, or a date in
 * HTTP's one spelling, which is a time on the real clock whatever the merchant's says.
 */
export function readRetryAfter(
  status: number | null,
  header: string | string[] | undefined,
  now: Temporal.Instant,
): number | null {
  if ((status !== 429 && status !== 503) || typeof header !== 'string') return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text), mostPostponeMinutes * 60);
  const milliseconds = httpDate.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(milliseconds) ? null : (milliseconds - now.epochMilliseconds) / 1000;
}

/**
 * The absolute http or https URL that a receiver's answer sends the shopper to, if any (D26). v1
 * has another name for it.
 */
export function readRedirectUrl(
  body: Buffer,
  member: 'redirect_url' | 'redirect' = 'redirect_url',
): string | null {
  if (body.length === 0) return null;
  try {
    const { [member]: redirect_url } = JSON.parse(body.toString('utf8'));
    if (typeof redirect_url !== 'string' || redirect_url.length > 2048) return null;
    return /^https?:\/\/[^\s\p{Cc}\\/][^\s\p{Cc}]*$/iu.test(redirect_url) &&
      URL.canParse(redirect_url)
      ? redirect_url
      : null;
  } catch {
    return null;
  }
}
