import { claimDue, listMerchantsWithDue, newLease } from '../database/due-work.sql.ts';
import { leaseSeconds } from '../gateway/patience.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { timestamp } from '../shared/clock.ts';
import { claimAttempt, dueAttempts } from './payment-attempt.sql.ts';
import type { PaymentAttempt } from './payment-attempt.ts';
import { type PaymentDeps, settleAttempt } from './start-payment.ts';

const mostMerchants = 50;
const mostAttempts = 10;

/**
 * Settles attempts that are due: outcomes that nobody knows, challenges that nobody came back
 * from (D19), holds that must be let go. Merchant by merchant, a handful of each: nobody starves.
 */
export async function recoverAttempts(deps: PaymentDeps): Promise<number> {
  const { db } = deps.database;
  const now = timestamp(deps.clock.now());
  const merchants = await listMerchantsWithDue(db, dueAttempts, now, mostMerchants);
  const counts = await Promise.all(
    merchants.map(async (id) => {
      const merchant = await findMerchant(db, id);
      return merchant ? await recoverMerchantAttempts(deps, merchant) : 0;
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

export async function recoverMerchantAttempts(
  deps: PaymentDeps,
  merchant: Merchant,
): Promise<number> {
  const now = timestamp(merchantNow(deps.clock, merchant));
  const claim = { ...newLease(deps, leaseSeconds), merchantNow: now };
  const attempts = await claimDue(deps.database.db, dueAttempts, merchant.id, claim, mostAttempts);
  await Promise.all(attempts.map((attempt) => settleAttempt(deps, merchant, attempt, false)));
  return attempts.length;
}

/** The shopper came back from their bank: find out now, unless somebody is at it. */
export async function settleReturned(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<void> {
  const claimed = await claimAttempt(deps.database.db, attempt, newLease(deps, leaseSeconds));
  if (claimed) await settleAttempt(deps, merchant, claimed, true);
}
