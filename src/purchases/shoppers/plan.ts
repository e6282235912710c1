import type { DeclineReason } from '#gateway/gateway.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type Dispute, pausingDispute } from '#purchases/disputes/dispute.ts';
import type { Collection, Instalment } from '#purchases/instalments/instalment.ts';
import type { RefundStatus, RefundSummary } from '#purchases/refunds/refund.ts';
import type { PayablePart } from './plan-attempt.ts';

/**
 * How a shopper sees a payment. `paid`: held or collected. `next`: the first one still to come.
 * `planned`: a later one. `late`: the bank declined it, and it still has to be paid. `cancelled`: a
 * refund took all of it before it was collected.
 */
export const paymentStates = ['paid', 'next', 'planned', 'late', 'cancelled'] as const;
export type PaymentState = (typeof paymentStates)[number];

export type PlanPayment = {
  number: number;
  due_on: string;
  /** The amount that the shopper pays, less what refunds took off before it was collected. */
  amount: number;
  status: PaymentState;
  /** The amount that refunds took off before the payment was collected. */
  reduced: number;
  /** The amount that refunds have returned, or are returning, after the payment was collected. */
  refunded: number;
  /**
   * When the payment was collected. Null if it was not, or if the shopper paid it at checkout,
   * which was on its date.
   */
  paid_at: Timestamp | null;
  /**
   * For a late payment, why it was not collected without the shopper, and when the service retries
   * it (null if it does not). Only a browser with a session gets the bank's reason.
   */
  late: { reason: DeclineReason | 'lapsed' | null; retries_at: Timestamp | null } | null;
  /** The cardholder is disputing the payment with the bank, or the bank took it back. */
  dispute: 'open' | 'lost' | null;
};

export type PlanRefund = { amount: number; status: RefundStatus; created_at: Timestamp };

/** The plan of a successful checkout as its shopper sees it. */
export type Plan = {
  payments: PlanPayment[];
  /** The stored card, or the card that paid a single payment. */
  card: { brand: string | null; last4: string | null } | null;
  /** Whether `card` is stored, so that it can be charged again and replaced. */
  is_card_stored: boolean;
  paid: number;
  outstanding: number;
  /** The newest refunds, in ascending order. */
  refunds: PlanRefund[];
  /** How many refunds there were before those in `refunds`. */
  refunds_before: number;
  /** Whether charging is paused, because a refund is in progress or for the reason in `dispute`. */
  is_paused: boolean;
  /** Whether charging is blocked until an operator has looked at the checkout (decision 0098). */
  is_blocked: boolean;
  /**
   * `open`: the shopper disputes a payment with the bank. `lost`: the bank returned a payment to
   * the shopper, and an operator has not decided yet whether the rest stays due.
   */
  dispute: 'open' | 'lost' | null;
};

/** The rows that show when a checkout's money or status last moved (`last-movement.ts`). */
export type MovementRows = {
  instalments: Instalment[];
  refunds: RefundSummary;
  disputes: Dispute[];
};

export type PlanRows = MovementRows & {
  /** The newest request to the gateway for each payment, of each kind and outcome. */
  collections: Collection[];
  newestRefunds: PlanRefund[];
  /** The amount that refunds returned to the card, by payment. */
  returned: Map<number, number>;
  card: Plan['card'];
  isBlocked: boolean;
};

export function presentPlan(rows: PlanRows): Plan {
  const { instalments, collections, newestRefunds, disputes, card, isBlocked } = rows;
  const next = instalments.find(isToCome);
  const payments = instalments.map((one): PlanPayment => {
    const status = stateOf(one, one === next);
    const own = collections.filter(({ instalment }) => instalment === one.number);
    return {
      number: one.number,
      due_on: one.due_on,
      amount: one.amount - one.reduced,
      status,
      reduced: one.reduced,
      refunded: rows.returned.get(one.number) ?? 0,
      paid_at: wasHeld(own) ? null : one.collected_at,
      late: status === 'late' ? { reason: reasonOf(own), retries_at: one.due_at } : null,
      dispute: disputeOf(one, disputes),
    };
  });
  const sum = (states: PaymentState[]) =>
    payments
      .filter(({ status }) => states.includes(status))
      .reduce((total, { amount }) => total + amount, 0);
  return {
    payments,
    card,
    is_card_stored: card !== null,
    paid: sum(['paid']),
    outstanding: sum(['next', 'planned', 'late']),
    refunds: newestRefunds,
    refunds_before: rows.refunds.count - newestRefunds.length,
    is_paused:
      !isBlocked &&
      instalments.some(({ paused, shopper_attempt }) => paused && shopper_attempt === null),
    is_blocked: isBlocked,
    dispute: pausingDispute(disputes),
  };
}

/** Whether the shopper paid at checkout, and the hold was captured later. */
const wasHeld = (collections: Collection[]) =>
  collections.some(({ kind, status }) => kind === 'capture' && status === 'collected');

/**
 * Why the service could not collect the payment the last time: the hold `lapsed`, or the bank
 * declined the charge. Declined attempts of the shopper in a session do not count, because they did
 * not make the payment late.
 */
function reasonOf(collections: Collection[]): DeclineReason | 'lapsed' | null {
  const [newest] = collections
    .filter(({ kind }) => kind !== 'shopper')
    .filter(({ status }) => status === 'declined' || status === 'lapsed')
    .sort((one, other) => other.number - one.number);
  return newest?.status === 'lapsed' ? 'lapsed' : (newest?.decline_reason ?? null);
}

/** The plan for a browser without a session, which must not show why a card was declined. */
export const withoutReasons = (plan: Plan): Plan => ({
  ...plan,
  payments: plan.payments.map((one) => ({
    ...one,
    late: one.late && { ...one.late, reason: one.late.reason === 'lapsed' ? 'lapsed' : null },
  })),
});

/** One payment at the gateway may cover several payments of the plan. */
function disputeOf({ payment_ref }: Instalment, disputes: Dispute[]): PlanPayment['dispute'] {
  const own = disputes.filter((one) => payment_ref !== null && one.payment_ref === payment_ref);
  if (own.some(({ closed_at }) => closed_at === null)) return 'open';
  return own.some(({ status }) => status === 'lost') ? 'lost' : null;
}

const isLate = ({ status, declines }: Instalment) =>
  status === 'overdue' || (status === 'scheduled' && declines > 0);

export const isToCome = (one: Instalment) => one.status === 'scheduled' && !isLate(one);

/** The payments that a shopper can pay now with one of the page's buttons, in order. */
export function coveredBy(what: PayablePart, instalments: Instalment[]): Instalment[] {
  switch (what) {
    case 'late':
      return instalments.filter(isLate);
    case 'next':
      return instalments.filter(isToCome).slice(0, 1);
    case 'rest':
      return instalments.filter((one) => isLate(one) || isToCome(one));
  }
}

export function stateOf(one: Instalment, isNext: boolean): PaymentState {
  if (isLate(one)) return 'late';
  switch (one.status) {
    case 'authorised':
    case 'collected':
      return 'paid';
    case 'cancelled':
      return 'cancelled';
    default:
      return isNext ? 'next' : 'planned';
  }
}
