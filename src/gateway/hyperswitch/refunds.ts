import {
  type Gateway,
  type MerchantTime,
  OutcomeUnknown,
  type RefundState,
  RequestRefused,
} from '#gateway/gateway.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import type { Refund } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode } from './api.ts';
import { refundId } from './ids.ts';

/**
 * Codes with which the gateway refuses the refund itself: for its amount, the number of refunds or
 * the payment's state.
 */
const refused = [
  codes.exceeds,
  codes.tooMany,
  codes.state,
  codes.invalidFormat,
  codes.unreadable,
] as const;

/** The calls of the gateway's port for refunds. */
export function refundCalls(
  api: HyperswitchApi,
): Pick<Gateway, 'refund' | 'findRefund' | 'refundStatus'> {
  return {
    async refund({ key, merchant, payment_ref, amount, refund_id, request }) {
      const body = {
        payment_id: payment_ref,
        refund_id: refundId(key),
        amount,
        metadata: {
          refund_id,
          ...(request && {
            request_id: request.id,
            request_amount: String(request.amount),
            request_created_at: request.created_at,
          }),
        },
      };
      try {
        return refundState(await api.call<Refund>('POST', '/refunds', { merchant, body }));
      } catch (error) {
        if (!isCode(error, codes.exists, ...refused)) fail(error);
        // The server checks the amount and the number of refunds before it checks the id. So it may
        // refuse a repeated request because of the refund that the first request made. The refund
        // has failed only if the server does not have it.
        const found = await find(api, merchant, body.refund_id);
        if (found !== null) return refundState(sameAmount(found, amount));
        if (isCode(error, codes.exists)) fail(error);
        return { refund_ref: null, status: 'failed' };
      }
    },

    async findRefund(merchant, { payment_ref, amount, refund_id }) {
      const body = { payment_id: payment_ref, limit: 100 };
      try {
        const listed = await api.call<{ data: Refund[] }>('POST', '/refunds/list', {
          merchant,
          body,
        });
        const found = listed.data.find(({ metadata }) => metadata?.refund_id === refund_id);
        return found === undefined ? null : refundState(sameAmount(found, amount));
      } catch (error) {
        return isCode(error, codes.missing) ? null : fail(error);
      }
    },

    async refundStatus(merchant, refund_ref) {
      // Without `force_sync` the server asks about a pending refund only for some time.
      const query = api.mayAskAcquirer(refund_ref, merchant) ? '?force_sync=true' : '';
      const path = `/refunds/${encodeURIComponent(refund_ref)}${query}`;
      return refundState(await api.call<Refund>('GET', path, { merchant }).catch(fail));
    },
  };
}

/** Returns null if the gateway has no refund with this id. */
async function find(
  api: HyperswitchApi,
  merchant: MerchantTime,
  id: string,
): Promise<Refund | null> {
  try {
    return await api.call<Refund>('GET', `/refunds/${encodeURIComponent(id)}`, { merchant });
  } catch (error) {
    return isCode(error, codes.missing) ? null : fail(error);
  }
}

function sameAmount(refund: Refund, amount: number): Refund {
  if (refund.amount === amount) return refund;
  throw new RequestRefused(
    `the gateway made this refund for ${refund.amount} cents, not ${amount} cents`,
  );
}

/** A refund that the gateway reviews is pending. */
function refundState({ refund_id: refund_ref, status }: Refund): RefundState {
  if (!refund_ref) throw new OutcomeUnknown('a refund has no id');
  if (status === 'succeeded' || status === 'failed') return { refund_ref, status };
  if (status === 'pending' || status === 'review') return { refund_ref, status: 'pending' };
  throw new StatusUnknown('a refund', status);
}
