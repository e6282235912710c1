import { commonRefundMin } from '#gateway/capabilities.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Approver } from '#platform/shared/approver.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { derivedId } from '#platform/shared/derived-id.ts';
import { explainInvisible } from '#platform/shared/plain-text.ts';
import type { Instalment, InstalmentStatus } from '#purchases/instalments/instalment.ts';

/**
 * A refund request is `requested` until it begins or is declined, `pending` while it is processed,
 * and ends `complete` or `failed`. An operator may make a failed one `pending` again, and a card
 * network may fail a complete one days later. The amounts of requests that are not `failed`, plus
 * what failed ones refunded, never sum to more than the checkout.
 */
export const refundStatuses = ['requested', 'pending', 'complete', 'failed'] as const;
export type RefundStatus = (typeof refundStatuses)[number];

export type RefundRequest = {
  merchant_id: string;
  id: string;
  number: number;
  checkout_id: string;
  gateway: GatewayName;
  integration_id: string;
  status: RefundStatus;
  amount: number;
  currency: string;
  signed: boolean;
  /** Whether the refund only cancels the rest of a plan, and returns nothing to the card. */
  uncollected_only: boolean;
  created_at: Timestamp;
  /** When an operator approved the refund, or the service did when it was created. */
  approved_at: Timestamp | null;
  completed_at: Timestamp | null;
  reason: string | null;
  kept: number;
  due_at: Timestamp | null;
  attempts: number;
  lease: string | null;
  leased_until: Timestamp | null;
  /**
   * The id of the person who requested the refund. A command states only `requested_by_name`. Both
   * are null if the refund came over the API.
   */
  requested_by: string | null;
  requested_by_name: string | null;
  request_reason: string | null;
  /** The first of two approvals (decision 0074). The second sets `approved_at`. */
  first_approved_by: string | null;
  first_approved_by_name: string | null;
  first_approved_at: Timestamp | null;
  /**
   * The id of the person whose approval let the refund begin. A command states only
   * `approved_by_name`. Both are null until then, and if the service approved the refund when it
   * was created.
   */
  approved_by: string | null;
  approved_by_name: string | null;
};

export type RefundSummary = {
  count: number;
  /** Whether at least one of them has not ended. */
  is_open: boolean;
  /**
   * The latest time at which one of them was completed, or requested if it was never completed.
   * Null if there are none.
   */
  moved_at: Timestamp | null;
};

/** Whether two people have to agree to a refund, by the merchant's threshold (decision 0074). */
export const needsSecondPerson = (amount: number, above: number | null): boolean =>
  above !== null && amount > above;

/**
 * Whether two people must agree to a refund that is waiting for review, or had to agree to one that
 * has been decided. `alone` is the sum of the checkout's other refunds to which fewer than two
 * people agreed.
 */
export function neededSecondPerson(
  refund: RefundRequest,
  above: number | null,
  alone: number,
): boolean {
  // The service approves a person's own request when it is created, or never (decision 0074).
  const isAtOnce = refund.approved_at !== null && refund.approved_by_name === null;
  if (firstApproverOf(refund) !== null || (requesterOf(refund) !== null && !isAtOnce)) return true;
  return needsSecondPerson(alone + refund.amount, above);
}

/** The operator who requested a refund, or null if it came over the API. */
export const requesterOf = (refund: RefundRequest): Approver | null =>
  refund.requested_by_name === null
    ? null
    : { person_id: refund.requested_by, name: refund.requested_by_name };

export const firstApproverOf = (refund: RefundRequest): Approver | null =>
  refund.first_approved_by_name === null
    ? null
    : { person_id: refund.first_approved_by, name: refund.first_approved_by_name };

/**
 * The people who agreed to a refund that is waiting for review, and why each of them cannot approve
 * it again.
 */
export function agreedTo(refund: RefundRequest): { by: Approver; refusal: string }[] {
  const [requester, first] = [requesterOf(refund), firstApproverOf(refund)];
  return [
    ...(requester
      ? [{ by: requester, refusal: 'You asked for this refund. Another person has to approve it.' }]
      : []),
    ...(first
      ? [
          {
            by: first,
            refusal: 'You gave the first approval. Another person has to give the second.',
          },
        ]
      : []),
  ];
}

/**
 * Whether the next approval is only the first of two. `alone` is the sum of the checkout's refunds
 * to which fewer than two people agreed: several small refunds must not replace a large one
 * (decision 0074).
 */
export function isFirstOfTwo(refund: RefundRequest, above: number | null, alone: number): boolean {
  return agreedTo(refund).length === 0 && needsSecondPerson(alone + refund.amount, above);
}

