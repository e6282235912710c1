import type { MerchantProfile } from '#merchants/merchant.ts';
import { brandName } from '#platform/shared/card-names.ts';
import type { Language } from '#platform/shared/language.ts';
import { showMoney } from '#platform/shared/money.ts';
import { oneLine } from '#platform/shared/plain-text.ts';
import type { Territory } from '#platform/shared/territories.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import { type Words, words } from '#platform/shared/words/words.ts';
import { writeDate, writeMonth } from '#platform/shared/words/write-date.ts';
import { type Instalment, retryDays } from '#purchases/instalments/instalment.ts';
import type { Message, ShopperMessageKind } from '#purchases/messages/message.ts';
import { isToCome, type PaymentState, stateOf } from '#purchases/shoppers/plan.ts';
import type { Letter, LetterRow } from './letter.ts';
import { type LetterFacts, writeLetter } from './letters.ts';
import type { RefundEffect } from './message-subject.sql.ts';

/**
 * Everything that a message is written from. It is read when the message is sent, so that the
 * message is up to date.
 */
export type MessageSubject = {
  merchant: Omit<MerchantProfile, 'logo'> & { name: string; territory: Territory };
  checkout: {
    amount: number;
    currency: string;
    client_reference_id: string;
    number_of_payments: number | null;
  };
  language: Language;
  instalments: Instalment[];
  card: { brand: string | null; last4: string | null } | null;
  /** Whether the bank forbids every further charge of the card (decision 0027). */
  isForbidden: boolean;
  /** The URL of the plan page. In a mail with a one-time link, it is that link. */
  url: string;
  /** A person's answer to the shopper, and the question before it. */
  answer: { text: string; question: string | null } | null;
  /** The effect of the refund that the message is about. */
  refund: RefundEffect | null;
  /** The amounts that refunds returned to the card, by payment. */
  refunded: { instalment: number; sum: number }[];
  /** The local date in the merchant's territory. */
  today: string;
};

export function composeMessage(
  message: Pick<Message, 'facts'> & { kind: ShopperMessageKind },
  subject: MessageSubject,
): Letter {
  const texts = words[subject.language].letter;
  const { checkout, merchant, instalments } = subject;
  // Amounts are written as in the merchant's territory, whatever the language (decision 0028).
  const money = (cents: number) =>
    showMoney(cents, { ...merchant.territory, currency: checkout.currency });
  // A date must not break across lines, and neither must an amount.
  const date = (day: string) => writeDate(day, subject.language).replaceAll(' ', '\u00a0');

  const next = nextOf(subject);
  const rowOf = (one: Instalment, isNext: boolean): LetterRow => {
    const status = stateOf(one, isNext);
    const values = { number: one.number, count: instalments.length };
    const back = subject.refunded.find(({ instalment }) => instalment === one.number)?.sum;
    return {
      name: instalments.length === 1 ? texts.payment : fillIn(texts.payment_of, values),
      date: date(one.due_on),
      // Nothing is due for a cancelled payment, so the letter shows its original amount.
      amount: money(status === 'cancelled' ? one.amount : asked(one)),
      status,
      state: stateText(texts, status, back ? money(back) : null),
    };
  };
  const sumOf = (some: Instalment[]) => some.reduce((sum, one) => sum + asked(one), 0);
  const paid = instalments.filter(isPaid);
  // Refunds can cancel payments before they are collected. The plan is what is left.
  const left = instalments.filter(({ status }) => status !== 'cancelled');
  const late = instalments.filter(({ status, paused }) => status === 'overdue' && !paused);
  const about = instalments.find(({ number }) => number === message.facts.instalment);
  const { card_expires: expires } = message.facts;
  const retryOn = about ? retryOf(about, subject) : null;
  const facts: LetterFacts = {
    merchant: oneLine(merchant.name),
    order: oneLine(checkout.client_reference_id),
    count: instalments.length,
    isOver: left.every(isPaid),
    total: money(sumOf(left)),
    paid: money(sumOf(paid)),
    next: next ? { amount: money(asked(next)), date: date(next.due_on) } : null,
    amount: money(message.facts.amount ?? (about ? asked(about) : checkout.amount)),
    number: message.facts.instalment ?? 1,
    numbers: rangeOf(message.facts.instalments ?? []),
    date: about ? date(about.due_on) : '',
    retryOn: retryOn && date(retryOn),
    retriesMore: retryOn !== null && about?.declines === 1 && endsInWeek(retryOn, subject),
    isOverdue: about?.status === 'overdue',
    late: late.length > 0 ? money(sumOf(late)) : null,
    isCharge: message.facts.amount !== undefined,
    isForbidden: subject.isForbidden,
    uncharged: message.facts.uncharged ?? null,
    card: cardOf(subject, message),
    cardExpires: expires ? writeMonth(expires, subject.language) : '',
    answer: subject.answer,
    changesPlan: subject.refund?.changesPlan ?? false,
    returned: subject.refund?.returned ? money(subject.refund.returned) : null,
  };
  const said = writeLetter(message.kind, facts, subject.language);
  const hasTable = !['sign_in_link', 'answer'].includes(message.kind) && instalments.length > 0;
  return {
    from: facts.merchant,
    subject: said.subject,
    paragraphs: said.paragraphs,
    rows: hasTable ? instalments.map((one) => rowOf(one, one === next)) : [],
    link: { label: said.link, url: subject.url },
    footer: footerOf(texts.footer, merchant, subject.language),
  };
}

