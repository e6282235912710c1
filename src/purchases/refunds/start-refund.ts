import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Writes } from '#platform/database/write-together.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { reducePlan } from '#purchases/instalments/reduce-instalment.ts';
import { type Movement, reversalsOf } from '#record/ledger/post-movements.ts';
import { announceRefund } from './announce-refund.ts';
import { insertParts, updateState } from './refund.sql.ts';
import {
  NothingLeft,
  type PlannedPart,
  partId,
  type RefundPart,
  type RefundRequest,
  type RefundStatus,
  splitRefund,
} from './refund.ts';
import type { RefundSources, RefundStart } from './refund-sources.sql.ts';

/**
 * Finds the payments that a refund of this amount would be taken from now, given what earlier
 * refunds and disputes took. Null if the refund must wait until the hold is captured.
 */
export const planRefund = (
  { territory }: Merchant,
  { instalments, given }: RefundSources,
  amount: number,
): PlannedPart[] | null => splitRefund(instalments, given, amount, territory.payment_min);

/**
 * Why a refund cannot begin now. With `collecting`, the split depends on a collection in flight, or
 * the hold must be captured first.
 */
type Waiting = 'disputed' | 'blocked' | 'collecting';

/** A refund that begins with these parts as soon as the caller has sent the writes. */
export type Started = { refund: RefundRequest; parts: RefundPart[]; writes: Writes };

/**
 * Makes an approved refund `pending`, in a transaction that holds the checkout's lock. Fixes which
 * payments it is taken from, reduces those that were not collected, and pauses collecting until the
 * refund has ended. The refund waits while the cardholder disputes a payment, while an operator
 * must look at the checkout first, while a collection of the checkout is open, while the hold must
 * be captured first (decision 0027), and while another refund may still return a part to the hold.
 */
export async function startRefund(
  deps: { clock: Clock; random: Random },
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  { sources, earlier, books }: RefundStart,
  from: RefundStatus,
  claim: {
    at: Timestamp;
    lease: string | null;
    leased_until: Timestamp | null;
    approved_by?: string | null;
    approved_by_name?: string;
  },
): Promise<Started | Waiting> {
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const { at, ...lease } = claim;
  if (sources.isDisputed) return 'disputed';
  if (sources.isBlocked) return 'blocked';
  if (sources.isCollecting) return 'collecting';

  // An earlier round may have refunded a part, which must not be refunded twice.
  const moved = sumOf(earlier.filter(({ status }) => status === 'done'));
  const rest = refund.amount - moved;
  const planned = planRefund(merchant, sources, rest);
  if (planned === null || voidsSharedHold(planned, sources.instalments)) return 'collecting';
  if (refund.uncollected_only && planned.some(({ kind }) => kind !== 'cancel')) {
    throw new NothingLeft(
      `less than ${rest} cents are left to collect`,
      'Another refund took a part of what was not collected.',
    );
  }
  const round = Math.max(0, ...earlier.map((part) => part.round)) + 1;
  // The caller sends the parts to the gateway as soon as this is committed.
  const times = { at, asked_at: timestamp(deps.clock.now()) };
  const taken = planned.map((part) => ({
    part,
    payment: sources.instalments.find(({ number }) => number === part.instalment) as Instalment,
    amount: part.amount,
  }));
  const parts = taken.map(({ part, payment }, index) =>
    newPart(refund, part, payment, { ...times, round, number: index + 1 }),
  );
  const uncollected = taken.filter(({ part }) => part.kind !== 'card');
  const of = { merchant_id, checkout_id, currency, refund_id };
  const movements = uncollected.map(({ part: { instalment, amount } }): Movement => {
    return { ...of, kind: 'cancelled', amount, instalment };
  });
  if (from === 'failed') movements.push({ ...of, kind: 'reserved', amount: rest });
  const to = {
    ...lease,
    status: 'pending' as const,
    approved_at: refund.approved_at ?? at,
    reason: null,
    kept: 0,
    due_at: at,
    attempts: 0,
  };
  const started: RefundRequest = { ...refund, ...to };
  await announceRefund(deps, db, merchant, started);
  const writes = {
    refund: updateState(refund, [from], to),
    parts: insertParts(parts),
    plan: reducePlan(refund, sources.instalments, uncollected),
    ...reversalsOf(deps, at, books, movements),
  };
  return { refund: started, parts, writes };
}

/**
 * Whether a refund takes the rest of a hold while another refund is in progress. If that refund
 * fails, it returns its part to the hold, which must not be voided before then.
 */
const voidsSharedHold = (planned: PlannedPart[], instalments: Instalment[]): boolean =>
  planned.some(({ kind, instalment, amount }) => {
    const payment = instalments.find(({ number }) => number === instalment);
    if (kind !== 'hold' || !payment) return false;
    const { paused, reduced } = payment;
    return paused && reduced > 0 && amount === payment.amount - reduced;
  });

export const sumOf = (parts: { amount: number }[]) =>
  parts.reduce((sum, { amount }) => sum + amount, 0);

function newPart(
  { merchant_id, checkout_id, id: refund_id }: RefundRequest,
  part: PlannedPart,
  payment: Instalment,
  times: { round: number; number: number; at: Timestamp; asked_at: Timestamp },
): RefundPart {
  const { round, number, at, asked_at } = times;
  const isWhole = part.amount === payment.amount - payment.reduced;
  // The gateway must void a hold that is taken entirely. It captures less of a reduced hold later.
  const isOpen = part.kind === 'card' || (part.kind === 'hold' && isWhole);
  return {
    ...part,
    merchant_id,
    id: partId(refund_id, round, part.instalment),
    checkout_id,
    refund_id,
    round,
    number,
    status: isOpen ? 'open' : 'done',
    from_status: payment.status,
    payment_ref: part.kind === 'cancel' ? null : payment.payment_ref,
    key_number: 1,
    keyed_at: at,
    asked_at: part.kind === 'card' ? asked_at : null,
    refund_ref: null,
    settled_at: isOpen ? null : at,
  };
}
