import { type RawBuilder, type Selectable, sql } from 'kysely';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { type Handle, isWorkerAway } from './database.ts';
import type { Tables } from './tables.ts';

// The statements that all due work shares. A row falls due on its merchant's clock. One process at
// a time works on it, under a lease on the real clock. Work goes merchant by merchant: first find
// the merchants with due rows, then claim some rows of one merchant. No merchant starves, each
// merchant's own clock decides, and a claim stays on the database node that holds its rows.

export type LeasedTable = {
  [Name in keyof Tables]: Tables[Name] extends {
    merchant_id: unknown;
    lease: unknown;
    leased_until: unknown;
  }
    ? Name
    : never;
}[keyof Tables];

/** Leased tables whose rows count the attempts at their due work. */
type RetriedTable = {
  [Name in LeasedTable]: Tables[Name] extends { attempts: unknown; due_at: unknown } ? Name : never;
}[LeasedTable];

type Column<Table extends LeasedTable> = keyof Tables[Table] & string;

/** Which rows fall due. `due` needs an index, or finding the merchants scans the table. */
export type DueWork<Table extends LeasedTable> = {
  table: Table;
  /** The column with the time at which a row falls due; null if it never does by itself. */
  due: Column<Table>;
  /** Another condition on a row, in columns of the table. */
  where?: RawBuilder<boolean>;
};

export type AnyDueWork = { table: LeasedTable; due: string; where?: RawBuilder<boolean> };

/** `lease` is the token that proves a claim when the claiming process writes. */
export type Lease = { lease: string; now: Timestamp; leased_until: Timestamp };

export function newLease(deps: { clock: Clock; random: Random }, seconds: number): Lease {
  const now = deps.clock.now();
  return {
    lease: deps.random.uuid(),
    now: timestamp(now),
    leased_until: timestamp(secondsAfter(now, seconds)),
  };
}

/** The row is not claimed, or its lease has run out. */
export const isFree = (now: Timestamp) =>
  sql<boolean>`(leased_until is null or leased_until <= ${now}::timestamptz)`;

/** The columns of a row that is not claimed. */
export const released = { lease: null, leased_until: null } as const;

/** The rows of all merchants that are due and free, each by its own merchant's clock. */
export const dueRows = (work: AnyDueWork, now: Timestamp, isOf = sql<boolean>`true`) =>
  // The clock that is furthest ahead bounds the index scan; the merchant's own clock decides. The
  // planner does not know that bound. Without the first two conditions it would expect a third of
  // all rows, most of which will never fall due again, and read the whole table. A join with the
  // merchants would probe the index once for each merchant.
  sql`(
    select * from ${sql.table(work.table)} d
    where ${sql.ref(`d.${work.due}`)} is not null and ${sql.ref(`d.${work.due}`)} > '-infinity'
      and ${sql.ref(`d.${work.due}`)} <= ${now}::timestamptz
        + (select max(clock_ahead_ms) from merchants) * interval '1 millisecond'
      and ${isFree(now)}
      and ${work.where ?? sql`true`}
      and ${isOf}
      and ${sql.ref(`d.${work.due}`)} <= ${now}::timestamptz
        + (select m.clock_ahead_ms from merchants m where m.id = d.merchant_id)
          * interval '1 millisecond'
  )`;

/** Tables with due rows that belong to no merchant. */
type SharedTable = 'alerts' | 'bulk_actions' | 'person_mails';

/** The rows that a kind of work waits for: on the merchants' clocks, or on the real one. */
export type Awaited = AnyDueWork | { shared: SharedTable };

/**
 * Finds the kinds of work that have a row that is due now, in one statement. Each of them then
 * finds its own rows; kinds with nothing due are not asked.
 */
