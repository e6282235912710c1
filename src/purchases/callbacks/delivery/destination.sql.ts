import type { Handle } from '#platform/database/database.ts';

type Destination = { merchant_id: string; host: string };

/**
 * Adds to the count of consecutive failures. Returns how many there are now, and whether an alert
 * was already raised.
 */
export async function advanceFailures(
  db: Handle,
  { merchant_id, host }: Destination,
  failures: number,
): Promise<{ failures: number; alerted: boolean }> {
  return await db
    .insertInto('destinations')
    .values({ merchant_id, host, failures, alerted: false })
    .onConflict((conflict) =>
      conflict
        .columns(['merchant_id', 'host'])
        .doUpdateSet((set) => ({ failures: set('destinations.failures', '+', failures) })),
    )
    .returning(['failures', 'alerted'])
    .executeTakeFirstOrThrow();
}

export async function moveAlerted(db: Handle, { merchant_id, host }: Destination): Promise<void> {
  await db
    .updateTable('destinations')
    .set({ alerted: true })
    .where('merchant_id', '=', merchant_id)
    .where('host', '=', host)
    .execute();
}

/** Whether an alert about this host was raised since the last delivery to it succeeded. */
export async function isAlerted(db: Handle, { merchant_id, host }: Destination): Promise<boolean> {
  const row = await db
    .selectFrom('destinations')
    .select('alerted')
    .where('merchant_id', '=', merchant_id)
    .where('host', '=', host)
    .executeTakeFirst();
  return row?.alerted === true;
}
