import type { Config } from '#config.ts';
import { addressOf } from '#purchases/messages/sending/mail.ts';
import { isAddress, isLocal, type Reader } from './reader.ts';

// Reads the settings for mail.

export function readMail(
  reader: Reader,
  baseUrl: string,
): Pick<Config, 'mail' | 'mailFrom' | 'sendsMessages'> {
  const url = readMailUrl(reader);
  const from = readMailFrom(reader, url, baseUrl);
  const requiresTls = url !== null && isRemoteMail(url) && !reader.accepts('mail-plaintext');
  return {
    mail: url === null ? null : { url, from, requiresTls },
    mailFrom: from,
    sendsMessages: url !== null || !reader.isProduction,
  };
}

function readMailUrl({ text, problem, refuseInsecure }: Reader): string | null {
  const given = text('MAIL_URL') ?? 'none';
  const url = given === 'none' ? null : given;
  if (url !== null && !isAddress(url, /^smtps?:\/\//)) {
    problem('MAIL_URL must be an address that begins with smtp:// or smtps://, or none.');
  } else if (url !== null && isRemoteMail(url) && weakensTls(url)) {
    refuseInsecure(
      'mail-plaintext',
      'MAIL_URL must not weaken TLS with query options in production, unless the server is local.',
    );
  }
  return url;
}

function readMailFrom(
  { text, problem, isProduction }: Reader,
  url: string | null,
  baseUrl: string,
): string {
  const from = text('MAIL_FROM') ?? `Tranche <no-reply@${new URL(baseUrl).hostname}>`;
  if (!/^[^@\s<>]+@[^@\s<>]+$/.test(addressOf(from)) || /[\r\n]/.test(from)) {
    problem('MAIL_FROM must be an e-mail address, alone or as "Name <address>".');
  }
  if (isProduction && url !== null && text('MAIL_FROM') === undefined) {
    problem('MAIL_FROM must be set with MAIL_URL in production: shoppers see it as the sender.');
  }
  return from;
}

/** Whether the mail server is on another machine. nodemailer also reads options from the query. */
function isRemoteMail(mailUrl: string): boolean {
  const { hostname, searchParams } = URL.parse(mailUrl) ?? new URL('smtp://localhost');
  return !isLocal(hostname) || ['host', 'service', 'proxy'].some((name) => searchParams.has(name));
}

/** Whether the query of the URL overrides `requireTLS`, or disables certificate checks. */
function weakensTls(mailUrl: string): boolean {
  const names = [
    'ignoreTLS',
    'opportunisticTLS',
    'requireTLS',
    'secured',
    'tls.rejectUnauthorized',
  ];
  return names.some((name) => new URL(mailUrl).searchParams.has(name));
}
