import type { Timestamp } from '#platform/shared/clock.ts';
import { type Amounts, proportion } from '#platform/shared/fees.ts';

/**
 * The merchants' books: what the service owes a merchant. Every change is one entry, written in the
 * transaction of the movement that causes it and never changed. `gross` is the change before fees,
 * `fee` is what the service keeps, `vat` is the VAT on that fee, and `net = gross - fee - vat`. So
 * at any moment, for every merchant,
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
  /**
   * The amount of a payout that the bank has paid to the merchant. It is not a line of any payout.
   */
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
  /** The payment that the entry is about. Null if it is about the whole order. */
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

/** A merchant's prices from a local date. */
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

/** The cents of a sale from number `from` up to `to`, which is not included. */
type Range = { from: number; to: number };

/** A refund that was not reversed: its entry, and the cents of the sale that it took. */
type Taken = Amounts & { refund_id: string | null; ranges: Range[] };

/** A sale that is owed, and what refunds have taken from it. */
export type SaleState = {
  checkout_id: string | null;
  instalment: number | null;
  gross: number;
  fee: number;
  vat: number;
  taken: Taken[];
};

export const newSale = (
  { checkout_id, instalment }: Pick<SaleState, 'checkout_id' | 'instalment'>,
  { gross, fee, vat }: Amounts,
): SaleState => ({ checkout_id, instalment, gross, fee, vat, taken: [] });

/** An entry about a checkout, as read from the books. */
export type BookedEntry = Amounts &
  Pick<Entry, 'kind' | 'checkout_id' | 'instalment' | 'refund_id' | 'dispute_id'>;

/** The sales among entries. The entries are in order. */
export function salesOf(entries: BookedEntry[]): SaleState[] {
  const sales = entries.filter(({ kind }) => kind === 'sale').map((one) => newSale(one, one));
  for (const { kind, checkout_id, instalment, refund_id, ...rest } of entries) {
    const sale = sales.find(
      (one) => one.checkout_id === checkout_id && one.instalment === instalment,
    );
    if (!sale) continue;
    if (kind === 'refund') take(sale, refund_id, rest);
    if (kind === 'refund_reversed') putBack(sale, refund_id, rest.gross);
  }
  return sales;
}

function take(sale: SaleState, refund_id: string | null, { gross, fee, vat, net }: Amounts): void {
  const ranges = freeRanges(sale, 0 - gross);
  sale.taken.push({ refund_id, gross, fee, vat, net, ranges });
}

/** Removes a refund that was reversed: all of it, or one part that has an entry of its own. */
function putBack({ taken }: SaleState, refund_id: string | null, amount: number): Taken | null {
  const index = taken.findLastIndex(
    (one) => one.refund_id === refund_id && one.gross === 0 - amount,
  );
  return index === -1 ? null : (taken.splice(index, 1)[0] ?? null);
}

/** The first cents of a sale that no refund has taken. */
function freeRanges({ taken }: SaleState, amount: number): Range[] {
  const free: Range[] = [];
  const ranges = taken.flatMap((one) => one.ranges).sort((one, other) => one.from - other.from);
  let [from, left] = [0, amount];
  for (const range of [...ranges, { from: Number.MAX_SAFE_INTEGER, to: 0 }]) {
    const to = Math.min(range.from, from + left);
    if (to > from) free.push({ from, to });
    left -= to - from;
    from = range.to;
  }
  return free;
}

/**
 * Takes a refund from a sale, and returns its entry. If fees are returned, each cent of the sale
 * carries its share of them: the difference between two rounded shares. So the refund of a whole
 * sale returns the whole fee, even after other refunds were reversed.
 */
export function refundSale(
  { refund_fee }: Pick<Terms, 'refund_fee'>,
  sale: SaleState,
  refund_id: string | null,
  amount: number,
): Amounts {
  const ranges = refund_fee === 'returned' ? freeRanges(sale, amount) : [];
  const share = (of: number, to: number) => proportion(of, Math.min(to, sale.gross), sale.gross);
  const back = (of: number) =>
    ranges.reduce((sum, { from, to }) => sum + share(of, from) - share(of, to), 0);
  const [fee, vat] = [back(sale.fee), back(sale.vat)];
  const amounts = { gross: 0 - amount, fee, vat, net: 0 - amount - fee - vat };
  take(sale, refund_id, amounts);
  return amounts;
}

/**
 * Puts back what a refund took from a sale, and returns the entry: the refund's own entry, negated.
 * So the fees that this refund returned are charged again, whatever the terms say by now.
 */
export function reverseRefund(sale: SaleState, refund_id: string | null, amount: number): Amounts {
  const { fee, vat } = putBack(sale, refund_id, amount) ?? { fee: 0, vat: 0 };
  return { gross: amount, fee: 0 - fee, vat: 0 - vat, net: amount + fee + vat };
}

/**
 * The entry for a change of a dispute's fee. A fee that the gateway returns is returned with the
 * VAT that was charged on it, up to what the merchant was charged. Null if that leaves nothing to
 * charge or return.
 */
export function disputeFeeAmounts(
  { vat_basis_points }: Pick<Terms, 'vat_basis_points'>,
  charged: Pick<Amounts, 'fee' | 'vat'>[],
  change: number,
): Amounts | null {
  const sum = (name: 'fee' | 'vat') => charged.reduce((total, one) => total + one[name], 0);
  const fee = Math.max(change, 0 - sum('fee'));
  if (fee === 0) return null;
  const vat =
    fee > 0 ? proportion(fee, vat_basis_points, 10_000) : proportion(sum('vat'), fee, sum('fee'));
  return { gross: 0, fee, vat, net: 0 - fee - vat };
}

const basisPointsMax = 10_000;
const fixedMax = 1_000_000_000;
const reserveDaysMax = 366;

/** Returns what is wrong with an operator's terms, or null. */
export function explainBadTerms(
  terms: Omit<Terms, 'merchant_id' | 'from_on' | 'created_at' | 'funding' | 'refund_fee'>,
): string | null {
  const points = {
    fee: terms.basis_points,
    VAT: terms.vat_basis_points,
    reserve: terms.reserve_basis_points,
  };
  for (const [name, value] of Object.entries(points)) {
    if (value > basisPointsMax) {
      return `The ${name} is ${value} basis points and must be at most ${basisPointsMax}, which is 100 %.`;
    }
  }
  if (terms.fixed > fixedMax) return `The fixed fee must be at most ${fixedMax} cents.`;
  if (terms.reserve_days > reserveDaysMax)
    return `The reserve can be held for at most ${reserveDaysMax} days.`;
  if (terms.reserve_basis_points > 0 && terms.reserve_days === 0) {
    return 'A reserve needs a number of days after which it is released.';
  }
  return null;
}
