import type { Selectable } from 'kysely';
import type { Database } from '#platform/database/database.ts';
import {
  claimDue,
  type DueWork,
  type LeasedTable,
  listMerchantsWithDue,
  newLease,
} from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { findMerchant } from './merchant.sql.ts';
import type { Merchant } from './merchant.ts';

type RunnerDeps = { database: Database; clock: Clock; random: Random };

/**
 * Due work that is done merchant by merchant. A round serves the merchants with due rows in turn,
 * one batch at a time, so that a merchant with many rows cannot starve the others.
 */
export type MerchantDueWork<Table extends LeasedTable, Deps extends RunnerDeps> = {
  due: DueWork<Table>;
  /** How long a claim lasts. Longer than `run` may take. */
  leaseSeconds: number;
  /** How many rows of one merchant are claimed at once. */
  batchSize: number;
  /** How many merchants a round serves. */
  merchantsMax: number;
  /** How many batches are in progress at once. A merchant that is alone may have all of them. */
  concurrency: number;
  /** How long a round gives merchants further turns. With 0, each merchant gets one batch. */
  roundMilliseconds: number;
  /** Works on a claimed batch, which has one merchant and one lease and is never empty. */
  run(deps: Deps, merchant: Merchant, batch: Selectable<Tables[Table]>[]): Promise<unknown>;
};

/** Works on the due rows of all merchants, and returns how many it claimed. */
export async function runDueWork<Table extends LeasedTable, Deps extends RunnerDeps>(
  deps: Deps,
  work: MerchantDueWork<Table, Deps>,
  stopping?: AbortSignal,
): Promise<number> {
  const { db } = deps.database;
  const now = timestamp(deps.clock.now());
  const ids = await listMerchantsWithDue(db, work.due, now, work.merchantsMax);
  return await takeTurns(deps, work, ids, (id) => findMerchant(db, deps.clock, id), stopping);
}

/** Works on the due rows of one merchant, and returns how many it claimed. */
export async function runMerchantDueWork<Table extends LeasedTable, Deps extends RunnerDeps>(
  deps: Deps,
  work: MerchantDueWork<Table, Deps>,
  merchant: Merchant,
): Promise<number> {
  return await takeTurns(deps, work, [merchant.id], async () => merchant);
}

async function takeTurns<Table extends LeasedTable, Deps extends RunnerDeps>(
  deps: Deps,
  work: MerchantDueWork<Table, Deps>,
  ids: string[],
  find: (id: string) => Promise<Merchant | null>,
  stopping?: AbortSignal,
): Promise<number> {
  const queue = new Set(ids);
  const served = new Set<string>();
  /** Claims in flight. A merchant whose batch is full returns to the queue. */
  const claims = new Set<Promise<unknown>>();
  const end = deps.clock.monotonic() + work.roundMilliseconds;
  let claimed = 0;

  /** Takes the first merchant out of the queue. */
  function next(): string | undefined {
    const [id] = queue;
    if (id === undefined || stopping?.aborted) return undefined;
    // Every merchant gets one turn, even after the end of the round. No further turns begin then.
    if (served.has(id) && deps.clock.monotonic() >= end) return undefined;
    queue.delete(id);
    served.add(id);
    return id;
  }

  async function claimFor(id: string): Promise<Batch<Table> | null> {
    const merchant = await find(id);
    const rows = merchant ? await claimBatch(deps, work.due, merchant, work) : [];
    claimed += rows.length;
    if (rows.length === work.batchSize) queue.add(id);
    return merchant && rows.length > 0 ? { merchant, rows } : null;
  }

  async function serve(): Promise<void> {
    for (;;) {
      const id = next();
      if (id === undefined) {
        if (claims.size === 0) return;
        await Promise.allSettled(claims);
        continue;
      }
      const claim = claimFor(id);
      claims.add(claim);
      const batch = await claim.finally(() => claims.delete(claim));
      if (batch) await work.run(deps, batch.merchant, batch.rows);
    }
  }
  await Promise.all(Array.from({ length: work.concurrency }, serve));
  return claimed;
}

type Batch<Table extends LeasedTable> = { merchant: Merchant; rows: Selectable<Tables[Table]>[] };

/** Claims some of a merchant's due rows, all under one lease. */
export async function claimBatch<Table extends LeasedTable>(
  deps: RunnerDeps,
  due: DueWork<Table>,
  merchant: Merchant,
  { leaseSeconds, batchSize }: { leaseSeconds: number; batchSize: number },
): Promise<Selectable<Tables[Table]>[]> {
  const now = timestamp(merchant.now());
  const lease = { ...newLease(deps, leaseSeconds), merchantNow: now };
  return await claimDue(deps.database.db, due, merchant.id, lease, batchSize);
}
