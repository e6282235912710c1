import type { Evidence } from '#gateway/evidence.ts';
import type { DisputeState } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Supplied } from './supplied.ts';

/**
 * A payment that the cardholder reverses through the bank. An `inquiry` is only a question. A
 * dispute that `needs_response` has withdrawn the money, and evidence can be submitted once, until
 * `due_by`. Then the dispute is `under_review` until the bank decides: `won` returns the money,
 * `lost` does not. `closed` means that the dispute ended without a decision.
 *
 * While a dispute is open, no payment of the plan is collected or refunded. The plan resumes after
 * a dispute that is won or closed. After a lost one an operator decides whether the rest of the
 * plan stays due. A refund of the whole rest decides that, too.
 */
export const disputeStatuses = [
  'inquiry',
  'needs_response',
  'under_review',
  'won',
  'lost',
  'closed',
] as const satisfies DisputeState['status'][];
export type DisputeStatus = (typeof disputeStatuses)[number];

export type Dispute = {
  merchant_id: string;
  id: string;
  dispute_ref: string;
  gateway: GatewayName;
  checkout_id: string;
  instalment: number;
  payment_ref: string;
  amount: number;
  currency: string;
  reason: string;
  network_reason_code: string | null;
  status: DisputeStatus;
  created_at: Timestamp;
  due_by: Timestamp | null;
  withdrawn: number;
  fee: number;
  /** How many answers from the gateway have been recorded. */
  reads: number;
  is_pausing: boolean;
  warned_at: Timestamp | null;
  /** Facts that the merchant or an operator supplied, and when the facts or a file last changed. */
  supplied: Supplied | null;
  supplied_at: Timestamp | null;
  /** When the merchant was last asked by mail, and the deadline for its answer. */
  asked_at: Timestamp | null;
  asked_until: Timestamp | null;
  /**
   * When the evidence was staged, its fields and files, and their hash. Only these are submitted.
   */
  staged_at: Timestamp | null;
  staged_evidence: Evidence | null;
  staged_files: string[] | null;
  staged_hash: string | null;
  /** When the submission began. While this is set, the evidence cannot be staged again. */
  submitting_at: Timestamp | null;
  /** The evidence cannot be submitted again before this time, on the real clock. */
  submitting_until: Timestamp | null;
  submitted_at: Timestamp | null;
  closed_at: Timestamp | null;
  due_at: Timestamp | null;
  attempts: number;
  lease: string | null;
  leased_until: Timestamp | null;
};

export const isOver = (status: DisputeStatus) => ['won', 'lost', 'closed'].includes(status);

/**
 * Which kind of dispute pauses the plan, if any. An open one does, and so does a lost one until an
 * operator has decided about the rest of the plan.
 */
export function pausingDispute(
  disputes: Pick<Dispute, 'is_pausing' | 'closed_at'>[],
): 'open' | 'lost' | null {
  const pausing = disputes.filter(({ is_pausing }) => is_pausing);
  if (pausing.length === 0) return null;
  return pausing.some(({ closed_at }) => closed_at === null) ? 'open' : 'lost';
}

/** Whether evidence can still be submitted, or the dispute accepted. */
export const isAnswerable = ({ status, submitted_at }: Pick<Dispute, 'status' | 'submitted_at'>) =>
  submitted_at === null && (status === 'needs_response' || status === 'inquiry');

const askedDays = 5;
/** How many days before the bank's deadline the merchant's answer is wanted. */
const askedDaysBefore = 2;

/**
 * The time by which a merchant that is asked now has to answer. Close to the bank's deadline the
 * merchant gets half of the remaining time.
 */
