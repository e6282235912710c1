import type { Database } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { writeCsv } from '#platform/shared/csv.ts';
import { showMoney } from '#platform/shared/money.ts';
import {
  contentWidth,
  type Pdf,
  type PdfColumn,
  writePdf,
} from '#platform/shared/pdf/write-pdf.ts';
import { oneLine, printable } from '#platform/shared/plain-text.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { words as catalogues, type Words } from '#platform/shared/words/words.ts';
import { writeDate, writeMonth } from '#platform/shared/words/write-date.ts';
import { kindTexts } from './line-names.ts';
import { listStatementLines } from './monthly-statement.sql.ts';
import {
  endOfMonth,
  groupSums,
  type MonthlyStatement,
  type StatementLine,
  statementReference,
} from './monthly-statement.ts';
import { linePageSize } from './read-lines.ts';
import { pdfLinesMax, printedLinesMax, writeParty } from './statement.ts';

// The files of a monthly statement. They are made only from its row and its lines, so that they are
// the same whenever they are written. Only an erasure changes a line.

export const monthlyFormats = ['pdf', 'csv'] as const;
export type MonthlyFormat = (typeof monthlyFormats)[number];

type Deps = { database: Database; clock: Clock };

export function writeMonthlyStatement(
  deps: Deps,
  statement: MonthlyStatement,
  format: MonthlyFormat,
): AsyncGenerator<string | Buffer> {
  return format === 'csv' ? writeMonthlyCsv(deps, statement) : writeMonthlyPdf(deps, statement);
}

export const monthlyFileName = ({ reference }: MonthlyStatement, format: MonthlyFormat) =>
  `${reference}.${format}`;

/** The lines in order. They do not change, so each page can be read separately. */
async function* readStatementLines(
  deps: Deps,
  statement: MonthlyStatement,
): AsyncGenerator<StatementLine[]> {
  for (let first = 1; first <= statement.lines; first += linePageSize) {
    const range = { first, last: first + linePageSize - 1 };
    yield await reading(deps, (db) => listStatementLines(db, statement, range));
  }
}

/** Columns are only ever added, at the end. */
const csvColumns = [
  'statement',
  'month',
  'line',
  'date',
  'at',
  'kind',
  'checkout_id',
  'client_reference_id',
  'payout_reference',
  'gross',
  'fee',
  'vat',
  'net',
  'currency',
  'corrects',
];

async function* writeMonthlyCsv(deps: Deps, statement: MonthlyStatement): AsyncGenerator<string> {
  const { reference, month, currency } = statement;
  const corrects = correctedReference(statement);
  const localDate = dateIn(statement);
  yield writeCsv([csvColumns]);
  for await (const lines of readStatementLines(deps, statement)) {
    yield writeCsv(
      lines.map((line) => [
        reference,
        month.slice(0, 7),
        line.line,
        localDate(line.at),
        line.at,
        line.kind,
        line.checkout_id,
        line.client_reference_id,
        line.payout_reference,
        { cents: line.gross },
        { cents: line.fee },
        { cents: line.vat },
        { cents: line.net },
        currency,
        corrects,
      ]),
    );
  }
}

/** The reference of the statement that this one replaces. */
const correctedReference = ({ merchant_id, corrects }: MonthlyStatement): string | null =>
  corrects === null ? null : statementReference(merchant_id, corrects);

const dateIn =
  ({ time_zone }: Pick<MonthlyStatement, 'time_zone'>) =>
  (at: string): string =>
    Temporal.Instant.from(at).toZonedDateTimeISO(time_zone).toPlainDate().toString();

type Row = [name: string, value: string];

