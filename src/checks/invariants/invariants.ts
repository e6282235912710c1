import type pg from 'pg';
import { planOnce } from '#platform/database/database.ts';
import { isPlanOutdated, nameOf, queryByName } from '#platform/database/name-statements.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { callbackInvariants } from './callbacks.ts';
import { dueWorkInvariants } from './due-work.ts';
import { idempotencyInvariants } from './idempotency.ts';
import { instalmentInvariants, instalmentRows } from './instalments.ts';
import type { Invariant, RowInvariant, RowInvariants } from './invariant.ts';
import { listInvariants } from './lists.ts';
import { messageInvariants } from './messages.ts';
import { operatorInvariants } from './operators.ts';
import { paymentInvariants } from './payments.ts';
import { payoutInvariants } from './payouts.ts';
import { refundInvariants } from './refunds.ts';
import { saleRows } from './sales.ts';
import { shopperInvariants } from './shoppers.ts';
import { statusInvariants } from './statuses.ts';

/**
 * Conditions that must be true after any fault, crash or race, once due work has been done. Every
 * fault test ends by checking them. `tranche ledger check` and the worker's audit use those that
 * apply to a range of checkouts or of merchants.
 */
const invariants: (Invariant | RowInvariants)[] = [
  saleRows,
  instalmentRows,
  ...instalmentInvariants,
  ...paymentInvariants,
  ...refundInvariants,
  ...shopperInvariants,
  ...payoutInvariants,
  ...statusInvariants,
  ...callbackInvariants,
  ...messageInvariants,
  ...dueWorkInvariants,
  ...operatorInvariants,
  ...idempotencyInvariants,
  ...listInvariants,
];

export type Violation = { name: string; description: string; row: object };

type Queryable = {
  query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
};

/**
 * The rows of the whole database that violate an invariant. Tests call this often on few rows, and
 * the statements take much longer to plan than to run. So each connection prepares each of them
 * once.
 */
export async function findViolations(
  { pool }: { pool: Pick<pg.ClientBase, 'query'> },
  now: Timestamp,
  names: string[] | null = null,
): Promise<Violation[]> {
  const named: Queryable = {
    query: (text, values) => pool.query({ name: nameOf(text), text, values }),
  };
  const isAsked = ({ name }: { name: string }) => names === null || names.includes(name);
  const violations: Violation[] = [];
  for (const one of invariants) {
    if ('rows' in one) {
      const each = one.each.filter(isAsked);
      if (each.length > 0) violations.push(...(await askRows(named, one.rows(all), each, [])));
    } else if (isAsked(one)) {
      const text = typeof one.sql === 'string' ? one.sql : one.sql(all);
      violations.push(...(await ask(named, one, text, text.includes('$1') ? [now] : [])));
    }
  }
  return violations;
}

const all = () => 'true';
const isBetween = (column: string) => `${column} between $1 and $2`;

/** The rows that violate an invariant about the money of the checkouts from `first` to `last`. */
export async function findDifferences(
  { pool }: { pool: pg.Pool },
  first: string,
  last: string,
): Promise<Violation[]> {
  return await readOnly(pool, async (client) => {
    // PostgreSQL cannot estimate how many ids lie in a range, nor how many checkouts the rows in it
    // belong to. It would choose nested loops, which compare thousands of rows with thousands, and
    // would sort what a hash table groups in half the time. It expects many rows of any range in a
    // large table, so it would compile the plan (JIT), which takes longer than running the plan.
    const settings = ['enable_nestloop', 'enable_sort', 'jit'];
    const isOff = settings.map((name) => `set local ${name} = off`);
    await client.query([...isOff, ...planOnce(client)].join('; '));
    const named = { query: queryByName(client, true) };
    const range = [first, last];
    const violations: Violation[] = [];
    for (const one of invariants) {
      if ('rows' in one) {
        violations.push(...(await askRows(named, one.rows(isBetween), one.each, range)));
      } else if (!('by' in one) && typeof one.sql !== 'string') {
        violations.push(...(await ask(named, one, one.sql(isBetween), range)));
      }
    }
    return violations;
  });
}

const merchantMinutes = 10;

/** The rows that violate an invariant about the books of the merchants from `first` to `last`. */
export async function findMerchantDifferences(
  { pool }: { pool: pg.Pool },
  first: string,
  last: string,
): Promise<Violation[]> {
  // The statistics say how many rows a merchant has, so the planner needs no help here.
  return await readOnly(pool, async (client) => {
    // One statement adds up all entries of a merchant. No request waits for it (decision 0036). The
    // driver waits longer than the server, so the server ends the statement.
    await client.query(`set local statement_timeout = '${merchantMinutes}min'`);
    const query_timeout = (merchantMinutes + 1) * 60_000;
    const patient: Queryable = {
      query: (text, values) => client.query({ text, values, query_timeout } as pg.QueryConfig),
    };
    const violations: Violation[] = [];
    for (const one of invariants) {
      if (!('by' in one)) continue;
      violations.push(...(await ask(patient, one, one.sql(isBetween), [first, last])));
    }
    return violations;
  });
}

/** Reads again if a migration has changed the columns of a named statement. */
async function readOnly<T>(pool: pg.Pool, read: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  try {
    return await readOnce(pool, read);
  } catch (error) {
    if (!isPlanOutdated(error)) throw error;
    return await readOnce(pool, read);
  }
}

async function readOnce<T>(pool: pg.Pool, read: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query('begin read only');
    const result = await read(client);
    await client.query('commit');
    return result;
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}

async function ask(
  client: Queryable,
  { name, description }: Invariant,
  text: string,
  values: unknown[],
): Promise<Violation[]> {
  const rows = await list(client, text, values);
  return rows.map((row) => ({ name, description, row }));
}

async function askRows(
  client: Queryable,
  text: string,
  each: RowInvariant[],
  values: unknown[],
): Promise<Violation[]> {
  const conditions = each.map(({ violated }) => `(${violated})`);
  const found = conditions.map((condition, index) => `case when ${condition} then ${index} end`);
  const rows = await list(
    client,
    `select *, array[${found.join(', ')}] as found from (${text}) rows
     where ${conditions.join(' or ')}`,
    values,
  );
  return each.flatMap(({ name, description, shows }, index) =>
    rows
      .filter((row) => (row.found as (number | null)[]).includes(index))
      .map((row) => ({
        name,
        description,
        row: Object.fromEntries(shows.map((column) => [column, row[column]])),
      })),
  );
}

async function list(
  client: Queryable,
  text: string,
  values: unknown[],
): Promise<Record<string, unknown>[]> {
  // The CTE hides the limit from the planner. A planner that expects to find rows soon chooses a
  // plan that is quick to the first row and very slow when there is none.
  const { rows } = await client.query(
    `with found as materialized (${text}) select * from found limit 20`,
    values,
  );
  return rows;
}
