/** A download has at most so many rows. */
export const csvRowsMax = 50_000;

export type Column<Row> = [header: string, value: (row: Row) => string | number | boolean | null];

/** The first characters that make a spreadsheet run a cell as a formula, also in full width. */
const formula = /^[\s]*[=+\-@＝＋－＠]|^[\t\r\n]/u;

/** A cell, quoted. A text that looks like a formula begins with an apostrophe. */
export function csvCell(value: string | number | boolean | null): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const safe = formula.test(value) ? `'${value}` : value;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Lines of a file, with a header. `more` stands for rows that do not fit. */
export async function* writeCsv<Row>(
  columns: Column<Row>[],
  rows: AsyncIterable<Row | 'more'>,
): AsyncGenerator<string> {
  yield line(columns.map(([header]) => header));
  for await (const row of rows) {
    yield row === 'more'
      ? line([`Only the first ${csvRowsMax} rows are here. Narrow the filters.`])
      : line(columns.map(([, value]) => value(row)));
  }
}

const line = (values: (string | number | boolean | null)[]) =>
  `${values.map(csvCell).join(',')}\r\n`;

/** The columns that say whose a row is. */
export const whoseColumns: Column<{
  merchant_name: string;
  client_reference_id: string;
  email: string;
  name: string | null;
}>[] = [
  ['Merchant', (row) => row.merchant_name],
  ['Order', (row) => row.client_reference_id],
  ['E-mail', (row) => row.email],
  ['Shopper', (row) => row.name],
];

/** Cents as a decimal number, which spreadsheets can add up. */
export const decimal = (cents: number) => (cents / 100).toFixed(2);
