import {
  type CardVerification,
  type Gateway,
  type MerchantTime,
  RequestRefused,
} from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { fail, type HyperswitchApi } from './api.ts';
import { cancel } from './holds.ts';
import { verificationId } from './ids.ts';
import { find, retrieve } from './look-up.ts';
import { create, withShopper } from './payments.ts';
import { verificationState, verifiedReason } from './states.ts';

type VerificationCalls = Pick<
  Gateway,
  'beginVerification' | 'cardVerification' | 'findCardVerification' | 'voidVerification'
>;

/**
 * The calls of the gateway's port that verify a card. Some acquirers refuse a payment of zero. With
 * them a small amount is held, and voided as soon as the card is verified.
 */
export function verificationCalls(api: HyperswitchApi): VerificationCalls {
  return {
    async beginVerification(card) {
      const { merchant, checkout_id, attempt_id } = card;
      if (card.card_token !== null) {
        throw new RequestRefused('the gateway does not accept card tokens');
      }
      const amount = api.settings.verificationAmount ?? 0;
      const body = {
        payment_id: verificationId(attempt_id),
        amount,
        currency: card.currency,
        ...(amount === 0 ? { payment_type: 'setup_mandate' } : { capture_method: 'manual' }),
        setup_future_usage: 'off_session' as const,
        ...withShopper(card, 'plan'),
        metadata: { checkout_id, attempt_id },
      };
      return await settle(api, merchant, await create(api, merchant, body).catch(fail));
    },

    cardVerification: async (merchant, verification_ref) =>
      await settle(api, merchant, await retrieve(api, merchant, verification_ref)),

    async findCardVerification(merchant, { attempt_id }) {
      const found = await find(api, merchant, verificationId(attempt_id));
      return found && (await settle(api, merchant, found));
    },

    async voidVerification({ merchant, verification_ref }) {
      const found = await retrieve(api, merchant, verification_ref);
      const state = await settle(api, merchant, found);
      // A declined card is not stored, and there is nothing to void.
      if (['verified', 'voided', 'declined'].includes(state.outcome)) return state;
      const payment = await cancel(api, merchant, found);
      return payment.status === 'failed'
        ? { outcome: 'voided', verification_ref }
        : await settle(api, merchant, payment);
    },
  };
}

/** Voids the hold of a verified card. If that fails, the next look-up does it. */
async function settle(
  api: HyperswitchApi,
  merchant: MerchantTime,
  payment: Payment,
): Promise<CardVerification> {
  const isHeld = payment.status === 'requires_capture';
  const seen = isHeld ? await cancel(api, merchant, payment, verifiedReason) : payment;
  return verificationState(seen, merchant.now);
}
