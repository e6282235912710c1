import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { contentWidth, type PdfColumn, writePdf } from '#platform/shared/pdf/write-pdf.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { lineName } from './line-names.ts';
import type { Payout, Totals } from './payout.ts';
import {
  feeFacts,
  feesHead,
  feesNote,
  type LinePages,
  printedLinesMax,
  statementFacts,
  statementHeads,
} from './statement.ts';

const widths = [34, 112, 107, 66, 58, 54, contentWidth - 431];
const columns: PdfColumn[] = statementHeads.map((head, at) => ({
  head,
  width: widths[at] as number,
  right: at > 2,
}));

/** The statement as a document to keep. The caller has checked `whyNotPrinted`. */
export function writeStatementPdf(
  payout: Payout,
  pages: LinePages,
  totals: Totals,
  merchant: MerchantRow,
  recordEnd: string | null,
  now: Timestamp,
): AsyncGenerator<Buffer> {
  const money = (cents: number) => showMoney(cents, merchant.territory);
  const amounts = ({ gross, fee, vat, net }: Totals) => [gross, fee, vat, net].map(money);
  const title = `Statement ${payout.reference}`;
  const about = { title, language: 'en-GB', now, isTagged: payout.lines <= printedLinesMax };
  return writePdf(about, async function* (pdf) {
    pdf.text(title, { tag: 'H1', size: 20, bold: true });
    pdf.space(8);
    pdf.facts(statementFacts(payout, merchant, recordEnd));
    pdf.space(16);
    pdf.begin(columns);
    for await (const lines of pages) {
      for (const { line, kind, client_reference_id, ...line_totals } of lines) {
        const order = oneLine(client_reference_id ?? '');
        pdf.row([String(line), lineName(kind), order, ...amounts(line_totals)]);
        yield;
      }
    }
    pdf.row(['', 'Total', '', ...amounts(totals)], { bold: true });
    pdf.finish();
    pdf.space(16);
    pdf.text(feesHead, { tag: 'H2', size: 14, bold: true });
    pdf.space(4);
    pdf.facts(feeFacts(totals, money));
    pdf.space(4);
    pdf.text(feesNote);
    yield;
  });
}
