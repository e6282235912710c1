import { createHash } from 'node:crypto';
import type { MerchantRow } from '#merchants/merchant.ts';
import { writeCsv } from '#platform/shared/csv.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine, printable } from '#platform/shared/plain-text.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import { lineName } from './line-names.ts';
import type { Payout, PayoutLine, Totals } from './payout.ts';

// The statement that a merchant's bookkeeper reads. Columns are only ever added, at the end.
// Amounts have two decimals.

const columns = [
  'payout_reference',
  'payout_id',
  'business_date',
  'line',
  'at',
  'kind',
  'checkout_id',
  'client_reference_id',
  'gross',
  'fee',
  'vat',
  'net',
  'currency',
];

/**
 * Each page of lines becomes one piece of the file, so that a statement is never in memory as a
 * whole.
 */
export async function* writeStatementCsv(payout: Payout, pages: LinePages): AsyncGenerator<string> {
  const { reference, id, business_on, currency } = payout;
  yield writeCsv([columns]);
  for await (const lines of pages) {
    yield writeCsv(
      lines.map((line) => [
        reference,
        id,
        business_on,
        line.line,
        line.at,
        line.kind,
        line.checkout_id,
        line.client_reference_id,
        { cents: line.gross },
        { cents: line.fee },
        { cents: line.vat },
        { cents: line.net },
        currency,
      ]),
    );
  }
}

export type LinePages = AsyncIterable<PayoutLine[]> | Iterable<PayoutLine[]>;

/** People do not print more than this. A longer statement is for programs. */
export const printedLinesMax = 2_000;
/** A document of this length has five hundred pages. */
export const pdfLinesMax = 20_000;

/** Says why a statement has no page to print or no PDF. Null if it has one. */
export function whyNotPrinted({ lines }: Pick<Payout, 'lines'>, format: 'html' | 'pdf' = 'html') {
  const max = format === 'html' ? printedLinesMax : pdfLinesMax;
  if (lines <= max) return null;
  const what = format === 'html' ? 'a page to print' : 'a PDF';
  return `This statement has ${lines} lines, and ${what} has at most ${max}. Take the CSV file.`;
}

/** The names of the columns of a statement that people read. */
export const statementHeads = ['Line', 'Kind', 'Order', 'Gross', 'Fee', 'VAT', 'Net'];

/** The label of the amount, once the bank has answered. */
const paidNames: Partial<Record<Payout['status'], string>> = {
  paid: 'Paid',
  returned: 'Returned by the bank',
};

/** The facts above the lines: the merchant's name, and what was paid. */
export function statementFacts(
  payout: Payout,
  { name, address, vat_number, territory }: MerchantRow,
  recordEnd: string | null,
): [name: string, value: string][] {
  const rows: [string, string | null][] = [
    ['Merchant', name],
    ['Address', address?.replaceAll('\n', ', ') ?? null],
    ['VAT number', vat_number],
    ['Business day', writeDate(payout.business_on, 'en')],
    [paidNames[payout.status] ?? 'To be paid', showMoney(payout.amount, territory)],
    ['Bank reference', payout.bank_reference],
    ['Record of actions', recordEnd],
  ];
  return rows.flatMap(([name, value]) => (value ? [[name, printable(value)]] : []));
}

/** The head of the fees. A monthly statement is the tax invoice: a second one would count VAT twice. */
export const feesHead = 'Fees of this payout';
export const feesNote =
  'This is not a tax invoice. Your monthly statement is the invoice for these fees.';

export const feeFacts = (
  { fee, vat }: Totals,
  money: (cents: number) => string,
): [name: string, value: string][] => [
  ['Fees, without VAT', money(fee)],
  ['VAT', money(vat)],
  ['Fees with VAT, taken from the payout', money(fee + vat)],
];

/**
 * A statement that prints well, with our fees, page by page. The caller has checked
 * `whyNotPrinted`.
 */
export async function* writeStatementHtml(
  payout: Payout,
  pages: LinePages,
  totals: Totals,
  merchant: MerchantRow,
  /** The last end of the chain of operators' actions that was posted before the payout was made. */
  recordEnd: string | null,
): AsyncGenerator<string> {
  const money = (cents: number) => escapeHtml(showMoney(cents, merchant.territory));
  const cells = ({ gross, fee, vat, net }: Totals) =>
    [gross, fee, vat, net].map((cents) => `<td>${money(cents)}</td>`).join('');
  yield writeHead(payout, statementFacts(payout, merchant, recordEnd));
  for await (const lines of pages) {
    yield lines
      .map(
        (line) =>
          `<tr><td>${line.line}</td><td>${lineName(line.kind)}</td><td>${text(line.client_reference_id)}</td>${cells(line)}</tr>\n`,
      )
      .join('');
  }
  yield `</tbody>
<tfoot><tr><td></td><td>Total</td><td></td>${cells(totals)}</tr></tfoot>
</table>
</div>
<h2>${feesHead}</h2>
${writeFacts(feeFacts(totals, (cents) => showMoney(cents, merchant.territory)))}
<p>${feesNote}</p>
</main>
</body>
</html>
`;
}

const text = (value: string | null) => escapeHtml(oneLine(value ?? ''));

const writeFacts = (rows: [name: string, value: string][]) =>
  `<dl>
${rows.map(([name, value]) => `<dt>${name}</dt><dd>${escapeHtml(value)}</dd>`).join('\n')}
</dl>`;

const style = `
:root { color-scheme: light dark; --ground: #fff; --ink: #10201e; --quiet: #55635f; --line: #dde3e0 }
@media (prefers-color-scheme: dark) { :root { --ground: #0c1413; --ink: #e8efed; --quiet: #9db0ab; --line: #25322f } }
body { margin: 32px auto; padding: 0 16px; max-width: 960px; background: var(--ground); color: var(--ink); font: 14px/1.5 system-ui, sans-serif }
.table { overflow-x: auto }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: 6px 8px; border-top: 1px solid var(--line); text-align: right; white-space: nowrap }
th { color: var(--quiet); font-weight: 600 }
td:nth-child(2), td:nth-child(3), th:nth-child(2), th:nth-child(3) { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 96px }
tfoot td { font-weight: 600 }
dl { display: grid; grid-template-columns: fit-content(45%) minmax(0, 1fr); gap: 4px 24px }
dt { color: var(--quiet) }
dd { margin: 0; overflow-wrap: anywhere }
@media print { :root { --ground: #fff; --ink: #000; --quiet: #444; --line: #bbb } body { margin: 0; padding: 0; max-width: none } thead { display: table-header-group } .table { overflow: visible } }
`;

/**
 * The page may be opened in a browser where an operator is signed in, so it may load and run
 * nothing.
 */
export const statementPolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256')
  .update(style)
  .digest(
    'base64',
  )}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-modals`;

const writeHead = (payout: Payout, facts: [name: string, value: string][]) =>
  `<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Statement ${text(payout.reference)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Statement ${text(payout.reference)}</h1>
${writeFacts(facts)}
<div class="table" tabindex="0" role="region" aria-label="Lines">
<table>
<thead><tr>${statementHeads.map((head) => `<th>${head}</th>`).join('')}</tr></thead>
<tbody>
`;
