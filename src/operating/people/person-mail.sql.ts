import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { claimDueOfAll } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { PersonMail } from './person-mail.ts';

export async function insertPersonMails(
  db: Handle,
  mails: (Pick<
    PersonMail,
    'id' | 'person_id' | 'kind' | 'facts' | 'sealed_token' | 'created_at'
  > & { event?: string | null })[],
): Promise<void> {
  const insert = db.insertInto('person_mails').values(
    mails.map((mail) => ({
      ...mail,
      facts: JSON.stringify(mail.facts),
      status: 'pending' as const,
      due_at: mail.created_at,
      settled_at: null,
      response: null,
    })),
  );
  const isEvent = mails.some(({ event }) => typeof event === 'string');
  // A person gets one mail about each event. Any other conflict is an error.
  const once = insert.onConflict((conflict) =>
    conflict.columns(['person_id', 'event']).where('event', 'is not', null).doNothing(),
  );
  await (isEvent ? once : insert).execute();
}

/**
 * Moves a person's choices of mails, and the waiting mails, about these merchants from the accesses
 * `from` to the access `to`. Choices that `to` still has from an earlier time are replaced.
 */
export async function moveMails(
  db: Handle,
  { from, to, merchant_ids }: { from: string[]; to: string; merchant_ids: string[] },
): Promise<void> {
  if (merchant_ids.length === 0) return;
  await db
    .deleteFrom('alert_mails')
    .where('person_id', '=', to)
    .where('merchant_id', 'in', merchant_ids)
    .execute();
  await db
    .updateTable('alert_mails')
    .set({ person_id: to })
    .where('person_id', 'in', from)
    .where('merchant_id', 'in', merchant_ids)
    .execute();
  await db
    .updateTable('person_mails')
    .set({ person_id: to })
    .where('person_id', 'in', from)
    .where('status', '=', 'pending')
    .where(sql<boolean>`facts->>'merchant_id' = any(${merchant_ids}::text[])`)
    // A person gets one mail about each event.
    .where(sql<boolean>`not exists (select from person_mails had
      where had.person_id = ${to} and had.event = person_mails.event)`)
    .execute();
}

/** Claims mails that are due, until `until`. */
export const claimDuePersonMails = (
  db: Handle,
  now: Timestamp,
  until: Timestamp,
  batchSize: number,
): Promise<PersonMail[]> => claimDueOfAll(db, 'person_mails', now, until, batchSize);

/** Ends or releases a claimed mail. Returns false if another process has already done so. */
export async function movePersonMail(
  db: Handle,
  claimed: Pick<PersonMail, 'id' | 'due_at'>,
  to: Pick<PersonMail, 'status' | 'due_at' | 'settled_at' | 'attempts' | 'response'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('person_mails')
    .set({ ...to, ...(to.status !== 'pending' && { sealed_token: null }) })
    .where('id', '=', claimed.id)
    .where('due_at', '=', claimed.due_at)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
