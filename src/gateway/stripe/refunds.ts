import Stripe from 'stripe';
import type { Gateway, MerchantTime } from '#gateway/gateway.ts';
import { type StripeApi, sendOnce } from './api.ts';
import { differs, fail, isCode } from './errors.ts';
import { refundState } from './states.ts';

/** The calls of the gateway's port for refunds. */
export function refundCalls(
  api: StripeApi,
): Pick<Gateway, 'refund' | 'findRefund' | 'refundStatus'> {
  const { stripe, options } = api;
  return {
    async refund({ key, merchant, payment_ref, amount, refund_id, request }) {
      const metadata = {
        refund_id,
        ...(request && {
          request_id: request.id,
          request_amount: request.amount,
          request_created_at: request.created_at,
        }),
      };
      const params = { payment_intent: payment_ref, amount, metadata };
      try {
        const refund = await sendOnce(api, {
          key,
          merchant,
          send: (how) => stripe.refunds.create(params, how),
          find: () => findRefund(api, merchant, { payment_ref, amount, refund_id }),
        });
        return refundState(refund);
      } catch (error) {
        if (isRefundRefused(error)) return { refund_ref: null, status: 'failed' };
        fail(error);
      }
    },

    async findRefund(merchant, wanted) {
      const refund = await findRefund(api, merchant, wanted).catch(fail);
      return refund === null ? null : refundState(refund);
    },

    async refundStatus(merchant, refund_ref) {
      const refund = await stripe.refunds.retrieve(refund_ref, {}, options(merchant)).catch(fail);
      return refundState(refund);
    },
  };
}

async function findRefund(
  { stripe, options }: StripeApi,
  merchant: MerchantTime,
  { payment_ref, amount, refund_id }: { payment_ref: string; amount: number; refund_id: string },
): Promise<Stripe.Refund | null> {
  const query = { payment_intent: payment_ref, limit: 100 };
  for await (const refund of stripe.refunds.list(query, options(merchant))) {
    if (refund.metadata?.refund_id !== refund_id) continue;
    if (refund.amount !== amount) throw differs('refund', amount, refund.amount);
    return refund;
  }
  return null;
}

function isRefundRefused(error: unknown): boolean {
  return (
    isCode(error, 'charge_already_refunded', 'charge_not_refundable', 'charge_disputed') ||
    isCode(error, 'refund_disputed_payment') ||
    (error instanceof Stripe.errors.StripeInvalidRequestError && error.param === 'amount')
  );
}
