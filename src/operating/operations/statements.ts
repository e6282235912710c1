import assert from 'node:assert/strict';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type CorrectionDeps, correctStatement } from '#purchases/payouts/correct-statement.ts';
import {
  correctionsOf,
  groupSums,
  type MonthlyStatement,
  partiesOf,
} from '#purchases/payouts/monthly-statement.ts';
import { pdfLinesMax } from '#purchases/payouts/statement.ts';
import { defineAction } from './action.ts';
import { IdParams } from './list.schema.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames } from './owner.sql.ts';
import { StatementDetails, StatementRow, StatementsQuery } from './statement.schema.ts';
import { findStatementWithin, listStatementsPage, listVersions } from './statements.sql.ts';
import { NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

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
      (db, range) => listStatementsPage(db, seen.scope, month, range),
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
    ['Corrects', (row) => row.corrects?.reference ?? null],
    ['Corrected by', (row) => row.corrected_by?.reference ?? null],
  ],
});

async function presentStatements({ scope }: Viewer, db: Handle, rows: MonthlyStatement[]) {
  const names = await listMerchantNames(
    db,
    scope,
    rows.map(({ merchant_id }) => merchant_id),
  );
  const versions = await listVersions(db, rows);
  return rows.map(({ sums, lines, ...row }) => {
    const own = versions.filter(({ merchant_id }) => merchant_id === row.merchant_id);
    return {
      ...row,
      ...groupSums(sums),
      line_count: lines,
      clock_ahead_ms: names.get(row.merchant_id)?.clock_ahead_ms ?? 0,
      corrects: nameVersion(own.find(({ number }) => number === row.corrects)),
      corrected_by: nameVersion(own.find(({ corrects }) => corrects === row.number)),
    };
  });
}

const nameVersion = (of: { id: string; reference: string } | undefined) =>
  of ? { id: of.id, reference: of.reference } : null;

export async function mustSeeStatement({ deps, scope }: Viewer, id: string) {
  const found = isUuid(id) && (await reading(deps, (db) => findStatementWithin(db, scope, id)));
  if (found) return found;
  throw new NotFound(`There is no statement ${id}. \`tranche statements list\` lists them.`);
}

type StatementViewer = Viewer<ViewerDeps & Pick<CorrectionDeps, 'issuer'>>;

export async function readStatement(
  viewer: StatementViewer,
  id: string,
): Promise<StatementDetails> {
  const found = await mustSeeStatement(viewer, id);
  return await reading(viewer.deps, async (db) => {
    const [row] = await presentStatements(viewer, db, [found]);
    assert(row);
    const merchant = await findMerchantRow(db, found.merchant_id);
    const isNewest = merchant !== null && row.corrected_by === null;
    return {
      ...row,
      pdf_has_lines: found.lines <= pdfLinesMax,
      corrections: isNewest ? correctionsOf(found, partiesOf(merchant, viewer.deps.issuer)) : [],
    };
  });
}

/**
 * Answers with the new statement. A person who may change the merchant's page may also correct
 * statements.
 */
export const correctionAction = defineAction({
  url: '/api/statements/:id/correct',
  permission: 'merchants.change',
  fresh: true,
  schema: { params: IdParams, response: StatementDetails },
  async run(viewer: Viewer<ViewerDeps & CorrectionDeps>, { params }) {
    const { merchant_id, id } = await mustSeeStatement(viewer, params.id);
    const made = await correctStatement(viewer.deps, viewer.operator, { merchant_id, id });
    return () => readStatement(viewer, made);
  },
});
