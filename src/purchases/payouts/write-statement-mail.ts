import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Mail } from '#purchases/messages/sending/mail.ts';
import {
  renderHtml,
  renderSubject,
  renderText,
} from '#purchases/messages/sending/render-letter.ts';
import type { Payout, PayoutLine } from './payout.ts';
import { totalsOf, writeStatementCsv, writeStatementHtml } from './statement.ts';
import type { StatementMail } from './statement-mail.ts';

/** About three megabytes. Mail servers refuse much more, and longer statements are read by API. */
const attachedLinesMax = 20_000;

/** Says what was paid, with the tax invoice lines. The statement itself is attached. */
export function writeStatementMail(
  mail: Pick<StatementMail, 'merchant_id' | 'id'>,
  about: { payout: Payout; lines: PayoutLine[]; merchant: MerchantRow; to: string },
  sent_at: Timestamp,
): Mail {
  const { payout, lines, merchant, to } = about;
  const money = (cents: number) => showMoney(cents, merchant.territory);
  const totals = totalsOf(lines);
  const isAttached = lines.length <= attachedLinesMax;
  const name = oneLine(merchant.name);
  const letter = {
    from: name,
    subject: `Statement ${payout.reference}: ${money(payout.amount)}`,
    paragraphs: [
      `Your payout ${payout.reference} of ${money(payout.amount)} for the business day ${payout.business_on} was paid. The bank's reference is ${oneLine(payout.bank_reference ?? '')}.`,
      `Gross ${money(totals.gross)}, fees ${money(totals.fee)}, VAT ${money(totals.vat)}, net ${money(totals.net)}, in ${payout.lines} ${payout.lines === 1 ? 'line' : 'lines'}.`,
      `Tax invoice: fees without VAT ${money(totals.fee)}, VAT ${money(totals.vat)}, fees with VAT ${money(totals.fee + totals.vat)}, taken from the payout.`,
      isAttached
        ? 'The statement is attached as a CSV file and as a page to print.'
        : `The statement is too long for a mail. Read its lines with GET /api/payouts/${payout.id}.`,
    ],
    rows: [],
    link: null,
    footer: [`This address gets the statements of ${name}. Ask your payment service to change it.`],
  };
  return {
    merchant_id: mail.merchant_id,
    checkout_id: null,
    message_id: mail.id,
    sent_at,
    to,
    subject: renderSubject(letter),
    text: renderText(letter),
    html: renderHtml(letter, 'en'),
    ...(isAttached && {
      attachments: [
        {
          filename: `${payout.reference}.csv`,
          type: 'text/csv; charset=utf-8',
          content: writeStatementCsv(payout, lines),
        },
        {
          filename: `${payout.reference}.html`,
          type: 'text/html; charset=utf-8',
          content: writeStatementHtml(payout, lines, merchant),
        },
      ],
    }),
  };
}
