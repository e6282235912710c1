import { timestamp } from '#platform/shared/clock.ts';
import type { QueuedMessage } from '#purchases/messages/queue-messages.ts';
import type { CheckoutKey } from './instalment.sql.ts';
import { collectsAt, type PlannedPayment } from './instalment.ts';

/** The shopper hears that the card expires this long before the first payment that it misses. */
export const expiryNoticeDays = 21;

/**
 * The first payment after the last month of a card, `2027-03`. Null if the card covers them all.
 */
export function firstUncovered<Payment extends Pick<PlannedPayment, 'due_on'>>(
  payments: Payment[],
  expires: string | null,
): Payment | null {
  if (expires === null) return null;
  // A card works to the last day of its month.
  return payments.find(({ due_on }) => due_on.slice(0, 7) > expires) ?? null;
}

/**
 * Messages that tell the shopper that the card expires before the last payment. Empty if it does
 * not. The worker skips the message if another card has replaced this one when it falls due.
 */
export function cardExpiryMessages(
  key: CheckoutKey & { at: string },
  payments: Pick<PlannedPayment, 'number' | 'due_on'>[],
  card: { expires: string | null },
  time_zone: string,
): QueuedMessage[] {
  const { expires } = card;
  const first = firstUncovered(payments, expires);
  if (first === null || expires === null) return [];
  const notice = timestamp(
    collectsAt(first.due_on, time_zone).subtract({ hours: 24 * expiryNoticeDays }),
  );
  return [
    {
      ...key,
      kind: 'card_expires',
      about: `card until ${expires}`,
      facts: { instalment: first.number, card_expires: expires },
      due_at: notice > key.at ? notice : key.at,
    },
  ];
}
