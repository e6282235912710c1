import { decimal } from './money.ts';

/**
 * A cell is text from elsewhere or a value of ours: a number, an amount, a date, an id, yes or no.
 */
export type Cell = string | number | boolean | { cents: number } | null;

/** The byte order mark. Without it Excel on Windows reads a CSV file in the system's encoding. */
export const csvStart = '\u{feff}';

/** Writes lines of CSV according to RFC 4180. */
export function writeCsv(rows: Cell[][]): string {
  return rows.map((row) => `${row.map(writeCell).join(',')}\r\n`).join('');
}

/**
 * A spreadsheet runs text that begins like a formula, even in full-width characters, so such text
 * gets an apostrophe in front. Where the list separator is a semicolon, as in South Africa, a
 * spreadsheet also splits a cell at each semicolon, even within quotation marks, so text after a
 * semicolon is treated the same way. Numbers and amounts are ours and keep their sign. An amount
 * always has two decimals.
 */
function writeCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'object') return decimal(cell.cents);
  if (typeof cell !== 'string') return String(cell);
  const text = cell.replace(/\p{C}/gu, ' ');
  const safe = text.replace(/(^|;)(?=[\s"]*[=+\-@＝＋－＠])/gu, "$1'");
  return /[",;']|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
