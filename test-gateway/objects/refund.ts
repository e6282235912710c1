import type Stripe from 'stripe';
import type { CardBehaviour } from '../cards.ts';
import type { Kept } from '../store.ts';
import { daySeconds, type Made, newId } from './made.ts';

const pendingSeconds = 60 * 60;
const failsAfterSeconds = 3 * daySeconds;

export function makeRefund(
  { merchant, now }: Made,
  charge: Stripe.Charge,
  card: CardBehaviour,
  given: {
    /** The caller's own id, if the API lets callers choose ids. */
    id?: string;
    amount: number;
    reason: string | null;
    metadata: Record<string, string>;
    /** Whether the card's bank refuses the refund. */
    declined: boolean;
  },
): Kept<'refund'> {
  const pending = card.refund === 'pending_then_succeeded';
  const failed = given.declined && !pending;
  return {
    object: {
      id: given.id ?? newId('re'),
      object: 'refund',
      amount: given.amount,
      balance_transaction: null,
      charge: charge.id,
      created: now,
      currency: charge.currency,
      customer: charge.customer,
      customer_account: null,
      destination_details: {
        card: {
          reference_status: 'pending',
          reference_type: 'acquirer_reference_number',
          type: 'refund',
        },
        type: 'card',
      },
      metadata: given.metadata,
      payment_intent: charge.payment_intent,
      payment_method: charge.payment_method,
      ...(pending && { pending_reason: 'processing' }),
      ...(failed && { failure_reason: 'declined' }),
      reason: given.reason,
      receipt_number: null,
      source_transfer_reversal: null,
      status: pending ? 'pending' : failed ? 'failed' : 'succeeded',
      transfer_reversal: null,
    },
    hidden:
      card.refund === undefined || failed
        ? { becomes: null, at: 0 }
        : pending
          ? { becomes: given.declined ? 'failed' : 'succeeded', at: now + pendingSeconds }
          : { becomes: 'failed', at: now + failsAfterSeconds },
    merchant,
  };
}

export function agedRefund(kept: Kept<'refund'>, now: number): Kept<'refund'> {
  const { becomes, at } = kept.hidden;
  if (becomes === null || now < at) return kept;
  const { pending_reason: _, ...object } = kept.object;
  return {
    ...kept,
    object: {
      ...object,
      status: becomes,
      ...(becomes === 'failed' && { failure_reason: 'expired_or_canceled_card' }),
    },
  };
}
