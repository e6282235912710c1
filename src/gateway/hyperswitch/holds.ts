import { type Gateway, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode } from './api.ts';
import { retrieve } from './payments.ts';
import { verificationState } from './states.ts';

type VoidVerification = Parameters<Gateway['voidVerification']>[0];

/** The part of the port that ends a hold: its money is captured, or it is voided. */
export function holdCalls(api: HyperswitchApi) {
  const cancel = async ({
    merchant,
    payment_ref,
  }: Parameters<Gateway['void']>[0]): Promise<Payment> => {
    try {
      const path = `/payments/${encodeURIComponent(payment_ref)}/cancel`;
      return await api.call<Payment>('POST', path, { merchant, body: {} });
    } catch (error) {
      // It may have been voided or captured before. Its state tells.
      if (!isCode(error, codes.precondition, codes.state)) fail(error);
      return await retrieve(api, merchant, payment_ref);
    }
  };
  return {
    async capture({ merchant, payment_ref, amount }: Parameters<Gateway['capture']>[0]) {
      try {
        const path = `/payments/${encodeURIComponent(payment_ref)}/capture`;
        const body = { amount_to_capture: amount };
        return captured(await api.call<Payment>('POST', path, { merchant, body }), amount);
      } catch (error) {
        if (!isCode(error, codes.state, codes.precondition)) fail(error);
        return captured(await retrieve(api, merchant, payment_ref), amount);
      }
    },

    void: async (payment: Parameters<Gateway['void']>[0]) => voided(await cancel(payment)),

    async voidVerification({ key, merchant, verification_ref }: VoidVerification) {
      const payment = await cancel({ key, merchant, payment_ref: verification_ref });
      // A declined card is not stored, and there is nothing to void.
      return payment.status === 'failed'
        ? ({ outcome: 'voided', verification_ref } as const)
        : verificationState(payment);
    },
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
  throw new OutcomeUnknown(`a payment that is captured is ${status.slice(0, 50)}`);
}

function voided({ status }: Payment): { outcome: 'voided' | 'captured' } {
  if (['cancelled', 'expired', 'failed'].includes(status)) return { outcome: 'voided' };
  if (status === 'succeeded' || status === 'partially_captured') return { outcome: 'captured' };
  throw new OutcomeUnknown(`a payment that is voided is ${status.slice(0, 50)}`);
}
