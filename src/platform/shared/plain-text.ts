/** Control characters except the line feed, and characters that change the direction of text. */
const unprintable = /[^\P{Cc}\n]|\p{Bidi_Control}/gu;

/**
 * Text that others typed, without characters that could change how the surrounding text is shown.
 */
export const printable = (text: string) => text.replace(unprintable, '');

/**
 * Text that others typed, cleaned like `printable` and on one line, for a header, a title or a
 * table.
 */
export const oneLine = (text: string) => printable(text.replace(/\s+/g, ' ')).trim();

/** The two ways in which Unicode writes letters with accents. Programs send both. */
export const normalForms = (text: string): [string, string] => [
  text.normalize('NFC'),
  text.normalize('NFD'),
];

/** The refusal of a text that should be one line of visible characters. */
export const explainInvisible = (name: string) =>
  `${name} has a line break or another invisible character. Type it on one line instead of pasting it.`;

/**
 * Whether text is one line without characters that could change how the surrounding text is shown.
 */
export const isPlainLine = (text: string) =>
  printable(text) === text && !/[\n\u2028\u2029]/.test(text);
