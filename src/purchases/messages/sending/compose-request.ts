import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { MessageFacts } from '#purchases/messages/message.ts';
import type { Letter } from './letter.ts';

/**
 * Asks a merchant what it knows of a disputed order. The console is in English, and so is the
 * request. It does not name the shopper: more people may read the merchant's mailbox than its
 * console.
 */
export function composeRequest(
  { name, territory }: Pick<MerchantRow, 'name' | 'territory'>,
  checkout: { client_reference_id: string; currency: string },
  { dispute = '', amount = 0, reason = '', expires_at = '' as Timestamp }: MessageFacts,
  consoleUrl: string,
): Letter {
  const order = oneLine(checkout.client_reference_id);
  const money = showMoney(amount, { ...territory, currency: checkout.currency });
  const until = Temporal.Instant.from(expires_at).toZonedDateTimeISO(territory.time_zone);
  const day = writeDate(until.toPlainDate().toString(), 'en');
  const time = until.toPlainTime().toString().slice(0, 5);
  return {
    from: oneLine(name),
    subject: `Order ${order}: tell the bank what you know by ${day}`,
    paragraphs: [
      `A customer disputes ${money} of order ${order} at the bank: ${reason.replaceAll('_', ' ')}. The bank decides by the evidence that it gets.`,
      'Tell us how the order was delivered and what you wrote to each other, and add the papers that show it: a proof of delivery, messages, an invoice.',
      `Do so by ${day} at ${time}. After that the bank gets an answer without it.`,
    ],
    rows: [],
    link: { label: 'Open the dispute', url: `${consoleUrl}/disputes/${dispute}` },
    footer: [
      `This is the contact address of ${oneLine(name)}. People who work for ${oneLine(name)} open the link with their own access to the console.`,
    ],
  };
}
