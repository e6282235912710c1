import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { CheckoutKey } from './instalment.sql.ts';

export async function insertBlock(
  db: Handle,
  block: CheckoutKey & { reference: string; alert_id: string; created_at: Timestamp },
): Promise<void> {
  const { alert_id } = block;
  await db
    .insertInto('gateway_blocks')
    .values({ ...block, cleared_at: null })
    .onConflict((conflict) =>
      conflict
        .columns(['checkout_id', 'reference', 'merchant_id'])
        .doUpdateSet({ alert_id, cleared_at: null }),
    )
    .execute();
}

/** The alert about the gateway's record `reference`. Null if it does not block the checkout. */
export async function findBlockAlert(
  db: Handle,
  checkout_id: string,
  reference: string,
): Promise<string | null> {
  const row = await db
    .selectFrom('gateway_blocks')
    .select('alert_id')
    .where('checkout_id', '=', checkout_id)
    .where('reference', '=', reference)
    .where('cleared_at', 'is', null)
    .executeTakeFirst();
  return row?.alert_id ?? null;
}

export const selectBlocks = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('gateway_blocks')
    .select('reference')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('cleared_at', 'is', null);

/** Whether an operator must look at a checkout before any of its money moves. */
export async function isBlocked(db: Handle, key: CheckoutKey): Promise<boolean> {
  return (await selectBlocks(db, key).executeTakeFirst()) !== undefined;
}

/** Returns how many blocks there were. */
export async function moveUnblocked(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  cleared_at: Timestamp,
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('gateway_blocks')
    .set({ cleared_at })
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('cleared_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}
