import { readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import type { Timestamp } from '../clock.ts';

// Documents for people: tagged for screen readers, with embedded fonts, so that they look the same
// everywhere. The library is loaded when the first document is asked for (decision 0140).

type Document = PDFKit.PDFDocument;
type Structure = PDFKit.PDFStructureElement;

/** The members of the library's fonts that we use. */
type FontFile = {
  hasGlyphForCodePoint(codePoint: number): boolean;
  glyphForCodePoint(codePoint: number): { advanceWidth: number };
  unitsPerEm: number;
};

export type PdfAbout = {
  title: string;
  language: string;
  now: Timestamp;
  /**
   * Whether each cell is tagged, which costs memory until the end. Very long tables have no tags.
   */
  isTagged: boolean;
};

type TextOptions = {
  /** The kind of element for screen readers. */
  tag?: 'H1' | 'H2' | 'P';
  size?: number;
  bold?: boolean;
  quiet?: boolean;
};

export type PdfColumn = { head: string; width: number; right?: boolean };

/** An A4 page and its margins, in points. */
const page = { width: 595.28, height: 841.89, margin: 48, foot: 64 };
export const contentWidth = page.width - 2 * page.margin;
const colours = { ink: '#10201e', quiet: '#55635f', line: '#dde3e0' };
const columnGap = 8;
const lineSpacing = 1.45;
/** The tolerance for rounding: widths are sums of fractions. */
const rounding = 0.01;
const fontNames = { regular: 'NotoSans-Regular.ttf', bold: 'NotoSans-Bold.ttf' };

let loaded: ReturnType<typeof load> | null = null;
async function load() {
  const read = (name: string) => readFile(new URL(name, import.meta.url));
  const [{ default: PDFDocument }, regular, bold] = await Promise.all([
    import('pdfkit'),
    read(fontNames.regular),
    read(fontNames.bold),
  ]);
  // Loading the library and drawing the first lines, which compiles it, take 100 ms each. Other
  // requests are served in between.
  await turn();
  const opener: Document = new PDFDocument({ font: null as never });
  const open = (file: Buffer) => fontOf(opener.font(file));
  return { PDFDocument, regular: open(regular), bold: open(bold) };
}

/**
 * A font for one document. Documents share the tables of a file, because reading them takes longer
 * than drawing. Each has its own glyphs, which record the letters that the document uses.
 */
const sharing = (font: FontFile) => Object.create(font, { _glyphs: { value: {} } }) as never;

/** The current font of a document. */
const fontOf = (doc: Document) => (doc as unknown as { _font: { font: FontFile } })._font.font;

/** This many lines are drawn before other requests are served. */
const linesTogether = 40;

/** The pieces of a document. `draw` yields after each row of a table. */
export async function* writePdf(
  about: PdfAbout,
  draw: (pdf: Pdf) => AsyncIterable<void>,
): AsyncGenerator<Buffer> {
  loaded ??= load();
  const { PDFDocument, regular, bold } = await loaded;
  const doc: Document = new PDFDocument({
    size: 'A4',
    // The bottom margin is 0, because this module itself decides where pages end.
    margins: { top: page.margin, left: page.margin, right: page.margin, bottom: 0 },
    // With null the library adds no default font, which it would not embed.
    font: null as never,
    lang: about.language,
    displayTitle: true,
    pdfVersion: '1.7',
    ...(about.isTagged && { tagged: true, subset: 'PDF/UA' as never }),
    info: {
      Title: about.title,
      // biome-ignore lint/plugin: the library takes a Date, and the time is given.
      CreationDate: new Date(about.now),
      Creator: 'Tranche',
    },
  });
  doc.registerFont('regular', sharing(regular));
  doc.registerFont('bold', sharing(bold));
  const pdf = new Pdf(doc, about.isTagged);
  for await (const _ of draw(pdf)) {
    if (!pdf.hasDrawn(linesTogether)) continue;
    for (let piece = doc.read(); piece !== null; piece = doc.read()) yield piece as Buffer;
    await turn();
  }
  pdf.end();
  for await (const piece of doc) yield piece as Buffer;
}

/** A document that is being drawn, from the top of its first page to the end. */
export class Pdf {
  readonly #doc: Document;
  readonly #root: Structure | null;
  #table: Structure | null = null;
  #columns: PdfColumn[] = [];
  #size = 9;
  #y = page.margin;
  #pages = 1;
  #linesDrawn = 0;
  /** The widths of the two fonts' letters at a size of one point. */
  readonly #widths = { regular: new Map<string, number>(), bold: new Map<string, number>() };

  constructor(doc: Document, isTagged: boolean) {
    this.#doc = doc;
    this.#root = isTagged ? doc.struct('Document') : null;
    if (this.#root) doc.addStructure(this.#root);
  }

  /** Whether this many lines have been drawn since the last call that returned true. */
  hasDrawn(lines: number): boolean {
    if (this.#linesDrawn < lines) return false;
    this.#linesDrawn = 0;
    return true;
  }

  /** A paragraph or a heading, in as many lines as it needs. */
  text(text: string, { tag = 'P', size = 10, ...look }: TextOptions = {}): void {
    this.#style(size, look);
    const lines = this.#wrap(text, contentWidth);
    this.#room(lines.length * size * lineSpacing);
    this.#tagged(tag, this.#root, () => this.#lines(lines, page.margin, contentWidth, false));
    this.#y += lines.length * size * lineSpacing;
  }

  /** An image, in its own proportions. Screen readers leave it out. */
  image(content: Buffer, fit: { width: number; height: number }): void {
    this.#artifact(() =>
      this.#doc.image(content, page.margin, this.#y, { fit: [fit.width, fit.height] }),
    );
    this.#y += fit.height + 12;
  }

  space(points: number): void {
    this.#y += points;
  }

  /** Begins a new page unless this one has room for what must not be divided. */
  keepTogether(points: number): void {
    this.#room(points);
  }

  /** Names beside values, as a table of two columns. */
  facts(rows: [name: string, value: string][]): void {
    const columns = [
      { head: '', width: 140 },
      { head: '', width: contentWidth - 140 },
    ];
    this.begin(columns, 10, false);
    for (const [name, value] of rows) this.row([name, value], { quietFirst: true });
    this.finish();
  }

  /** Begins a table. Its head is repeated on every page. */
  begin(columns: PdfColumn[], size = 8.5, hasHead = true): void {
    this.#columns = columns;
    this.#size = size;
    this.#table = this.#root && this.#doc.struct('Table');
    if (this.#root && this.#table) this.#root.add(this.#table);
    if (hasHead) this.#head('TH');
    else this.#hasHead = false;
  }

  #hasHead = true;

  #head(tag: 'TH' | null): void {
    this.#hasHead = true;
    this.#cells(
      this.#columns.map(({ head }) => head),
      { bold: true, quiet: true },
      tag,
    );
  }

  row(cells: string[], look: { bold?: boolean; quietFirst?: boolean } = {}): void {
    this.#cells(cells, look, 'TD');
  }

  finish(): void {
    this.#table?.end();
    this.#table = null;
    this.#columns = [];
  }

  /** Writes the last page and the end of the file. */
  end(): void {
    this.#foot();
    this.#root?.end();
    this.#doc.end();
  }

  #cells(
    cells: string[],
    look: { bold?: boolean; quiet?: boolean; quietFirst?: boolean },
    tag: 'TH' | 'TD' | null,
  ): void {
    const { bold = false, quiet = false, quietFirst = false } = look;
    this.#style(this.#size, { bold, quiet });
    const room = this.#columns.map(({ width }, at) =>
      at === this.#columns.length - 1 ? width : width - columnGap,
    );
    const fitting = cells.map((cell, at) => this.#fit(cell, at, room[at] ?? 0));
    const size = this.#size * Math.min(1, ...fitting);
    this.#style(size, { bold, quiet });
    const wrapped = cells.map((cell, at) =>
      this.#columns[at]?.right ? [this.#replaceMissing(cell)] : this.#wrap(cell, room[at] ?? 0),
    );
    const lineHeight = size * lineSpacing;
    const height = Math.max(...wrapped.map(({ length }) => length)) * lineHeight + 6;
    this.#room(height);
    this.#style(size, { bold, quiet });
    const row = tag && this.#table ? this.#doc.struct('TR') : null;
    if (row) this.#table?.add(row);
    let x = page.margin;
    for (const [at, lines] of wrapped.entries()) {
      const { width = 0, right = false } = this.#columns[at] ?? {};
      if (quietFirst) this.#style(size, { quiet: at === 0 });
      const draw = () => this.#lines(lines, x, room[at] ?? 0, right);
      if (row && tag) row.add(this.#doc.struct(tag, {}, draw));
      else this.#artifact(draw);
      x += width;
    }
    row?.end();
    this.#y += height;
    this.#rule();
  }

  /**
   * The scale at which a row must be written to fit this cell. An amount is never cut. In a table
   * without a head (`facts`), a long word such as a hash is made smaller, and is cut only if it
   * would have to be smaller than 80 %.
   */
  #fit(cell: string, at: number, room: number): number {
    if (this.#columns[at]?.right) return room / this.#widthOf(cell);
    if (this.#hasHead) return 1;
    const fitting = Math.min(...cell.split(' ').map((word) => room / this.#widthOf(word)));
    return fitting < 0.8 ? 1 : fitting;
  }

  /** Draws lines at the current position without moving it. */
  #lines(lines: string[], x: number, width: number, right: boolean): void {
    for (const [at, line] of lines.entries()) {
      const left = right ? x + width - this.#doc.widthOfString(line) : x;
      const top = this.#y + 3 + at * this.#fontSize * lineSpacing;
      this.#doc.text(line, left, top, { lineBreak: false });
    }
    this.#linesDrawn += lines.length;
  }

  /**
   * Lines that fit a width. A word that is longer than a line is cut. Widths are added up letter by
   * letter, because measuring every prefix of a text would take quadratic time.
   */
  #wrap(given: string, width: number): string[] {
    const lines: string[] = [];
    let line = '';
    let used = 0;
    const begin = () => {
      if (line !== '') lines.push(line);
      line = '';
      used = 0;
    };
    for (const word of this.#replaceMissing(given).split(' ')) {
      const before = line === '' ? '' : ' ';
      const wide = this.#widthOf(before + word);
      if (used + wide <= width + rounding) {
        line += before + word;
        used += wide;
        continue;
      }
      begin();
      for (const letter of word) {
        const one = this.#widthOf(letter);
        if (used + one > width + rounding) begin();
        line += letter;
        used += one;
      }
    }
    begin();
    return lines.length > 0 ? lines : [''];
  }

  /** The width of a text in the current font. */
  #widthOf(text: string): number {
    const known = this.#widths[this.#fontName];
    let sum = 0;
    for (const letter of text) {
      let width = known.get(letter);
      if (width === undefined) {
        const glyph = this.#font.glyphForCodePoint(letter.codePointAt(0) ?? 0);
        width = glyph.advanceWidth / this.#font.unitsPerEm;
        known.set(letter, width);
      }
      sum += width;
    }
    return sum * this.#fontSize;
  }

  get #font(): FontFile {
    return fontOf(this.#doc);
  }

  /** Letters that the fonts lack, such as Chinese ones, become the replacement character. */
  #replaceMissing(text: string): string {
    if (/^[\x20-\x7e\xa0]*$/.test(text)) return text;
    const font = this.#font;
    return Array.from(text, (letter) =>
      font.hasGlyphForCodePoint(letter.codePointAt(0) ?? 0) ? letter : '\ufffd',
    ).join('');
  }

  #fontSize = 10;
  #fontName: 'regular' | 'bold' = 'regular';

  #style(size: number, { bold = false, quiet = false }: Omit<TextOptions, 'tag' | 'size'>): void {
    this.#fontSize = size;
    this.#fontName = bold ? 'bold' : 'regular';
    this.#doc
      .font(this.#fontName)
      .fontSize(size)
      .fillColor(quiet ? colours.quiet : colours.ink);
  }

  /** Begins a new page if the current one has no room for this height. */
  #room(height: number): void {
    if (this.#y + height <= page.height - page.foot) return;
    this.#foot();
    this.#doc.addPage();
    this.#pages += 1;
    this.#y = page.margin;
    if (this.#columns.length > 0 && this.#hasHead) this.#head(null);
  }

  #foot(): void {
    const y = this.#y;
    this.#style(8, { quiet: true });
    this.#y = page.height - page.foot + 16;
    this.#artifact(() => this.#lines([String(this.#pages)], page.margin, contentWidth, true));
    this.#y = y;
  }

  #rule(): void {
    this.#artifact(() => {
      this.#doc
        .moveTo(page.margin, this.#y)
        .lineTo(page.width - page.margin, this.#y)
        .lineWidth(0.5)
        .strokeColor(colours.line)
        .stroke();
    });
  }

  #tagged(tag: string, parent: Structure | null, draw: () => void): void {
    if (parent) parent.add(this.#doc.struct(tag, {}, draw));
    else draw();
  }

  /** Marks something that a screen reader leaves out. */
  #artifact(draw: () => void): void {
    if (this.#root) this.#doc.markContent('Artifact', { type: 'Layout' });
    draw();
    if (this.#root) this.#doc.endMarkedContent();
  }
}
