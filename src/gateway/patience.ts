import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { type Clock, type Timestamp, timestamp } from '../shared/clock.ts';
import type { MerchantTime } from './gateway.ts';

// What everybody who asks the gateway has in common: at whose time, for how long, and when again.

export function timeFor(clock: Clock, merchant: Merchant): MerchantTime {
  return { id: merchant.id, now: timestamp(merchantNow(clock, merchant)) };
}

/** Longer than one call to the gateway may take, with room to record what it said. */
export const leaseSeconds = 40;

/** How long the gateway knows a key for certain; after that what was asked is looked up instead. */
const keyHours = 23;

export function isKeyKnown(keyed_at: Timestamp, now: Timestamp): boolean {
  return Temporal.Instant.from(now).since(keyed_at).total('hours') < keyHours;
}

/** A request that was sent so recently may still be under way, whatever a look-up says. */
const underWayMinutes = 10;

/** Both on the real clock: a sandbox's merchant may be days further by then. */
export function mayBeUnderWay(asked_at: Timestamp, now: Temporal.Instant): boolean {
  return now.since(asked_at).total('minutes') < underWayMinutes;
}

/** When an unknown outcome is looked at again: soon at first, then ever less often. */
export function nextLook(now: Temporal.Instant, tries: number): Temporal.Instant {
  const seconds = Math.min(5 * 2 ** Math.min(tries, 10), 600);
  return now.add({ seconds });
}
