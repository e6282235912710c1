import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { Letter } from '#purchases/messages/sending/letter.ts';
import type { Mail } from '#purchases/messages/sending/mail.ts';
import {
  renderHtml,
  renderSubject,
  renderText,
} from '#purchases/messages/sending/render-letter.ts';
import type { Payout, Totals } from './payout.ts';
import type { StatementMail } from './statement-mail.ts';

/** The statement as files. A file is null if it is too long for a mail or to print. */
type Attached = { csv: string | null; html: string | null };

/** Says what was paid, and the fees. The statement itself is attached. */
export function writeStatementMail(
  mail: MailRow,
  about: {
    payout: Payout;
    totals: Totals;
    attached: Attached;
    merchant: MerchantRow;
    to: string;
  },
  sent_at: Timestamp,
): Mail {
  const { payout, totals, attached, merchant, to } = about;
  const money = (cents: number) => showMoney(cents, merchant.territory);
  const name = oneLine(merchant.name);
  const letter = {
    from: name,
    subject: `Statement ${payout.reference}: ${money(payout.amount)}`,
    paragraphs: [
      `Your payout ${payout.reference} of ${money(payout.amount)} for the business day ${writeDate(payout.business_on, 'en')} was paid. The bank's reference is ${oneLine(payout.bank_reference ?? '')}.`,
      `Gross ${money(totals.gross)}, fees ${money(totals.fee)}, VAT ${money(totals.vat)}, net ${money(totals.net)}, in ${payout.lines} ${payout.lines === 1 ? 'line' : 'lines'}.`,
      `Fees with VAT are ${money(totals.fee + totals.vat)}, taken from the payout. Your monthly statement is the invoice for them.`,
      attached.csv !== null
        ? `The statement is attached as a CSV file${attached.html === null ? '' : ' and as a page to print'}.`
        : `The statement is too long for a mail. Read its lines with GET /api/payouts/${payout.id}.`,
    ],
    rows: [],
    link: null,
    footer: [`This address gets the statements of ${name}. Ask your payment service to change it.`],
  };
  return mailStatement(mail, letter, 'en', to, sent_at, [
    ...attach(`${payout.reference}.csv`, 'text/csv; charset=utf-8', attached.csv),
    ...attach(`${payout.reference}.html`, 'text/html; charset=utf-8', attached.html),
  ]);
}

/** The row of the outbox that a mail is about. */
export type MailRow = Pick<StatementMail, 'merchant_id' | 'id'>;

/** The mail of a statement, of a payout or of a month. */
export function mailStatement(
  { merchant_id, id }: MailRow,
  letter: Letter,
  language: string,
  to: string,
  sent_at: Timestamp,
  attachments: NonNullable<Mail['attachments']>,
): Mail {
  return {
    ...{ merchant_id, checkout_id: null, message_id: id, sent_at, to },
    subject: renderSubject(letter),
    text: renderText(letter),
    html: renderHtml(letter, language),
    attachments,
  };
}

/** A file that is too long for a mail is null, and is left out. */
export const attach = (filename: string, type: string, content: string | Buffer | null) =>
  content === null ? [] : [{ filename, type, content }];
