import { oneLine } from '#platform/shared/plain-text.ts';
import type { Letter } from '#purchases/messages/sending/letter.ts';
import type { PersonMail, PersonMailKind } from './person-mail.ts';

type Told = {
  facts: PersonMail['facts'];
  /** The name of the operator who acted, or of the person if they acted themselves. */
  by: string;
  when: string;
  /** The network address as a phrase: ` from 192.0.2.1`. Empty if the address is not known. */
  from: string;
  url: string;
};

type Text = {
  subject: string;
  text: string[];
  /** The mail's topic, if it is not the person's access. */
  about?: string;
  /** Whether the mail is about a merchant's event and not about access. */
  isAlert?: true;
};

const texts: Record<PersonMailKind, (told: Told) => Text> = {
  invitation: ({ by, facts, url }) => ({
    subject: 'You are invited to the console',
    text: [
      `${by} invited you to the console at ${url}. Open the link and register a passkey. The link works once, until ${facts.expires_at?.slice(0, 16).replace('T', ' ')} UTC. Do not give it to anyone, not even to a colleague who asks for it.`,
    ],
  }),
  invitation_requested: ({ by, when }) => ({
    subject: 'A new invitation to the console was requested for you',
    text: [
      `${by} asked at ${when} to invite you again. Your passkeys and sessions stay valid until another administrator releases the invitation. That administrator asks you first. Then you get a new link.`,
    ],
  }),
  invited_again: ({ by, when, facts }) => ({
    subject: 'Your console passkeys and sessions have ended',
    text: [
      `${by} invited you again at ${when}. Your passkeys and sessions have ended.`,
      facts.link === 'command line'
        ? 'Your new link was printed at the server’s command line. The operator will give it to you.'
        : 'Your new link is in another e-mail.',
    ],
  }),
  registered: ({ when, from }) => ({
    subject: 'A passkey was registered with your invitation',
    text: [
      `At ${when}${from}, a passkey was registered with your invitation. It replaces every passkey that you had before.`,
    ],
  }),
  passkey_added: ({ when, from, facts }) => ({
    subject: 'A passkey was added',
    text: [`At ${when}${from}, the passkey “${facts.passkey}” was added to your passkeys.`],
  }),
  passkey_removed: ({ when, from, facts }) => ({
    subject: 'A passkey was removed',
    text: [`At ${when}${from}, your passkey “${facts.passkey}” was removed.`],
  }),
  issuer_tied: ({ when, from, facts }) => ({
    subject: 'Your organisation’s account was linked to you',
    text: [
      `At ${when}${from}, your account at ${facts.issuer} was linked to you. You can sign in to the console with it.`,
    ],
  }),
  access_widened: ({ by, when }) => ({
    subject: 'You have more access to the console',
    text: [`${by} gave you more roles or merchants in the console at ${when}.`],
  }),
  revoked: ({ by, when }) => ({
    subject: 'Your access to the console was revoked',
    text: [
      `${by} revoked some or all of your access to the console at ${when}. The sessions that used this access have ended. If you have no access left, your passkeys have ended too.`,
    ],
  }),
  confirmed: ({ by, when }) => ({
    subject: 'You can now be the second approver',
    text: [
      `${by} confirmed your access to the console at ${when}. Where a payment needs two people, you can be one of them once your passkey is old enough.`,
    ],
  }),
  invited_elsewhere: ({ by, when, url }) => ({
    subject: 'You are invited to the console for another shop',
    text: [
      `${by} invited you at ${when} to the console at ${url} for their shop. You have access there already, so this e-mail has no link, and nothing has changed. ${by} cannot see that you have access. To work for this shop too, ask the administrators of the payment service.`,
    ],
  }),
  bank_proposed: ({ by, when, facts }) => ({
    subject: `A bank account was proposed for ${oneLine(facts.merchant ?? '')}`,
    text: [
      `${by} proposed at ${when} that payouts go to the bank account that ends in ${facts.account}. An administrator of the payment service will ask you for the whole number and confirm it. Until then payouts go to the same account as before.`,
    ],
    about: `the bank account of ${oneLine(facts.merchant ?? '')}`,
  }),
  bank_confirmed: ({ by, when, facts }) => ({
    subject: `The bank account of ${oneLine(facts.merchant ?? '')} was confirmed`,
    text: [
      `${by} confirmed at ${when} the bank account that ends in ${facts.account}. Payouts go there from ${facts.payable_from ? dayOf(facts.payable_from) : 'now'} on.`,
    ],
    about: `the bank account of ${oneLine(facts.merchant ?? '')}`,
  }),
  callbacks_failing: ({ facts }) => ({
    subject: `Callbacks to ${facts.host} are failing`,
    text: [
      `Your server at ${facts.host} did not accept the latest callbacks for ${oneLine(facts.merchant ?? '')}. Orders continue, and callbacks are retried for three hours. Once your server works, send those that were given up again, under Callbacks in the console.`,
    ],
    isAlert: true,
  }),
  dispute_opened: ({ facts }) => ({
    subject: `${facts.amount} of order ${oneLine(facts.reference ?? '')} is disputed`,
    text: [
      `A shopper’s bank is asking about order ${oneLine(facts.reference ?? '')} of ${oneLine(facts.merchant ?? '')}.${facts.until ? ` The answer is due by ${facts.until.slice(0, 16).replace('T', ' ')} UTC.` : ''} Supply your evidence under Disputes in the console.`,
    ],
    isAlert: true,
  }),
  key_ends: ({ facts }) => ({
    subject: `A ${facts.credential} of ${oneLine(facts.merchant ?? '')} expires soon`,
    text: [
      `A ${facts.credential} of ${oneLine(facts.merchant ?? '')} was replaced, and the old one expires at ${facts.until?.slice(0, 16).replace('T', ' ')} UTC. Requests that still use the old one will be refused after that. Make sure that your server uses the new one.`,
    ],
    isAlert: true,
  }),
  payout_paid: ({ facts }) => ({
    subject: `${facts.amount} was paid out to ${oneLine(facts.merchant ?? '')}`,
    text: [`The bank paid payout ${facts.reference}: ${facts.amount}.`],
    isAlert: true,
  }),
  payout_returned: ({ facts }) => ({
    subject: `The bank returned ${facts.amount} of ${oneLine(facts.merchant ?? '')}`,
    text: [
      `The bank returned payout ${facts.reference}: ${facts.amount}. It is owed to you again and will be in the next payout. Check on your shop’s page in the console that the bank account is right.`,
    ],
    isAlert: true,
  }),
  link_paid: ({ facts }) => ({
    subject: `${facts.amount} was paid by link for ${oneLine(facts.reference ?? '')}`,
    text: [
      `A shopper paid order ${oneLine(facts.reference ?? '')} of ${oneLine(facts.merchant ?? '')} from a payment link: ${facts.amount}. You can hand over the goods.`,
    ],
    isAlert: true,
  }),
  orders_week: ({ facts }) => exportText('orders', 'week', facts),
  orders_month: ({ facts }) => exportText('orders', 'month', facts),
  refunds_week: ({ facts }) => exportText('refunds', 'week', facts),
  refunds_month: ({ facts }) => exportText('refunds', 'month', facts),
};