const isPaid = ({ status }: Instalment) => status === 'authorised' || status === 'collected';

/** The amount of a payment after refunds reduced it. */
const asked = (one: Instalment) => one.amount - one.reduced;

const cardOf = ({ card }: MessageSubject, { facts }: Pick<Message, 'facts'>) =>
  card?.last4 && !facts.other_card ? { brand: brandName(card.brand), last4: card.last4 } : null;

/** Why the shopper gets the letter, and one line with what is known about the seller. */
function footerOf(
  text: string,
  { name, contact, address, vat_number }: MessageSubject['merchant'],
  language: Language,
): string[] {
  const why = fillIn(text, { merchant: oneLine(name) });
  const vat = vat_number === null ? null : `${words[language].page.shop_vat} ${vat_number}`;
  const known = [address?.replaceAll('\n', ', ') ?? null, vat, contact].filter(
    (fact) => fact !== null,
  );
  return known.length === 0 ? [why] : [why, oneLine([name, ...known].join(' · '))];
}

/** The first payment to come. It is not announced while it is paused, or if its day has passed. */
function nextOf({ instalments, today }: MessageSubject): Instalment | null {
  const next = instalments.find(isToCome);
  const isPaused = next?.paused && next.shopper_attempt === null;
  return next && !isPaused && next.due_on >= today ? next : null;
}

/** The local date of a payment's next retry. Null if there is none, or if its day has passed. */
function retryOf(
  { status, paused, due_at }: Instalment,
  { today, merchant }: MessageSubject,
): string | null {
  if (status !== 'scheduled' || paused || due_at === null) return null;
  const { time_zone } = merchant.territory;
  const due = Temporal.Instant.from(due_at).toZonedDateTimeISO(time_zone).toPlainDate().toString();
  return due >= today ? due : null;
}

/** Whether the retries after the first one end within a week, if the card network allows them. */
function endsInWeek(first: string, { today }: MessageSubject): boolean {
  const after = (retryDays.at(-1) ?? 0) - (retryDays[0] ?? 0);
  const last = Temporal.PlainDate.from(first).add({ days: after });
  return Temporal.PlainDate.from(today).until(last).days <= 7;
}

const stateKeys = {
  paid: 'state_paid',
  next: 'state_next',
  planned: 'state_planned',
  late: 'state_late',
  cancelled: 'state_cancelled',
} as const satisfies Record<PaymentState, string>;

const stateText = (texts: Words['letter'], status: PaymentState, refunded: string | null) =>
  refunded ? fillIn(texts.state_refunded, { amount: refunded }) : texts[stateKeys[status]];

/** `2–4`, or `2, 4` if there is a gap. Null for fewer than two payments. */
function rangeOf(numbers: number[]): string | null {
  const [first = 0, last = 0] = [numbers[0], numbers.at(-1)];
  if (numbers.length < 2) return null;
  return last - first === numbers.length - 1 ? `${first}–${last}` : numbers.join(', ');
}
