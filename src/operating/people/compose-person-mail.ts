import { oneLine } from '#platform/shared/plain-text.ts';
import type { Letter } from '#purchases/messages/sending/letter.ts';
import type { PersonMail } from './person-mail.ts';

/** The console speaks English, and so do its mails. */
export function composePersonMail(
  { kind, facts, created_at }: Pick<PersonMail, 'kind' | 'facts' | 'created_at'>,
  console: { url: string; link: string | null },
): Letter {
  const when = `${created_at.slice(0, 16).replace('T', ' ')} UTC`;
  const by = oneLine(facts.by ?? 'You');
  const from = facts.address ? ` from the address ${facts.address}` : '';
  const { subject, text } = {
    invitation: {
      subject: 'You are invited to the console',
      text: [
        `${by} invited you to the console at ${console.url}. Open the link and register a passkey. The link works once, until ${facts.expires_at?.slice(0, 16).replace('T', ' ')} UTC. Do not give it to anyone, not even to a colleague who asks for it.`,
      ],
    },
    invited_again: {
      subject: 'Your passkeys and sessions of the console have ended',
      text: [
        `${by} invited you again at ${when}. Your passkeys and sessions have ended.`,
        facts.link === 'command line'
          ? 'Your new link was printed at the command line of the server. The operator gives it to you.'
          : 'You get a new link once a second administrator has released it.',
      ],
    },
    registered: {
      subject: 'A passkey was registered with your invitation',
      text: [
        `At ${when}${from}, a passkey was registered with your invitation. It replaces every passkey that you had before.`,
      ],
    },
    passkey_added: {
      subject: 'A passkey was added',
      text: [`At ${when}${from}, the passkey “${facts.passkey}” was added to yours.`],
    },
    passkey_removed: {
      subject: 'A passkey was removed',
      text: [`At ${when}${from}, your passkey “${facts.passkey}” was removed.`],
    },
    issuer_tied: {
      subject: 'Your organisation’s account was linked to you',
      text: [
        `At ${when}${from}, your account at ${facts.issuer} was linked to you. You can sign in to the console with it.`,
      ],
    },
    access_widened: {
      subject: 'You may do more in the console',
      text: [`${by} gave you more roles or merchants in the console at ${when}.`],
    },
    revoked: {
      subject: 'You can no longer use the console',
      text: [
        `${by} revoked your access to the console at ${when}. Your passkeys and sessions ended.`,
      ],
    },
  }[kind];
  const warning = 'If you do not expect this, tell another administrator at once.';
  return {
    from: 'Tranche',
    subject,
    paragraphs: [...text, warning],
    rows: [],
    link: console.link ? { label: 'Register a passkey', url: console.link } : null,
    footer: [`This mail is about your access to the console at ${console.url}.`],
  };
}
