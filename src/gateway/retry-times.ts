import type { Timestamp } from '#platform/shared/clock.ts';

// How long a claim on work at the gateway lasts, and when a request is repeated or looked up.

/** A claim lasts longer than one call to the gateway and the recording of its answer. */
export const leaseSeconds = 40;

/**
 * The gateway remembers an idempotency key for 24 hours. After 23 hours we look up what the request
 * did instead of repeating it.
 */
const keyHours = 23;

export function isKeyRemembered(keyed_at: Timestamp, now: Timestamp): boolean {
  return Temporal.Instant.from(now).since(keyed_at).total('hours') < keyHours;
}

/** A request that was sent this recently may still be in flight, whatever a look-up says. */
const inFlightMinutes = 10;

/**
 * Both times are on the real clock: a sandbox merchant's clock may have moved by days since then.
 */
export function mayBeInFlight(asked_at: Timestamp, now: Temporal.Instant): boolean {
  return now.since(asked_at).total('minutes') < inFlightMinutes;
}

/**
 * When to ask again about an unknown outcome: after 5 seconds, doubling up to 10 minutes. After a
 * day the gateway is asked every hour: by then only an operator can settle the outcome.
 */
export function nextRetryAt(now: Temporal.Instant, attempts: number): Temporal.Instant {
  const seconds = Math.min(5 * 2 ** Math.min(attempts, 10), attempts < 150 ? 600 : 3_600);
  return now.add({ seconds });
}
