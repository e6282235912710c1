import assert from 'node:assert/strict';
import { test } from 'node:test';
import PDFDocument from 'pdfkit';
import { type Pdf, writePdf } from '#platform/shared/pdf/write-pdf.ts';
import { readPdf } from '../support/pdf.ts';

const about = {
  title: 'Statement of Thohoyanḓou',
  language: 'af',
  now: '2026-11-17T06:00:00.000Z',
  isTagged: true,
} as const;

const write = async (draw: (pdf: Pdf) => AsyncIterable<void>, changes: object = {}) =>
  Buffer.concat(await Array.fromAsync(writePdf({ ...about, ...changes }, draw)));

const columns = [
  { head: 'Order', width: 80 },
  { head: 'Net', width: 80, right: true },
];

test('letters of South African languages and amounts are in the text, and letters that the fonts lack are marked', async () => {
  const texts = [
    'Sêr Élan ŉ Tshivenḓa ṱhoho ṋ ḽ Š',
    'R\u00a01\u00a0500,00',
    'ku\u2011R',
    'Łódź Ђ ω €',
  ];
  const pdf = await write(async function* (pdf) {
    for (const text of texts) pdf.text(text);
    pdf.text('漢字 🎉 done', { bold: true });
    yield;
  });
  const { pages, source } = readPdf(pdf);
  assert.deepEqual(pages, [[...texts, '\ufffd\ufffd \ufffd done', '1']]);
  assert.match(source, /\/Lang \(af\)/);
  assert.match(source, /\/Marked true/);
  assert.match(source, /\/DisplayDocTitle true/);
  assert.match(source, /\/S \/P\b/);
});

test('the text of a document can be copied, whatever an earlier document drew', async () => {
  const draw = (text: string) =>
    write(async function* (pdf) {
      pdf.text(text);
      yield;
    });
  // The font has one glyph for both hyphens.
  await draw('on\u2011line');
  assert.equal(readPdf(await draw('on-line')).pages[0]?.[0], 'on-line');
});

test('a table repeats its head on each page, wraps long cells, and loses no row', async () => {
  const long = 'x'.repeat(60);
  const pdf = await write(async function* (pdf) {
    pdf.text('Heading', { tag: 'H1' });
    pdf.begin(columns);
    for (let row = 1; row <= 100; row += 1) {
      pdf.row([row === 50 ? `row-${row}-${long}` : `row-${row}`, `R ${row}`]);
      if (row % 20 === 0) yield;
    }
    pdf.finish();
  });
  const { pages, source } = readPdf(pdf);
  assert.ok(pages.length > 2);
  assert.ok(pages.every((page) => page.includes('Order') && page.includes('Net')));
  const all = pages.flat();
  const rows = Array.from({ length: 100 }, (_, at) => `R ${at + 1}`);
  assert.deepEqual(
    all.filter((text) => text.startsWith('R ')),
    rows,
  );
  assert.ok(all.join('').includes(`row-50-${long}`));
  for (const tag of ['Table', 'TR', 'TH', 'TD', 'H1']) {
    assert.match(source, new RegExp(`/S /${tag}\\b`), tag);
  }
});

test('an amount and a hash are never cut, and what belongs together begins a new page', async () => {
  const amount = 'R\u00a0123\u00a0456\u00a0789,00';
  // A word that is written smaller is as wide as its column, apart from rounding.
  const hash = '3:a88274c6ddf437bb1a631bf498627c29cc4361809d6aa588b50aa65e2afa747f';
  const pdf = await write(async function* (pdf) {
    pdf.facts([['Record', hash]]);
    pdf.begin([
      { head: 'Order', width: 80 },
      { head: 'VAT', width: 48, right: true },
      { head: 'Net', width: 48, right: true },
    ]);
    pdf.row(['Total', amount, amount], { bold: true });
    pdf.finish();
    pdf.space(600);
    pdf.keepTogether(140);
    pdf.text('Fees');
    yield;
  });
  const { pages } = readPdf(pdf);
  assert.deepEqual(pages, [
    ['Record', hash, 'Order', 'VAT', 'Net', 'Total', amount, amount, '1'],
    ['Fees', '2'],
  ]);
});

test('a long document without tags is written in pieces, and others are answered between them', async () => {
  let turns = 0;
  let isOn = true;
  const count = () => {
    turns += 1;
    if (isOn) setImmediate(count);
  };
  setImmediate(count);
  const pieces = await Array.fromAsync(
    writePdf({ ...about, isTagged: false }, async function* (pdf) {
      pdf.begin(columns);
      for (let row = 1; row <= 1_000; row += 1) {
        pdf.row([`row-${row}`, `R ${row}`]);
        if (row % 40 === 0) yield;
      }
      pdf.finish();
    }),
  );
  isOn = false;
  assert.ok(turns >= 25, `${turns} turns`);
  assert.ok(pieces.length > 25);
  const { pages, source } = readPdf(Buffer.concat(pieces));
  assert.equal(pages.flat().filter((text) => text.startsWith('row-')).length, 1_000);
  assert.doesNotMatch(source, /\/S \/TD\b/);
});

test('names of a thousand letters without a space are laid out in proportion to their length, and others are answered between them', async (t) => {
  // Every name is different, so that none of it can be cached.
  const name = (row: number) =>
    Array.from({ length: 1_000 }, (_, at) => String.fromCodePoint(0xc0 + ((at * row) % 380))).join(
      '',
    );
  const measure = t.mock.method(
    PDFDocument.prototype as { widthOfString(text: string): number },
    'widthOfString',
  );
  const rows = 40;
  let turns = 0;
  let isOn = true;
  const count = () => {
    turns += 1;
    if (isOn) setImmediate(count);
  };
  setImmediate(count);
  const pdf = await write(async function* (pdf) {
    pdf.begin(columns);
    for (let row = 1; row <= rows; row += 1) {
      pdf.row([name(row), `R ${row}`]);
      yield;
    }
    pdf.finish();
  });
  isOn = false;
  assert.ok(turns >= rows, `${turns} turns`);
  // If every prefix of a name were measured, half a million letters would be laid out for each row.
  const letters = measure.mock.calls.reduce((sum, call) => sum + call.arguments[0].length, 0);
  assert.ok(letters > 0 && letters < 3_000 * rows, `${letters} letters laid out`);
  const { pages } = readPdf(pdf);
  assert.equal(pages.flat().filter((text) => text.startsWith('R ')).length, rows);
});