export async function listDueKinds(
  db: Handle,
  kinds: ReadonlyMap<string, Awaited>,
  now: Timestamp,
): Promise<string[]> {
  const looks = [...kinds.values()].map((awaited) => {
    const [due, at] =
      'shared' in awaited
        ? [sql`${sql.table(awaited.shared)} where due_at <= ${now}::timestamptz`, 'due_at']
        : [sql`${dueRows(awaited, now)} d`, awaited.due];
    // Only the index of due times gives this order. Without the order PostgreSQL may read through
    // the index of each merchant's due rows. EXISTS would ignore the order.
    return sql`coalesce((select true from ${due} order by ${sql.ref(at)} limit 1), false)`;
  });
  const { rows } = await sql<{ due: boolean[] }>`
    select array[${sql.join(looks)}] as due`.execute(db);
  return [...kinds.keys()].filter((_, index) => rows[0]?.due[index]);
}

/**
 * Merchants with due rows, the longest overdue first. If a Citus worker does not answer, the order
 * holds only within the merchants of each other Citus worker.
 */
export async function listMerchantsWithDue(
  db: Handle,
  work: AnyDueWork,
  now: Timestamp,
  merchantsMax: number,
): Promise<string[]> {
  const rows = await askWorkers(db, async (isOf) => {
    const found = await sql<{ merchant_id: string }>`
      select merchant_id
      from ${dueRows(work, now, isOf)} due
      group by merchant_id
      order by min(${sql.ref(work.due)})
      limit ${merchantsMax}`.execute(db);
    return found.rows;
  });
  return rows.map((row) => row.merchant_id).slice(0, merchantsMax);
}

/**
 * Lists rows of all merchants. If a Citus worker does not answer, runs `list` for the merchants of
 * each Citus worker in turn, and returns the rows of those that answer (decision 0020).
 */
export async function askWorkers<Row>(
  db: Handle,
  /** `isOf` chooses merchants by the column `merchant_id`. */
  list: (isOf?: RawBuilder<boolean>) => Promise<Row[]>,
): Promise<Row[]> {
  try {
    return await list();
  } catch (error) {
    if (!isWorkerAway(error)) throw error;
    const found: Row[][] = [];
    for (const ids of await listMerchantsByWorker(db)) {
      try {
        found.push(await list(sql<boolean>`merchant_id = any (${ids}::uuid[])`));
      } catch (reason) {
        if (!isWorkerAway(reason)) throw reason;
      }
    }
    if (found.length === 0) throw error;
    return found.flat();
  }
}

/** The ids of all merchants, by the Citus worker that has their rows. */
async function listMerchantsByWorker(db: Handle): Promise<string[][]> {
  const merchants = await db.selectFrom('merchants').select('id').execute();
  const ids = merchants.map(({ id }) => id);
  const { rows } = await sql<{ ids: string[] }>`
    select array_agg(m.id::text) as ids
    from unnest(${ids}::uuid[]) as m (id)
    join pg_dist_placement p
      on p.shardid = get_shard_id_for_distribution_column('checkouts', m.id)
    group by p.groupid`.execute(db);
  return rows.map((row) => row.ids);
}

/** Claims some of a merchant's due rows. `merchantNow` is the time on the merchant's clock. */
export async function claimDue<Table extends LeasedTable>(
  db: Handle,
  work: DueWork<Table>,
  merchant_id: string,
  { lease, now, leased_until, merchantNow }: Lease & { merchantNow: Timestamp },
  batchSize: number,
): Promise<Selectable<Tables[Table]>[]> {
  // Choose the rows once, before any is changed, and find them again without an index. A row that
  // changed between our snapshot and our lock has another ctid and is left for the next claim.
  const { rows } = await sql<Selectable<Tables[Table]>>`
    update ${sql.table(work.table)}
    set lease = ${lease}, leased_until = ${leased_until}
    where merchant_id = ${merchant_id} and ctid = any(array(
      select ctid
      from ${sql.table(work.table)}
      where merchant_id = ${merchant_id}
        and ${sql.ref(work.due)} <= ${merchantNow}::timestamptz
        and ${isFree(now)}
        and ${work.where ?? sql`true`}
      order by ${sql.ref(work.due)}
      limit ${batchSize}
      for update skip locked
    ))
    returning *`.execute(db);
  return rows;
}

