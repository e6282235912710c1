import { createHash } from 'node:crypto';
import type { MerchantRow } from '#merchants/merchant.ts';
import { writeCsv } from '#platform/shared/csv.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import type { Language } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine, printable } from '#platform/shared/plain-text.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { words as catalogues } from '#platform/shared/words/words.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import { kindTexts } from './line-names.ts';
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

/** People do not print more lines than this. Longer statements are for programs. */
export const printedLinesMax = 2_000;
/** A PDF with this many lines has five hundred pages. */
export const pdfLinesMax = 20_000;

/** Returns why a statement has no page to print or no PDF, or null if it has one. */
export function whyNotPrinted(
  { lines }: Pick<Payout, 'lines'>,
  format: 'csv' | 'html' | 'pdf' = 'html',
) {
  if (format === 'csv') return null;
  const max = format === 'html' ? printedLinesMax : pdfLinesMax;
  if (lines <= max) return null;
  const what = format === 'html' ? 'a page to print' : 'a PDF';
  return `This statement has ${lines} lines, but ${what} has at most ${max}. Use the CSV file.`;
}

/** A name, its address and its VAT number on one line. */
export function writeParty(
  language: Language,
  { name, address, vat_number }: Pick<MerchantRow, 'name' | 'address' | 'vat_number'>,
): string {
  const vat =
    vat_number && fillIn(catalogues[language].statement.vat_number, { number: vat_number });
  return [name, address?.replaceAll('\n', ', '), vat].filter((part) => part).join(', ');
}

type Row = [name: string, value: string];

/** Everything on a statement besides its lines, in the merchant's language. */
export function describePayout(
  payout: Payout,
  totals: Totals,
  merchant: MerchantRow,
  /** The end of the chain of operators' actions, as last posted before the payout was made. */
  recordEnd: string | null = null,
) {
  const { language, territory } = merchant;
  const words = catalogues[language].statement;
  const money = (cents: number) => showMoney(cents, territory);
  // The label of the amount shows whether the bank has answered.
  const answered: Partial<Record<Payout['status'], string>> = {
    paid: words.payout_paid,
    returned: words.payout_returned,
  };
  const facts: [string, string | null][] = [
    [words.recipient, writeParty(language, merchant)],
    [words.payout_day, writeDate(payout.business_on, language)],
    [answered[payout.status] ?? words.payout_due, money(payout.amount)],
    [words.payout_bank_reference, payout.bank_reference],
    [words.record, recordEnd],
  ];
  const fees: Row[] = [
    [words.fees, money(totals.fee)],
    [words.fees_vat, money(totals.vat)],
    [words.fees_total, money(totals.fee + totals.vat)],
  ];
  return {
    words,
    money,
    title: fillIn(words.payout_title, { reference: payout.reference }),
    facts: facts.flatMap(([name, value]): Row[] => (value ? [[name, printable(value)]] : [])),
    heads: [words.line, words.kind, words.order, words.gross, words.fee, words.vat, words.net],
    fees,
  };
}

/**
 * Writes a statement as a page to print, piece by piece. The caller has checked `whyNotPrinted`.
 */
export async function* writeStatementHtml(
  payout: Payout,
  pages: LinePages,
  totals: Totals,
  merchant: MerchantRow,
  recordEnd: string | null,
): AsyncGenerator<string> {
  const { words, money, ...shown } = describePayout(payout, totals, merchant, recordEnd);
  const cells = ({ gross, fee, vat, net }: Totals) =>
    [gross, fee, vat, net].map((cents) => `<td>${text(money(cents))}</td>`).join('');
  yield writeHead(merchant.language, words.lines, shown);
  for await (const lines of pages) {
    yield lines
      .map(
        (line) =>
          `<tr><td>${line.line}</td><td>${text(words[kindTexts[line.kind]])}</td><td>${text(line.client_reference_id)}</td>${cells(line)}</tr>\n`,
      )
      .join('');
  }
  yield `</tbody>
<tfoot><tr><td></td><td>${text(words.total)}</td><td></td>${cells(totals)}</tr></tfoot>
</table>
</div>
<h2>${text(words.payout_fees)}</h2>
${writeFacts(shown.fees)}
<p>${text(words.payout_note)}</p>
</main>
</body>
</html>
`;
}

const text = (value: string | null) => escapeHtml(oneLine(value ?? ''));

const writeFacts = (rows: Row[]) =>
  `<dl>
${rows.map(([name, value]) => `<dt>${text(name)}</dt><dd>${escapeHtml(value)}</dd>`).join('\n')}
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

const writeHead = (
  language: Language,
  linesName: string,
  { title, facts, heads }: { title: string; facts: Row[]; heads: string[] },
) =>
  `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${text(title)}</h1>
${writeFacts(facts)}
<div class="table" tabindex="0" role="region" aria-label="${text(linesName)}">
<table>
<thead><tr>${heads.map((head) => `<th>${text(head)}</th>`).join('')}</tr></thead>
<tbody>
`;
