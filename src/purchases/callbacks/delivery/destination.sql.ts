import type pg from 'pg';
import type { Handle } from '#platform/database/database.ts';
import { rowGroup } from '#platform/database/row-group.ts';

type Destination = { merchant_id: string; host: string };

/** Adds failures in a row. Returns how many there are now and whether an alert was raised. */
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

const working = rowGroup({ merchant_id: 'uuid', host: 'text' });

/** Clears the failures of destinations that work. Writes nothing for those that had none. */
export async function clearFailures(
  client: pg.ClientBase,
  destinations: Destination[],
): Promise<void> {
  await client.query({
    name: 'destinations-clear',
    text: `
      update destinations as d
      set failures = 0, alerted = false
      from ${working.from}
      where d.merchant_id = i.merchant_id and d.host = i.host and d.failures > 0`,
    values: working.values(destinations),
  });
}

export async function moveAlerted(db: Handle, { merchant_id, host }: Destination): Promise<void> {
  await db
    .updateTable('destinations')
    .set({ alerted: true })
    .where('merchant_id', '=', merchant_id)
    .where('host', '=', host)
    .execute();
}