/**
 * The part of a refund that is taken from one payment. `cancel` reduces a payment that was not
 * collected. `hold` captures less of the hold, or voids it. `card` refunds what was collected. A
 * part is `open` until it is `done` or has `failed`. When a refund fails, parts that can be undone
 * are `put_back`.
 */
export const refundPartKinds = ['cancel', 'hold', 'card'] as const;
export type RefundPartKind = (typeof refundPartKinds)[number];

export const refundPartStatuses = ['open', 'done', 'failed', 'put_back'] as const;
export type RefundPartStatus = (typeof refundPartStatuses)[number];

export type RefundPart = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  refund_id: string;
  round: number;
  number: number;
  instalment: number;
  kind: RefundPartKind;
  status: RefundPartStatus;
  amount: number;
  from_status: InstalmentStatus;
  payment_ref: string | null;
  key_number: number;
  keyed_at: Timestamp;
  /** When the gateway was last asked, on the real clock. */
  asked_at: Timestamp | null;
  refund_ref: string | null;
  settled_at: Timestamp | null;
};

/**
 * The id of a refund that a person requests. The browser chooses `request_id`, so the id includes
 * the merchant: otherwise it could be the id of another merchant's refund (decision 0074).
 */
export const requestedId = (merchant_id: string, request_id: string) =>
  derivedId('requested refund', merchant_id, request_id);

/** The gateway knows the part by this id, even after a restore (decision 0049). */
export const partId = (refund_id: string, round: number, instalment: number) =>
  derivedId('refund part', refund_id, round, instalment);

/**
 * Groups what is taken from the card by the gateway's payments. A shopper may have paid several
 * payments of the plan at once. The gateway makes one refund for all parts that are taken from one
 * of its payments, under the id and the key of the first part.
 */
export const byPayment = <Part extends { payment_ref: string | null }>(parts: Part[]) =>
  [...Map.groupBy(parts, ({ payment_ref }) => payment_ref).values()] as [Part, ...Part[]][];

export type PlannedPart = { instalment: number; kind: RefundPartKind; amount: number };

type RefundablePayment = Pick<
  Instalment,
  'number' | 'amount' | 'reduced' | 'status' | 'collected_at' | 'payment_ref'
>;

const kindOf = (status: InstalmentStatus): RefundPartKind =>
  status === 'collected' ? 'card' : status === 'authorised' ? 'hold' : 'cancel';

/** The amount that a refund may take from a payment. */
type Source = {
  instalment: number;
  kind: RefundPartKind;
  room: number;
  payment_ref: string | null;
};

/**
 * Splits a refund over the payments (decision 0014): first from payments not yet collected, from
 * the last backwards; then the hold; then collected payments, newest first. `returned` is what
 * earlier refunds and disputes returned to the card, by payment.
 *
 * A payment that is still to be collected keeps at least `payment_min` or nothing, because the
 * gateway accepts no less (decision 0027). The amount that it must keep is taken from other
 * payments. If no split allows that, returns null, and the refund waits for the capture of the
 * hold, after which any amount can be returned to the card. Without a hold the payment is left with
 * less.
 *
 * Each refund at the gateway is for at least `refund_min`, if any split allows that, because the
 * gateway makes no smaller refunds.
 */
export function splitRefund(
  instalments: RefundablePayment[],
  returned: ReadonlyMap<number, number>,
  amount: number,
  payment_min: number,
  refund_min = commonRefundMin,
): PlannedPart[] | null {
  const sources = sourcesOf(instalments, returned);
  const missing = amount - roomOf(sources);
  if (missing > 0)
    throw new NothingLeft(`${missing} cents of a refund have no payment to come from`);
  const open = sources.filter(({ kind }) => kind !== 'card');
  const card = sources.filter(({ kind }) => kind === 'card');
  const onCard = roomOf(card);
  /** Takes from payments that are not collected, and leaves at least `least` for the card. */
  const takeOpen = (least: number) =>
    takeAllowed(open, onCard - least, amount - least, payment_min);
  const allowed = takeOpen(0);
  if (allowed === null && open.some(({ kind }) => kind === 'hold')) return null;
  const inOrder = allowed ?? takeInOrder(open, amount);
  const left = amount - sum(inOrder);
  const isTooLittle = left > 0 && left < refund_min && Math.min(amount, onCard) >= refund_min;
  const takes = (isTooLittle && takeOpen(refund_min)) || inOrder;
  return [...partsOf(open, takes), ...returnToCard(card, amount - sum(takes), refund_min)];
}

const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + amount, 0);

const roomOf = (sources: Source[]) => sum(sources.map(({ room }) => room));

