/**
 * One payment of a successful checkout. The first is `authorised` (held) on the page and
 * `collected` by its capture; the others are `scheduled` until they are `collected`. A payment
 * that could not be collected is `overdue`; what a refund takes before it is collected is
 * `cancelled`. The payments of a checkout sum to its amount.
 */
export const instalmentStatuses = [
  'authorised',
  'scheduled',
  'collected',
  'overdue',
  'cancelled',
] as const;
export type InstalmentStatus = (typeof instalmentStatuses)[number];

export type Instalment = {
  merchant_id: string;
  checkout_id: string;
  number: number;
  amount: number;
  currency: string;
  /** A local date of the merchant's territory. */
  due_on: string;
  status: InstalmentStatus;
};

/** One payment of a plan: what is taken, and on which local date. */
export type PlannedPayment = { number: number; amount: number; due_on: string };

/**
 * Splits an amount into monthly payments (D22). Cents that do not divide go to the first. Each
 * date is counted from the purchase date, not from the date before it, so that a purchase on the
 * 31st comes back to the 31st after a shorter month.
 */
export function planPayments(
  amount: number,
  number_of_payments: number,
  purchaseDate: Temporal.PlainDate,
): PlannedPayment[] {
  const each = Math.floor(amount / number_of_payments);
  const first = amount - each * (number_of_payments - 1);
  return Array.from({ length: number_of_payments }, (_, index) => ({
    number: index + 1,
    amount: index === 0 ? first : each,
    due_on: purchaseDate.add({ months: index }).toString(),
  }));
}
