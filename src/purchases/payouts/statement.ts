import type { MerchantRow } from '#merchants/merchant.ts';
import { writeCsv } from '#platform/shared/csv.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Payout, PayoutLine } from './payout.ts';

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

export function writeStatementCsv(payout: Payout, lines: PayoutLine[]): string {
  const { reference, id, business_on, currency } = payout;
  return writeCsv(
    columns,
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

export type Totals = { gross: number; fee: number; vat: number; net: number };

export function totalsOf(lines: PayoutLine[]): Totals {
  const totals = { gross: 0, fee: 0, vat: 0, net: 0 };
  for (const line of lines) {
    for (const name of ['gross', 'fee', 'vat', 'net'] as const) totals[name] += line[name];
  }
  return totals;
}

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

/** A statement that prints well, with the lines of a tax invoice for our fees. */
export function writeStatementHtml(
  payout: Payout,
  lines: PayoutLine[],
  { name, territory }: MerchantRow,
): string {
  const money = (cents: number) => escapeHtml(showMoney(cents, territory));
  const text = (value: string | null) => escapeHtml(oneLine(value ?? ''));
  const totals = totalsOf(lines);
  const cells = ({ gross, fee, vat, net }: Totals) =>
    [gross, fee, vat, net].map((cents) => `<td>${money(cents)}</td>`).join('');
  const rows = lines
    .map(
      (line) =>
        `<tr><td>${line.line}</td><td>${lineNames[line.kind]}</td><td>${text(line.client_reference_id)}</td>${cells(line)}</tr>`,
    )
    .join('\n');
  return `<!doctype html>
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
<dt>Merchant</dt><dd>${text(name)}</dd>
<dt>Business day</dt><dd>${payout.business_on}</dd>
<dt>Paid</dt><dd>${money(payout.amount)}</dd>
<dt>Bank reference</dt><dd>${text(payout.bank_reference)}</dd>
</dl>
<table>
<thead><tr><th>Line</th><th>Kind</th><th>Order</th><th>Gross</th><th>Fee</th><th>VAT</th><th>Net</th></tr></thead>
<tbody>
${rows}
</tbody>
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
