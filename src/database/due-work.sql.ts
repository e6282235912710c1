import { type RawBuilder, type Selectable, sql } from 'kysely';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '../shared/clock.ts';
import type { Random } from '../shared/random.ts';
import type { Handle } from './database.ts';
import type { Tables } from './tables.ts';

// What everything that waits has in common: rows of a merchant's that fall due on its clock and
// are worked on by one process at a time, under a lease on the real clock. Merchant by merchant:
// first who has something due, then some of one merchant's, so that nobody starves, everyone's
// own clock counts, and each claim stays on the node where the merchant's rows are.

type LeasedTable = {
  [Name in keyof Tables]: Tables[Name] extends {
    merchant_id: unknown;
    lease: unknown;
    leased_until: unknown;
  }
    ? Name
    : never;
}[keyof Tables];

type Column<Table extends LeasedTable> = keyof Tables[Table] & string;

/** Which rows fall due. For the first question to be cheap `due` needs an index of its own. */
export type DueWork<Table extends LeasedTable> = {
  table: Table;
  /** When a row falls due; null: never by itself. */
  due: Column<Table>;
  /** What else must be true of a row, in columns of the table. */
  where?: RawBuilder<boolean>;
};

export type AnyDueWork = { [Table in LeasedTable]: DueWork<Table> }[LeasedTable];

/** `lease` is the token by which whoever has a row in hand is known when it writes. */
export type Lease = { lease: string; now: Timestamp; leased_until: Timestamp };

export function newLease(deps: { clock: Clock; random: Random }, seconds: number): Lease {
  const now = deps.clock.now();
  return {
    lease: deps.random.uuid(),
    now: timestamp(now),
    leased_until: timestamp(secondsAfter(now, seconds)),
  };
}

/** Nobody has the row in hand, or whoever had it is gone. */
export const isFree = (now: Timestamp) =>
  sql<boolean>`(leased_until is null or leased_until <= ${now}::timestamptz)`;

/** The rows of all merchants that are due and free, each by its own merchant's clock. */
export const dueRows = (work: AnyDueWork, now: Timestamp) =>
  // The furthest clock bounds the index scan; the merchant's own decides.
  sql`(
    select d.*
    from (
      select * from ${sql.table(work.table)}
      where ${sql.ref(work.due)} <= ${now}::timestamptz
          + (select max(clock_ahead_ms) from merchants) * interval '1 millisecond'
        and ${isFree(now)}
        and ${work.where ?? sql`true`}
    ) d
    join merchants m on m.id = d.merchant_id
    where ${sql.ref(`d.${work.due}`)} <= ${now}::timestamptz
        + m.clock_ahead_ms * interval '1 millisecond'
  )`;

/** Merchants with something to do, the longest overdue first. */
export async function listMerchantsWithDue(
  db: Handle,
  work: AnyDueWork,
  now: Timestamp,
  most: number,
): Promise<string[]> {
  const { rows } = await sql<{ merchant_id: string }>`
    select merchant_id
    from ${dueRows(work, now)} due
    group by merchant_id
    order by min(${sql.ref(work.due)})
    limit ${most}`.execute(db);
  return rows.map((row) => row.merchant_id);
}

/** Takes some of a merchant's due rows in hand. `merchantNow` is the time on the merchant's clock. */
export async function claimDue<Table extends LeasedTable>(
  db: Handle,
  work: DueWork<Table>,
  merchant_id: string,
  { lease, now, leased_until, merchantNow }: Lease & { merchantNow: Timestamp },
  most: number,
): Promise<Selectable<Tables[Table]>[]> {
  // Chosen once, before anything is changed, and found again without an index. A row that changed
  // between our snapshot and our lock is at another place, and is left for the next claim.
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
      limit ${most}
      for update skip locked
    ))
    returning *`.execute(db);
  return rows;
}

/** When a merchant's next row falls due, on its clock; null when none ever does by itself. */
export async function findNextDue(
  db: Handle,
  work: AnyDueWork,
  merchant_id: string,
): Promise<Timestamp | null> {
  const { rows } = await sql<{ due: Timestamp }>`
    select ${sql.ref(work.due)} as due
    from ${sql.table(work.table)}
    where merchant_id = ${merchant_id}
      and ${sql.ref(work.due)} is not null
      and ${work.where ?? sql`true`}
    order by ${sql.ref(work.due)}
    limit 1`.execute(db);
  return rows[0]?.due ?? null;
}
