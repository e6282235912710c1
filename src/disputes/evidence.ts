import type { Evidence } from '../gateway/gateway.ts';
import type { Merchant } from '../merchants/merchant.ts';
import { escapeHtml } from '../shared/html.ts';
import { languages } from '../shared/language.ts';
import { showMoney } from '../shared/money.ts';
import { oneLine } from '../shared/plain-text.ts';
import { consentVersion } from '../shared/words/consent-version.ts';
import { fillIn } from '../shared/words/fill-in.ts';
import { words } from '../shared/words/words.ts';
import { writeDate } from '../shared/words/write-date.ts';
import type { Dispute } from './dispute.ts';
import type { Facts } from './evidence.sql.ts';

/** The gateway takes this many characters of free text. */
const textCharactersMax = 20_000;

/** The evidence pack as the gateway takes it: structured fields, and the history as text. */
export function writeEvidence(dispute: Dispute, facts: Facts, merchant: Merchant): Evidence {
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

/** What happened, line by line, in the order in which a reader asks. */
export function writeHistory(dispute: Dispute, facts: Facts, merchant: Merchant): string[] {
  const money = (cents: number) => showMoney(cents, merchant.territory);
  const { consent, authentication, card } = facts;
  const proof = Object.entries(authentication ?? {}).filter(([, value]) => value !== null);
  return [
    `The shopper placed the order at ${facts.ordered_at} and paid it at ${facts.completed_at}: ${money(facts.amount)} in ${facts.number_of_payments} payments.`,
    ...(card?.last4 ? [`Card: ${card.brand ?? 'card'} ending ${card.last4}.`] : []),
    proof.length === 0
      ? 'The bank did not authenticate the cardholder.'
      : `3-D Secure: ${proof.map(([name, value]) => `${name} ${value}`).join(', ')}.`,
    ...(consent
      ? [
          `The shopper agreed to these charges (consent version ${consent.version}) at ${facts.completed_at}:`,
          ...sayConsent(consent, money),
          ...consent.payments.map(
            ({ number, amount, due_on }) => `  payment ${number}: ${money(amount)} on ${due_on}`,
          ),
        ]
      : []),
    `The disputed payment is number ${dispute.instalment}. The plan:`,
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

/** The sentence that the shopper agreed to, in the language of its version. */
function sayConsent(
  { version, payments }: NonNullable<Facts['consent']>,
  money: (cents: number) => string,
): string[] {
  const language = languages.find((one) => consentVersion(one) === version);
  // The wording has changed since. The amounts and dates below are the agreed ones.
  if (language === undefined) return [];
  const { page } = words[language];
  const charges = payments
    .filter(({ number }) => number > 1)
    .map(({ amount, due_on }) =>
      fillIn(page.consent_charge, { amount: money(amount), date: writeDate(due_on, language) }),
    );
  return [`  “${fillIn(page.consent, { charges: charges.join(', ') })}”`];
}

/** What people call the fields of the pack. */
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
  { territory }: Merchant,
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
