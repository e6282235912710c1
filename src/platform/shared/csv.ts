/** A cell of text from elsewhere, or one of ours: a number, a date, an id. */
export type Cell = string | number | null;

/**
 * CSV as RFC 4180 has it. A spreadsheet runs text that begins like a formula, so such text gets an
 * apostrophe in front. Where the list separator is a semicolon, as in South Africa, a spreadsheet also
 * splits a cell at each semicolon, even within quotation marks, so text after one is treated alike.
 * Numbers are ours and keep their sign.
 */
export function writeCsv(headings: string[], rows: Cell[][]): string {
  return [headings, ...rows].map((row) => `${row.map(writeCell).join(',')}\r\n`).join('');
}

function writeCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  const text = cell.replace(/\p{C}/gu, ' ');
  const safe = text.replace(/(^|;)(?=[\s"]*[=+\-@])/g, "$1'");
  return /[",;']|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
