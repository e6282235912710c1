import { findMerchantRow } from '#merchants/merchant.sql.ts';
import { type MerchantRow, merchantNow } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { findRecordEnd } from '#record/alerts/publish-end.ts';
import { sumLines } from './payout.sql.ts';
import type { Payout } from './payout.ts';
import { readLines } from './read-lines.ts';
import { writeStatementCsv, writeStatementHtml } from './statement.ts';
import { writeStatementPdf } from './statement-pdf.ts';

export const statementFormats = ['csv', 'html', 'pdf'] as const;
export type StatementFormat = (typeof statementFormats)[number];

/** Reads a payout and writes its statement. The caller has checked `whyNotPrinted`. */
export async function writeStatement(
  deps: { database: Database; clock: Clock },
  payout: Payout,
  format: StatementFormat,
): Promise<AsyncGenerator<string | Buffer>> {
  const lines = readLines(deps, payout);
  if (format === 'csv') return writeStatementCsv(payout, lines);
  const { totals, merchant, recordEnd } = await reading(deps, async (db) => ({
    totals: await sumLines(db, payout),
    recordEnd: await findRecordEnd(db, payout.created_at),
    merchant: (await findMerchantRow(db, payout.merchant_id)) as MerchantRow,
  }));
  if (format === 'html') return writeStatementHtml(payout, lines, totals, merchant, recordEnd);
  const now = timestamp(merchantNow(deps.clock, merchant));
  return writeStatementPdf(payout, lines, totals, merchant, recordEnd, now);
}
