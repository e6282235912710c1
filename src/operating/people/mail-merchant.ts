import type { MerchantMail, MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { operatorRoles, type Permission, permissionsOf } from './permission.ts';
import { listToMail } from './person.sql.ts';
import { insertPersonMails } from './person-mail.sql.ts';
import { nameToMerchants } from './queue-person-mail.ts';

/** The permission that a person needs to get each kind of mail. */
const readers: Record<MerchantMail['kind'], Permission> = {
  bank_proposed: 'bank.propose',
  bank_confirmed: 'bank.propose',
};

const recipientsMax = 100;

export const mailsToMerchants = (deps: QueueDeps): MerchantMailDeps => ({
  async mailMerchant(db, { merchant_id, kind, facts, by, at }) {
    if (!deps.sendsMessages) return;
    const roles = operatorRoles.filter((role) =>
      permissionsOf([role], false).includes(readers[kind]),
    );
    const ids = await listToMail(db, { merchant_id, roles }, recipientsMax);
    if (ids.length === 0) return;
    const told = { ...facts, by: await nameToMerchants(db, [merchant_id], by) };
    await insertPersonMails(
      db,
      ids.map((person_id) => ({
        ...{ id: deps.random.uuid(), person_id, kind, facts: told },
        ...{ sealed_token: null, created_at: at },
      })),
    );
  },
});
