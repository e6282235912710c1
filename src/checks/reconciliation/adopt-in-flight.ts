import { OutcomeUnknown, type PaymentState, RequestRefused } from '#gateway/gateway.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { CannotAdopt } from '#platform/shared/cannot-adopt.ts';
import { readAgain } from '#purchases/disputes/check-disputes.ts';
import { listOpenDisputes } from '#purchases/disputes/dispute.sql.ts';
import { listInFlightAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import type { PaymentAttempt } from '#purchases/payments/payment-attempt.ts';
import { recordOutcome } from '#purchases/payments/record-outcome.ts';
import { lookUpAct } from '#purchases/shoppers/ask-gateway.ts';
import { recordAct } from '#purchases/shoppers/record-act.ts';
import { listActsInFlight } from '#purchases/shoppers/shopper-attempt.sql.ts';
import type { AdoptDeps } from './adopt.ts';

/**
 * Settles what was in flight when the backup was made, as the gateway says it ended (decision
 * 0098). Only looks up: nothing is sent, held or voided. First payments that ended in a hold or a
 * capture are recorded by the reading of the gateway's records (`compareToAdopt`). What did not end
 * yet, and what the gateway does not know, is left to the service. Open disputes are read again.
 * Returns how many attempts were settled.
 */
export async function adoptInFlight(deps: AdoptDeps): Promise<number> {
  let settled = 0;
  const { db } = deps.database;
  // A dispute that has ended since would still pause its plan, and a payment that the gateway took
  // after its end could not be adopted.
  for (const dispute of await listOpenDisputes(db)) {
    await tried(deps, dispute, async (merchant) => {
      await readAgain(deps, merchant, dispute);
      return false;
    });
  }
  for (const attempt of await listInFlightAttempts(db)) {
    settled += await tried(deps, attempt, (merchant) => settleEnded(deps, merchant, attempt));
  }
  for (const attempt of await listActsInFlight(db)) {
    settled += await tried(deps, attempt, async (merchant) => {
      const finding = await lookUpAct(deps.gateway, merchant.forGateway(), attempt);
      if (!finding || !['done', 'declined', 'voided'].includes(finding.outcome)) return false;
      await recordAct({ ...deps, sendsMessages: false }, merchant, attempt, finding);
      return true;
    });
  }
  return settled;
}

/** A first payment without a hold: a later attempt, which was lost, may have one. */
async function settleEnded(
  deps: AdoptDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<boolean> {
  const state = await lookUp(deps, merchant, attempt);
  if (state?.outcome !== 'declined' && state?.outcome !== 'voided') return false;
  await recordOutcome({ ...deps, sendsMessages: false }, merchant, attempt, state);
  return true;
}

async function lookUp(
  deps: AdoptDeps,
  merchant: Merchant,
  { id: attempt_id, payment_ref, customer_ref }: PaymentAttempt,
): Promise<PaymentState | null> {
  const time = merchant.forGateway();
  if (payment_ref !== null) return await deps.gateway.payment(time, payment_ref);
  return customer_ref === null
    ? null
    : await deps.gateway.findPayment(time, { customer_ref, attempt_id });
}

/**
 * An attempt that cannot be settled now is left to the service, so that the others do not wait for
 * it.
 */
async function tried(
  deps: AdoptDeps,
  row: { merchant_id: string; id: string },
  settle: (merchant: Merchant) => Promise<boolean>,
): Promise<number> {
  const merchant = await findMerchant(deps.database.db, deps.clock, row.merchant_id);
  if (!merchant) return 0;
  try {
    return (await settle(merchant)) ? 1 : 0;
  } catch (error) {
    const isExpected =
      error instanceof CannotAdopt ||
      error instanceof OutcomeUnknown ||
      error instanceof RequestRefused;
    if (!isExpected) throw error;
    deps.log.warn({ err: error, id: row.id }, 'a row that was open at the backup was not settled');
    return 0;
  }
}
