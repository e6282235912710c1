import type { Timestamp } from '#platform/shared/clock.ts';
import { contentWidth, writePdf } from '#platform/shared/pdf/write-pdf.ts';
import type { Receipt } from './receipt.ts';

/** A receipt as a PDF to keep. It shows what the receipt's page shows. */
export function writeReceiptPdf(
  receipt: Receipt,
  logo: Buffer | null,
  now: Timestamp,
): AsyncGenerator<Buffer> {
  const { title, language } = receipt;
  return writePdf({ title, language, now, isTagged: true }, async function* (pdf) {
    if (logo !== null) pdf.image(logo, { width: 120, height: 36 });
    pdf.text(receipt.heading, { tag: 'H1', size: 12, quiet: true });
    pdf.text(receipt.merchant, { size: 12, bold: true });
    pdf.text(receipt.amount, { size: 26, bold: true });
    pdf.text(receipt.paid, { size: 11 });
    pdf.space(16);
    pdf.facts(receipt.rows);
    yield;
    if (receipt.items.length === 0) return;
    pdf.space(16);
    pdf.text(receipt.order, { tag: 'H2', size: 13, bold: true });
    pdf.space(4);
    const price = 120;
    pdf.begin(
      [
        { head: '', width: contentWidth - price },
        { head: '', width: price, right: true },
      ],
      10,
      false,
    );
    for (const [at, [name, value]] of receipt.items.entries()) {
      pdf.row([name, value], { bold: at === receipt.items.length - 1 });
      yield;
    }
    pdf.finish();
    yield;
  });
}
