import { createHash } from 'node:crypto';
import type { Authentication, Evidence } from '#gateway/gateway.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import { escapeHtml } from '#platform/shared/html.ts';
import { languages } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import { consentVersion } from '#platform/shared/words/consent-version.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { type PageKey, words } from '#platform/shared/words/words.ts';
import { writeCharges } from '#platform/shared/words/write-charges.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { Dispute } from './dispute.ts';
import type { AgreedConsent, FactCard, Facts } from './evidence.sql.ts';

/** The gateway takes this many characters of free text. */
const textCharactersMax = 20_000;

/** The evidence pack as the gateway takes it: structured fields, and the history as text. */
export function writeEvidence(dispute: Dispute, facts: Facts, merchant: MerchantRow): Evidence {
  const { customer, line_items } = facts;
  const name = [customer.first_name, customer.last_name].filter(Boolean).join(' ');
  const items = (line_items ?? []).map((item) => `${item.quantity} × ${oneLine(item.name)}`);
  return {
    ...(name !== '' && { customer_name: oneLine(name) }),
    customer_email_address: customer.email,
    ...(customer.billing_address && { billing_address: oneLine(customer.billing_address) }),
    product_description: [
      `Order ${oneLine(facts.client_reference_id)} at ${oneLine(merchant.name)}`,
      ...items,
    ].join('; '),
    service_date: facts.completed_at.slice(0, 10),
    refund_policy_disclosure:
      'The merchant refunds all or part of an order within 100 days of the purchase.',
    uncategorized_text: writeHistory(dispute, facts, merchant)
      .join('\n')
      .slice(0, textCharactersMax),
  };
}

/** Tells what happened, line by line, in the order in which a reader asks. */
export function writeHistory(dispute: Dispute, facts: Facts, merchant: MerchantRow): string[] {
  const money = (cents: number) => showMoney(cents, merchant.territory);
  return [
    `The shopper placed the order at ${facts.ordered_at} and paid it at ${facts.completed_at}: ${money(facts.amount)} in ${facts.number_of_payments} payments.`,
    ...(facts.card?.last4 ? [`Card of the first payment: ${sayCard(facts.card)}.`] : []),
    ...sayDisputed(dispute, facts),
    ...sayAgreement(facts, money),
    'The plan:',
    ...facts.payments.map(
      ({ number, amount, due_on, status, collected_at }) =>
        `  payment ${number}: ${money(amount)}, due ${due_on}, ${status}${collected_at ? ` at ${collected_at}, receipt ${dispute.checkout_id}:${number}` : ''}`,
    ),
    ...(facts.refunds.length > 0 ? ['Refunds:'] : ['No refund was requested.']),
    ...facts.refunds.map(
      ({ amount, status, created_at }) => `  ${money(amount)} requested ${created_at}, ${status}`,
    ),
    ...(facts.messages.length > 0 ? ['Messages to the shopper:'] : []),
    ...facts.messages.map(({ kind, sent_at }) => `  ${kind} sent ${sent_at}`),
  ];
}

const sayCard = ({ brand, last4 }: FactCard) => `${brand ?? 'card'} ending ${last4}`;

/** How the disputed payment was made, and how the bank authenticated the cardholder for it. */
function sayDisputed({ instalment }: Dispute, facts: Facts): string[] {
  const { disputed, setup } = facts;
  const payment = `The disputed payment is number ${instalment}`;
  if (disputed?.kind === 'shopper') {
    const card = disputed.card?.last4 ? ` with ${sayCard(disputed.card)}` : '';
    return [
      `${payment}. The cardholder made it in person at ${disputed.at}${card}.`,
      `3-D Secure of the disputed payment: ${saySecure(disputed.authentication)}.`,
    ];
  }
  if (disputed?.kind === 'charge') {
    const stored = setup?.card ?? facts.card;
    const card = stored?.last4 ? ` (${sayCard(stored)})` : '';
    const how = !setup
      ? `by the first payment at ${facts.completed_at}`
      : setup.purpose === 'new_card'
        ? `by a verification of the bank at ${setup.at}, with the cardholder present`
        : `by a payment at ${setup.at}, with the cardholder present`;
    return [
      `${payment}. It was charged at ${disputed.at} to the stored card${card}, as agreed below, without the cardholder.`,
      `The card was stored ${how}.`,
      `3-D Secure when the card was stored: ${saySecure(setup ? setup.authentication : facts.authentication)}.`,
    ];
  }
  return [
    `${payment}. The cardholder made it in person with the order.`,
    `3-D Secure of the disputed payment: ${saySecure(facts.authentication)}.`,
  ];
}

