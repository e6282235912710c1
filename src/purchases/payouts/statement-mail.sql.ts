import type { Handle } from '#platform/database/database.ts';
import { type DueWork, released } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { StatementMail, StatementSubject } from './statement-mail.ts';

export const dueStatementMails: DueWork<'statement_mails'> = {
  table: 'statement_mails',
  due: 'due_at',
};

/** Writes a mail, unless there is already one about the same payout or month. */
export async function insertStatementMail(
  db: Handle,
  mail: { merchant_id: string; id: string; at: Timestamp } & StatementSubject,
): Promise<void> {
  const { merchant_id, id, payout_id, statement_id, at } = mail;
  await db
    .insertInto('statement_mails')
    .values({
      merchant_id,
      id,
      payout_id,
      statement_id,
      status: 'pending',
      created_at: at,
      due_at: at,
      settled_at: null,
      response: null,
      ...released,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Ends or releases a claimed mail. Returns false if another process has its lease. */
export async function moveStatementMail(
  db: Handle,
  { merchant_id, id, lease }: StatementMail,
  to: Pick<StatementMail, 'status' | 'due_at' | 'settled_at' | 'attempts' | 'response'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('statement_mails')
    .set({ ...to, ...released })
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
