import { createHash } from 'node:crypto';
import type { Evidence, EvidenceFileKind } from '#gateway/evidence.ts';
import type { Authentication, SchemeData } from '#gateway/gateway.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import { brandName } from '#platform/shared/card-names.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
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
import type { DisputeFile } from './supplied.ts';

/**
 * Gateways accept 20,000 characters in a field. The history may share one with the merchant's
 * statement of up to 4,000.
 */
const charactersMax = 15_000;

/** The evidence pack as the gateway accepts it: structured fields, and the history as text. */
export function writeEvidence(dispute: Dispute, facts: Facts, merchant: MerchantRow): Evidence {
  const { customer, line_items } = facts;
  const { carrier, tracking_number, shipped_on, delivered_on, statement } = dispute.supplied ?? {};
  const name = [customer.first_name, customer.last_name].filter(Boolean).join(' ');
  const items = (line_items ?? []).map((item) => `${item.quantity} × ${oneLine(item.name)}`);
  return {
    ...(name !== '' && { customer_name: oneLine(name) }),
    customer_email: customer.email,
    ...(customer.billing_address && { billing_address: oneLine(customer.billing_address) }),
    order: joinUpTo(charactersMax, [
      `Order ${oneLine(facts.client_reference_id)} at ${oneLine(merchant.name)}`,
      ...items,
    ]),
    paid_on: dayOf(facts.completed_at, merchant),
    ...(carrier && { carrier }),
    ...(tracking_number && { tracking_number }),
    ...(shipped_on && { shipped_on: writeDate(shipped_on, 'en') }),
    ...(delivered_on && { delivered_on: writeDate(delivered_on, 'en') }),
    ...(statement && { statement }),
    refund_policy: 'The merchant refunds all or part of an order within 100 days of the purchase.',
    history: writeHistory(dispute, facts, merchant).join('\n').slice(0, charactersMax),
  };
}

/** A list on one line. If it would be too long, it ends with how many members are left out. */
function joinUpTo(max: number, all: string[]): string {
  let length = 0;
  const fitting = all.findIndex((one) => {
    length += one.length + 2;
    return length > max;
  });
  if (fitting === -1) return all.join('; ');
  return [...all.slice(0, fitting), `and ${all.length - fitting} more`].join('; ');
}

/** Tells what happened, line by line, in the order in which a reader would ask. */
export function writeHistory(dispute: Dispute, facts: Facts, merchant: MerchantRow): string[] {
  const money = (cents: number) => showMoney(cents, merchant.territory);
  const time = (at: Timestamp) => timeOf(at, merchant);
  const date = (day: string) => writeDate(day, 'en');
  return [
    `The shopper placed the order on ${time(facts.ordered_at)} and paid for it on ${time(facts.completed_at)}: ${money(facts.amount)} in ${facts.number_of_payments === 1 ? '1 payment' : `${facts.number_of_payments} payments`}. All times are local times in ${merchant.territory.time_zone}.`,
    ...(facts.card?.last4 ? [`Card used for the first payment: ${sayCard(facts.card)}.`] : []),
    ...sayDisputed(dispute, facts, time),
    ...sayAgreement(facts, money, time),
    'The plan:',
    ...facts.payments.map(
      ({ number, amount, due_on, status, collected_at }) =>
        `  payment ${number}: ${money(amount)}, due on ${date(due_on)}, ${status}${collected_at ? ` on ${time(collected_at)}, receipt ${dispute.checkout_id}:${number}` : ''}`,
    ),
    ...(facts.refunds.length > 0 ? ['Refunds:'] : ['No refund was requested.']),
    ...facts.refunds.map(
      ({ amount, status, created_at }) =>
        `  ${money(amount)} requested on ${time(created_at)}, ${status}`,
    ),
    ...(facts.messages.length > 0 ? ['Messages to the shopper:'] : []),
    ...facts.messages.map(
      ({ kind, sent_at }) => `  ${kind.replaceAll('_', ' ')}, sent on ${time(sent_at)}`,
    ),
  ];
}

type Place = Pick<MerchantRow, 'territory'>;
type Writer = (at: Timestamp) => string;

const zoned = (at: Timestamp, { territory }: Place) =>
  Temporal.Instant.from(at).toZonedDateTimeISO(territory.time_zone);

/** The date as a bank's clerk reads it, in the merchant's zone: `15 December 2026`. */
const dayOf = (at: Timestamp, place: Place) =>
  writeDate(zoned(at, place).toPlainDate().toString(), 'en');

/** `15 December 2026 at 10:03` */
const timeOf = (at: Timestamp, place: Place) =>
  `${dayOf(at, place)} at ${zoned(at, place).toPlainTime().toString().slice(0, 5)}`;

const sayCard = ({ brand, last4 }: FactCard) => `${brandName(brand) || 'card'} ending ${last4}`;

/** The disputed payment: how it was made, its authentication, and the card network's ids. */
function sayDisputed(dispute: Dispute, facts: Facts, time: Writer): string[] {
  return [...sayMade(dispute, facts, time), ...sayScheme(facts.disputed?.scheme ?? null)];
}

function sayScheme(scheme: SchemeData | null): string[] {
  if (scheme === null) return [];
  const { network_transaction_id: id, transaction_link_id: link } = scheme;
  const names = [id && `transaction id ${id}`, link && `transaction link id ${link}`];
  return [`The card network's ${names.filter(Boolean).join(', ')}.`];
}

