import type { Timestamp } from '#platform/shared/clock.ts';
import { proportion } from '#platform/shared/fees.ts';
import type { EntryKind } from '#record/ledger/settlement.ts';

/**
 * The amount that a merchant is paid on one business day. A payout is a `draft` until two operators
 * have approved it, for the bank account that the merchant has at that moment. An `approved` payout
 * is `exported` in a file for the bank. It is `paid` when the bank has paid it, and `returned` when
 * two operators have recorded that the bank returned it. A returned amount is owed again and is a
 * line of a later payout.
 *
 * After a restore an operator compares each payout that is not exported with the bank, because the
 * lost database may have exported it (decision 0098).
 *
 * Amount, reference and lines are fixed when the payout is made.
 */
export const payoutStatuses = ['draft', 'approved', 'exported', 'paid', 'returned'] as const;
export type PayoutStatus = (typeof payoutStatuses)[number];

export type Payout = {
  merchant_id: string;
  id: string;
  number: number;
  reference: string;
  business_on: string;
  amount: number;
  currency: string;
  lines: number;
  status: PayoutStatus;
  created_at: Timestamp;
  first_approver: string | null;
  approver: string | null;
  approved_at: Timestamp | null;
  export_id: string | null;
  exported_at: Timestamp | null;
  paid_at: Timestamp | null;
  bank_reference: string | null;
  returned_at: Timestamp | null;
  return_reason: string | null;
  /**
   * The operator who recorded that the bank returned the payout. The status changes when another
   * operator confirms that.
   */
  return_noted_by: string | null;
  /**
   * The number of the merchant's account that the approvals are for. The payout is never exported
   * to another account.
   */
  bank_account: number | null;
  /**
   * When it was found that the payout must be compared with the bank before it is exported. Null if
   * no comparison is needed.
   */
  compare_since: Timestamp | null;
};

/**
 * Whether this database has a bank file with the payout. A payout that the bank had paid before a
 * restore has its own id as its `export_id`.
 */
export const hasBankFile = ({ id, export_id }: Pick<Payout, 'id' | 'export_id'>): boolean =>
  export_id !== null && export_id !== id;

/** Whether a payout's approvals are for this account. Null means no account. */
export const isForAccount = (
  { bank_account }: Pick<Payout, 'bank_account'>,
  account: { number: number } | null,
): boolean => bank_account === (account?.number ?? null);

/** Before the export, approvals for an account that is no longer in use are not counted. */
export function countApprovals(payout: Payout, inUse: { number: number } | null): number {
  const isOpen = payout.status === 'draft' || payout.status === 'approved';
  if (isOpen && !isForAccount(payout, inUse)) return 0;
  return [payout.first_approver, payout.approver].filter((one) => one !== null).length;
}

/** Whether an operator may approve a payout now, as the first or the second approver. */
export function mayApprove(
  payout: Payout,
  inUse: { number: number } | null,
  operator: string,
): boolean {
  if (payout.status !== 'draft' && payout.status !== 'approved') return false;
  const approvals = countApprovals(payout, inUse);
  return approvals === 0 || (approvals === 1 && payout.first_approver !== operator);
}

/** A line of a payout. The lines sum to its amount. */
export type PayoutLine = {
  line: number;
  kind: Exclude<EntryKind, 'paid_out'>;
  checkout_id: string | null;
  client_reference_id: string | null;
  gross: number;
  fee: number;
  vat: number;
  net: number;
  at: Timestamp;
};

export type Totals = Pick<PayoutLine, 'gross' | 'fee' | 'vat' | 'net'>;

/**
 * The reserve to hold back now from entries that are in no payout yet: a share of what refunds and
 * disputes have left of the sales, less the reserve that is already held back from these entries.
 * So a reserve never makes a balance negative. A returned payout or a reversed refund is not a
 * sale: its reserve was held back before.
 */
export function reserveOf(open: { kind: EntryKind; net: number }[], basis_points: number): number {
  const sum = (is: (kind: EntryKind) => boolean) =>
    open.reduce((total, { kind, net }) => total + (is(kind) ? net : 0), 0);
  const sold = sum((kind) => kind === 'sale');
  const left = sum((kind) => kind !== 'payout_returned' && kind !== 'reserve');
  const held = 0 - sum((kind) => kind === 'reserve');
  const share = proportion(Math.max(0, Math.min(sold, left)), basis_points, 10_000);
  return Math.max(0, share - held);
}

/**
 * The reference on the merchant's bank statement. It is short, and both the merchant and the
 * operator can search for it.
 */
export const payoutReference = (business_on: string, number: number) =>
  `TR${business_on.replaceAll('-', '')}-${number}`;

/** A payout is made at this local time of a business day, for everything before that day. */
const payoutTime = Temporal.PlainTime.from('04:00');

const isWeekend = (day: Temporal.PlainDate) => day.dayOfWeek >= 6;

/** Every day is a business day except Saturdays, Sundays and public holidays. */
export type Calendar = { holidays: ReadonlySet<string>; time_zone: string };

export function isBusinessDay({ holidays }: Calendar, day: Temporal.PlainDate): boolean {
  return !isWeekend(day) && !holidays.has(day.toString());
}

/**
 * How many whole business days lie between the confirmation of a bank account and a payout to it.
 */
export type NewAccountWait = { newAccountBusinessDays: number };

/**
 * The earliest time at which a newly confirmed bank account can be paid. The wait lets others
 * notice a fraudulent change before the money is gone (decision 0081).
 */
export function accountPayableFrom(
  calendar: Calendar,
  { newAccountBusinessDays }: NewAccountWait,
  confirmed: Temporal.Instant,
): Temporal.Instant {
  if (newAccountBusinessDays === 0) return confirmed;
  let day = confirmed.toZonedDateTimeISO(calendar.time_zone).toPlainDate();
  for (let left = newAccountBusinessDays; left > 0; ) {
    day = day.add({ days: 1 });
    if (isBusinessDay(calendar, day)) left -= 1;
  }
  return day.add({ days: 1 }).toZonedDateTime(calendar.time_zone).toInstant();
}

export function nextBusinessDay(calendar: Calendar, after: Temporal.PlainDate): Temporal.PlainDate {
  let day = after.add({ days: 1 });
  while (!isBusinessDay(calendar, day)) day = day.add({ days: 1 });
  return day;
}

/** When the first payout after a local date is made. */
export function nextPayoutAt(calendar: Calendar, after: Temporal.PlainDate): Temporal.Instant {
  const day = nextBusinessDay(calendar, after);
  return day.toZonedDateTime({ timeZone: calendar.time_zone, plainTime: payoutTime }).toInstant();
}

/**
 * The business day whose payout is due now: the last one whose payout time has come. After an
 * outage of several days there is one payout, not one for each day.
 */
export function payoutDay(calendar: Calendar, now: Temporal.Instant): Temporal.PlainDate {
  const local = now.toZonedDateTimeISO(calendar.time_zone);
  const isEarly = Temporal.PlainTime.compare(local.toPlainTime(), payoutTime) < 0;
  let day = local.toPlainDate().subtract({ days: isEarly ? 1 : 0 });
  while (!isBusinessDay(calendar, day)) day = day.subtract({ days: 1 });
  return day;
}