export function asksUntil(
  { due_by }: Pick<Dispute, 'due_by'>,
  now: Temporal.Instant,
): Temporal.Instant {
  const usual = now.add({ hours: 24 * askedDays });
  if (due_by === null) return usual;
  const end = Temporal.Instant.from(due_by);
  const before = end.subtract({ hours: 24 * askedDaysBefore });
  const half = now.add({ minutes: Math.max(0, Math.floor(now.until(end).total('minutes') / 2)) });
  const latest = Temporal.Instant.compare(before, half) > 0 ? before : half;
  return Temporal.Instant.compare(usual, latest) < 0 ? usual : latest;
}

/** The time from which the merchant may be asked again. Null if it has not been asked yet. */
export const asksAgainAt = ({ asked_at }: Pick<Dispute, 'asked_at'>) =>
  asked_at === null ? null : Temporal.Instant.from(asked_at).add({ hours: 24 });

/** How many days before the deadline the operators are warned again. */
const warningDays = 3;
/** How often an open dispute is checked. Webhooks announce most changes sooner. */
const checkHours = 24;

export function isToBeWarned(dispute: Dispute, now: Temporal.Instant): boolean {
  if (dispute.due_by === null || dispute.warned_at !== null || !isAnswerable(dispute)) return false;
  return Temporal.Instant.compare(warnsAt(dispute.due_by), now) <= 0;
}

const warnsAt = (due_by: Timestamp) =>
  Temporal.Instant.from(due_by).subtract({ hours: 24 * warningDays });

/**
 * Whether the gateway's bookings agree with the end of the dispute: after a loss the money is
 * withdrawn, and otherwise it is not. The gateway may book the money days after the end.
 */
const isBooked = ({ status, withdrawn }: Pick<Dispute, 'status' | 'withdrawn'>) =>
  (status === 'lost') === withdrawn > 0;

/** How long the gateway may take to book the money of a dispute after its end. */
const bookingDays = 14;

type Ended = Pick<Dispute, 'status' | 'withdrawn' | 'closed_at'>;

/** Whether the money of an ended dispute is so late that an operator must ask the gateway. */
export const isBookingLate = (dispute: Ended, now: Temporal.Instant) =>
  dispute.closed_at !== null &&
  !isBooked(dispute) &&
  now.since(dispute.closed_at).total('days') >= bookingDays;

/**
 * When a dispute is checked next. An open one is checked daily, and at its warning and its
 * deadline. One that has ended is checked until its money is booked: after an hour, then at
 * intervals that double up to a day, and weekly once the money is late.
 */
export function nextCheckAt(
  dispute: Ended & Pick<Dispute, 'due_by' | 'warned_at'>,
  now: Temporal.Instant,
): Temporal.Instant | null {
  const { due_by, warned_at, closed_at } = dispute;
  if (closed_at !== null) {
    if (isBooked(dispute)) return null;
    const hoursMax = isBookingLate(dispute, now) ? 7 * checkHours : checkHours;
    const minutes = Math.trunc(now.since(closed_at).total('minutes'));
    return now.add({ minutes: Math.min(Math.max(minutes, 60), 60 * hoursMax) });
  }
  const times = [now.add({ hours: checkHours })];
  if (due_by !== null) {
    times.push(Temporal.Instant.from(due_by).add({ minutes: 1 }));
    if (warned_at === null) times.push(warnsAt(due_by));
  }
  return times
    .filter((time) => Temporal.Instant.compare(time, now) > 0)
    .sort(Temporal.Instant.compare)[0] as Temporal.Instant;
}

/**
 * Splits the amount that a dispute moved over the instalments that the disputed payment paid, in
 * order. A payment may be disputed more than once: `room` is what is left to take from an
 * instalment, or what this dispute took from it. The last instalment bears what exceeds the rooms.
 */
export function spread(
  payments: { number: number; room: number }[],
  amount: number,
): { instalment: number; amount: number }[] {
  let left = amount;
  return payments.flatMap(({ number, room }, index) => {
    const isLast = index === payments.length - 1;
    const part = isLast ? left : Math.min(left, Math.max(0, room));
    left -= part;
    return part === 0 ? [] : [{ instalment: number, amount: part }];
  });
}