type Exported = 'orders' | 'refunds';

/** The mail names no shopper. It links to the console, where the person downloads the file. */
function exportText(what: Exported, period: 'week' | 'month', facts: PersonMail['facts']): Text {
  const merchant = oneLine(facts.merchant ?? '');
  const days = `${dayOf(facts.from)} to ${dayOf(facts.to)}`;
  return {
    subject: `The ${what} of ${merchant}, ${days}`,
    text: [
      `The last ${period} of ${merchant} is complete. Open its ${what} in the console, and download them there as a file for your spreadsheet.`,
    ],
    isAlert: true,
  };
}

const dayOf = (day = '') =>
  Temporal.PlainDate.from(day).toLocaleString('en-GB', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
  });

function exportLink(
  { kind, facts: { merchant_id, from, to } }: Pick<PersonMail, 'kind' | 'facts'>,
  url: string,
): Letter['link'] {
  if (from === undefined) return null;
  const isOrders = kind === 'orders_week' || kind === 'orders_month';
  const list = isOrders ? '/checkouts?' : '/refunds?view=all&';
  return {
    label: isOrders ? 'Open the orders' : 'Open the refunds',
    url: `${url}${list}merchant=${merchant_id}&from=${from}&to=${to}`,
  };
}

/** The console is in English, and so are its mails. */
export function composePersonMail(
  { kind, facts, created_at }: Pick<PersonMail, 'kind' | 'facts' | 'created_at'>,
  console: { url: string; link: string | null },
): Letter {
  const when = `${created_at.slice(0, 16).replace('T', ' ')} UTC`;
  const by = oneLine(facts.by ?? 'You');
  const from = facts.address ? ` from the address ${facts.address}` : '';
  const { subject, text, about, isAlert } = texts[kind]({
    facts,
    by,
    when,
    from,
    url: console.url,
  });
  const whom = about ? 'call the payment service' : 'tell another administrator';
  const warning = `If you did not expect this, ${whom} at once.`;
  return {
    from: 'Tranche',
    subject,
    paragraphs: isAlert ? text : [...text, warning],
    rows: [],
    link: console.link
      ? { label: 'Register a passkey', url: console.link }
      : exportLink({ kind, facts }, console.url),
    footer: isAlert
      ? [
          `You get this e-mail because you work for ${oneLine(facts.merchant ?? '')} in the console at ${console.url}. Under People, its administrators choose who gets which e-mails.`,
        ]
      : [`This e-mail is about ${about ?? 'your access'}, in the console at ${console.url}.`],
  };
}
