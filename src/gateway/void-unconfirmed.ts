import { type Gateway, type MerchantTime, OutcomeUnknown, type PaymentState } from './gateway.ts';

/** Whether a payment waits for the shopper or their bank, even if the gateway gives no URL. */
export const isUnconfirmed = (state: PaymentState): boolean =>
  state.outcome === 'begun' ||
  state.outcome === 'challenge' ||
  (state.outcome === 'processing' && state.asks_shopper === true);

/**
 * Voids payments that are waiting for the shopper or their bank but have no attempt here, because a
 * restored database has lost the attempt. The shopper could confirm such a payment after another
 * one has paid the same instalment.
 */
export async function voidUnconfirmed(
  gateway: Gateway,
  merchant: MerchantTime,
  states: PaymentState[],
): Promise<void> {
  for (const state of states) {
    if (!isUnconfirmed(state) || state.payment_ref === null) continue;
    const { payment_ref } = state;
    const voided = await gateway.void({ key: `${payment_ref}:void`, merchant, payment_ref });
    // If its money is taken instead, another look-up finds that.
    if (voided.outcome !== 'voided') {
      throw new OutcomeUnknown('a payment that must be voided may be approved, or already is');
    }
  }
}
