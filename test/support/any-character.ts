import fc from 'fast-check';

/** The last character before the halves of pairs, which are no characters. */
const lastBefore = 0xd7ff;
const halves = 0x800;

/**
 * Any character of Unicode, the same as `unit: 'binary'` of fast-check, which first makes a table of
 * all characters and takes a second of each process for it.
 */
export const anyCharacter = fc.integer({ min: 0, max: 0x10ffff - halves }).map(
  (number) => String.fromCodePoint(number > lastBefore ? number + halves : number),
  (text) => {
    const characters = typeof text === 'string' && text.isWellFormed() ? [...text] : [];
    const point = characters[0]?.codePointAt(0);
    if (point === undefined || characters.length > 1) throw new Error('This is no character.');
    return point > lastBefore ? point - halves : point;
  },
);