/** Everything above the lines, in the merchant's language. */
export function describeMonthly(statement: MonthlyStatement) {
  const { language, sums, month } = statement;
  const words = catalogues[language].statement;
  const money = (cents: number) => showMoney(cents, statement);
  const date = (day: string) => writeDate(day, language);
  const lastDay = endOfMonth(month, statement.time_zone)
    .toZonedDateTimeISO(statement.time_zone)
    .toPlainDate()
    .subtract({ days: 1 })
    .toString();
  const isTaxInvoice = statement.issuer_vat_number !== null;
  const { sales, refunds, disputes, fees, vat, reserve, paid } = groupSums(sums);
  // Rows that most merchants do not need are left out if they are zero.
  const rare = (name: string, cents: number): Row[] => (cents === 0 ? [] : [[name, money(cents)]]);
  const balance = (day: string) => fillIn(words.balance, { date: date(day) });
  const party = (side: 'issuer' | 'merchant') =>
    writeParty(language, {
      name: statement[`${side}_name`],
      address: statement[`${side}_address`],
      vat_number: statement[`${side}_vat_number`],
    });
  const corrected = correctedReference(statement);
  const facts: Row[] = [
    [words.number, statement.reference],
    ...(corrected === null ? [] : [[words.corrects, corrected] satisfies Row]),
    [words.period, writeMonth(month, language)],
    [words.made, date(dateIn(statement)(statement.created_at))],
    [words.issuer, party('issuer')],
    [words.recipient, party('merchant')],
    ...(statement.record_end ? [[words.record, statement.record_end] satisfies Row] : []),
  ];
  const balances: Row[] = [
    [balance(month), money(statement.opening)],
    [words.sum_sales, money(sales)],
    ...rare(words.sum_refunds, refunds),
    ...rare(words.sum_disputes, disputes),
    [words.sum_fees, money(fees)],
    [words.sum_vat, money(vat)],
    ...rare(words.sum_reserve, reserve),
    [words.sum_paid, money(paid)],
    [balance(lastDay), money(statement.closing)],
  ];
  const invoice: Row[] = [
    [words.fees, money(-fees)],
    [words.fees_vat, money(-vat)],
    [words.fees_total, money(-fees - vat)],
  ];
  return {
    words,
    money,
    lastDay,
    title: titleOf(words, { isTaxInvoice, isCorrection: corrected !== null }),
    corrected,
    facts: facts.map(([name, value]): Row => [name, printable(value)]),
    balances,
    reserve: rare(fillIn(words.reserve, { date: date(lastDay) }), statement.reserve),
    invoiceTitle: isTaxInvoice ? words.invoice_tax : words.invoice,
    invoice,
  };
}

const titleOf = (
  words: Words['statement'],
  { isTaxInvoice, isCorrection }: { isTaxInvoice: boolean; isCorrection: boolean },
) => {
  if (isCorrection) return isTaxInvoice ? words.title_tax_corrected : words.title_corrected;
  return isTaxInvoice ? words.title_tax : words.title;
};

const columnsOf = (words: Words['statement']): PdfColumn[] => {
  const heads = [words.line, words.on, words.kind, words.order];
  const amounts = [words.gross, words.fee, words.vat, words.net];
  const widths = [34, 54, 82, 92, 64, 56, 56];
  const used = widths.reduce((sum, width) => sum + width, 0);
  return [...heads, ...amounts].map((head, at) => ({
    head,
    width: widths[at] ?? contentWidth - used,
    right: at >= heads.length,
  }));
};

/** The sums come before the lines. A document that would be too long has only the sums. */
function writeMonthlyPdf(deps: Deps, statement: MonthlyStatement): AsyncGenerator<Buffer> {
  const { language, reference, lines, created_at: now } = statement;
  const { words, money, ...shown } = describeMonthly(statement);
  const title = `${shown.title} ${reference}`;
  const isTagged = lines <= printedLinesMax || lines > pdfLinesMax;
  return writePdf({ title, language, now, isTagged }, async function* (pdf) {
    pdf.text(shown.title, { tag: 'H1', size: 20, bold: true });
    pdf.space(8);
    pdf.facts(shown.facts);
    pdf.space(16);
    drawAmounts(pdf, shown.balances, true);
    if (shown.reserve.length > 0) drawAmounts(pdf, shown.reserve, false);
    pdf.space(16);
    pdf.text(shown.invoiceTitle, { tag: 'H2', size: 14, bold: true });
    pdf.space(4);
    drawAmounts(pdf, shown.invoice, true);
    pdf.space(16);
    pdf.text(words.lines, { tag: 'H2', size: 14, bold: true });
    pdf.space(4);
    yield;
    if (lines > pdfLinesMax) {
      pdf.text(fillIn(words.lines_elsewhere, { count: lines }));
      yield;
      return;
    }
    const localDate = dateIn(statement);
    pdf.begin(columnsOf(words));
    for await (const page of readStatementLines(deps, statement)) {
      for (const { line, kind, at, gross, fee, vat, net, ...of } of page) {
        const order = oneLine(of.client_reference_id ?? of.payout_reference ?? '');
        const name = words[kindTexts[kind]];
        const amounts = [gross, fee, vat, net].map(money);
        pdf.row([String(line), localDate(at), name, order, ...amounts]);
        yield;
      }
    }
    const total = (column: 'gross' | 'fee' | 'vat' | 'net') =>
      money(statement.sums.reduce((sum, one) => sum + one[column], 0));
    pdf.row(['', '', words.total, '', total('gross'), total('fee'), total('vat'), total('net')], {
      bold: true,
    });
    pdf.finish();
    yield;
  });
}

/** Names beside amounts. If `hasSum` is set, the last row is the sum of the rows above it. */
function drawAmounts(pdf: Pdf, rows: Row[], hasSum: boolean): void {
  const width = 130;
  const columns = [
    { head: '', width: contentWidth - width },
    { head: '', width, right: true },
  ];
  pdf.begin(columns, 10, false);
  for (const [at, row] of rows.entries()) {
    pdf.row(row, { bold: hasSum && at === rows.length - 1 });
  }
  pdf.finish();
}
