import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { csvStart } from '#platform/shared/csv.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { Letter } from '#purchases/messages/sending/letter.ts';
import type { Mail } from '#purchases/messages/sending/mail.ts';
import {
  renderHtml,
  renderSubject,
  renderText,
} from '#purchases/messages/sending/render-letter.ts';
import type { Payout, Totals } from './payout.ts';
import { describePayout } from './statement.ts';
import type { StatementMail } from './statement-mail.ts';

/** The statement as files. Both are null if it is too long for a mail. */
type Attached = { csv: string | null; pdf: Buffer | null };

/**
 * Writes what was paid, and the fees, in the merchant's language. The statement itself is attached.
 */
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
  const { language } = merchant;
  const { words, money } = describePayout(payout, totals, merchant);
  const name = oneLine(merchant.name);
  const { reference } = payout;
  const said = {
    ...{ reference, amount: money(payout.amount), date: writeDate(payout.business_on, language) },
    bank_reference: oneLine(payout.bank_reference ?? ''),
  };
  const { gross, fee, vat, net } = totals;
  const sums = { gross: money(gross), fees: money(fee), vat: money(vat), net: money(net) };
  const letter = {
    from: name,
    subject: fillIn(words.payout_subject, said),
    paragraphs: [
      fillIn(words.payout_mail, said),
      fillIn(words.payout_mail_sums, { ...sums, count: payout.lines }),
      `${words.fees_total}: ${money(fee + vat)}. ${words.payout_note}`,
      attached.csv === null ? words.payout_mail_long : words.mail_attached,
    ],
    rows: [],
    link: null,
    footer: [fillIn(words.footer, { merchant: name })],
  };
  return mailStatement(mail, letter, language, to, sent_at, [
    ...attach(`${reference}.pdf`, 'application/pdf', attached.pdf),
    ...attach(`${reference}.csv`, 'text/csv; charset=utf-8', attached.csv),
  ]);
}

/** The outbox row that a mail belongs to. */
export type MailRow = Pick<StatementMail, 'merchant_id' | 'id'>;

/** Writes the mail that carries the statement for a payout or for a month. */
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

/**
 * A file that is too long for a mail is null, and is left out. A CSV file gets a byte order mark,
 * as a downloaded one does.
 */
export const attach = (filename: string, type: string, content: string | Buffer | null) =>
  content === null
    ? []
    : [{ filename, type, content: isCsv(filename) ? `${csvStart}${content}` : content }];

const isCsv = (filename: string) => filename.endsWith('.csv');
