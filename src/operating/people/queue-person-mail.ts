import type { Handle } from '#platform/database/database.ts';
import type { Approver } from '#platform/shared/approver.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { listActors } from '#record/actions/person-names.sql.ts';
import { findPerson } from './person.sql.ts';
import { insertPersonMails } from './person-mail.sql.ts';
import type { PersonMailFacts, PersonMailKind } from './person-mail.ts';

/**
 * Informs a person by mail about a change in their access or sign-in methods, in the transaction
 * that makes the change. A service without a mail server writes nothing, because rows that are
 * never sent would stay due.
 */
export async function queuePersonMail(
  deps: QueueDeps,
  db: Handle,
  mail: {
    person_id: string;
    kind: PersonMailKind;
    /** The operator who acted. Absent if the person acted. */
    by?: Approver;
    facts?: Omit<PersonMailFacts, 'by'>;
    /** An invitation's link, with the id that its token was sealed with. */
    link?: { id: string; sealed_token: Buffer };
    at: Timestamp;
  },
): Promise<void> {
  if (!deps.sendsMessages) return;
  const { person_id, kind, by, link, at } = mail;
  const facts = { ...(by && { by: await nameTo(db, person_id, by) }), ...mail.facts };
  const id = link?.id ?? deps.random.uuid();
  const sealed_token = link?.sealed_token ?? null;
  await insertPersonMails(db, [{ id, person_id, kind, facts, sealed_token, created_at: at }]);
}

const nameTo = async (db: Handle, person_id: string, by: Approver): Promise<string> => {
  const { merchant_ids = null } = (await findPerson(db, person_id)) ?? {};
  return merchant_ids === null ? by.name : await nameToMerchants(db, merchant_ids, by.person_id);
};

/**
 * The name of an operator in a mail to merchants' people. They may read which of their colleagues
 * acted, but not the names of the service's staff or its servers.
 */
export async function nameToMerchants(
  db: Handle,
  merchant_ids: string[],
  person_id: string | null,
): Promise<string> {
  const actor = (await listActors(db, merchant_ids, [person_id])).get(person_id ?? '');
  const isColleague = actor?.merchant_ids?.some((id) => merchant_ids.includes(id));
  return actor && isColleague ? actor.email : 'The payment service';
}
