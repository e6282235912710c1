import type { Handle } from '../database/database.ts';

export async function advanceFailures(
  db: Handle,
  merchant_id: string,
  host: string,
): Promise<{ failures: number; alerted: boolean }> {
  return await db
    .insertInto('destinations')
    .values({ merchant_id, host, failures: 1, alerted: false })
    .onConflict((conflict) =>
      conflict
        .columns(['merchant_id', 'host'])
        .doUpdateSet((set) => ({ failures: set('destinations.failures', '+', 1) })),
    )
    .returning(['failures', 'alerted'])
    .executeTakeFirstOrThrow();
}

/** Nothing is written for a receiver that has been well all along. */
export async function clearFailures(db: Handle, merchant_id: string, host: string): Promise<void> {
  await db
    .updateTable('destinations')
    .set({ failures: 0, alerted: false })
    .where('merchant_id', '=', merchant_id)
    .where('host', '=', host)
    .where('failures', '>', 0)
    .execute();
}

export async function moveAlerted(db: Handle, merchant_id: string, host: string): Promise<void> {
  await db
    .updateTable('destinations')
    .set({ alerted: true })
    .where('merchant_id', '=', merchant_id)
    .where('host', '=', host)
    .execute();
}
