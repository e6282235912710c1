import type { MerchantRow } from '#merchants/merchant.ts';
import { writeCsv } from '#platform/shared/csv.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Payout, PayoutLine, Totals } from './payout.ts';

// The statement that a merchant's bookkeeper reads. Columns are only ever added, at the end.
// Amounts are cents.

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

/** Each page of lines makes one piece of the file, so that no statement stands in memory as a whole. */
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
        line.gross,
        line.fee,
        line.vat,
        line.net,
        currency,
      ]),
    );
  }
}

type LinePages = AsyncIterable<PayoutLine[]> | Iterable<PayoutLine[]>;

/** No one prints more. A longer statement is a file for a program. */
export const printedLinesMax = 2_000;

/** Says why a statement has no page to print. Null if it has one. */
export const whyNotPrinted = ({ lines }: Pick<Payout, 'lines'>) =>
  lines <= printedLinesMax
    ? null
    : `This statement has ${lines} lines, and a page to print has at most ${printedLinesMax}. Take the CSV file.`;

/** How a statement names a kind of line. */
export const lineNames: Record<PayoutLine['kind'], string> = {
  sale: 'Sale',
  refund: 'Refund',
  refund_reversed: 'Refund that came back',
  dispute: 'Disputed payment',
  dispute_reversed: 'Dispute won',
  dispute_fee: 'Dispute fee',
  reserve: 'Held in reserve',
  reserve_released: 'Released from reserve',
  payout_returned: 'Payout that the bank returned',
};

/**
 * A statement that prints well, with the lines of a tax invoice for our fees, page by page. The
 * caller has looked at `whyNotPrinted`.
 */
export async function* writeStatementHtml(
  payout: Payout,
  pages: LinePages,
  totals: Totals,
  { name, territory }: MerchantRow,
): AsyncGenerator<string> {
  const money = (cents: number) => escapeHtml(showMoney(cents, territory));
  const cells = ({ gross, fee, vat, net }: Totals) =>
    [gross, fee, vat, net].map((cents) => `<td>${money(cents)}</td>`).join('');
  yield writeHead(payout, name, money(payout.amount));
  for await (const lines of pages) {
    yield lines
      .map(
        (line) =>
          `<tr><td>${line.line}</td><td>${lineNames[line.kind]}</td><td>${text(line.client_reference_id)}</td>${cells(line)}</tr>\n`,
      )
      .join('');
  }
  yield `</tbody>
<tfoot><tr><td></td><td>Total</td><td></td>${cells(totals)}</tr></tfoot>
</table>
<h2>Tax invoice</h2>
<dl>
<dt>Fees, without VAT</dt><dd>${money(totals.fee)}</dd>
<dt>VAT</dt><dd>${money(totals.vat)}</dd>
<dt>Fees with VAT, taken from the payout</dt><dd>${money(totals.fee + totals.vat)}</dd>
</dl>
</body>
</html>
`;
}

const text = (value: string | null) => escapeHtml(oneLine(value ?? ''));

const writeHead = (payout: Payout, merchant: string, amount: string) =>
  `<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<title>Statement ${text(payout.reference)}</title>
<style>
body { margin: 32px auto; padding: 0 16px; max-width: 960px; color: #10201e; font: 14px/1.5 system-ui, sans-serif }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: 6px 8px; border-top: 1px solid #dde3e0; text-align: right }
th { color: #55635f; font-weight: 600 }
td:nth-child(2), td:nth-child(3), th:nth-child(2), th:nth-child(3) { text-align: left; overflow-wrap: anywhere }
tfoot td { font-weight: 600 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 24px }
dd { margin: 0 }
@media print { body { margin: 0; padding: 0; max-width: none } thead { display: table-header-group } }
</style>
</head>
<body>
<h1>Statement ${text(payout.reference)}</h1>
<dl>
<dt>Merchant</dt><dd>${text(merchant)}</dd>
<dt>Business day</dt><dd>${payout.business_on}</dd>
<dt>Paid</dt><dd>${amount}</dd>
<dt>Bank reference</dt><dd>${text(payout.bank_reference)}</dd>
</dl>
<table>
<thead><tr><th>Line</th><th>Kind</th><th>Order</th><th>Gross</th><th>Fee</th><th>VAT</th><th>Net</th></tr></thead>
<tbody>
`;