const partsOf = (sources: Source[], takes: number[]): PlannedPart[] =>
  sources.flatMap(({ instalment, kind }, index) => {
    const amount = takes[index] ?? 0;
    return amount === 0 ? [] : [{ instalment, kind, amount }];
  });

/** The payments that have something left, in the order in which a refund takes from them. */
function sourcesOf(
  instalments: RefundablePayment[],
  returned: ReadonlyMap<number, number>,
): Source[] {
  const newestFirst = [...instalments].sort((one, other) => {
    const rank = (kind: RefundPartKind) => refundPartKinds.indexOf(kind);
    const [first, second] = [kindOf(one.status), kindOf(other.status)];
    if (first !== second) return rank(first) - rank(second);
    const [since, until] = [one.collected_at ?? '', other.collected_at ?? ''];
    if (since !== until) return since > until ? -1 : 1;
    return other.number - one.number;
  });
  return newestFirst
    .map(({ number, status, amount, reduced, payment_ref }) => ({
      instalment: number,
      kind: kindOf(status),
      room: amount - reduced - (returned.get(number) ?? 0),
      payment_ref,
    }))
    .filter(({ room }) => room > 0);
}

function takeInOrder(sources: Pick<Source, 'room'>[], amount: number): number[] {
  let left = amount;
  return sources.map(({ room }) => {
    const take = Math.min(room, left);
    left -= take;
    return take;
  });
}

/** Whether a payment keeps enough to be collected. One that is taken entirely is not collected. */
const leavesEnough = ({ room }: Source, take: number, payment_min: number): boolean =>
  take === 0 || take === room || room - take >= payment_min;

/**
 * The first allowed split over payments that are not collected. Takes them in order if that is
 * allowed. Otherwise chooses which payments are taken entirely, the newest first. The others are
 * reduced to no less than `payment_min`, and the rest, at most `onCard`, is refunded to the card.
 * Returns null if no split is allowed.
 */
export function takeAllowed(
  open: Source[],
  onCard: number,
  amount: number,
  payment_min: number,
): number[] | null {
  const inOrder = takeInOrder(open, amount);
  if (open.every((source, index) => leavesEnough(source, inOrder[index] ?? 0, payment_min))) {
    return inOrder;
  }
  const spare = ({ room }: Source) => Math.max(0, room - payment_min);
  // Only payments with less than `payment_min` can lead to a dead end. They are few, or mostly
  // equal, so there are few distinct states.
  const failed = new Set<string>();
  const choose = (index: number, left: number, spared: number): boolean[] | null => {
    const source = open[index];
    if (source === undefined) return left <= spared + onCard ? [] : null;
    const rest = open.slice(index);
    const missing = left - spared - onCard - sum(rest.map(spare));
    if (missing > mostFreed(rest, left, payment_min)) return null;
    const state = `${index} ${left} ${spared}`;
    if (failed.has(state)) return null;
    if (source.room <= left) {
      const others = choose(index + 1, left - source.room, spared);
      if (others) return [true, ...others];
    }
    const others = choose(index + 1, left, spared + spare(source));
    if (others) return [false, ...others];
    failed.add(state);
    return null;
  };
  const whole = choose(0, amount, 0);
  if (whole === null) return null;
  const cancelled = roomOf(open.filter((_, index) => whole[index]));
  const partly = open.map((source, index) => ({ room: whole[index] ? 0 : spare(source) }));
  const takes = takeInOrder(partly, amount - cancelled);
  return open.map(({ room }, index) => (whole[index] ? room : (takes[index] ?? 0)));
}

/**
 * An upper bound on how much less the payments must keep if `left` cents are used to take some of
 * the payments entirely. The bound is exact if each payment has `payment_min` or more.
 */
function mostFreed(payments: Source[], left: number, payment_min: number): number {
  const rooms = payments.map(({ room }) => room);
  const small = sum(rooms.filter((room) => room < payment_min));
  const large = rooms.filter((room) => room >= payment_min).sort((one, other) => one - other);
  let [most, used] = [Math.min(small, left), 0];
  for (const [index, room] of large.entries()) {
    used += room;
    if (used > left) break;
    most = Math.max(most, (index + 1) * payment_min + Math.min(small, left - used));
  }
  return most;
}

/**
 * Takes an amount from collected payments. If possible, no refund that the gateway makes is smaller
 * than `refund_min`, and neither is what it leaves, so that the rest can be refunded later.
 */