function saySecure(authentication: Authentication | null): string {
  if (authentication === null) return 'the bank did not authenticate the cardholder';
  const names = ['flow', 'result', 'eci', 'version', 'transaction_id'] as const;
  return names
    .filter((name) => authentication[name] !== null)
    .map((name) => `${name} ${authentication[name]}`)
    .join(', ');
}

/**
 * The terms that the shopper agreed to: with the first payment, and again when another card was
 * stored.
 */
function sayAgreement(
  { consent, completed_at, setup }: Facts,
  money: (cents: number) => string,
): string[] {
  const list = ({ payments }: AgreedConsent) =>
    payments.map(
      ({ number, amount, due_on }) => `  payment ${number}: ${money(amount)} on ${due_on}`,
    );
  const first = consent
    ? [
        `The shopper agreed to these charges (consent version ${consent.version}) at ${completed_at}:`,
        ...sayConsent(consent, money),
        ...list(consent),
      ]
    : [];
  if (!setup) return first;
  return [
    ...first,
    `The shopper agreed anew, for the card that was charged (consent version ${setup.consent.version}), at ${setup.at}:`,
    ...sayAnew(setup),
    ...list(setup.consent),
  ];
}

/** The language of a version. Undefined if the wording has changed since. */
const languageOf = ({ version }: AgreedConsent) =>
  languages.find((one) => consentVersion(one) === version);

/** The sentence that the shopper agreed to, in the language of its version. */
function sayConsent(consent: AgreedConsent, money: (cents: number) => string): string[] {
  const language = languageOf(consent);
  if (language === undefined) return [];
  const { page } = words[language];
  const later = consent.payments.filter(({ number }) => number > 1);
  const writer = {
    text: (key: PageKey, values: Record<string, string | number>) => fillIn(page[key], values),
    money,
    date: (day: string) => writeDate(day, language),
  };
  const charges = writeCharges(later, writer, 'consent_many');
  if (charges === null) return [];
  return [`  “${fillIn(page.consent, { charges })}”`];
}

/** The sentence beside another card. Its payments are listed after it. */
function sayAnew({ purpose, consent }: NonNullable<Facts['setup']>): string[] {
  const language = languageOf(consent);
  if (language === undefined) return [];
  const { page } = words[language];
  const sentence = purpose === 'new_card' ? page.consent_card : page.consent_keep;
  return [`  “${fillIn(sentence, { charges: '…' })}”`];
}

/** Names what was staged. The order of the fields does not count: the database changes it. */
export function hashEvidence(evidence: Evidence): string {
  const fields = Object.entries(evidence).sort(([one], [other]) => (one < other ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
}

/** Names of the pack's fields for people. */
export const evidenceNames: Record<keyof Evidence, string> = {
  customer_name: 'Customer',
  customer_email_address: 'E-mail address',
  billing_address: 'Billing address',
  product_description: 'Order',
  service_date: 'Date',
  refund_policy_disclosure: 'Refund policy',
  uncategorized_text: 'History',
};

/** The pack as a page that prints well. */
export function writeEvidenceHtml(
  dispute: Dispute,
  evidence: Evidence,
  { territory }: MerchantRow,
): string {
  const about: [string, string][] = [
    ['Disputed amount', showMoney(dispute.amount, territory)],
    ['Reason', [dispute.reason, dispute.network_reason_code].filter(Boolean).join(', ')],
    ['Evidence is due by', dispute.due_by ?? 'no deadline'],
    ...Object.entries(evidence).map(([name, text]): [string, string] => [
      evidenceNames[name as keyof Evidence],
      text ?? '',
    ]),
  ];
  const rows = about
    .map(([name, text]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(text)}</dd>`)
    .join('\n');
  return `<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<title>Evidence for dispute ${escapeHtml(dispute.dispute_ref)}</title>
<style>
body { margin: 32px auto; padding: 0 16px; max-width: 800px; color: #10201e; font: 14px/1.5 system-ui, sans-serif }
dt { margin-top: 16px; color: #55635f; font-weight: 600 }
dd { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere }
@media print { body { margin: 0; padding: 0; max-width: none } }
</style>
</head>
<body>
<h1>Evidence for dispute ${escapeHtml(dispute.dispute_ref)}</h1>
<dl>
${rows}
</dl>
</body>
</html>
`;
}
