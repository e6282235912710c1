import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { insertPersonMails } from './person-mail.sql.ts';
import type { PersonMailFacts, PersonMailKind } from './person-mail.ts';

/**
 * Informs a person by mail about a change of how they sign in, in the transaction of the change. A
 * service without a mail server writes nothing, because rows that are never sent would stay due.
 */
export async function queuePersonMail(
  deps: QueueDeps,
  db: Handle,
  mail: {
    person_id: string;
    kind: PersonMailKind;
    facts?: PersonMailFacts;
    /** An invitation's link, with the id that its token was sealed with. */
    link?: { id: string; sealed_token: Buffer };
    at: Timestamp;
  },
): Promise<void> {
  if (!deps.sendsMessages) return;
  const { person_id, kind, facts = {}, link, at } = mail;
  const id = link?.id ?? deps.random.uuid();
  const sealed_token = link?.sealed_token ?? null;
  await insertPersonMails(db, [{ id, person_id, kind, facts, sealed_token, created_at: at }]);
}
