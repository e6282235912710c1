import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Conversation, ConversationEntry, ConversationStatus } from './conversation.ts';

type Key = { merchant_id: string; checkout_id: string };

/** Writes nothing if the plan already has a conversation. */
export async function insertConversation(db: Handle, conversation: Conversation): Promise<void> {
  await db
    .insertInto('conversations')
    .values(conversation)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function lockConversation(db: Handle, key: Key): Promise<Conversation | null> {
  const row = await of(db, key).forUpdate().executeTakeFirst();
  return row ?? null;
}

export async function findConversation(db: Handle, key: Key): Promise<Conversation | null> {
  return (await of(db, key).executeTakeFirst()) ?? null;
}

const of = (db: Handle, { merchant_id, checkout_id }: Key) =>
  db
    .selectFrom('conversations')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id);

export async function moveConversation(
  db: Handle,
  { merchant_id, checkout_id }: Key,
  moved: { status: ConversationStatus; moved_at: Timestamp },
): Promise<void> {
  await db
    .updateTable('conversations')
    .set(moved)
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .execute();
}

/** Returns false if an entry with this id exists. */
export async function insertEntry(db: Handle, entry: ConversationEntry): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('conversation_entries')
    .values(entry)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** The newest entries, at most `limit`, the oldest of them first. */
export async function listEntries(
  db: Handle,
  { merchant_id, checkout_id }: Key,
  limit: number,
): Promise<ConversationEntry[]> {
  const rows = await db
    .selectFrom('conversation_entries')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.reverse();
}

export async function listLastEntries(
  db: Handle,
  keys: Key[],
): Promise<Map<string, ConversationEntry>> {
  if (keys.length === 0) return new Map();
  const rows = await db
    .selectFrom('conversation_entries')
    .distinctOn(['merchant_id', 'checkout_id'])
    .selectAll()
    .where('merchant_id', 'in', [...new Set(keys.map(({ merchant_id }) => merchant_id))])
    .where(
      'checkout_id',
      'in',
      keys.map(({ checkout_id }) => checkout_id),
    )
    .orderBy('merchant_id')
    .orderBy('checkout_id')
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return new Map(rows.map((row) => [row.checkout_id, row]));
}

/** The answers that mails are about, by id, each with the shopper's last text before it, if any. */
export async function listAnswers(
  db: Handle,
  merchant_id: string,
  ids: string[],
): Promise<Map<string, { text: string; question: string | null }>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('conversation_entries as answer')
    .select(['answer.id', 'answer.text'])
    .select((eb) =>
      eb
        .selectFrom('conversation_entries as asked')
        .select('asked.text')
        .whereRef('asked.merchant_id', '=', 'answer.merchant_id')
        .whereRef('asked.checkout_id', '=', 'answer.checkout_id')
        .where('asked.author', '=', 'shopper')
        .whereRef('asked.at', '<=', 'answer.at')
        .orderBy('asked.at', 'desc')
        .orderBy('asked.id', 'desc')
        .limit(1)
        .as('question'),
    )
    .where('answer.merchant_id', '=', merchant_id)
    .where('answer.id', 'in', ids)
    .execute();
  return new Map(rows.map(({ id, text, question }) => [id, { text, question }]));
}
