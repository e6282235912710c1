import { type Gateway, type MerchantTime, RequestRefused } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode } from './api.ts';
import { retrieve } from './payments.ts';
import { undecidedError } from './states.ts';

/** Cancels a payment. If it was voided or captured before, its state tells. */
export async function cancel(
  api: HyperswitchApi,
  merchant: MerchantTime,
  payment_ref: string,
  cancellation_reason?: string,
): Promise<Payment> {
  try {
    const path = `/payments/${encodeURIComponent(payment_ref)}/cancel`;
    const body = { ...(cancellation_reason !== undefined && { cancellation_reason }) };
    return await api.call<Payment>('POST', path, { merchant, body });
  } catch (error) {
    if (!isCode(error, codes.precondition, codes.state)) fail(error);
    return await retrieve(api, merchant, payment_ref);
  }
}

/** The part of the port that ends a hold: its money is captured, or it is voided. */
export function holdCalls(api: HyperswitchApi): Pick<Gateway, 'capture' | 'void'> {
  return {
    async capture({ merchant, payment_ref, amount }) {
      try {
        const path = `/payments/${encodeURIComponent(payment_ref)}/capture`;
        const body = { amount_to_capture: amount };
        return captured(await api.call<Payment>('POST', path, { merchant, body }), amount);
      } catch (error) {
        if (!isCode(error, codes.state, codes.precondition)) fail(error);
        return captured(await retrieve(api, merchant, payment_ref), amount);
      }
    },

    void: async ({ merchant, payment_ref }) => voided(await cancel(api, merchant, payment_ref)),
  };
}

function captured(payment: Payment, amount: number): { outcome: 'captured' | 'lapsed' } {
  const { status } = payment;
  const isTaken = status === 'succeeded' || status === 'partially_captured';
  if (isTaken && payment.amount_received === amount) return { outcome: 'captured' };
  if (isTaken) {
    throw new RequestRefused(
      `the gateway captured ${payment.amount_received} cents of ${amount} cents`,
    );
  }
  if (['cancelled', 'expired', 'failed'].includes(status)) return { outcome: 'lapsed' };
  throw undecidedError('a payment that is captured', status);
}

function voided({ status }: Payment): { outcome: 'voided' | 'captured' } {
  if (['cancelled', 'expired', 'failed'].includes(status)) return { outcome: 'voided' };
  if (status === 'succeeded' || status === 'partially_captured') return { outcome: 'captured' };
  throw undecidedError('a payment that is voided', status);
}
