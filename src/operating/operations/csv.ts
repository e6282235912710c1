import { type Cell, writeCsv } from '#platform/shared/csv.ts';
import type { List, PageRequest } from './list.ts';

/** A download reads its rows in pages of this size, up to `rowsMax` rows. */
const limits = { pageSize: 500, rowsMax: 50_000 };

export type Column<Row> = [header: string, value: (row: Row) => Cell];

/**
 * Reads a list into the lines of a file, page by page, so that no download holds all of them in
 * memory. The first page is read before the first line is sent, so that a refusal can still be
 * answered. If a later page cannot be read, the connection is cut, so that no browser mistakes the
 * part for the whole.
 */
export async function openCsv<Row>(
  columns: Column<Row>[],
  read: (page: PageRequest) => Promise<List<Row>>,
  { pageSize, rowsMax } = limits,
): Promise<AsyncGenerator<string>> {
  const first = await read({ after: null, limit: pageSize });
  async function* lines(): AsyncGenerator<string> {
    yield writeCsv([columns.map(([header]) => header)]);
    let page = first;
    for (let count = 0; ; count += page.data.length) {
      const rows = page.data.slice(0, rowsMax - count);
      yield writeCsv(rows.map((row) => columns.map(([, value]) => value(row))));
      if (rows.length < page.data.length) break;
      if (page.next === null) return;
      page = await read({ after: page.next, limit: pageSize });
    }
    yield writeCsv([[`Only the first ${rowsMax} rows are here. Narrow the filters.`]]);
  }
  return lines();
}

export const ownerColumns: Column<{
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

/** Whether the list as a file names shoppers or people, and so requires re-authentication. */
export const hasPersonalData = (list: { columns: unknown[]; namesPeople?: boolean }) =>
  list.namesPeople === true || ownerColumns.some((column) => list.columns.includes(column));
