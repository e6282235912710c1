import type { Handle } from '#platform/database/database.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import { findMerchant, lockMerchant, moveClock } from './merchant.sql.ts';
import type { Merchant } from './merchant.ts';

/** Moves a sandbox merchant's clock forward, never back, even if two callers move it at once. */
export async function setClock(
  deps: { clock: Clock },
  db: Handle,
  merchant_id: string,
  to: Timestamp,
): Promise<Merchant> {
  const merchant = await lockMerchant(db, merchant_id);
  const ahead = Temporal.Instant.from(to).epochMilliseconds - deps.clock.now().epochMilliseconds;
  await moveClock(db, merchant_id, Math.max(ahead, merchant?.clock_ahead_ms ?? 0));
  return (await findMerchant(db, deps.clock, merchant_id)) as Merchant;
}
