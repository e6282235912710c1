import assert from 'node:assert/strict';
import type { Selectable } from 'kysely';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Database } from '#platform/database/database.ts';
import { releaseDue } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { eraseFinished } from './erase-shopper.ts';
import { findOpenReason, lockErasedRows } from './erasure.sql.ts';
import { lastMovement } from './last-movement.ts';
import { readMovements } from './read-plan.ts';
import {
  deleteErasure,
  deleteRetention,
  dueErasures,
  dueRetentionDates,
  findLinkEnd,
  insertErasures,
  insertMissingRetentionDates,
  listNextCheckouts,
  moveRetentionDate,
  type NumberedCheckout,
} from './retention.sql.ts';

export type ErasureDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  /**
   * The retention period in days after a checkout's last movement. If it is null, personal data
   * stays until an operator erases it.
   */
  retentionDays: number | null;
};

const leaseSeconds = 60;
const dayHours = 24;
/** A checkout that is not finished is checked again this often. */
const recheckDays = 7;
/**
 * A checkout that is not old enough is checked again after this many days at the latest, in case
 * the retention period has been shortened.
 */
const waitDaysMax = 30;

const retentionDates: MerchantDueWork<'retention_dates', ErasureDeps> = {
  due: dueRetentionDates,
  leaseSeconds,
  batchSize: 1,
  merchantsMax: 50,
  concurrency: 2,
  roundMilliseconds: 0,
  run: (deps, merchant, claimed) =>
    Promise.all(claimed.map((retentionDate) => moveOn(deps, merchant, retentionDate))),
};

const erasures: MerchantDueWork<'erasures', ErasureDeps> = {
  due: dueErasures,
  leaseSeconds,
  batchSize: 20,
  merchantsMax: 50,
  concurrency: 1,
  roundMilliseconds: 0,
  async run(deps, merchant, claimed) {
    // The checkouts are erased one after another, because erasing is never urgent.
    for (const one of claimed) await eraseOrWait(deps, merchant, one);
  },
};

/**
 * Finds checkouts that are older than the retention period, and makes their erasure due. Without a
 * retention period nothing is due.
 */
export async function findExpired(deps: ErasureDeps): Promise<number> {
  if (deps.retentionDays === null) {
    await deleteRetention(deps.database.db);
    return 0;
  }
  await insertMissingRetentionDates(deps.database.db, timestamp(deps.clock.now()));
  return await runDueWork(deps, retentionDates);
}

/** Erases the personal data of checkouts that have not moved for the retention period. */
export const eraseExpired = async (deps: ErasureDeps) =>
  deps.retentionDays === null ? 0 : await runDueWork(deps, erasures);

export const findMerchantExpired = async (deps: ErasureDeps, merchant: Merchant) =>
  deps.retentionDays === null ? 0 : await runMerchantDueWork(deps, retentionDates, merchant);

export const eraseMerchantExpired = async (deps: ErasureDeps, merchant: Merchant) =>
  deps.retentionDays === null ? 0 : await runMerchantDueWork(deps, erasures, merchant);

const checkoutsBatchSize = 200;

/**
 * Makes the next checkouts that are old enough due for erasure, and moves the merchant's position
 * (`number`) past them.
 */
async function moveOn(
  deps: ErasureDeps,
  merchant: Merchant,
  retentionDate: Selectable<Tables['retention_dates']>,
): Promise<void> {
  const now = merchant.now();
  await transaction(deps, async ({ db }) => {
    const next = await listNextCheckouts(db, merchant.id, retentionDate.number, checkoutsBatchSize);
    const isOld = (one: NumberedCheckout) =>
      Temporal.Instant.compare(expiryOf(deps, one.created_at), now) <= 0;
    const young = next.findIndex((one) => !isOld(one));
    const old = young === -1 ? next : next.slice(0, young);
    const first = next[old.length];
    const isMore = next.length === checkoutsBatchSize && young === -1;
    // Neither the next checkout nor one that is created from now on is old enough before this time.
    const due_at = earlier(expiryOf(deps, first?.created_at ?? timestamp(now)), limitOf(now));
    const moved = await moveRetentionDate(db, retentionDate, {
      number: old.at(-1)?.number ?? retentionDate.number,
      due_at: timestamp(isMore ? now : due_at),
    });
    if (!moved) return;
    const ids = old.filter(({ erased_at }) => erased_at === null).map(({ id }) => id);
    await insertErasures(db, merchant.id, ids, timestamp(now));
  });
}

const expiryOf = ({ retentionDays }: ErasureDeps, at: string) =>
  Temporal.Instant.from(at).add({ hours: dayHours * (retentionDays ?? 0) });

const limitOf = (now: Temporal.Instant) => now.add({ hours: dayHours * waitDaysMax });

const earlier = (one: Temporal.Instant, other: Temporal.Instant) =>
  Temporal.Instant.compare(one, other) < 0 ? one : other;

/**
 * The answers that were stored for retries of requests about a checkout are gone after this many
 * days, in any time zone.
 */
const answersGoneDays = 3;

/** Erases a checkout, or makes it due again later. Never throws. */
async function eraseOrWait(
  deps: ErasureDeps,
  merchant: Merchant,
  one: Selectable<Tables['erasures']>,
): Promise<void> {
  const { merchant_id, checkout_id, lease } = one;
  assert(lease !== null);
  const key = { merchant_id, checkout_id };
  const now = merchant.now();
  const later = now.add({ hours: dayHours * recheckDays });
  try {
    const due_at = await transaction(deps, async ({ db }) => {
      const checkout = await lockCheckout(db, merchant_id, checkout_id);
      assert(checkout);
      if (checkout.erased_at === null) {
        await lockErasedRows(db, key);
        const times = { now: timestamp(deps.clock.now()), merchantNow: timestamp(now) };
        if ((await findOpenReason(db, key, times)) !== null) return later;
        const end = expiryOf(deps, lastMovement(checkout, await readMovements(db, key)));
        if (Temporal.Instant.compare(end, now) > 0) return earlier(end, limitOf(now));
        const linkEnd = await findLinkEnd(db, checkout, timestamp(now));
        if (linkEnd !== null) return Temporal.Instant.from(linkEnd);
        if (!(await deleteErasure(db, { ...key, lease }))) return null;
        const hasAnswers = (deps.retentionDays ?? 0) < answersGoneDays;
        await eraseFinished(deps, db, [checkout], times.now, { hasAnswers });
        return null;
      }
      await deleteErasure(db, { ...key, lease });
      return null;
    });
    if (due_at === null) return;
    await releaseDue(deps.database.db, 'erasures', key, lease, timestamp(due_at));
  } catch (error) {
    deps.log.error({ err: error, checkout_id }, 'a checkout could not be erased');
    // If this fails too, the lease runs out.
    await releaseDue(deps.database.db, 'erasures', key, lease, timestamp(later)).catch(() => {});
  }
}
