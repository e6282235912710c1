import nodemailer from 'nodemailer';
import type { Mail, MailOutcome, MailTransport } from './mail.ts';

export type MailSettings = {
  /** `smtp://user:password@host:587` or `smtps://…:465`. */
  url: string;
  /** `Karoo Payments <payments@example.com>` or an address alone. */
  from: string;
};

/** A shopper's receipt need not travel fast; a hung server must not hold a lease for long. */
const timeoutMilliseconds = 20_000;
const connectionsMax = 5;
const responseMax = 500;

/** Sends through one SMTP server over a few kept connections. */
export function smtpTransport({ url, from }: MailSettings): MailTransport {
  const pool = nodemailer.createTransport({
    url,
    pool: true,
    maxConnections: connectionsMax,
    maxMessages: Number.POSITIVE_INFINITY,
    connectionTimeout: timeoutMilliseconds,
    greetingTimeout: timeoutMilliseconds,
    socketTimeout: timeoutMilliseconds,
    // A message is made of our own text: nothing in it may name a file or an address to read.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = addressOf(from).split('@')[1] ?? 'localhost';

  return {
    concurrencyMax: connectionsMax,
    async send(mail) {
      try {
        const { response } = await pool.sendMail({
          from,
          to: { name: '', address: mail.to },
          subject: mail.subject,
          text: mail.text,
          html: mail.html,
          // All our languages are written in Latin letters. nodemailer would count them to find out.
          textEncoding: 'quoted-printable',
          ...(mail.attachments && {
            attachments: mail.attachments.map(({ filename, type, content }) => ({
              filename,
              content,
              contentType: type,
            })),
          }),
          messageId: `<${mail.message_id}@${domain}>`,
          // Programs that answer for absent people leave this one alone.
          headers: { 'Auto-Submitted': 'auto-generated' },
        });
        return { outcome: 'sent', response: withoutRecipient(response, mail) };
      } catch (error) {
        return explainFailure(error as SmtpError, mail);
      }
    },
    async close() {
      pool.close();
    },
  };
}

type SmtpError = Error & { code?: string; command?: string; responseCode?: number };

function explainFailure(error: SmtpError, mail: Mail): MailOutcome {
  const response = withoutRecipient(error.message, mail);
  // Only what the server says of this recipient or this text is about the message. Everything else,
  // a refused login above all, is about us and passes once an operator has mended it.
  const isAboutMessage = error.command === 'RCPT TO' || error.command === 'DATA';
  const isForGood = (error.responseCode ?? 0) >= 500;
  return { outcome: isAboutMessage && isForGood ? 'refused' : 'failed', response };
}

/** Servers like to repeat the address. The audit of attempts outlives it, so it is taken out. */
function withoutRecipient(response: string, { to }: Mail): string {
  return response
    .replaceAll(to, 'the recipient')
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, responseMax);
}

/** The address in `Name <address>`. */
export function addressOf(from: string): string {
  return (/<([^<>]+)>\s*$/.exec(from)?.[1] ?? from).trim();
}
