import type { Database } from '#platform/database/database.ts';
import type { MailTransport } from './mail.ts';
import { mailboxTransport } from './mailbox-transport.ts';
import { type MailSettings, smtpTransport } from './smtp-transport.ts';

/** Without a mail server, a sandbox keeps its mails in a mailbox, and production sends none. */
export function openMailTransport(
  config: { environment: 'sandbox' | 'production'; mail: MailSettings | null; mailFrom: string },
  deps: { database: Database },
): MailTransport | null {
  if (config.mail !== null) return smtpTransport(config.mail);
  return config.environment === 'sandbox' ? mailboxTransport(deps, config.mailFrom) : null;
}
