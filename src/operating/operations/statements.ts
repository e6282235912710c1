import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { groupSums, type MonthlyStatement } from '#purchases/payouts/monthly-statement.ts';
import { pdfLinesMax } from '#purchases/payouts/statement.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames } from './owner.sql.ts';
import { type StatementDetails, StatementRow, StatementsQuery } from './statement.schema.ts';
import { findStatementWithin, pageStatements } from './statements.sql.ts';
import { NotFound, scopeOf, type Viewer } from './viewer.ts';

/** The newest monthly statements first. */
export const statementList = defineList({
  name: 'statements',
  permission: 'payouts.read',
  query: StatementsQuery,
  row: StatementRow,
  read(viewer, query, page) {
    const seen = { ...viewer, scope: scopeOf(viewer, query) };
    const month = query.month === undefined ? null : `${query.month}-01`;
    return readList(
      viewer.deps,
      page,
      (db, range) => pageStatements(db, seen.scope, month, range),
      (db, rows) => presentStatements(seen, db, rows),
    );
  },
  columns: [
    ['Month', (row) => row.month.slice(0, 7)],
    ['Merchant', (row) => row.merchant_name],
    ['Number', (row) => row.reference],
    ['Balance before', (row) => ({ cents: row.opening })],
    ['Sales', (row) => ({ cents: row.sales })],
    ['Refunds', (row) => ({ cents: row.refunds })],
    ['Disputes', (row) => ({ cents: row.disputes })],
    ['Fees', (row) => ({ cents: row.fees })],
    ['VAT', (row) => ({ cents: row.vat })],
    ['Reserve', (row) => ({ cents: row.reserve })],
    ['Paid out', (row) => ({ cents: row.paid })],
    ['Balance after', (row) => ({ cents: row.closing })],
    ['Currency', (row) => row.currency],
    ['Lines', (row) => row.line_count],
    ['Made', (row) => row.created_at],
    ['ID', (row) => row.id],
  ],
});

async function presentStatements({ scope }: Viewer, db: Handle, rows: MonthlyStatement[]) {
  const names = await listMerchantNames(
    db,
    scope,
    rows.map(({ merchant_id }) => merchant_id),
  );
  return rows.map(({ sums, lines, ...row }) => ({
    ...row,
    ...groupSums(sums),
    line_count: lines,
    clock_ahead_ms: names.get(row.merchant_id)?.clock_ahead_ms ?? 0,
  }));
}

/** A statement in the viewer's scope. */
export async function mustSeeStatement({ deps, scope }: Viewer, id: string) {
  const found = isUuid(id) && (await reading(deps, (db) => findStatementWithin(db, scope, id)));
  if (found) return found;
  throw new NotFound(`There is no statement ${id}. \`tranche statements list\` lists them.`);
}

export async function readStatement(viewer: Viewer, id: string): Promise<StatementDetails> {
  const found = await mustSeeStatement(viewer, id);
  const [row] = await reading(viewer.deps, (db) => presentStatements(viewer, db, [found]));
  return { ...(row as NonNullable<typeof row>), pdf_has_lines: found.lines <= pdfLinesMax };
}
