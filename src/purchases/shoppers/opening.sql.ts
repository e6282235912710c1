import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** Writes nothing for a checkout whose page was opened before. */
export async function insertOpening(
  db: Handle,
  opening: { merchant_id: string; checkout_id: string; id: string; at: Timestamp },
): Promise<void> {
  await db
    .insertInto('checkout_opens')
    .values(opening)
    .onConflict((conflict) => conflict.columns(['checkout_id', 'merchant_id']).doNothing())
    .execute();
}
