import type { CardSession, DeclineReason } from '#gateway/gateway.ts';
import {
  type AttemptPurpose,
  type Consent,
  isInFlight,
  type PaymentAttempt,
} from '#purchases/payments/payment-attempt.ts';

// The shopper's attempts on a plan, as the page requests and shows them.

export type PlanPurpose = Exclude<AttemptPurpose, 'first_payment'>;

/**
 * `late` means all or some of the payments that are late, `next` the next payment, before its date,
 * and `rest` everything that has not been paid yet.
 */
export const payableParts = ['late', 'next', 'rest'] as const;
export type PayablePart = (typeof payableParts)[number];

/**
 * A session with the scope `plan` may do everything on the plan. With `late` it may only pay what
 * is late.
 */
export type SessionScope = 'plan' | 'late';

/**
 * The panels of the plan page, one for each thing that a shopper can do. A link in a mail may name
 * one: the panel for which the shopper requested the link, `late` after a decline, or `report`
 * after the merchant's answer.
 */
export const planPanels = [...payableParts, 'card', 'report'] as const;
export type PlanPanel = (typeof planPanels)[number];

/** The body of `POST /pay/{token}/plan/pay`. */
export type PayPlanRequest = {
  what: PayablePart;
  /**
   * The numbers of the payments that the page showed for `what`, in order; `amount` is their sum.
   * If the plan has changed since, nothing is charged.
   */
  payments: number[];
  amount: number;
  /**
   * The gateway's token for another card. Null means the stored card, unless `enters_card` is set.
   */
  card_token: string | null;
  /** Whether another card is entered in the session that begins. */
  enters_card?: boolean;
  /** Whether the other card replaces the stored one for the remaining payments. */
  keep_card: boolean;
  /**
   * If `keep_card` is set, the consent as the page showed it, with the number, amount and date of
   * each payment that remains. Otherwise null.
   */
  consent: Consent | null;
};

export const paysStored = ({ card_token, enters_card }: PayPlanRequest) =>
  card_token === null && !enters_card;

/**
 * The body of `POST /pay/{token}/plan/card`. The consent names each payment that is not paid or
 * cancelled, late ones included.
 */
export type ReplaceCardRequest = { card_token: string | null; consent: Consent };

/** Why nothing began. */
export type PlanRefusal =
  /** The service is charging one of these payments at this moment. */
  | 'being_charged'
  | 'refund_in_progress'
  | 'disputed'
  /** The payments are not what the page showed, or the card was replaced a moment ago. */
  | 'plan_changed'
  /** The bank forbids charging this card again, or the payment was declined too often today. */
  | 'card_refused'
  /**
   * At the moment no money moves at all, or none for this checkout (decisions 0097 and 0098), or
   * the gateway did not say which card was entered.
   */
  | 'payments_paused';

/** The shopper's newest attempt on the plan, as the page shows it. */
export type PlanAttempt = {
  /**
   * Counts the shopper's attempts on this plan. A page that made a request accepts only a newer
   * attempt.
   */
  number: number;
  purpose: PlanPurpose;
  /**
   * With `working` the outcome is not known yet, and the page polls. With `begun` the shopper
   * enters the card in `card_session`, and with `challenge` their bank challenges them at
   * `challenge_url`. `declined` means that nothing was charged or changed, and that the shopper may
   * retry. `done` means that the payments are paid or the card is replaced. `refused` means that
   * nothing began (see `refusal`), and occurs only in the answer to the request.
   */
  status: 'working' | 'begun' | 'challenge' | 'declined' | 'done' | 'refused';
  /** The numbers of the payments that are paid; empty when the card is replaced. */
  payments: number[];
  amount: number;
  /** Only a browser with a session gets `challenge_url`, `card_session` and `decline`. */
  challenge_url: string | null;
  card_session: CardSession | null;
  decline: { reason: DeclineReason; may_retry: boolean } | null;
  refusal: PlanRefusal | null;
};

/** The page shows an outcome for as long as a session lasts. */
const newsMinutes = 30;

/** Without a session the page shows only that an attempt is in flight. */
export function presentPlanAttempt(
  attempt: PaymentAttempt | null,
  hasSession: boolean,
  card_session: CardSession | null,
  now: Temporal.Instant,
): PlanAttempt | null {
  if (attempt === null) return null;
  const { number, instalments, amount, settled_at, decline_reason, may_retry } = attempt;
  const purpose = attempt.purpose as PlanPurpose;
  const shown = { number, purpose, payments: instalments, amount, refusal: null };
  const none = { challenge_url: null, card_session: null, decline: null };
  if (isInFlight(attempt)) {
    if (hasSession && card_session) return { ...shown, ...none, status: 'begun', card_session };
    return hasSession && attempt.status === 'challenged'
      ? { ...shown, ...none, status: 'challenge', challenge_url: attempt.challenge_url }
      : { ...shown, ...none, status: 'working' };
  }
  const isNews = settled_at !== null && now.since(settled_at).total('minutes') < newsMinutes;
  if (!hasSession || !isNews) return null;
  if (attempt.status === 'charged' || attempt.status === 'verified') {
    return { ...shown, ...none, status: 'done' };
  }
  const decline = { reason: decline_reason ?? 'generic', may_retry: may_retry ?? true };
  return { ...shown, ...none, status: 'declined', decline };
}

/** The answer to a request that began nothing. `newest` is the last attempt before it. */
export function presentRefusal(
  purpose: PlanPurpose,
  refusal: PlanRefusal,
  newest: PaymentAttempt | null,
): PlanAttempt {
  const none = {
    ...{ payments: [], amount: 0 },
    ...{ challenge_url: null, card_session: null, decline: null },
  };
  return { ...none, number: newest?.number ?? 0, purpose, status: 'refused', refusal };
}
