import { type Insertable, sql } from 'kysely';
import { compileOnce, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { messagesOf } from './archive.sql.ts';
import type { AttemptOutcome, Message, MessageKind, MessageStatus } from './message.ts';

export const dueMessages: DueWork<'messages'> = { table: 'messages', due: 'due_at' };

/** A second message about the same cause is not written. */
export const insertMessages = statement((db, messages: Insertable<Tables['messages']>[]) =>
  db
    .insertInto('messages')
    .values(messages)
    .onConflict((conflict) => conflict.doNothing()),
);

export type SettledMessage = {
  id: string;
  lease: string;
  /** `pending` means that the message is sent or retried at `due_at`. */
  status: MessageStatus;
  due_at: Timestamp | null;
  settled_at: Timestamp | null;
  attempts: number;
};

/**
 * Ends or releases claimed messages of one merchant. A message whose lease has passed to another
 * process stays as it is. Returns the ids of the messages that changed.
 */
export async function moveMessages(
  db: Handle,
  merchant_id: string,
  settled: SettledMessage[],
): Promise<string[]> {
  const rows = await updateMessages(db, { merchant_id, settled: JSON.stringify(settled) });
  return rows.map((row) => row.id);
}

const updateMessages = compileOnce(
  (_db, { merchant_id, settled }: { merchant_id: string; settled: string }) =>
    sql<{ id: string }>`
    update messages m
    set status = v.status, due_at = v.due_at, settled_at = v.settled_at, attempts = v.attempts,
      sealed_token = case when v.status = 'pending' then m.sealed_token end,
      lease = null, leased_until = null
    from jsonb_to_recordset(${settled}::jsonb) as v(
      id uuid, lease uuid, status text, due_at timestamptz, settled_at timestamptz, attempts integer)
    where m.merchant_id = ${merchant_id} and m.id = v.id and m.lease = v.lease
    returning m.id`,
);

export type MessageAttempt = {
  message_id: string;
  number: number;
  at: Timestamp;
  outcome: AttemptOutcome;
  response: string;
};

/**
 * Inserts attempts of one merchant. The statement's text is the same for any number of attempts, so
 * the database server plans it once.
 */
export async function insertMessageAttempts(
  db: Handle,
  merchant_id: string,
  attempts: MessageAttempt[],
): Promise<void> {
  await insertAttempts(db, { merchant_id, attempts: JSON.stringify(attempts) });
}

const insertAttempts = compileOnce(
  (_db, { merchant_id, attempts }: { merchant_id: string; attempts: string }) => sql`
    insert into message_attempts (merchant_id, message_id, number, at, outcome, response)
    select m.merchant_id, v.message_id, v.number, v.at, v.outcome, v.response
    from jsonb_to_recordset(${attempts}::jsonb) as v(
      message_id uuid, number integer, at timestamptz, outcome text, response text)
    join messages m on m.id = v.message_id and m.merchant_id = ${merchant_id}`,
);

export async function findMessage(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
  id: string,
): Promise<Message | null> {
  const row = await db
    .selectFrom(messagesOf({ merchant_id, checkout_id }).as('messages'))
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst();
  return row ?? null;
}

/** The last message of a kind that was sent about a checkout after `since`. */
export async function findLastSent(
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
  kind: MessageKind,
  since: Timestamp,
): Promise<Pick<Message, 'id'> | null> {
  const row = await db
    .selectFrom('messages')
    .select('id')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('kind', '=', kind)
    .where('status', '=', 'sent')
    .where('settled_at', '>', since)
    .orderBy('settled_at', 'desc')
    .orderBy('planned_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

export const selectLinkMails = (db: Handle, link: { merchant_id: string; id: string }) =>
  db
    .selectFrom('messages')
    .select(['id', 'status', 'created_at', 'settled_at'])
    .where('merchant_id', '=', link.merchant_id)
    .where('payment_link_id', '=', link.id)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc');

/**
 * Counts the mails with payment links that a merchant has queued since `since.at`, up to `limit`,
 * and those among them to `since.email`.
 */
export async function countLinkMails(
  db: Handle,
  merchant_id: string,
  since: { at: Timestamp; email: string },
  limit: number,
): Promise<{ all: number; toOne: number }> {
  const rows = await db
    .selectFrom('messages as m')
    .innerJoin('payment_links as l', (join) =>
      join.onRef('l.id', '=', 'm.payment_link_id').onRef('l.merchant_id', '=', 'm.merchant_id'),
    )
    .select(
      sql<boolean | null>`lower(l.customer ->> 'email') = lower(${since.email})`.as('is_same'),
    )
    .where('m.merchant_id', '=', merchant_id)
    .where('m.payment_link_id', 'is not', null)
    .where('m.created_at', '>', since.at)
    .limit(limit)
    .execute();
  return { all: rows.length, toOne: rows.filter(({ is_same }) => is_same).length };
}

/** The copies of a message of this kind about a cause, the newest first. */
export async function listCopies(
  db: Handle,
  { merchant_id, checkout_id, kind }: Pick<Message, 'merchant_id' | 'checkout_id' | 'kind'>,
  cause: string,
  limit: number,
): Promise<Pick<Message, 'created_at'>[]> {
  return await db
    .selectFrom('messages')
    .select('created_at')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('kind', '=', kind)
    .where(sql<boolean>`starts_with(about, ${`${cause}#`})`)
    .orderBy('created_at', 'desc')
    .limit(limit)
    .execute();
}
