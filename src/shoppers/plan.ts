import { type Dispute, pausingDispute } from '../disputes/dispute.ts';
import type { DeclineReason } from '../gateway/gateway.ts';
import type { Collection, Instalment } from '../instalments/instalment.ts';
import type { RefundPart, RefundRequest, RefundStatus } from '../refunds/refund.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { PayablePart } from './plan-act.ts';

/**
 * How a shopper sees a payment. `paid`: held or collected. `next`: the first that is still to come.
 * `planned`: one after it. `late`: the bank declined it, and it is still to be paid. `cancelled`: a
 * refund took all of it before it was collected.
 */
export const paymentStates = ['paid', 'next', 'planned', 'late', 'cancelled'] as const;
export type PaymentState = (typeof paymentStates)[number];

export type PlanPayment = {
  number: number;
  due_on: string;
  /** What is asked for, without what refunds took of it before it was collected. */
  amount: number;
  status: PaymentState;
  /** What refunds took of it before it was collected. */
  reduced: number;
  /** What refunds gave back of it after it was collected, or are giving back. */
  refunded: number;
  /** When it was collected. Null for the first one, which the shopper paid on its date. */
  paid_at: Timestamp | null;
  /** Of a late payment: why, and when it is retried by itself (null: it is not). */
  late: { reason: DeclineReason | null; retries_at: Timestamp | null } | null;
  /** The cardholder disputes it at the bank, or the bank took it back. */
  dispute: 'open' | 'lost' | null;
};

/** The plan of a successful checkout as its shopper sees it. */
export type Plan = {
  payments: PlanPayment[];
  card: { brand: string | null; last4: string | null } | null;
  paid: number;
  outstanding: number;
  refunds: { amount: number; status: RefundStatus; created_at: Timestamp }[];
  /** Nothing is charged for now: a refund is in progress, or see `dispute`. */
  is_paused: boolean;
  /**
   * `open`: the shopper disputes a payment with the bank. `lost`: the bank gave a payment back, and it
   * is not decided yet whether the rest stays due.
   */
  dispute: 'open' | 'lost' | null;
};

export type PlanRows = {
  instalments: Instalment[];
  /** Of each payment the newest request to the gateway. */
  collections: Collection[];
  refunds: RefundRequest[];
  parts: RefundPart[];
  disputes: Dispute[];
  card: Plan['card'];
};

export function presentPlan(rows: PlanRows): Plan {
  const { instalments, collections, refunds, parts, disputes, card } = rows;
  const next = instalments.find(isToCome);
  const payments = instalments.map((one): PlanPayment => {
    const status = stateOf(one, one === next);
    const last = collections.find(({ instalment }) => instalment === one.number);
    return {
      number: one.number,
      due_on: one.due_on,
      amount: one.amount - one.reduced,
      status,
      reduced: one.reduced,
      refunded: returned(parts, one.number),
      paid_at: status === 'paid' && one.number > 1 ? (one.collected_at ?? null) : null,
      late:
        status === 'late' ? { reason: last?.decline_reason ?? null, retries_at: one.due_at } : null,
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
    paid: sum(['paid']),
    outstanding: sum(['next', 'planned', 'late']),
    refunds: refunds.map(({ amount, status, created_at }) => ({ amount, status, created_at })),
    is_paused: instalments.some(
      ({ paused, shopper_attempt }) => paused && shopper_attempt === null,
    ),
    dispute: pausingDispute(disputes),
  };
}

/** One payment at the gateway may have brought several payments of the plan. */
function disputeOf({ payment_ref }: Instalment, disputes: Dispute[]): PlanPayment['dispute'] {
  const own = disputes.filter((one) => payment_ref !== null && one.payment_ref === payment_ref);
  if (own.some(({ closed_at }) => closed_at === null)) return 'open';
  return own.some(({ status }) => status === 'lost') ? 'lost' : null;
}

const isLate = ({ status, declines }: Instalment) =>
  status === 'overdue' || (status === 'scheduled' && declines > 0);

export const isToCome = (one: Instalment) => one.status === 'scheduled' && !isLate(one);

/** The payments that a shopper can pay now by one of the page's buttons, in order. */
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

function returned(parts: RefundPart[], instalment: number): number {
  return parts
    .filter((part) => part.kind === 'card' && part.instalment === instalment)
    .filter(({ status }) => status === 'open' || status === 'done')
    .reduce((sum, { amount }) => sum + amount, 0);
}

/** A payment link shows its order for this long after the last movement (decision 0069). */
const shownDays = 100;

/** Whether the order behind a payment link is old enough to be no longer shown. */
export function isPast(
  rows: Pick<PlanRows, 'instalments' | 'refunds' | 'disputes'>,
  now: Temporal.Instant,
): boolean {
  const { instalments, refunds, disputes } = rows;
  if (disputes.some(({ closed_at }) => closed_at === null)) return false;
  const isFinished = instalments.every(
    ({ status }) => status === 'collected' || status === 'cancelled',
  );
  if (!isFinished || refunds.some(({ status }) => status === 'requested' || status === 'pending')) {
    return false;
  }
  const movements = [
    ...instalments.map(({ collected_at, due_on }) => collected_at ?? `${due_on}T00:00:00.000Z`),
    ...refunds.map(({ completed_at, created_at }) => completed_at ?? created_at),
    ...disputes.map(({ closed_at, created_at }) => closed_at ?? created_at),
  ];
  const last = movements.sort().at(-1);
  return last !== undefined && now.since(last).total('hours') > shownDays * 24;
}
