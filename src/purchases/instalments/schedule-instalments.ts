import assert from 'node:assert/strict';
import type { Merchant } from '#merchants/merchant.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { noticeDays } from '#purchases/messages/message.ts';
import { messagesOf, type QueueDeps } from '#purchases/messages/queue-messages.ts';
import { postingsOf } from '#record/ledger/post-movements.ts';
import { cardExpiryMessages } from './card-expiry.ts';
import { insertInstalments, insertStoredCard } from './instalment.sql.ts';
import { capturesAt, collectsAt, planPayments } from './instalment.ts';

type Held = {
  payment_ref: string;
  /**
   * The card for the later payments, with the shopper's consent; null if there are no later
   * payments.
   */
  stored_card: {
    customer_ref: string;
    card_ref: string;
    brand: string | null;
    last4: string | null;
    expires: string | null;
    card_key: string | null;
    consent: object;
  } | null;
};

/**
 * Returns the writes that the transaction of a successful checkout sends: the plan, the card for
 * the later payments, the sale in the books, and the messages. The first payment is already held;
 * the others fall due on their dates (decision 0027).
 */
export function scheduleInstalments(
  deps: QueueDeps,
  merchant: Merchant,
  checkout: Checkout,
  held: Held,
) {
  const { merchant_id, id: checkout_id, gateway, currency } = checkout;
  const { completed_at, number_of_payments } = checkout;
  assert(completed_at !== null && number_of_payments !== null);
  const { time_zone } = merchant.territory;
  const purchaseDate = merchant.localDate(Temporal.Instant.from(completed_at));
  const plan = planPayments(checkout.amount, number_of_payments, purchaseDate);
  const instalments = insertInstalments(
    plan.map((payment) => {
      const isHeld = payment.number === 1;
      return {
        ...payment,
        merchant_id,
        checkout_id,
        gateway,
        currency,
        status: isHeld ? 'authorised' : 'scheduled',
        payment_ref: isHeld ? held.payment_ref : null,
        due_at: timestamp((isHeld ? capturesAt : collectsAt)(payment.due_on, time_zone)),
      };
    }),
  );
  // The later payments are promised to the merchant, so there must be a card to charge.
  assert.equal(held.stored_card !== null, number_of_payments > 1);
  const card = held.stored_card && { ...held.stored_card, created_at: completed_at };
  const of = { merchant_id, checkout_id, currency };
  const postings = postingsOf(deps, completed_at, [
    { ...of, kind: 'sold', amount: checkout.amount },
    { ...of, kind: 'authorised', amount: plan[0]?.amount ?? 0, instalment: 1 },
  ]);
  const key = { merchant_id, checkout_id, at: completed_at };
  const messages = messagesOf(deps, [
    { ...key, kind: 'receipt', facts: { instalment: 1, amount: plan[0]?.amount ?? 0 } },
    ...plan.slice(1).map(({ number, due_on }) => ({
      ...key,
      kind: 'charge_soon' as const,
      about: `payment ${number}`,
      facts: { instalment: number },
      due_at: timestamp(collectsAt(due_on, time_zone).subtract({ hours: 24 * noticeDays })),
    })),
    ...(held.stored_card ? cardExpiryMessages(key, plan, held.stored_card, time_zone) : []),
  ]);
  const stored_card = card && insertStoredCard({ merchant_id, checkout_id, ...card });
  return { instalments, stored_card, postings, messages };
}
