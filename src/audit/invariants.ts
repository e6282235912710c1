import type pg from 'pg';
import type { Timestamp } from '../shared/clock.ts';
import { callbackInvariants } from './invariants/callbacks.ts';
import { dueWorkInvariants } from './invariants/due-work.ts';
import { idempotencyInvariants } from './invariants/idempotency.ts';
import { instalmentInvariants } from './invariants/instalments.ts';
import type { Invariant } from './invariants/invariant.ts';
import { ledgerInvariants } from './invariants/ledger.ts';
import { listInvariants } from './invariants/lists.ts';
import { messageInvariants } from './invariants/messages.ts';
import { operatorInvariants } from './invariants/operators.ts';
import { paymentInvariants } from './invariants/payments.ts';
import { payoutInvariants } from './invariants/payouts.ts';
import { refundInvariants } from './invariants/refunds.ts';
import { shopperInvariants } from './invariants/shoppers.ts';
import { statusInvariants } from './invariants/statuses.ts';

/**
 * What must be true after any fault, crash or race, once due work has been done. Every fault test
 * ends here. `tranche ledger check` and the worker's audit use the invariants that can be asked of
 * a range of checkouts.
 */
export const invariants: Invariant[] = [
  ...instalmentInvariants,
  ...paymentInvariants,
  ...refundInvariants,
  ...shopperInvariants,
  ...ledgerInvariants,
  ...payoutInvariants,
  ...statusInvariants,
  ...callbackInvariants,
  ...messageInvariants,
  ...dueWorkInvariants,
  ...operatorInvariants,
  ...idempotencyInvariants,
  ...listInvariants,
];

export type Violation = { name: string; says: string; row: object };

type Queryable = { pool: Pick<pg.ClientBase, 'query'> };

/** The rows of the whole database that violate an invariant. */
export async function findViolations(
  database: Queryable,
  now: Timestamp,
  names: string[] = invariants.map(({ name }) => name),
): Promise<Violation[]> {
  const violations: Violation[] = [];
  for (const invariant of invariants.filter(({ name }) => names.includes(name))) {
    const { sql } = invariant;
    const text = typeof sql === 'string' ? sql : sql(() => 'true');
    const values = text.includes('$1') ? [now] : [];
    violations.push(...(await ask(database, invariant, text, values)));
  }
  return violations;
}

/** The rows about the money of the checkouts from `first` to `last` that violate an invariant. */
export async function findDifferences(
  { pool }: { pool: pg.Pool },
  first: string,
  last: string,
): Promise<Violation[]> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query('begin read only');
    // PostgreSQL cannot estimate how many ids lie between two. Where it expects one row it chooses
    // a nested loop, which then compares thousands of rows with thousands.
    await client.query('set local enable_nestloop = off');
    const violations: Violation[] = [];
    for (const invariant of invariants) {
      if (typeof invariant.sql === 'string') continue;
      const text = invariant.sql((column) => `${column} between $1 and $2`);
      violations.push(...(await ask({ pool: client }, invariant, text, [first, last])));
    }
    await client.query('commit');
    return violations;
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}

async function ask(
  { pool }: Queryable,
  { name, says }: Invariant,
  text: string,
  values: unknown[],
): Promise<Violation[]> {
  // The CTE hides the limit from the planner. A planner that expects to find rows soon chooses a
  // plan that is quick to the first row and very slow when there is none.
  const { rows } = await pool.query(
    `with found as materialized (${text}) select * from found limit 20`,
    values,
  );
  return rows.map((row) => ({ name, says, row }));
}
