import { lockCheckout } from '../../checkouts/checkout.sql.ts';
import { readAgain } from '../../disputes/check-disputes.ts';
import { listOpenDisputes } from '../../disputes/dispute.sql.ts';
import { OutcomeUnknown, type PaymentState, RequestRefused } from '../../gateway/gateway.ts';
import { adoptCapture } from '../../instalments/adopt-payment.ts';
import { findMerchant } from '../../merchants/merchant.sql.ts';
import { type Merchant, merchantTime } from '../../merchants/merchant.ts';
import { operate } from '../../operators/operate.ts';
import { adoptPurchase } from '../../payments/adopt-payment.ts';
import { listInFlightAttempts } from '../../payments/payment-attempt.sql.ts';
import type { PaymentAttempt } from '../../payments/payment-attempt.ts';
import { recordOutcome } from '../../payments/record-outcome.ts';
import { CannotAdopt } from '../../shared/cannot-adopt.ts';
import { lookUpAct } from '../../shoppers/ask-gateway.ts';
import { recordAct } from '../../shoppers/record-act.ts';
import { listActsInFlight } from '../../shoppers/shopper-attempt.sql.ts';
import type { AdoptDeps } from './adopt.ts';

/**
 * Settles what was in flight when the backup was made, as the gateway says it ended (decision 0108).
 * Only looks up: nothing is sent, held or voided. The service alone would void a hold whose time is
 * over, although the lost database had recorded it and told the merchant. What did not end yet, and
 * what the gateway does not know, is left to the service. Open disputes are read again. Returns how
 * many attempts were settled.
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
    settled += await tried(deps, attempt, (merchant) => settlePurchase(deps, merchant, attempt));
  }
  for (const attempt of await listActsInFlight(db)) {
    settled += await tried(deps, attempt, async (merchant) => {
      const finding = await lookUpAct(deps.gateway, merchantTime(deps.clock, merchant), attempt);
      if (!finding || !['done', 'declined', 'voided'].includes(finding.outcome)) return false;
      await recordAct({ ...deps, sendsMessages: false }, merchant, attempt, finding);
      return true;
    });
  }
  return settled;
}

async function settlePurchase(
  deps: AdoptDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<boolean> {
  const state = await lookUp(deps, merchant, attempt);
  const quiet = { ...deps, sendsMessages: false };
  switch (state?.outcome) {
    case 'declined':
    case 'voided':
      await recordOutcome(quiet, merchant, attempt, state);
      return true;
    case 'authorised':
    case 'captured':
      break;
    default:
      return false;
  }
  const { merchant_id, checkout_id, amount, customer_ref } = attempt;
  if (customer_ref === null) return false;
  await operate(deps, deps.operator, 'gateway adopt', async (db) => {
    const checkout = await lockCheckout(db, merchant_id, checkout_id);
    if (!checkout) throw new CannotAdopt('the checkout is gone');
    await adoptPurchase(quiet, db, merchant, checkout, { ...attempt, customer_ref, state });
    if (state.outcome === 'captured') {
      const { payment_ref } = state;
      const key = { merchant_id, checkout_id };
      await adoptCapture(deps, db, merchant, key, { payment_ref, amount });
    }
    return { subject_id: checkout_id, details: { checkout_id }, result: undefined };
  });
  return true;
}

async function lookUp(
  deps: AdoptDeps,
  merchant: Merchant,
  { id: attempt_id, payment_ref, customer_ref }: PaymentAttempt,
): Promise<PaymentState | null> {
  const time = merchantTime(deps.clock, merchant);
  if (payment_ref !== null) return await deps.gateway.payment(time, payment_ref);
  return customer_ref === null
    ? null
    : await deps.gateway.findPayment(time, { customer_ref, attempt_id });
}

/** One that cannot be settled now is left to the service, and keeps none of the others waiting. */
async function tried(
  deps: AdoptDeps,
  row: { merchant_id: string; id: string },
  settle: (merchant: Merchant) => Promise<boolean>,
): Promise<number> {
  const merchant = await findMerchant(deps.database.db, row.merchant_id);
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
