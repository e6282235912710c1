import type { MerchantRow } from '#merchants/merchant.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { contentWidth, type PdfColumn, writePdf } from '#platform/shared/pdf/write-pdf.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { kindTexts } from './line-names.ts';
import type { Payout, Totals } from './payout.ts';
import { describePayout, type LinePages, printedLinesMax } from './statement.ts';

const widths = [34, 102, 107, 68, 60, 60, contentWidth - 431];

const columnsOf = (heads: string[]): PdfColumn[] =>
  heads.map((head, at) => ({ head, width: widths[at] as number, right: at > 2 }));

/** The statement as a document to keep. The caller has checked `whyNotPrinted`. */
export function writeStatementPdf(
  payout: Payout,
  pages: LinePages,
  totals: Totals,
  merchant: MerchantRow,
  recordEnd: string | null,
  now: Timestamp,
): AsyncGenerator<Buffer> {
  const { words, money, title, ...shown } = describePayout(payout, totals, merchant, recordEnd);
  const amounts = ({ gross, fee, vat, net }: Totals) => [gross, fee, vat, net].map(money);
  const { language } = merchant;
  const about = { title, language, now, isTagged: payout.lines <= printedLinesMax };
  return writePdf(about, async function* (pdf) {
    pdf.text(title, { tag: 'H1', size: 20, bold: true });
    pdf.space(8);
    pdf.facts(shown.facts);
    pdf.space(16);
    pdf.begin(columnsOf(shown.heads));
    for await (const lines of pages) {
      for (const { line, kind, client_reference_id, ...line_totals } of lines) {
        const order = oneLine(client_reference_id ?? '');
        pdf.row([String(line), words[kindTexts[kind]], order, ...amounts(line_totals)]);
        yield;
      }
    }
    pdf.row(['', words.total, '', ...amounts(totals)], { bold: true });
    pdf.finish();
    pdf.space(16);
    pdf.keepTogether(140);
    pdf.text(words.payout_fees, { tag: 'H2', size: 14, bold: true });
    pdf.space(4);
    pdf.facts(shown.fees);
    pdf.space(4);
    pdf.text(words.payout_note);
    yield;
  });
}