/**
 * Claims rows of a table that belongs to no merchant, until `until`. The rows are chosen before any
 * is changed, as in `claimDue`. On Citus every node has a copy of the table and makes the choice
 * itself. The copies must agree, so the order has no ties.
 */
export async function claimDueOfAll<Row>(
  db: Handle,
  table: Exclude<SharedTable, 'bulk_actions'>,
  now: Timestamp,
  until: Timestamp,
  batchSize: number,
): Promise<Row[]> {
  const rows = sql.table(table);
  const { rows: claimed } = await sql<Row>`
    with chosen as materialized (
      select id from ${rows} where due_at <= ${now}
      order by due_at, id limit ${batchSize} for update skip locked)
    update ${rows} set due_at = ${until} from chosen
    where ${rows}.id = chosen.id returning ${rows}.*`.execute(db);
  return claimed;
}

/**
 * Releases a claimed row to be retried at `due_at`, and counts the attempt. Does nothing if the
 * lease was lost or the row is settled.
 */
export async function releaseDue(
  db: Handle,
  table: RetriedTable,
  key: { merchant_id: string } & Record<string, string | number>,
  lease: string,
  due_at: Timestamp,
): Promise<void> {
  const isKey = Object.entries(key).map(([name, value]) => sql`${sql.ref(name)} = ${value}`);
  await sql`
    update ${sql.table(table)}
    set due_at = ${due_at}, lease = null, leased_until = null, attempts = attempts + 1
    where ${sql.join(isKey, sql` and `)} and lease = ${lease} and due_at is not null`.execute(db);
}

/** When a merchant's next row falls due, on its clock; null if no row will fall due by itself. */
export async function findNextDue(
  db: Handle,
  work: AnyDueWork,
  merchant_id: string,
): Promise<Timestamp | null> {
  return (await findNextDueRow(db, work, merchant_id))?.at ?? null;
}

/**
 * The merchant's row that falls due next, with its checkout if it belongs to one. Null if no row
 * will fall due by itself.
 */
export async function findNextDueRow(
  db: Handle,
  work: AnyDueWork,
  merchant_id: string,
): Promise<{ at: Timestamp; checkout_id: string | null } | null> {
  const { rows } = await sql<{ at: Timestamp; checkout_id: string | null }>`
    select ${sql.ref(work.due)} as at, to_jsonb(d) ->> 'checkout_id' as checkout_id
    from ${sql.table(work.table)} d
    where merchant_id = ${merchant_id}
      and ${sql.ref(work.due)} is not null
      and ${work.where ?? sql`true`}
    order by ${sql.ref(work.due)}
    limit 1`.execute(db);
  return rows[0] ?? null;
}

/** How long the oldest due row of each kind of work has been due, by the merchants' clocks. */
export async function listDueAges(
  db: Handle,
  works: { name: string; due: AnyDueWork }[],
  now: Timestamp,
): Promise<{ work: string; seconds: number }[]> {
  const ages = works.map(
    ({ name, due }) => sql`
      select ${name}::text as work, coalesce(max(extract(epoch from
        ${now}::timestamptz + m.clock_ahead_ms * interval '1 millisecond' - o.due_at)), 0)::float8
        as seconds
      from (
        select merchant_id, ${sql.ref(due.due)} as due_at from ${sql.table(due.table)}
        where ${sql.ref(due.due)} is not null and ${due.where ?? sql`true`}
        order by ${sql.ref(due.due)} limit 100
      ) o join merchants m on m.id = o.merchant_id`,
  );
  const { rows } = await sql<{ work: string; seconds: number }>`${sql.join(
    ages,
    sql` union all `,
  )}`.execute(db);
  return rows.map(({ work, seconds }) => ({ work, seconds: Math.max(0, seconds) }));
}
