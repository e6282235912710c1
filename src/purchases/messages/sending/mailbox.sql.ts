import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type MailboxEntry = {
  merchant_id: string;
  id: string;
  checkout_id: string | null;
  sent_at: Timestamp;
  sender: string;
  recipient: string;
  subject: string;
  text: string;
  html: string;
};

/**
 * Inserts a mail, unless the mailbox has it: after a crash it may be sent twice under the same id.
 */
export async function insertMailboxEntry(db: Handle, entry: MailboxEntry): Promise<void> {
  await db
    .insertInto('mailbox')
    .values(entry)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Lists entries whose recipient contains `to`, the newest first. They are sorted by their ids and
 * not by their times, because a merchant's clock may be weeks ahead.
 */
export async function listMailbox(
  db: Handle,
  { to, limit }: { to: string; limit: number },
): Promise<MailboxEntry[]> {
  return await db
    .selectFrom('mailbox')
    .selectAll()
    .where(sql<boolean>`strpos(lower(recipient), ${to.toLowerCase()}) > 0`)
    .orderBy('id', 'desc')
    .orderBy('merchant_id', 'desc')
    .limit(limit)
    .execute();
}

export async function findMailboxEntry(db: Handle, id: string): Promise<MailboxEntry | null> {
  const entry = await db.selectFrom('mailbox').selectAll().where('id', '=', id).executeTakeFirst();
  return entry ?? null;
}
