import { type Gateway, type MerchantTime, OutcomeUnknown, type PaymentState } from './gateway.ts';

/**
 * Voids payments that are waiting for the shopper or their bank but have no attempt here, because a
 * restored database has lost it. The shopper could confirm such a payment after another one has
 * paid the same instalment.
 */
export async function voidUnconfirmed(
  gateway: Gateway,
  merchant: MerchantTime,
  states: PaymentState[],
): Promise<void> {
  for (const { outcome, payment_ref } of states) {
    if (outcome !== 'begun' && outcome !== 'challenge') continue;
    const voided = await gateway.void({ key: `${payment_ref}:void`, merchant, payment_ref });
    // If its money is taken instead, another look-up finds that.
    if (voided.outcome !== 'voided') {
      throw new OutcomeUnknown('a payment that must be voided may be approved, or already is');
    }
  }
}
