import assert from 'node:assert/strict';
import { inflateSync } from 'node:zlib';

/** The objects of a document by their numbers, with the bytes of their streams. */
function objectsOf(pdf: Buffer): Map<string, { text: string; stream: string }> {
  const found = new Map<string, { text: string; stream: string }>();
  const source = pdf.toString('latin1');
  for (const match of source.matchAll(/(?:^|\n)(\d+) 0 obj\n([\s\S]*?)\nendobj/g)) {
    const [, number = '', body = ''] = match;
    const [text = '', rest] = body.split('\nstream\n');
    const bytes = Buffer.from((rest ?? '').replace(/\nendstream$/, ''), 'latin1');
    const stream = text.includes('/FlateDecode') ? inflateSync(bytes).toString('latin1') : '';
    found.set(number, { text, stream });
  }
  return found;
}

/** Maps the codes of a font's glyphs to letters. */
function lettersOf(cmap: string): Map<string, string> {
  const letters = new Map<string, string>();
  const read = (hex: string) => Buffer.from(hex.trim(), 'hex').swap16().toString('utf16le');
  for (const [, from = '', list = ''] of cmap.matchAll(/<(\w+)> <\w+> \[([^\]]*)\]/g)) {
    const first = Number.parseInt(from, 16);
    for (const [at, entry] of [...list.matchAll(/<([\w ]*)>/g)].entries()) {
      const hex = (entry[1] ?? '').replaceAll(' ', '');
      letters.set((first + at).toString(16).padStart(4, '0'), read(hex));
    }
  }
  return letters;
}

/**
 * The text of each page of a document that the service wrote, as a reader would copy it: one line
 * for each piece of text, in the order in which it was drawn.
 */
export function readPdf(pdf: Buffer): { pages: string[][]; source: string } {
  assert.equal(pdf.subarray(0, 5).toString('latin1'), '%PDF-');
  assert.match(pdf.subarray(-8).toString('latin1'), /%%EOF/);
  const objects = objectsOf(pdf);
  const refIn = (text: string, name: string) =>
    new RegExp(`/${name} (\\d+) 0 R`).exec(text)?.[1] ?? '';
  const pages = [...objects.values()].filter(({ text }) => /\/Type \/Page\n/.test(text));
  const source = [...objects.values()].map(({ text }) => text).join('\n');
  const read = (page: { text: string }) => {
    const resources = objects.get(refIn(page.text, 'Resources'))?.text ?? page.text;
    const fonts = new Map(
      [...resources.matchAll(/\/(F\d+) (\d+) 0 R/g)].map(([, name = '', ref = '']) => {
        const cmap = objects.get(refIn(objects.get(ref)?.text ?? '', 'ToUnicode'))?.stream ?? '';
        return [name, lettersOf(cmap)];
      }),
    );
    const lines: string[] = [];
    let letters = new Map<string, string>();
    const content = objects.get(refIn(page.text, 'Contents'))?.stream ?? '';
    for (const [, font, drawn] of content.matchAll(/\/(F\d+) [\d.]+ Tf|\[([^\]]*)\] TJ/g)) {
      if (font !== undefined) letters = fonts.get(font) ?? letters;
      if (drawn === undefined) continue;
      const codes = [...drawn.matchAll(/<(\w+)>/g)].map((match) => match[1]).join('');
      lines.push((codes.match(/.{4}/g) ?? []).map((code) => letters.get(code) ?? '?').join(''));
    }
    return lines;
  };
  return { pages: pages.map(read), source };
}
