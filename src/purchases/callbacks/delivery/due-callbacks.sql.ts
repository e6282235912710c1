import { sql } from 'kysely';
import type pg from 'pg';
import type { Handle } from '#platform/database/database.ts';
import { askWorkers, type DueWork, dueRows } from '#platform/database/due-work.sql.ts';
import { rowGroup } from '#platform/database/row-group.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';

/** Callbacks that are due, to all hosts or to one. */
export const dueCallbacks = (host?: string): DueWork<'callbacks'> => ({
  table: 'callbacks',
  due: 'due_at',
  ...(host !== undefined && { where: sql`host = ${host}` }),
});

/** A host for which a merchant has callbacks due, and how many. */
export type DueDestination = { merchant_id: string; host: string; count: number };

/**
 * Destinations with callbacks due: first one for every merchant, the longest overdue first, then a
 * second one for every merchant that has two, and so on.
 */
export async function listDueDestinations(
  db: Handle,
  now: Timestamp,
  max: { ofMerchant: number; inAll: number },
): Promise<DueDestination[]> {
  const destinations = await askWorkers(db, async (isOf) => {
    const { rows } = await sql<DueDestination>`
      select merchant_id, host, count
      from (
        select merchant_id, host, count(*) as count, min(due_at) as due_at,
          row_number() over (partition by merchant_id order by min(due_at)) as place
        from ${dueRows(dueCallbacks(), now, isOf)} due
        group by merchant_id, host
      ) destinations
      where place <= ${max.ofMerchant}
      order by place, due_at
      limit ${max.inAll}`.execute(db);
    return rows;
  });
  return destinations.slice(0, max.inAll);
}

/** Marks the attempt in flight as sent, while its claim lasts. */
export async function moveSent(
  db: Handle,
  { merchant_id, id, lease, attempts }: Callback,
): Promise<void> {
  await db
    .updateTable('callbacks')
    .set({ sent_attempt: attempts + 1 })
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .execute();
}

const released = rowGroup({
  merchant_id: 'uuid',
  id: 'uuid',
  lease: 'uuid',
  attempts_made: 'int',
  status: 'text',
  due_at: 'timestamptz',
  delivered_at: 'timestamptz',
  redirect_url: 'text',
});

/**
 * Releases callbacks and counts the attempts made under their claims. `delivered_at` and
 * `redirect_url` keep their values where the new one is null. A callback whose lease has passed to
 * another process is left alone. Returns how many were released.
 */
export async function releaseCallbacks(
  client: pg.ClientBase | pg.Pool,
  callbacks: (Pick<
    Callback,
    'merchant_id' | 'id' | 'lease' | 'status' | 'due_at' | 'delivered_at' | 'redirect_url'
  > & { attempts_made: number })[],
): Promise<number> {
  const { rowCount } = await client.query({
    name: 'callbacks-release',
    text: `
      update callbacks as c
      set status = i.status, attempts = c.attempts + i.attempts_made,
        run_attempts = c.run_attempts + i.attempts_made,
        due_at = i.due_at, lease = null, leased_until = null,
        delivered_at = coalesce(i.delivered_at, c.delivered_at),
        redirect_url = coalesce(i.redirect_url, c.redirect_url)
      from ${released.from}
      where c.merchant_id = i.merchant_id and c.id = i.id and c.lease = i.lease`,
    values: released.values(callbacks),
  });
  return rowCount ?? 0;
}
