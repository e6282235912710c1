import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { PersonMail } from './person-mail.ts';

export async function insertPersonMail(
  db: Handle,
  mail: Pick<PersonMail, 'id' | 'person_id' | 'kind' | 'facts' | 'sealed_token' | 'created_at'>,
): Promise<void> {
  await db
    .insertInto('person_mails')
    .values({
      ...mail,
      facts: JSON.stringify(mail.facts),
      status: 'pending',
      due_at: mail.created_at,
      settled_at: null,
      response: null,
    })
    .execute();
}

/** Claims mails that are due until `until`, as `claimDueAlerts` does. */
export async function claimDuePersonMails(
  db: Handle,
  now: Timestamp,
  until: Timestamp,
  batchSize: number,
): Promise<PersonMail[]> {
  return await db
    .with(
      (name) => name('chosen').materialized(),
      (from) =>
        from
          .selectFrom('person_mails')
          .select('id')
          .where('due_at', '<=', now)
          .orderBy('due_at')
          .orderBy('id')
          .limit(batchSize)
          .forUpdate()
          .skipLocked(),
    )
    .updateTable('person_mails')
    .from('chosen')
    .set({ due_at: until })
    .whereRef('person_mails.id', '=', 'chosen.id')
    .returningAll('person_mails')
    .execute();
}

/** Ends or releases a claimed mail. Returns false if another process did so before. */
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
