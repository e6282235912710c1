import { type RawBuilder, sql } from 'kysely';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Handle } from './database.ts';
import { lowerListPositions } from './merchant-lists.sql.ts';
import type { Tables } from './tables.ts';

// Moves back the leases, due times and list positions that a node with a wrong clock wrote, because
// other nodes rely on them. Times that merchants have seen (when a checkout was created, for
// example) stay as they are.

/**
 * Times that are ahead by less than this count as right. It is longer than any difference allowed
 * between nodes.
 */
const margin = sql`interval '1 minute'`;

/** No lease lasts this long. One that ends later was written with a wrong clock. */
const leaseMax = sql`interval '1 hour'`;

type Table = keyof Tables & string;

/**
 * Every table with leases, in the order in which other transactions lock their rows: the work on a
 * monthly statement locks a row of `statement_months` before one of `payout_days`. A test compares
 * this list with the schema.
 */
export const leasedTables: Table[] = [
  'payment_attempts',
  'instalments',
  'refund_requests',
  'callbacks',
  'messages',
  'statement_months',
  'payout_days',
  'statement_mails',
  'replaced_cards',
  'bulk_actions',
  'downloads',
  'disputes',
  'retention_dates',
  'erasures',
  'deleted_customers',
  'audit',
  'reconciliation',
];

/** Rows that fall due, and the columns that show that they were written in the future. */
const due: { table: Table; writtenAt: string[] }[] = [
  { table: 'payment_attempts', writtenAt: ['created_at'] },
  { table: 'refund_requests', writtenAt: ['created_at', 'approved_at'] },
  { table: 'callbacks', writtenAt: ['created_at'] },
  { table: 'messages', writtenAt: ['created_at'] },
  { table: 'statement_mails', writtenAt: ['created_at'] },
  { table: 'replaced_cards', writtenAt: ['replaced_at'] },
];

export type ClockRepair = { list_positions: number; leases: number; due_rows: number };

/**
 * Moves times back that a node with a wrong clock wrote: leases to `now`, due times and the newest
 * times of lists to the time on their merchant's clock.
 */
export async function repairClock(db: Handle, now: Timestamp): Promise<ClockRepair> {
  const repair: ClockRepair = { list_positions: 0, leases: 0, due_rows: 0 };
  for (const table of leasedTables) {
    repair.leases += await changed(
      sql`update ${sql.table(table)} set leased_until = ${now}
          where leased_until > ${now}::timestamptz + ${leaseMax}`,
      db,
    );
  }
  for (const { table, writtenAt } of due) {
    const merchantNow = sql`(${now}::timestamptz + m.clock_ahead_ms * interval '1 millisecond')`;
    const isWrittenLater = writtenAt.map(
      (column) => sql`t.${sql.ref(column)} > ${merchantNow} + ${margin}`,
    );
    repair.due_rows += await changed(
      sql`update ${sql.table(table)} as t set due_at = ${merchantNow}
          from merchants m
          where m.id = t.merchant_id and t.due_at > ${merchantNow}
            and (${sql.join(isWrittenLater, sql` or `)})`,
      db,
    );
  }
  // The lists come last, because creating payouts locks the row of `payout_days` before the list.
  repair.list_positions = await lowerListPositions(db, now, margin);
  return repair;
}

async function changed(statement: RawBuilder<unknown>, db: Handle): Promise<number> {
  const { numAffectedRows } = await statement.execute(db);
  return Number(numAffectedRows ?? 0n);
}
