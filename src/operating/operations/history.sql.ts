import { type Selectable, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import { messagesOf } from '#purchases/messages/archive.sql.ts';
import type { Posting } from '#record/ledger/posting.ts';

/** The tables in which a checkout may have any number of rows, with the columns that order them. */
const histories = {
  payment_attempts: ['number'],
  callback_attempts: ['number'],
  collections: ['created_at', 'instalment', 'number'],
  refund_requests: ['number'],
  disputes: ['created_at', 'id'],
  postings: ['at', 'id'],
  messages: ['id'],
  notes: ['at', 'id'],
  conversation_entries: ['at', 'id'],
} as const;
export type HistoryTable = keyof typeof histories;

/** The columns, with their values, of the rows to read. */
export type HistoryOwner = {
  merchant_id: string;
  checkout_id?: string;
  callback_id?: string;
  by_staff?: boolean;
};

/**
 * A page of the console shows this many rows of each kind. Notes are long texts, so it shows fewer
 * of them.
 */
export const historyLimits = { rows: 200, notes: 50 };

/** The newest rows of one owner, in ascending order. */
export async function listNewest<Table extends HistoryTable>(
  db: Handle,
  table: Table,
  owner: HistoryOwner,
  limit: number,
): Promise<Selectable<Tables[Table]>[]> {
  const { merchant_id, checkout_id = '' } = owner;
  const rows =
    table === 'messages' ? messagesOf({ merchant_id, checkout_id }).as('messages') : table;
  // biome-ignore lint/suspicious/noExplicitAny: it reads any of the tables above.
  let query: any = db
    .selectFrom(rows as 'notes')
    .selectAll()
    .limit(limit);
  for (const [column, value] of Object.entries(owner)) query = query.where(column, '=', value);
  for (const column of histories[table]) query = query.orderBy(column, 'desc');
  return (await query.execute()).reverse();
}

/** The sums of a checkout's postings, by debit and credit account. */
export async function sumPostings(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Pick<Posting, 'debit' | 'credit' | 'amount'>[]> {
  const { rows } = await sql<Pick<Posting, 'debit' | 'credit' | 'amount'>>`
    select debit, credit, sum(amount)::bigint as amount from postings
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
    group by debit, credit`.execute(db);
  return rows;
}

export async function countCheckoutRefunds(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<number> {
  const { count } = await db
    .selectFrom('refund_requests')
    .select(db.fn.countAll<number>().as('count'))
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .executeTakeFirstOrThrow();
  return Number(count);
}
