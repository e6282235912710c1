import type { Handle } from '#platform/database/database.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { MerchantMail } from '#purchases/messages/merchant-mail.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { listAlertChoices, listAlerted } from './alert-mail.sql.ts';
import { alertMailsOf, alertRoles } from './alert-mail.ts';
import { operatorRoles, permissionsOf } from './permission.ts';
import { listToMail, type Person } from './person.sql.ts';
import { insertPersonMails } from './person-mail.sql.ts';
import type { PersonMail, PersonMailFacts } from './person-mail.ts';
import { nameToMerchants } from './queue-person-mail.ts';

/** The roles of a merchant's people that may propose a bank account. */
const proposers = operatorRoles.filter((role) =>
  permissionsOf([role], false).includes('bank.propose'),
);

const recipientsMax = 100;

export const mailsToMerchants = (deps: QueueDeps): MerchantMailDeps => ({
  async mailMerchant(db, mail) {
    if (!deps.sendsMessages) return;
    const { merchant_id, kind, at } = mail;
    const ids =
      'event' in mail
        ? await listAlerted(
            db,
            { merchant_id, kind: mail.kind, ...alertRoles(mail.kind) },
            recipientsMax,
          )
        : await listToMail(db, { merchant_id, roles: proposers }, recipientsMax);
    if (ids.length === 0) return;
    const facts = await factsOf(db, mail);
    await insertPersonMails(
      db,
      ids.map((person_id) => ({
        ...{ id: deps.random.uuid(), person_id, kind, facts },
        ...{ sealed_token: null, created_at: at },
        event: 'event' in mail ? `${kind} ${merchant_id} ${mail.event}` : null,
      })),
    );
  },
});

async function factsOf(db: Handle, mail: MerchantMail): Promise<PersonMailFacts> {
  const facts = { ...mail.facts, merchant_id: mail.merchant_id };
  if ('event' in mail) return facts;
  return { ...facts, by: await nameToMerchants(db, [mail.merchant_id], mail.by) };
}

/**
 * Whether a waiting mail should still go to its person, who may have lost their access or
 * deselected the mail. Mail that is not about a merchant always goes out.
 */
export async function isStillFor(
  db: Handle,
  person: Person,
  { kind, event, facts: { merchant_id } }: PersonMail,
): Promise<boolean> {
  if (merchant_id === undefined) return true;
  if (person.revoked_at !== null || !person.merchant_ids?.includes(merchant_id)) return false;
  if (event === null) return proposers.some((role) => person.roles.includes(role));
  if (person.registered_at === null) return false;
  const chosen = await listAlertChoices(db, { merchant_id, person_id: person.id });
  return alertMailsOf(person.roles, chosen).some((one) => one.kind === kind && one.is_wanted);
}
