import { systemClock } from '#platform/shared/clock.ts';
import { composeSource } from './compose-source.ts';
import {
  addressOf,
  type Mail,
  type MailOutcome,
  type MailTransport,
  mailDeadlineSeconds,
} from './mail.ts';
import { sendSource } from './send-source.ts';

export type MailSettings = {
  /** `smtp://user:password@host:587` or `smtps://…:465`. */
  url: string;
  /** `Karoo Payments <payments@example.com>` or an e-mail address alone. */
  from: string;
  /**
   * Whether to send over `smtp://` only if the server starts TLS. Otherwise TLS is used if the
   * server offers it.
   */
  requiresTls?: boolean;
  deadlineMilliseconds?: number;
};

/** How long a server may be silent after each command. */
const timeoutMilliseconds = 20_000;
const connectionsMax = 5;
const responseMax = 500;

/** Sends through one SMTP server, over a few connections that it keeps open. */
export function smtpTransport(settings: MailSettings): MailTransport {
  const { url, from, requiresTls = false } = settings;
  const deadlineMilliseconds = settings.deadlineMilliseconds ?? mailDeadlineSeconds * 1000;
  // Load the library with the first mail, because most commands never send one.
  const openPool = async () =>
    (await import('nodemailer')).createTransport({
      url,
      requireTLS: requiresTls,
      pool: true,
      maxConnections: connectionsMax,
      maxMessages: Number.POSITIVE_INFINITY,
      connectionTimeout: timeoutMilliseconds,
      greetingTimeout: timeoutMilliseconds,
      socketTimeout: timeoutMilliseconds,
      // A message consists of our own text, so nothing in it may name a file or a URL to read.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  let pool: ReturnType<typeof openPool> | null = null;
  const domain = addressOf(from).split('@')[1] ?? 'localhost';

  return {
    concurrencyMax: connectionsMax,
    async send(mail) {
      pool ??= openPool();
      const used = pool;
      const deadline = Promise.withResolvers<never>();
      const cancel = systemClock.after(deadlineMilliseconds, () => {
        deadline.reject(
          new Error(`the mail took longer than ${deadlineMilliseconds / 1000} seconds`),
        );
        // Only closing the connection ensures that the mail is not sent later. The pool's other
        // mails fail too and are retried, but servers that answer this slowly are rare.
        if (pool === used) pool = null;
        used.then((opened) => opened.close({ force: true }));
      });
      try {
        const opened = await used;
        const messageId = `<${mail.message_id}@${domain}>`;
        const source = composeSource(mail, { from, messageId, date: systemClock.now() });
        const sent =
          source === null
            ? opened.sendMail(contentOf(mail, from, messageId))
            : sendSource(opened, {
                ...{ from: addressOf(from), to: mail.to, messageId },
                source: Buffer.from(source),
              });
        const { response } = await Promise.race([sent, deadline.promise]);
        return { outcome: 'sent', response: withoutRecipient(response, mail) };
      } catch (error) {
        return explainFailure(error as SmtpError, mail);
      } finally {
        cancel();
      }
    },
    async close() {
      (await pool)?.close();
    },
  };
}

/** A mail for the library to compose. */
const contentOf = (
  { to, subject, text, html, attachments }: Mail,
  from: string,
  messageId: string,
) => ({
  from,
  to: { name: '', address: to },
  ...{ subject, text, html, messageId },
  // All our languages use Latin letters. Without this option nodemailer would count letters to find
  // that out.
  textEncoding: 'quoted-printable' as const,
  ...(attachments && {
    attachments: attachments.map(({ filename, type, content }) => ({
      filename,
      content,
      contentType: type,
    })),
  }),
  // This header prevents automatic replies.
  headers: { 'Auto-Submitted': 'auto-generated' },
});

type SmtpError = Error & { command?: string; response?: string };

/**
 * The enhanced status codes (RFC 3463) of a permanent refusal: they are about the recipient's
 * address or mailbox, or about the text. Code 5.2.2 is not one of them, because a full mailbox may
 * be emptied, and neither is 5.7.1, because it may be about us.
 */
const aboutMessage = /^5\d\d[ -]5\.(1\.([1236]|10)|2\.(?!2\b)\d+|6\.\d+)\b/;
const hasDetail = /^5\d\d[ -]5\.\d+\.\d+\b/;
/** Without an enhanced status code, only these replies are about the recipient. */
const aboutRecipient = /^55[013]\b/;

function explainFailure(error: SmtpError, mail: Mail): MailOutcome {
  const response = withoutRecipient(error.message, mail);
  return { outcome: isForGood(error) ? 'refused' : 'failed', response };
}

/**
 * Servers may also refuse the recipient or the data because of us, for example because a quota is
 * used up or the relay is closed to us. An operator can fix that, so such a refusal is not
 * permanent.
 */
function isForGood({ command, response = '' }: SmtpError): boolean {
  if (command !== 'RCPT TO' && command !== 'DATA') return false;
  if (hasDetail.test(response)) return aboutMessage.test(response);
  return command === 'RCPT TO' && aboutRecipient.test(response);
}

/**
 * Servers often repeat the e-mail address. Attempts are kept longer than the e-mail address, so it
 * is removed from the response. The cut may leave half of a character, which no row can hold.
 */
function withoutRecipient(response: string, { to }: Mail): string {
  return response
    .replaceAll(to, 'the recipient')
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, responseMax)
    .toWellFormed();
}
