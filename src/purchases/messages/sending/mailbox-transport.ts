import type { Database } from '#platform/database/database.ts';
import type { MailTransport } from './mail.ts';
import { insertMailboxEntry } from './mailbox.sql.ts';

/** Mail to people at the console belongs to no merchant, but the table's key needs an id. */
const noMerchant = '00000000-0000-0000-0000-000000000000';

/** A sandbox's transport: the mail becomes a row that the mailbox page shows. */
export function mailboxTransport(deps: { database: Database }, sender: string): MailTransport {
  return {
    concurrencyMax: 5,
    async send(mail) {
      const { merchant_id, checkout_id, message_id, sent_at, to, subject, html } = mail;
      // The mailbox shows mails as text and HTML. Attachments are only listed by name.
      const files = (mail.attachments ?? []).map(({ filename }) => filename).join(', ');
      const text = files === '' ? mail.text : `${mail.text}\nAttached: ${files}\n`;
      try {
        await insertMailboxEntry(deps.database.db, {
          merchant_id: merchant_id ?? noMerchant,
          id: message_id,
          checkout_id,
          sent_at,
          sender,
          recipient: to,
          subject,
          text,
          html,
        });
        return { outcome: 'sent', response: 'kept in the mailbox of this sandbox' };
      } catch (error) {
        return { outcome: 'failed', response: (error as Error).message };
      }
    },
    async close() {},
  };
}
