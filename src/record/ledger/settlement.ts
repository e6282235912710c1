import type { Timestamp } from '#platform/shared/clock.ts';
import { type Amounts, proportion } from '#platform/shared/fees.ts';

/**
 * The merchants' books: what the service owes a merchant. Every change is one entry, written in the
 * transaction of the movement that causes it and never changed. `gross` is the change before fees,
 * `fee` is what the service keeps, `vat` is the VAT on that fee, and `net = gross - fee - vat`. So at
 * any moment, for every merchant,
 *
 *   sold - fees - VAT - refunds - disputes = payable + reserve + paid out
 *
 * where a sale counts from the moment at which it is owed (decision 0080).
 */
export const entryKinds = [
  'sale',
  'refund',
  /** A refund that the card network returned, or that failed and was undone. */
  'refund_reversed',
  'dispute',
  'dispute_reversed',
  'dispute_fee',
  'reserve',
  'reserve_released',
  /** A payout left payable for the merchant's bank account. It is not a line of any payout. */
  'paid_out',
  'payout_returned',
] as const;
export type EntryKind = (typeof entryKinds)[number];

/** Entries added up by kind. */
export type KindSums = Amounts & { kind: EntryKind; count: number };

export type Entry = {
  merchant_id: string;
  id: string;
  kind: EntryKind;
  checkout_id: string | null;
  /** The payment that it is about. Null if that is the whole order. */
  instalment: number | null;
  refund_id: string | null;
  dispute_id: string | null;
  gross: number;
  fee: number;
  vat: number;
  net: number;
  currency: string;
  at: Timestamp;
  release_on: string | null;
  reserve_id: string | null;
  paid_payout_id: string | null;
  payout_id: string | null;
  line: number | null;
  statement: number | null;
  statement_line: number | null;
};

/**
 * `whole`: the order is owed once its first payment is collected. `as_collected`: each payment is
 * owed once it is collected.
 */
export const fundings = ['whole', 'as_collected'] as const;
export type Funding = (typeof fundings)[number];

export const refundFees = ['kept', 'returned'] as const;
export type RefundFee = (typeof refundFees)[number];

/** The prices for a merchant, from a local date on. */
export type Terms = {
  merchant_id: string;
  from_on: string;
  funding: Funding;
  basis_points: number;
  fixed: number;
  vat_basis_points: number;
  refund_fee: RefundFee;
  reserve_basis_points: number;
  reserve_days: number;
  created_at: Timestamp;
};

/** A sale that is owed, and what refunds have taken from it so far. */
export type SaleState = {
  checkout_id: string;
  instalment: number | null;
  gross: number;
  fee: number;
  vat: number;
  refunded: number;
  fee_returned: number;
  vat_returned: number;
};

/**
 * The amount that a refund of a sale takes back. If fees are returned, each refund returns the
 * difference between two rounded shares of the sale's fee, so the refund of a whole sale returns
 * the whole fee.
 */
export function refundAmounts(
  { refund_fee }: Pick<Terms, 'refund_fee'>,
  sale: SaleState,
  amount: number,
): Amounts {
  const isReturned = refund_fee === 'returned';
  const { refunded } = sale;
  const back = (of: number) =>
    isReturned
      ? proportion(of, refunded, sale.gross) - proportion(of, refunded + amount, sale.gross)
      : 0;
  const [fee, vat] = [back(sale.fee), back(sale.vat)];
  return { gross: -amount, fee, vat, net: -amount - fee - vat };
}

/**
 * The amount that is owed again when the card network returns a refund. It charges only those fees
 * again that the refund had returned.
 */
export function reversalAmounts(
  { refund_fee }: Pick<Terms, 'refund_fee'>,
  sale: SaleState,
  amount: number,
): Amounts {
  const isReturned = refund_fee === 'returned';
  const { refunded } = sale;
  const again = (of: number, returned: number) =>
    isReturned
      ? Math.min(
          returned,
          proportion(of, refunded, sale.gross) - proportion(of, refunded - amount, sale.gross),
        )
      : 0;
  const fee = again(sale.fee, sale.fee_returned);
  const vat = again(sale.vat, sale.vat_returned);
  return { gross: amount, fee, vat, net: amount - fee - vat };
}

const basisPointsMax = 10_000;
const fixedMax = 1_000_000_000;
const reserveDaysMax = 366;

/** Returns what is wrong with an operator's terms, or null. */
export function explainBadTerms(
  terms: Omit<Terms, 'merchant_id' | 'from_on' | 'created_at' | 'funding' | 'refund_fee'>,
): string | null {
  const points = {
    '--basis-points': terms.basis_points,
    '--vat-basis-points': terms.vat_basis_points,
    '--reserve-basis-points': terms.reserve_basis_points,
  };
  for (const [name, value] of Object.entries(points)) {
    if (value > basisPointsMax) {
      return `${name} is ${value} and must be at most ${basisPointsMax}, which is 100 %.`;
    }
  }
  if (terms.fixed > fixedMax) return `--fixed must be at most ${fixedMax} cents.`;
  if (terms.reserve_days > reserveDaysMax)
    return `--reserve-days must be at most ${reserveDaysMax}.`;
  if (terms.reserve_basis_points > 0 && terms.reserve_days === 0) {
    return 'A reserve needs --reserve-days: after how many days it is released.';
  }
  return null;
}
