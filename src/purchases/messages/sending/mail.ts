import type { Timestamp } from '#platform/shared/clock.ts';

/** One mail as it is sent, with the ID by which every retry of it is recognised. */
export type Mail = {
  /** Null if it goes to a person who uses the console. */
  merchant_id: string | null;
  /** Null if it is about no checkout. */
  checkout_id: string | null;
  message_id: string;
  /** The time on the merchant's clock, or on the real one. */
  sent_at: Timestamp;
  to: string;
  subject: string;
  text: string;
  html: string;
  attachments?: { filename: string; type: string; content: string | Buffer }[];
};

/**
 * The outcome of sending a mail. `refused` means that the mail server will never accept the mail
 * for this recipient, so the mail is not retried. `failed` means that the mail server did not
 * answer, was busy, or may have rejected us rather than the mail.
 */
export type MailOutcome = { outcome: 'sent' | 'refused' | 'failed'; response: string };

/**
 * The longest time that a transport takes for a mail. Leases must be longer. A slow server may take
 * 20 seconds for each of four commands, and the mail may have waited for a connection for just as
 * long.
 */
export const mailDeadlineSeconds = 180;

/** Where mail goes: an SMTP server, or the mailbox of a sandbox. Never throws. */
export type MailTransport = {
  /** How many mails may be in flight at once. */
  concurrencyMax: number;
  send(mail: Mail): Promise<MailOutcome>;
  close(): Promise<void>;
};

/** The e-mail address in `Name <address>`. */
export function addressOf(from: string): string {
  return (/<([^<>]+)>\s*$/.exec(from)?.[1] ?? from).trim();
}