function returnToCard(card: Source[], amount: number, refund_min: number): PlannedPart[] {
  const payments = byPayment(card);
  const rooms = payments.map(roomOf);
  const takes =
    takeAtLeast(rooms, amount, refund_min, refund_min) ??
    takeAtLeast(rooms, amount, refund_min, 1) ??
    takeInOrder(
      rooms.map((room) => ({ room })),
      amount,
    );
  return payments.flatMap((sources, index) =>
    partsOf(sources, takeInOrder(sources, takes[index] ?? 0)),
  );
}

/**
 * Takes nothing or at least `min` from each of the gateway's payments, in order. Leaves nothing or
 * at least `keep` of each payment that it takes from. `rooms` are the amounts that can be taken
 * from the payments. Returns null if it finds no such split.
 */
function takeAtLeast(rooms: number[], amount: number, min: number, keep: number): number[] | null {
  let left = amount;
  const isAllowed = (room: number, take: number) =>
    take >= min && (take === room || room - take >= keep) && (take === left || left - take >= min);
  const takes = rooms.map((room) => {
    const most = Math.min(room, left);
    // If `most` is not allowed, `min` less may be: it leaves enough for the next payment.
    const take = [most, most - min].find((one) => isAllowed(room, one)) ?? 0;
    left -= take;
    return take;
  });
  return left === 0 ? takes : null;
}

type Disputed = { instalment: number; amount: number };

/** Adds the disputed amounts to those that refunds returned, by payment. */
export function withDisputed(
  returned: ReadonlyMap<number, number>,
  disputed: Disputed[],
): Map<number, number> {
  const given = new Map(returned);
  for (const { instalment, amount } of disputed) {
    given.set(instalment, (given.get(instalment) ?? 0) + amount);
  }
  return given;
}

/** Thrown if the payments have too little left for a refund. The merchant reads `reason`. */
export class NothingLeft extends Error {
  readonly reason: string;

  constructor(message: string, reason = 'The cardholder got the money back by a dispute.') {
    super(message);
    this.reason = reason;
  }
}

const reasonCharactersMax = 500;

/** Returns what is wrong with an operator's reason to decline a refund, or null. */
export function explainBadReason(reason: string): string | null {
  if (reason.trim() === '') return 'A reason is needed.';
  if (reason.length > reasonCharactersMax) {
    return `The reason has ${reason.length} characters and may have at most ${reasonCharactersMax}.`;
  }
  return /\p{C}/u.test(reason) ? explainInvisible('The reason') : null;
}

/** How many days after the end of a refund we check that the card network has not returned it. */
const watchDays = [1, 2, 3, 5, 7, 10, 14, 21, 30];

/** When a refund that has ended is checked next, or null after the last check. */
export function nextWatch(completed_at: Timestamp, now: Temporal.Instant): Temporal.Instant | null {
  const completed = Temporal.Instant.from(completed_at);
  const next = watchDays
    .map((days) => completed.add({ hours: 24 * days }))
    .find((check) => Temporal.Instant.compare(check, now) > 0);
  return next ?? null;
}

/**
 * When to look up a refund that the gateway has not settled: first after 1 minute, then after twice
 * as long each time, up to 6 hours.
 */
export function nextRefundLookUp(now: Temporal.Instant, attempts: number): Temporal.Instant {
  return now.add({ minutes: Math.min(2 ** Math.min(attempts, 10), 6 * 60) });
}

/** The purchase date is day 0; day 100 is the last one (contract, Limits). */
const refundWindowDays = 100;

/**
 * Auto-refund integrations may refund from this local time on the day after the purchase (decision
 * 0014).
 */
const autoRefundOpens = Temporal.PlainTime.from('10:00');

/** Why a refund may not be requested now, or null. The sentences come from the contract. */
export function explainClosedWindow(
  purchase: { completed_at: Timestamp; refund_mode: 'manual' | 'auto'; time_zone: string },
  now: Temporal.Instant,
): string | null {
  const purchaseDate = Temporal.Instant.from(purchase.completed_at)
    .toZonedDateTimeISO(purchase.time_zone)
    .toPlainDate();
  const local = now.toZonedDateTimeISO(purchase.time_zone);
  const lastDate = purchaseDate.add({ days: refundWindowDays });
  if (Temporal.PlainDate.compare(local.toPlainDate(), lastDate) > 0) {
    return 'Orders can only be refunded within 100 days of the purchase date.';
  }
  if (purchase.refund_mode === 'auto') {
    const opens = purchaseDate
      .add({ days: 1 })
      .toZonedDateTime({ timeZone: purchase.time_zone, plainTime: autoRefundOpens });
    if (Temporal.ZonedDateTime.compare(local, opens) < 0) {
      return "Order can't be refunded on the day of purchase.";
    }
  }
  return null;
}
