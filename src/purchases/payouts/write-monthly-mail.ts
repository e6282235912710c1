import type { Timestamp } from '#platform/shared/clock.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { writeDate, writeMonth } from '#platform/shared/words/write-date.ts';
import type { Mail } from '#purchases/messages/sending/mail.ts';
import { groupSums, type MonthlyStatement } from './monthly-statement.ts';
import { describeMonthly, monthlyFileName } from './write-monthly-statement.ts';
import { attach, type MailRow, mailStatement } from './write-statement-mail.ts';

/** The statement as files. The CSV is null if it is too long for a mail. */
type MonthlyFiles = { pdf: Buffer; csv: string | null };

/** Announces a month's statement to the merchant, in its language. The files are attached. */
export function writeMonthlyMail(
  mail: MailRow,
  { statement, files, to }: { statement: MonthlyStatement; files: MonthlyFiles; to: string },
  sent_at: Timestamp,
): Mail {
  const { words, money, lastDay, corrected } = describeMonthly(statement);
  const { language, reference } = statement;
  const month = writeMonth(statement.month, language);
  const { sales, fees, vat, paid } = groupSums(statement.sums);
  const name = oneLine(statement.merchant_name);
  const sums = {
    sales: money(sales),
    fees: money(-fees),
    vat: money(-vat),
    paid: money(paid === 0 ? 0 : -paid),
  };
  const balance = { date: writeDate(lastDay, language), closing: money(statement.closing) };
  const letter = {
    from: name,
    subject: fillIn(corrected === null ? words.subject : words.subject_corrected, {
      month,
      reference,
    }),
    paragraphs: [
      corrected === null
        ? fillIn(words.mail, { month, reference })
        : fillIn(words.mail_corrected, { month, reference, corrected }),
      `${fillIn(words.mail_sums, sums)} ${fillIn(words.mail_balance, balance)}`,
      files.csv === null ? words.mail_pdf : words.mail_attached,
    ],
    rows: [],
    link: null,
    footer: [fillIn(words.footer, { merchant: name })],
  };
  return mailStatement(mail, letter, language, to, sent_at, [
    ...attach(monthlyFileName(statement, 'pdf'), 'application/pdf', files.pdf),
    ...attach(monthlyFileName(statement, 'csv'), 'text/csv; charset=utf-8', files.csv),
  ]);
}