function sayMade({ instalment }: Dispute, facts: Facts, time: Writer): string[] {
  const { disputed, setup } = facts;
  const payment = `The disputed payment is number ${instalment}`;
  if (disputed?.kind === 'shopper') {
    const card = disputed.card?.last4 ? ` with ${sayCard(disputed.card)}` : '';
    return [
      `${payment}. The cardholder made it themselves, on the payment page, on ${time(disputed.at)}${card}.`,
      `3-D Secure for the disputed payment: ${saySecure(disputed.authentication)}.`,
    ];
  }
  if (disputed?.kind === 'charge') {
    const stored = setup?.card ?? facts.card;
    const card = stored?.last4 ? ` (${sayCard(stored)})` : '';
    const how = !setup
      ? `with the first payment on ${time(facts.completed_at)}`
      : setup.purpose === 'new_card'
        ? `when the cardholder had the bank verify it on ${time(setup.at)}`
        : `with a payment that the cardholder made on ${time(setup.at)}`;
    return [
      `${payment}. It was charged on ${time(disputed.at)} to the stored card${card}, initiated by the merchant, as agreed below.`,
      `The card was stored ${how}.`,
      `3-D Secure when the card was stored: ${saySecure(setup ? setup.authentication : facts.authentication)}.`,
    ];
  }
  return [
    `${payment}. The cardholder made it themselves, on the payment page, with the order.`,
    `3-D Secure for the disputed payment: ${saySecure(facts.authentication)}.`,
  ];
}

function saySecure(authentication: Authentication | null): string {
  if (authentication === null) return 'the bank did not authenticate the cardholder';
  const { flow, result, eci, version, transaction_id } = authentication;
  const facts = {
    flow,
    result: result?.replaceAll('_', ' ') ?? null,
    ECI: eci,
    version,
    'transaction id': transaction_id,
  };
  return Object.entries(facts)
    .filter(([, fact]) => fact !== null)
    .map(([name, fact]) => `${name} ${fact}`)
    .join(', ');
}

/**
 * The terms that the shopper agreed to: with the first payment, and again when another card was
 * stored.
 */
function sayAgreement(
  { consent, completed_at, setup }: Facts,
  money: (cents: number) => string,
  time: Writer,
): string[] {
  const list = ({ payments }: AgreedConsent) =>
    payments.map(
      ({ number, amount, due_on }) =>
        `  payment ${number}: ${money(amount)} on ${writeDate(due_on, 'en')}`,
    );
  const first = consent
    ? [
        `The shopper agreed to these charges (consent version ${consent.version}) on ${time(completed_at)}:`,
        ...sayConsent(consent, money),
        ...list(consent),
      ]
    : [];
  if (!setup) return first;
  return [
    ...first,
    `The shopper agreed again, for the card that was charged (consent version ${setup.consent.version}), on ${time(setup.at)}:`,
    ...sayAnew(setup),
    ...list(setup.consent),
  ];
}

/** The language of a consent version. Undefined if the wording has changed since then. */
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

/**
 * The sentence that the shopper agreed to for a replacement card. The caller lists the payments
 * below it.
 */
function sayAnew({ purpose, consent }: NonNullable<Facts['setup']>): string[] {
  const language = languageOf(consent);
  if (language === undefined) return [];
  const { page } = words[language];
  const sentence = purpose === 'new_card' ? page.consent_card : page.consent_keep;
  return [`  “${fillIn(sentence, { charges: '…' })}”`];
}

/**
 * A digest that identifies the staged evidence. The order of the fields and files does not matter.
 */
export function hashEvidence(
  evidence: Evidence,
  files: Pick<DisputeFile, 'kind' | 'name' | 'sha256'>[],
): string {
  const parts = [
    ...Object.entries(evidence),
    ...files.map(({ kind, name, sha256 }) => [`file ${kind}`, name, sha256]),
  ];
  const sorted = parts.sort(([one = ''], [other = '']) => (one < other ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex');
}

/** The names of the pack's fields, for people. */
const evidenceNames: Record<keyof Evidence, string> = {
  customer_name: 'Customer',
  customer_email: 'E-mail address',
  billing_address: 'Billing address',
  order: 'Order',
  paid_on: 'Paid on',
  carrier: 'Carrier',
  tracking_number: 'Tracking number',
  shipped_on: 'Shipped on',
  delivered_on: 'Delivered on',
  statement: 'The merchant writes',
  refund_policy: 'Refund policy',
  history: 'History',
};

/** The fields in the order of `evidenceNames`, because the database does not keep their order. */
export const namedEvidence = (evidence: Evidence): { name: string; text: string }[] =>
  (Object.keys(evidenceNames) as (keyof Evidence)[]).flatMap((key) => {
    const text = evidence[key];
    return text === undefined ? [] : [{ name: evidenceNames[key], text }];
  });

/** The names of the kinds of files, for people. */
export const fileKindNames: Record<EvidenceFileKind, string> = {
  delivery: 'Proof of delivery',
  correspondence: 'Messages with the customer',
  receipt: 'Receipt or invoice',
  other: 'Another document',
};

/** The pack as a page to print. */
export function writeEvidenceHtml(
  dispute: Dispute,
  { evidence, files }: { evidence: Evidence; files: DisputeFile[] },
  merchant: MerchantRow,
): string {
  const { territory } = merchant;
  const about: [string, string][] = [
    ['Disputed amount', showMoney(dispute.amount, territory)],
    ['Reason', [dispute.reason, dispute.network_reason_code].filter(Boolean).join(', ')],
    [
      'Evidence is due by',
      dispute.due_by === null ? 'no deadline' : timeOf(dispute.due_by, merchant),
    ],
    ...namedEvidence(evidence).map(({ name, text }): [string, string] => [name, text]),
    ...files.map(({ kind, name }): [string, string] => [fileKindNames[kind], name]),
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
