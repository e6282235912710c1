import type { DeclineReason } from '#gateway/gateway.ts';
import { showMoney } from '#platform/shared/money.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import type { PageKey, PageWords } from '#platform/shared/words/words.ts';
import { writeCharges } from '#platform/shared/words/write-charges.ts';
import type { PlannedPayment } from '#purchases/instalments/instalment.ts';
import type { PayPage, Plan } from '#purchases/shoppers/pay-page.ts';
import type { PaymentState } from '#purchases/shoppers/plan.ts';

// The page's texts that depend on amounts, dates or reasons, in the page's language.

/** The language of a page: its texts, and how it writes amounts and dates. */
export type I18n = {
  words: PageWords;
  text(key: PageKey, values?: Record<string, string | number>): string;
  /** The text for one thing or for several. */
  count(one: PageKey, other: PageKey, count: number): string;
  money(cents: number): string;
  /** `15 December 2026`. The date is the merchant's local date, so no time zone applies. */
  date(day: string): string;
  /** The merchant's local date and time at a moment. */
  dateOf(moment: string): string;
  timeOf(moment: string): string;
};

/**
 * Amounts are written as in the merchant's territory, in every language. The names of months come
 * from the catalogue, because browsers lack some languages, and the page must not change when the
 * script takes over from the server.
 */
export function createI18n(
  words: PageWords,
  page: Pick<PayPage, 'currency' | 'locale' | 'time_zone'> | null,
): I18n {
  const text: I18n['text'] = (key, values) => fillIn(words[key], values);
  const date: I18n['date'] = (day) => {
    const [year = '', month = '', number = ''] = day.split('-');
    const name = words.months.split(',')[Number(month) - 1] ?? '';
    return text('date', { day: Number(number), month: name, year });
  };
  return {
    words,
    text,
    count: (one, other, count) => text(count === 1 ? one : other, { count }),
    money: (cents) => showMoney(cents, page ?? { currency: 'ZAR', locale: 'en-ZA' }),
    date,
    dateOf: (moment) => date(localDay(moment, page?.time_zone)),
    timeOf: (moment) => local(moment, page?.time_zone, { timeStyle: 'short' }),
  };
}

/** The local day in a time zone as `2026-12-15`. The Swedish format has this order. */
export function localDay(moment: string, timeZone: string | undefined): string {
  return local(moment, timeZone, { dateStyle: 'short' }, 'sv-SE');
}

function local(
  moment: string,
  timeZone: string | undefined,
  style: Intl.DateTimeFormatOptions,
  locale = 'en-GB',
): string {
  const format = new Intl.DateTimeFormat(locale, { ...style, ...(timeZone && { timeZone }) });
  return format.format(Date.parse(moment));
}

export function findPlan(page: PayPage, term: number): Plan {
  const plan = page.plans.find((each) => each.number_of_payments === term) ?? page.plans[0];
  return plan ?? { number_of_payments: 1, payments: [] };
}

export function firstPayment(plan: Plan, page: PayPage): number {
  return plan.payments[0]?.amount ?? page.amount;
}

/**
 * The price of a term, in parts that must not break across lines. The first payment includes the
 * cents that do not divide (decision 0027), so it may need a part of its own.
 */
export function planPrice(plan: Plan, page: PayPage, i18n: I18n): string[] {
  const first = firstPayment(plan, page);
  const amount = i18n.money(first);
  const [, second] = plan.payments;
  if (second === undefined) return [i18n.text('price_today', { amount })];
  if (second.amount === first) return [i18n.text('price_monthly', { amount })];
  // A comma joins the parts if they share a line, and for screen readers.
  return [
    `${i18n.text('price_today', { amount })},`,
    i18n.text('price_then', { amount: i18n.money(second.amount) }),
  ];
}

/** The consent to the later charges, in one sentence; null if there are no later charges. */
export function consentSentence(plan: Plan, i18n: I18n): string | null {
  const charges = chargesWords(plan.payments.slice(1), i18n, 'consent_many');
  return charges === null ? null : i18n.text('consent', { charges });
}

/**
 * The charges that the shopper agrees to, without a line break inside a date; null if there are
 * none.
 */
export const chargesWords = (
  later: (PlannedPayment & { status?: PaymentState })[],
  i18n: I18n,
  many: 'consent_many' | 'consent_monthly',
) => writeCharges(later, { ...i18n, date: (day) => oneLine(i18n.date(day)) }, many);

/** Today's payment and the date of the next one; null if there is no next one. */
export function takenSentence(plan: Plan, i18n: I18n): string | null {
  const [first, next] = plan.payments;
  if (first === undefined || next === undefined) return null;
  return i18n.text('approved_taken', {
    amount: i18n.money(first.amount),
    date: oneLine(i18n.date(next.due_on)),
  });
}

/** Prevents a line break inside a date. */
const oneLine = (date: string) => date.replaceAll(' ', '\u00a0');

/** Why a payment was not collected, without advice. */
export function happenedWords(reason: DeclineReason | 'lapsed', i18n: I18n): string {
  return i18n.text(reason === 'lapsed' ? 'plan_late_lapsed' : declines[reason][0]);
}

/** Says what happened, and what the shopper can do besides using another card. */
const declines: Record<DeclineReason, [happened: PageKey, advice: PageKey]> = {
  generic: ['declined', 'advice_again'],
  insufficient_funds: ['declined_funds', 'advice_again'],
  // A person with a lost or stolen card must not learn that the bank knows.
  lost_card: ['declined', 'advice_other'],
  stolen_card: ['declined', 'advice_other'],
  velocity_exceeded: ['declined_limit', 'advice_later'],
  expired_card: ['declined_expired', 'advice_expiry'],
  incorrect_cvc: ['declined_code', 'advice_code'],
  incorrect_number: ['declined_number', 'advice_number'],
  processing_error: ['declined_processing', 'advice_moment'],
  authentication_failed: ['declined_unconfirmed', 'advice_again'],
  authentication_required: ['declined_unasked', 'advice_again'],
};

export function declineWords(
  decline: NonNullable<PayPage['decline']>,
  i18n: I18n,
): { happened: string; next: string } {
  const [happened, advice] = declines[decline.reason];
  return {
    happened: i18n.text(happened),
    next: i18n.text(decline.may_retry ? advice : 'advice_other'),
  };
}
