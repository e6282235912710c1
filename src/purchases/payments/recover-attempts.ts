import { leaseSeconds } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { claimAttempt, dueAttempts } from './payment-attempt.sql.ts';
import type { PaymentAttempt } from './payment-attempt.ts';
import { type PaymentDeps, settleAttempt } from './start-payment.ts';

const work: MerchantDueWork<'payment_attempts', PaymentDeps> = {
  due: dueAttempts,
  leaseSeconds,
  batchSize: 10,
  merchantsMax: 50,
  lanes: 50,
  roundMilliseconds: 0,
  act: (deps, merchant, attempts) =>
    Promise.all(attempts.map((attempt) => settleAttempt(deps, merchant, attempt, false))),
};

/**
 * Settles attempts that are due: unknown outcomes, challenges from which the shopper did not
 * return (decision 0023), holds that must be voided.
 */
export const recoverAttempts = (deps: PaymentDeps) => runDueWork(deps, work);

export const recoverMerchantAttempts = (deps: PaymentDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

/**
 * The shopper returned from their bank. Settles the attempt now, unless it is settled or claimed:
 * then it returns false.
 */
export async function settleReturned(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<boolean> {
  const claimed = await claimAttempt(deps.database.db, attempt, newLease(deps, leaseSeconds));
  if (claimed) await settleAttempt(deps, merchant, claimed, true);
  return claimed !== null;
}
