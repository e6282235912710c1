import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { CannotRecord } from '#platform/shared/cannot-record.ts';
import { readAgain } from '#purchases/disputes/check-disputes.ts';
import { listOpenDisputes } from '#purchases/disputes/dispute.sql.ts';
import { lookUpAttempt } from '#purchases/payments/ask-gateway.ts';
import { listUnsettledAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import { isFirstPayment, type PaymentAttempt } from '#purchases/payments/payment-attempt.ts';
import { recordOutcome } from '#purchases/payments/record-outcome.ts';
import type { RecordingDeps } from './record-difference.ts';

type SettlingDeps = Omit<RecordingDeps, 'gateway'>;

/**
 * Settles what was in flight when the backup was made, with the outcome that the gateway reports
 * (decision 0098). It only looks up: nothing is charged, held or voided. First payments that ended
 * in a hold or a capture are recorded when the gateway's records are read (`compareToRecord`).
 * Attempts that have not ended, and attempts that the gateway does not know, are left to the
 * service. Open disputes are read again. Returns how many attempts were settled.
 */
export async function settleInFlight(deps: SettlingDeps): Promise<number> {
  let settled = 0;
  const { db } = deps.database;
  // A dispute that ended after the backup would still pause its plan, and a payment that the
  // gateway took after the dispute ended could not be recorded.
  for (const dispute of await listOpenDisputes(db)) {
    await tried(deps, dispute, async (merchant) => {
      await readAgain(deps, merchant, dispute);
      return false;
    });
  }
  for (const attempt of await listUnsettledAttempts(db)) {
    settled += await tried(deps, attempt, (merchant) => settleEnded(deps, merchant, attempt));
  }
  return settled;
}

/**
 * Settles an attempt that has ended, but not a first payment with a hold, because a later attempt
 * that was lost may have a hold too. Such a payment is recorded when the records are read.
 */
async function settleEnded(
  deps: SettlingDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<boolean> {
  const time = merchant.forGateway();
  const answer = await lookUpAttempt(deps.gateways.of(attempt.gateway), time, attempt);
  const isEnded =
    answer?.outcome === 'declined' ||
    answer?.outcome === 'voided' ||
    (answer?.outcome === 'done' && !isFirstPayment(attempt));
  if (!isEnded) return false;
  await recordOutcome({ ...deps, sendsMessages: false }, merchant, attempt, answer);
  return true;
}

/**
 * Settles one row. If that is not possible now, the row is left to the service, so that it does not
 * delay the others.
 */
async function tried(
  deps: SettlingDeps,
  row: { merchant_id: string; id: string },
  settle: (merchant: Merchant) => Promise<boolean>,
): Promise<number> {
  const merchant = await findMerchant(deps.database.db, deps.clock, row.merchant_id);
  if (!merchant) return 0;
  try {
    return (await settle(merchant)) ? 1 : 0;
  } catch (error) {
    const isExpected =
      error instanceof CannotRecord ||
      error instanceof OutcomeUnknown ||
      error instanceof RequestRefused;
    if (!isExpected) throw error;
    deps.log.warn({ err: error, id: row.id }, 'a row that was open at the backup was not settled');
    return 0;
  }
}
