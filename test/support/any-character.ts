import fc from 'fast-check';

/** The last code point before the surrogates, which are not characters. */
const lastBefore = 0xd7ff;
const halves = 0x800;

/**
 * Any Unicode character, like `unit: 'binary'` of fast-check. That unit is not used here, because
 * it first makes a table of all characters, which costs each process a second.
 */
export const anyCharacter = fc.integer({ min: 0, max: 0x10ffff - halves }).map(
  (number) => String.fromCodePoint(number > lastBefore ? number + halves : number),
  (text) => {
    const characters = typeof text === 'string' && text.isWellFormed() ? [...text] : [];
    const point = characters[0]?.codePointAt(0);
    if (point === undefined || characters.length > 1) throw new Error('This is not a character.');
    return point > lastBefore ? point - halves : point;
  },
);
