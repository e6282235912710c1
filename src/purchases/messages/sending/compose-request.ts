import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { MessageFacts } from '#purchases/messages/message.ts';
import type { Letter } from './letter.ts';

/**
 * Asks a merchant what it knows about a disputed order. The request is in English, like the
 * console. It does not name the shopper: more people may read the merchant's mailbox than its
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
    subject: `Order ${order} is disputed: send us your evidence by ${day}`,
    paragraphs: [
      `A customer is disputing ${money} of order ${order} with the bank: ${reason.replaceAll('_', ' ')}. The bank decides on the evidence that it receives.`,
      'Tell us how the order was delivered and what you and the customer wrote to each other, and add the documents that show it: proof of delivery, messages, an invoice.',
      `Please do so by ${day} at ${time}. After that, we answer the bank without your evidence.`,
    ],
    rows: [],
    link: { label: 'Open the dispute', url: `${consoleUrl}/disputes/${dispute}` },
    footer: [
      `This is the contact address of ${oneLine(name)}. People who work for ${oneLine(name)} open the link with their own access to the console.`,
    ],
  };
}
