import type { Database } from '../database/database.ts';
import { releaseDue } from '../database/due-work.sql.ts';
import { type DisputeState, type Gateway, OutcomeUnknown } from '../gateway/gateway.ts';
import { leaseSeconds, nextRetryAt } from '../gateway/retry-times.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { type Merchant, merchantNow, merchantTime } from '../merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '../merchants/run-due-work.ts';
import { hasAlert } from '../operators/alert.sql.ts';
import { raiseAlert } from '../operators/raise-alert.ts';
import { type Clock, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { dueDisputes, findDisputedCheckout, listKnownRefs } from './dispute.sql.ts';
import type { Dispute } from './dispute.ts';
import { recordDispute } from './record-dispute.ts';

export type DisputeDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateway: Gateway;
};

const work: MerchantDueWork<'disputes', DisputeDeps> = {
  due: dueDisputes,
  leaseSeconds,
  batchSize: 8,
  merchantsMax: 50,
  lanes: 1,
  roundMilliseconds: 0,
  act: (deps, merchant, disputes) =>
    Promise.all(disputes.map((dispute) => check(deps, merchant, dispute))),
};

/** Looks again at open disputes that are due (decision 0082). */
export async function checkDueDisputes(deps: DisputeDeps, stopping?: AbortSignal): Promise<number> {
  return await runDueWork(deps, work, stopping);
}

export const checkMerchantDisputes = (deps: DisputeDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

async function check(deps: DisputeDeps, merchant: Merchant, dispute: Dispute): Promise<void> {
  const { merchant_id, id, lease, tries } = dispute;
  try {
    await readAgain(deps, merchant, dispute);
  } catch (error) {
    const about = { err: error, dispute_id: id };
    if (error instanceof OutcomeUnknown) deps.log.warn(about, 'a dispute could not be read');
    else deps.log.error(about, 'a dispute could not be checked');
    const retryAt = timestamp(nextRetryAt(merchantNow(deps.clock, merchant), tries));
    const key = { merchant_id, id };
    await releaseDue(deps.database.db, 'disputes', key, lease as string, retryAt);
  }
}

/** Reads a known dispute at the gateway and records what it says. */
export async function readAgain(
  deps: DisputeDeps,
  merchant: Merchant,
  dispute: Dispute,
): Promise<Dispute> {
  const time = merchantTime(deps.clock, merchant);
  const state = await deps.gateway.dispute(time, dispute.dispute_ref);
  const { payment_ref } = dispute;
  return await recordDispute(deps, merchant, dispute.checkout_id, { ...state, payment_ref });
}

/**
 * Looks for disputes that are new at the gateway: page by page from the newest, until a page holds
 * nothing new. Returns 0, so that the next look waits for the next poll.
 */
export async function findNewDisputes(deps: DisputeDeps): Promise<number> {
  for (let after: string | null = null; ; ) {
    const { disputes, next } = await deps.gateway.listDisputes(after);
    if (disputes.length === 0) return 0;
    const refs = disputes.map(({ dispute_ref }) => dispute_ref);
    const known = await listKnownRefs(deps.database.db, refs);
    const fresh = disputes.filter(({ dispute_ref }) => !known.has(dispute_ref));
    for (const state of fresh) await recordNew(deps, state);
    if (next === null || fresh.length === 0) return 0;
    after = next;
  }
}

/** Records a dispute that we did not know. An unknown payment is an alert, once. */
export async function recordNew(deps: DisputeDeps, state: DisputeState): Promise<Dispute | null> {
  const { db } = deps.database;
  const { payment_ref, dispute_ref } = state;
  const owner = payment_ref && (await findDisputedCheckout(db, payment_ref));
  const merchant = owner && (await findMerchant(db, owner.merchant_id));
  if (!payment_ref || !owner || !merchant) {
    const detail = `The gateway has dispute ${dispute_ref} of payment ${payment_ref}, which is not one of ours.`;
    if (!(await hasAlert(db, 'dispute_unknown', detail))) {
      await raiseAlert(deps, db, { kind: 'dispute_unknown', detail });
    }
    return null;
  }
  return await recordDispute(deps, merchant, owner.checkout_id, { ...state, payment_ref });
}
