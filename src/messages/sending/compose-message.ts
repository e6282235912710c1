import type { Instalment } from '../../instalments/instalment.ts';
import type { Language } from '../../shared/language.ts';
import { showMoney } from '../../shared/money.ts';
import { oneLine } from '../../shared/plain-text.ts';
import type { Territory } from '../../shared/territories.ts';
import { isToCome, stateOf } from '../../shoppers/plan.ts';
import type { Message } from '../message.ts';
import type { Letter, LetterFacts } from './letter.ts';
import { af } from './texts/af.ts';
import { en } from './texts/en.ts';
import type { MessageTexts } from './texts/texts.ts';
import { zu } from './texts/zu.ts';

/** The languages that messages are written in, each with the locale of its dates and numbers. */
const languages: Record<Language, { texts: MessageTexts; locale: string }> = {
  en: { texts: en, locale: 'en-ZA' },
  af: { texts: af, locale: 'af-ZA' },
  zu: { texts: zu, locale: 'zu-ZA' },
};

/** Everything that a message is written from, read when it is sent: it tells today's truth. */
export type MessageSubject = {
  merchant: { name: string; territory: Territory };
  checkout: {
    amount: number;
    currency: string;
    client_reference_id: string;
    number_of_payments: number | null;
  };
  language: Language;
  instalments: Instalment[];
  card: { brand: string | null; last4: string | null } | null;
  /** Where the shopper sees the plan; for a one-time link, that link. */
  url: string;
};

export function composeMessage(
  message: Pick<Message, 'kind' | 'facts'>,
  subject: MessageSubject,
): Letter {
  const { texts, locale } = languages[subject.language];
  const { checkout, merchant, instalments } = subject;
  const money = (cents: number) => showMoney(cents, { currency: checkout.currency, locale });
  const { day: days, month: months } = dateFormats(locale);
  const date = (day: string) => days.format(Temporal.PlainDate.from(day));

  const next = instalments.find(isToCome);
  const asked = (one: Instalment) => one.amount - one.reduced;
  const paid = instalments
    .filter(({ status }) => status === 'authorised' || status === 'collected')
    .reduce((sum, one) => sum + asked(one), 0);
  const about = instalments.find(({ number }) => number === message.facts.instalment);
  const expires = message.facts.card_expires;
  const facts: LetterFacts = {
    merchant: oneLine(merchant.name),
    order: oneLine(checkout.client_reference_id),
    count: instalments.length,
    total: money(checkout.amount),
    paid: money(paid),
    next: next ? { amount: money(asked(next)), date: date(next.due_on) } : null,
    amount: money(message.facts.amount ?? (about ? asked(about) : checkout.amount)),
    number: message.facts.instalment ?? 1,
    date: about ? date(about.due_on) : '',
    retryOn: message.facts.retry_on ? date(message.facts.retry_on) : null,
    card: subject.card?.last4
      ? { brand: brandName(subject.card.brand), last4: subject.card.last4 }
      : null,
    cardExpires: expires ? months.format(Temporal.PlainDate.from(`${expires}-01`)) : '',
  };
  const words = texts.letters[message.kind](facts);
  const hasTable = message.kind !== 'sign_in_link' && instalments.length > 0;
  return {
    subject: words.subject,
    paragraphs: words.paragraphs,
    rows: hasTable
      ? instalments.map((one) => ({
          name: texts.payment(one.number, instalments.length),
          date: date(one.due_on),
          amount: money(asked(one)),
          state: texts.states[stateOf(one, one === next)],
        }))
      : [],
    link: { label: words.link, url: subject.url },
    footer: texts.footer(facts.merchant),
  };
}

type DateFormats = { day: Intl.DateTimeFormat; month: Intl.DateTimeFormat };
const dateFormatsOf = new Map<string, DateFormats>();

/** Making a formatter costs more than writing the letter, so each locale's are made once. */
function dateFormats(locale: string): DateFormats {
  let formats = dateFormatsOf.get(locale);
  if (!formats) {
    formats = {
      day: new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'long', year: 'numeric' }),
      month: new Intl.DateTimeFormat(locale, { month: 'long', year: 'numeric' }),
    };
    dateFormatsOf.set(locale, formats);
  }
  return formats;
}

const brandNames: Record<string, string> = {
  visa: 'Visa',
  mastercard: 'Mastercard',
  amex: 'American Express',
  diners: 'Diners Club',
  discover: 'Discover',
  jcb: 'JCB',
  unionpay: 'UnionPay',
};

export const brandName = (brand: string | null) => brandNames[brand ?? ''] ?? (brand || '');
