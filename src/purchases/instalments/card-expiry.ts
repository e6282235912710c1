import { timestamp } from '#platform/shared/clock.ts';
import type { QueuedMessage } from '#purchases/messages/queue-messages.ts';
import type { CheckoutKey } from './instalment.sql.ts';
import { collectsAt, type PlannedPayment } from './instalment.ts';

/**
 * The service tells the shopper about an expiring card this many days before the first payment after
 * its expiry.
 */
export const expiryNoticeDays = 21;

/**
 * The first payment after a card's last month (`2027-03`). Null if the card covers all payments, or
 * if its last month is not known.
 */
export function firstUncovered<Payment extends Pick<PlannedPayment, 'due_on'>>(
  payments: Payment[],
  expires: string | null,
): Payment | null {
  if (expires === null) return null;
  // A card works until the last day of its month.
  return payments.find(({ due_on }) => due_on.slice(0, 7) > expires) ?? null;
}

/**
 * The message to the shopper that the card expires before the last payment. Empty if it does not,
 * or if its last month is not known. The worker skips the message if another card has replaced this
 * one by then.
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
