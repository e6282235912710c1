import Type from 'typebox';
import { entryKinds } from '#record/ledger/settlement.ts';
import { Cents, Day, FilterDay, Id, nullable, oneOf, paging, Time } from './list.schema.ts';
import { PayoutRow } from './payout.schema.ts';

/** The merchants' current day, unless a day is given. */
const date = Type.Optional(FilterDay);

/** The movements of a day. `refunded` went to cards; `paid_out` excludes what banks returned. */
const moved = {
  sold: Cents,
  collected: Cents,
  refunded: Cents,
  disputed: Cents,
  fees: Cents,
  vat: Cents,
  paid_out: Cents,
};

const place = { currency: Type.String(), locale: Type.String() };

/** GET /api/money-days: the movements of a local day by merchant, ordered by name. */
export const MoneyDaysQuery = Type.Object({ ...paging, date });
export const MoneyDayRow = Type.Object({
  day: Day,
  merchant_id: Id,
  merchant_name: Type.String(),
  ...place,
  ...moved,
});
export type MoneyDayRow = Type.Static<typeof MoneyDayRow>;

/** GET /api/money-totals: the movements of a local day, of all merchants in the scope together. */
export const MoneyTotalsQuery = Type.Object({ merchant: Type.Optional(Id), date });
export const MoneyTotals = Type.Object({
  day: Day,
  /** One total for each currency. */
  totals: Type.Array(Type.Object({ ...place, ...moved })),
  /**
   * The gateway's charges that belong to no payment, by currency. Null if the person does not
   * see all merchants, or asks about one.
   */
  account_fees: nullable(Type.Array(Type.Object({ ...place, amount: Cents }))),
});
export type MoneyTotals = Type.Static<typeof MoneyTotals>;

/** The groups in which a merchant's open entries are shown. The VAT is shown beside the fee. */
export const lineGroups = ['sale', 'refund', 'dispute', 'payout_returned', 'fee'] as const;

/**
 * GET /api/balance-lines: the entries that are in no payout yet, the newest first. With `reserve`,
 * the reserves that are still held, those to be released last first.
 */
export const BalanceLinesQuery = Type.Object({
  ...paging,
  merchant: Id,
  kind: Type.Optional(oneOf([...lineGroups, 'reserve'] as const)),
});
export const BalanceLine = Type.Object({
  id: Id,
  kind: oneOf(entryKinds),
  /** Its name on a statement. */
  name: Type.String(),
  at: Time,
  checkout_id: nullable(Id),
  client_reference_id: nullable(Type.String()),
  gross: Cents,
  fee: Cents,
  vat: Cents,
  net: Cents,
  release_on: nullable(Day),
  /** The payout that a reserve was withheld from, or that the bank returned. */
  payout_id: nullable(Id),
  ...place,
  time_zone: Type.String(),
  clock_ahead_ms: Type.Integer(),
});
export type BalanceLine = Type.Static<typeof BalanceLine>;

/**
 * GET /api/merchants/:id/balance: the amount that a merchant is owed now. Amounts that it owes us
 * are negative.
 */
export const Balance = Type.Object({
  merchant_id: Id,
  merchant_name: Type.String(),
  ...place,
  time_zone: Type.String(),
  clock_ahead_ms: Type.Integer(),
  /** Whether the merchant has terms. Without them the service settles nothing for it. */
  has_terms: Type.Boolean(),
  /** These sums add up to `owed`. The first seven come from entries that are in no payout yet. */
  sums: Type.Object({
    sale: Cents,
    refund: Cents,
    dispute: Cents,
    payout_returned: Cents,
    /** The reserve that is held back from these entries. It is part of `reserve` too. */
    withheld: Cents,
    fee: Cents,
    vat: Cents,
    /** Payouts that were made but not paid yet. */
    payouts: Cents,
    reserve: Cents,
  }),
  /** The total of the first seven sums, from which later payouts are made. */
  open: Cents,
  owed: Cents,
  /** The oldest 100 payouts that are not paid yet. */
  payouts: Type.Array(
    Type.Pick(PayoutRow, [
      'id',
      'reference',
      'business_on',
      'status',
      'amount',
      'approvals',
      'approved_account',
      'compare_since',
    ]),
  ),
  payout_count: Type.Integer(),
  /**
   * The next payout, as the entries that are open now would make it. Null if the merchant has no
   * terms. If the amount is not positive, no payout is made: the reserve is held back, and the
   * other entries wait for the payout after it.
   */
  next_payout: nullable(
    Type.Object({
      business_on: Day,
      made_at: Time,
      /** The open entries that it includes. */
      open: Cents,
      reserve_held: Cents,
      reserve_released: Cents,
      amount: Cents,
    }),
  ),
});
export type Balance = Type.Static<typeof Balance>;
