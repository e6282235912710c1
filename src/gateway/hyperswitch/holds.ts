import { type Gateway, type MerchantTime, RequestRefused } from '#gateway/gateway.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import type { Payment } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode } from './api.ts';
import { declineOf } from './declines.ts';
import { retrieve } from './look-up.ts';
import { hasLapsed, isUnheard, mayBeApproved, undecidedError } from './states.ts';

/**
 * The statuses in which we cancel a payment. The server would also cancel a payment that was
 * captured in part, but could not refund it any more.
 */
const cancellable = [
  'requires_payment_method',
  'requires_confirmation',
  'requires_customer_action',
  'requires_capture',
  'partially_authorized_and_requires_capture',
];

/** A hold that could not be voided is `failed`, like a declined payment, but has this reason. */
const voidReason = 'the payment is not needed';

/**
 * Cancels a payment that was just read. If the payment has ended, its state tells how. A payment
 * that the bank may still approve stays as it is: the gateway's server would cancel it only in the
 * server's own tables. An approval would hold or take the money all the same, and with most
 * acquirers the server would never say so.
 */
export async function cancel(
  api: HyperswitchApi,
  merchant: MerchantTime,
  payment: Payment,
  cancellation_reason = voidReason,
): Promise<Payment> {
  if (!cancellable.includes(payment.status) || mayBeApproved(payment, merchant.now)) return payment;
  try {
    const path = `/payments/${encodeURIComponent(payment.payment_id)}/cancel`;
    return await api.call<Payment>('POST', path, { merchant, body: { cancellation_reason } });
  } catch (error) {
    if (!isCode(error, codes.precondition, codes.state)) fail(error);
    return await retrieve(api, merchant, payment.payment_id);
  }
}

/** The calls of the gateway's port that end a hold: its money is captured, or it is voided. */
export function holdCalls(api: HyperswitchApi): Pick<Gateway, 'capture' | 'void'> {
  return {
    async capture({ merchant, payment_ref, amount }) {
      try {
        const path = `/payments/${encodeURIComponent(payment_ref)}/capture`;
        const body = { amount_to_capture: amount };
        return captured(
          await api.call<Payment>('POST', path, { merchant, body }),
          amount,
          merchant,
        );
      } catch (error) {
        if (!isCode(error, codes.state, codes.precondition)) fail(error);
        return captured(await retrieve(api, merchant, payment_ref), amount, merchant);
      }
    },

    void: async ({ merchant, payment_ref }) =>
      voided(await cancel(api, merchant, await retrieve(api, merchant, payment_ref)), merchant),
  };
}

function captured(
  payment: Payment,
  amount: number,
  { now }: MerchantTime,
): { outcome: 'captured' | 'lapsed' } {
  const { status } = payment;
  const isTaken = status === 'succeeded' || status === 'partially_captured';
  if (isTaken && payment.amount_received === amount) return { outcome: 'captured' };
  if (isTaken) {
    throw new RequestRefused(
      `the gateway captured ${payment.amount_received} cents instead of ${amount} cents`,
    );
  }
  if (['cancelled', 'expired'].includes(status)) return { outcome: 'lapsed' };
  if (status === 'failed' && hasLapsed(payment, now)) return { outcome: 'lapsed' };
  if (status === 'failed') throw stillHeld('a hold to be captured');
  throw undecidedError('a payment that is captured', payment);
}

function voided(payment: Payment, { now }: MerchantTime): Awaited<ReturnType<Gateway['void']>> {
  const { status, cancellation_reason } = payment;
  if (mayBeApproved(payment, now)) return { outcome: 'challenge' };
  if (['cancelled', 'expired'].includes(status)) return { outcome: 'voided' };
  if (status === 'failed' && hasLapsed(payment, now)) return { outcome: 'voided' };
  if (status === 'succeeded' || status === 'partially_captured') return { outcome: 'captured' };
  if (status === 'failed' && cancellation_reason) throw stillHeld('a hold to be voided');
  // A declined payment held nothing.
  if (status === 'failed' && !isUnheard(payment)) {
    return { outcome: 'voided', decline: declineOf(payment) };
  }
  throw undecidedError('a payment that is voided', payment);
}

/**
 * The acquirer refused to end a hold. The server then calls the payment failed, but the hold may
 * last until it lapses.
 */
const stillHeld = (what: string) =>
  new StatusUnknown(what, 'failed', 'and the money may be held or taken');
