import type { DeclineReason } from '../../src/gateway/gateway.ts';
import type { PlannedPayment } from '../../src/instalments/instalment.ts';
import type { PayPage, Plan } from '../../src/payments/pay-page.ts';
import { showMoney } from '../../src/shared/money.ts';

// The page's texts that depend on amounts, dates or reasons.

export type Money = Pick<PayPage, 'currency' | 'locale'>;

export function money(cents: number, page: Money): string {
  return showMoney(cents, page);
}

/** `15 December 2026`. The date is the merchant's local date, so no time zone applies. */
export function date(day: string, page: Money): string {
  const format = new Intl.DateTimeFormat(page.locale, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  });
  return format.format(new Date(`${day}T00:00:00Z`));
}

export function findPlan(page: PayPage, term: number): Plan {
  const plan = page.plans.find((each) => each.number_of_payments === term) ?? page.plans[0];
  return plan ?? { number_of_payments: 1, payments: [] };
}

export function firstPayment(plan: Plan, page: PayPage): number {
  return plan.payments[0]?.amount ?? page.amount;
}

export function paymentCount(count: number): string {
  return count === 1 ? '1 payment' : `${count} payments`;
}

/** The price of a term. The first payment carries the cents that do not divide (decision 0027). */
export function planPrice(plan: Plan, page: PayPage): string {
  const first = money(firstPayment(plan, page), page);
  const [, second] = plan.payments;
  if (second === undefined) return `${first} today`;
  if (second.amount === plan.payments[0]?.amount) return `${first} a\u00a0month`;
  return `${first} today, then ${money(second.amount, page)} a\u00a0month`;
}

/** The consent to the later charges, in one sentence; null if there are no later charges. */
export function consentSentence(plan: Plan, page: PayPage): string | null {
  const later = plan.payments.slice(1);
  const [next] = later;
  const last = later.at(-1);
  if (next === undefined || last === undefined) return null;
  const what =
    later.length <= 3
      ? list(later.map((payment) => `${money(payment.amount, page)} on ${on(payment, page)}`))
      : `${later.length} monthly payments of ${money(next.amount, page)} each, on the dates listed above, from ${on(next, page)} to ${on(last, page)}`;
  return `By paying you agree that this card is also charged ${what}, without asking you again.`;
}

/** Today's payment and the date of the next one; null if there is no next one. */
export function takenSentence(plan: Plan, page: PayPage): string | null {
  const [first, next] = plan.payments;
  if (first === undefined || next === undefined) return null;
  return `${money(first.amount, page)} today; next\u00a0payment\u00a0${on(next, page)}.`;
}

function on(payment: PlannedPayment, page: Money): string {
  // Keep the parts of a date on one line.
  return date(payment.due_on, page).replaceAll(' ', '\u00a0');
}

function list(parts: string[]): string {
  return parts.length === 1
    ? `${parts[0]}`
    : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

/** What happened, and what the shopper can do besides using another card. */
const declines: Record<DeclineReason, { happened: string; advice: string | null }> = {
  generic: { happened: 'Your bank declined this card.', advice: 'Try again' },
  insufficient_funds: {
    happened: 'Your bank declined this card: not enough funds.',
    advice: 'Try again',
  },
  // Do not tell the person with a lost or stolen card that the bank knows.
  lost_card: { happened: 'Your bank declined this card.', advice: null },
  stolen_card: { happened: 'Your bank declined this card.', advice: null },
  velocity_exceeded: {
    happened: 'Your bank declined this card: it has reached its limit for now.',
    advice: 'Try again later',
  },
  expired_card: {
    happened: 'Your bank declined this card: it has expired.',
    advice: 'Check the expiry date',
  },
  incorrect_cvc: {
    happened: 'Your bank declined this card: the security code is not right.',
    advice: 'Check the code',
  },
  incorrect_number: {
    happened: 'Your bank declined this card: the number is not right.',
    advice: 'Check the number',
  },
  processing_error: {
    happened: 'Your bank could not handle the payment just now.',
    advice: 'Try again in a moment',
  },
  authentication_failed: {
    happened: 'Your bank could not confirm that it was you.',
    advice: 'Try again',
  },
  authentication_required: {
    happened: 'Your bank wants you to confirm the payment, and that did not happen.',
    advice: 'Try again',
  },
};

export function declineWords(decline: NonNullable<PayPage['decline']>): {
  happened: string;
  next: string;
} {
  const { happened, advice } = declines[decline.reason];
  const next =
    advice === null || !decline.may_retry ? 'Use another card.' : `${advice} or use another card.`;
  return { happened, next: `Nothing was charged. ${next}` };
}
