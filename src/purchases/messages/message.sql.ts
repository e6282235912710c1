import { type Insertable, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { AttemptOutcome, Message, MessageStatus } from './message.ts';

export const dueMessages: DueWork<'messages'> = { table: 'messages', due: 'due_at' };

/** A second message about the same thing is not written. */
export async function insertMessages(
  db: Handle,
  messages: Insertable<Tables['messages']>[],
): Promise<void> {
  await db
    .insertInto('messages')
    .values(messages)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export type SettledMessage = {
  id: string;
  lease: string;
  /** `pending`: it failed and is retried at `due_at`. */
  status: MessageStatus;
  due_at: Timestamp | null;
  settled_at: Timestamp | null;
  attempts: number;
};

/** Ends or releases claimed messages of one merchant. One whose lease has passed on stays as it is. */
export async function moveMessages(
  db: Handle,
  merchant_id: string,
  settled: SettledMessage[],
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    update messages m
    set status = v.status, due_at = v.due_at, settled_at = v.settled_at, attempts = v.attempts,
      sealed_token = case when v.status = 'pending' then m.sealed_token end,
      lease = null, leased_until = null
    from jsonb_to_recordset(${JSON.stringify(settled)}::jsonb) as v(
      id uuid, lease uuid, status text, due_at timestamptz, settled_at timestamptz, attempts integer)
    where m.merchant_id = ${merchant_id} and m.id = v.id and m.lease = v.lease
    returning m.id`.execute(db);
  return rows.map((row) => row.id);
}

export type MessageAttempt = {
  merchant_id: string;
  message_id: string;
  number: number;
  at: Timestamp;
  outcome: AttemptOutcome;
  response: string;
};

export async function insertMessageAttempts(db: Handle, attempts: MessageAttempt[]): Promise<void> {
  await db.insertInto('message_attempts').values(attempts).execute();
}

export async function listMessages(
  db: Handle,
  key: { merchant_id: string; checkout_id: string },
): Promise<Message[]> {
  return await db
    .selectFrom('messages')
    .selectAll()
    .where('merchant_id', '=', key.merchant_id)
    .where('checkout_id', '=', key.checkout_id)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}
