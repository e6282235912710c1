import Type from 'typebox';
import { bankFormats } from '#purchases/payouts/bank-file.ts';
import { payoutStatuses } from '#purchases/payouts/payout.ts';
import { Action } from './audit.schema.ts';
import { Cents, Day, Id, nullable, oneOf, paging, Time } from './list.schema.ts';

/** GET /api/payouts. The newest first. */
export const PayoutsQuery = Type.Object({
  ...paging,
  status: Type.Optional(oneOf(payoutStatuses)),
});

/**
 * A bank account of the merchant. `number` counts the merchant's accounts. `last4` is the end of
 * the account number. No answer contains more of the account number.
 */
const AccountEnd = Type.Object({ number: Type.Integer(), last4: Type.String() });

export const PayoutRow = Type.Object({
  id: Id,
  merchant_id: Id,
  merchant_name: Type.String(),
  time_zone: Type.String(),
  clock_ahead_ms: Type.Integer(),
  locale: Type.String(),
  /** The reference that the merchant reads on its bank statement. */
  reference: Type.String(),
  business_on: Day,
  amount: Cents,
  currency: Type.String(),
  line_count: Type.Integer(),
  status: oneOf(payoutStatuses),
  /**
   * How many people have approved the payout for the account in use: 0, 1 or 2. This count,
   * `approved_account` and `compare_since` are null to a merchant's people.
   */
  approvals: nullable(Type.Integer()),
  /**
   * Whether the signed-in person may approve it now. Permission and re-authentication are checked
   * separately.
   */
  may_approve: Type.Boolean(),
  /** The merchant's account in use. Null if the merchant cannot be paid. */
  account: nullable(AccountEnd),
  /** Whether a line belongs to an order with an open dispute. False once it is exported. */
  is_disputed: Type.Boolean(),
  /** The account that its approvals are for. Null if there are none. */
  approved_account: nullable(AccountEnd),
  /**
   * After a restore, the time since which it must be compared with the bank before it is exported.
   */
  compare_since: nullable(Time),
  created_at: Time,
  approved_at: nullable(Time),
  export_id: nullable(Id),
  exported_at: nullable(Time),
  paid_at: nullable(Time),
  bank_reference: nullable(Type.String()),
  returned_at: nullable(Time),
  return_reason: nullable(Type.String()),
});
export type PayoutRow = Type.Static<typeof PayoutRow>;

const amounts = { gross: Cents, fee: Cents, vat: Cents, net: Cents };

/** GET /api/payouts/:id, and the answer to every action on a payout. */
export const PayoutDetails = Type.Object({
  ...PayoutRow.properties,
  /** The first lines. The statement has all lines. */
  lines: Type.Array(
    Type.Object({
      line: Type.Integer(),
      /** Its name on the statement. */
      name: Type.String(),
      checkout_id: nullable(Id),
      client_reference_id: nullable(Type.String()),
      ...amounts,
      at: Time,
    }),
  ),
  totals: Type.Object(amounts),
  /** The operator who first recorded that the bank returned it. Another operator confirms it. */
  return_noted_by: nullable(Type.String()),
  /** Whether the statement is short enough to be offered as a page that people print. */
  is_printable: Type.Boolean(),
  /** Whether the statement is short enough for a PDF. */
  has_pdf: Type.Boolean(),
  /** People's actions on it, the oldest first. */
  audit: Type.Array(Action),
});
export type PayoutDetails = Type.Static<typeof PayoutDetails>;

/** POST /api/payouts/:id/approve: the number of the account that the person saw; null if none. */
export const ApprovedPayout = Type.Object({ account: nullable(Type.Integer()) });
/** POST /api/payouts/:id/paid */
export const PaidPayout = Type.Object({
  bank_reference: Type.String({ minLength: 1, maxLength: 200 }),
});
/** POST /api/payouts/:id/confirm: a person has checked that the bank has not paid it. */
export const ConfirmedPayout = Type.Object({
  reason: Type.String({ minLength: 1, maxLength: 200 }),
});
/**
 * POST /api/payouts/:id/returned. `as_first`: the person read that no one has recorded the return
 * yet.
 */
export const ReturnedPayout = Type.Object({
  reason: Type.String({ minLength: 1, maxLength: 200 }),
  as_first: Type.Optional(Type.Boolean()),
});

const NamedPayout = Type.Object({ id: Id, reference: Type.String(), merchant_id: Id });

/** POST /api/payouts/export */
export const PayoutExport = Type.Object({
  /** Null if no payout was exported. */
  export_id: nullable(Id),
  payouts: Type.Integer(),
  /** Approved payouts whose merchants have no confirmed bank account. They stay approved. */
  without_account: Type.Array(NamedPayout),
  /** Payouts that were approved for an earlier bank account of the merchant. */
  to_approve_again: Type.Array(NamedPayout),
  /** Approved payouts to accounts that were confirmed too recently to be paid. */
  new_account: Type.Array(Type.Object({ ...NamedPayout.properties, payable_from: Time })),
  /** Approved payouts that a person must compare with the bank first. They stay approved. */
  to_compare: Type.Array(NamedPayout),
  /** Whether the file is full: another export takes the next payouts. */
  is_full: Type.Boolean(),
  /** The file for the bank, with whole account numbers. */
  file: Type.String(),
});
/** POST /api/payout-exports/:id/file: an earlier export again, in the same or the other format. */
export const WantedFile = Type.Object({ format: Type.Optional(oneOf(bankFormats)) });
export const BankFile = Type.Object({ file: Type.String() });
export type BankFile = Type.Static<typeof BankFile>;
export type PayoutExport = Type.Static<typeof PayoutExport>;
