import type { Selectable } from 'kysely';
import type { Tables } from '#platform/database/tables.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';

/**
 * `active`: a shopper can open the link. `paid`: its checkout is `successful`. A reusable link
 * never becomes `paid`. `cancelled`: the merchant ended it. `expired`: its time has passed. Only
 * `cancelled_at` is stored. A payment that began before the link ended counts, so `paid` takes
 * precedence over the others.
 */
export const paymentLinkStatuses = ['active', 'paid', 'cancelled', 'expired'] as const;
export type PaymentLinkStatus = (typeof paymentLinkStatuses)[number];

export type PaymentLink = Selectable<Tables['payment_links']>;

/** A link with the status of its newest checkout. The status is null before the first one. */
export type ReadLink = PaymentLink & { checkout_status: CheckoutStatus | null };

export const expiryDaysMax = 30;

/** A link is mailed to its shopper at most this many times. */
export const linkMailsMax = 3;
/** A merchant's links are mailed at most this many times in 24 hours. */
export const linkMailsPerDayMax = 100;
/** At most this many of a merchant's mails with links go to one e-mail address in 24 hours. */
export const linkMailsToOneMax = 5;

/** Leaves room for the number that each checkout of a reusable link adds to the reference. */
export const reusableReferenceCharactersMax = 240;

export function statusOf(
  link: Pick<ReadLink, 'reusable' | 'checkout_status' | 'cancelled_at' | 'expires_at'>,
  now: Temporal.Instant,
): PaymentLinkStatus {
  if (!link.reusable && link.checkout_status === 'successful') return 'paid';
  if (link.cancelled_at !== null) return 'cancelled';
  if (link.expires_at === null) return 'active';
  return Temporal.Instant.compare(now, Temporal.Instant.from(link.expires_at)) < 0
    ? 'active'
    : 'expired';
}

/**
 * The reference of a checkout that a link makes. Merchants distinguish callbacks by it, so each
 * checkout of a reusable link has its own.
 */
export const referenceOf = (
  { client_reference_id, reusable }: Pick<PaymentLink, 'client_reference_id' | 'reusable'>,
  count: number,
): string => (reusable ? `${client_reference_id}-${count}` : client_reference_id);

/** When a new link expires. Null if it never does, which is possible only for a reusable link. */
export function expiryOf(
  { expires_at, reusable }: { expires_at?: string | undefined; reusable: boolean },
  now: Temporal.Instant,
): Temporal.Instant | null {
  if (expires_at !== undefined) return Temporal.Instant.from(expires_at);
  return reusable ? null : now.add({ hours: 24 * expiryDaysMax });
}

/** Returns what is wrong with an expiry, or null. */
export function explainBadExpiry(expires_at: string, now: Temporal.Instant): string | null {
  let expiry: Temporal.Instant;
  try {
    expiry = Temporal.Instant.from(expires_at);
  } catch {
    return 'must be a time in ISO 8601 with its offset, such as 2026-12-01T12:00:00Z';
  }
  if (Temporal.Instant.compare(expiry, now) <= 0) return 'must be in the future';
  const last = now.add({ hours: 24 * expiryDaysMax });
  return Temporal.Instant.compare(expiry, last) > 0
    ? `must be at most ${expiryDaysMax} days from now`
    : null;
}

/**
 * A shopper's data is removed from a link this long after it expired. The checkout has its own
 * copy.
 */
const customerDays = 30;

/** Links that expired before this time no longer hold a shopper's data. */
export const customersCutoff = (now: Temporal.Instant): Timestamp =>
  timestamp(now.subtract({ hours: 24 * customerDays }));
