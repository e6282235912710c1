import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * The books. Every movement of money, or of a claim to it, is one posting: an amount that moves
 * from one account of a checkout (the credit) to another (the debit). A posting is written in the
 * transaction of the row that caused it and never changed. So the accounts of a checkout sum to
 * zero, and at any moment
 *
 *   amount = collected + outstanding + refunded + cancelled + disputed
 *
 * where `collected` is what came from the card minus what went back to it, `refunded` is what was
 * refunded to it, and `cancelled` is what refunds took from payments before they were collected.
 */
const accounts = [
  'sale',
  'outstanding',
  'collected',
  'refunded',
  'cancelled',
  // The money that disputes returned to cardholders.
  'disputed',
  // The amounts that the issuer holds for us. They are not money yet.
  'issuer',
  'held',
  // The amounts that refund requests have reserved and not refunded yet.
  'refundable',
  'reserved',
  // The part of the money collected for us that the gateway keeps.
  'clearing',
  'gateway_fees',
] as const;
export type Account = (typeof accounts)[number];

/** The kinds of postings, and their accounts. */
export const movements = {
  sold: { debit: 'outstanding', credit: 'sale' },
  authorised: { debit: 'held', credit: 'issuer' },
  /** All or part of the hold was captured; `used` is the whole hold. */
  captured: { debit: 'collected', credit: 'outstanding' },
  used: { debit: 'issuer', credit: 'held' },
  collected: { debit: 'collected', credit: 'outstanding' },
  voided: { debit: 'issuer', credit: 'held' },
  lapsed: { debit: 'issuer', credit: 'held' },
  /** A refund took the amount before it was collected; `restored` means that the refund failed. */
  cancelled: { debit: 'cancelled', credit: 'outstanding' },
  restored: { debit: 'outstanding', credit: 'cancelled' },
  /**
   * The amount was refunded to the card; `returned` means that the card network sent it back to us.
   */
  refunded: { debit: 'refunded', credit: 'collected' },
  returned: { debit: 'collected', credit: 'refunded' },
  /** A dispute took the money; `reinstated` means that the dispute was won. */
  withdrawn: { debit: 'disputed', credit: 'collected' },
  reinstated: { debit: 'collected', credit: 'disputed' },
  reserved: { debit: 'reserved', credit: 'refundable' },
  released: { debit: 'refundable', credit: 'reserved' },
  /** The gateway's fees. It returns some of them when a dispute is won. */
  gateway_fee: { debit: 'gateway_fees', credit: 'clearing' },
  gateway_fee_returned: { debit: 'clearing', credit: 'gateway_fees' },
} as const satisfies Record<string, { debit: Account; credit: Account }>;
export type MovementKind = keyof typeof movements;
export const movementKinds = Object.keys(movements) as MovementKind[];

export type Posting = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  kind: MovementKind;
  debit: Account;
  credit: Account;
  amount: number;
  currency: string;
  instalment: number | null;
  refund_id: string | null;
  dispute_id: string | null;
  at: Timestamp;
};

/** The gateway's fee for one payment, refund or dispute. A negative fee was returned. */
export type GatewayFee = {
  gateway: string;
  /** The gateway's own id of the transaction. */
  transaction_ref: string;
  type: string;
  payment_ref: string;
  merchant_id: string;
  checkout_id: string;
  fee: number;
  currency: string;
  at: Timestamp;
};

/**
 * A fee that the gateway charged to the account rather than for a payment. Its posting goes from
 * `clearing` to `gateway_fees` and belongs to no merchant. A negative fee was returned.
 */
export type AccountFee = Omit<GatewayFee, 'payment_ref' | 'merchant_id' | 'checkout_id'>;

/** The balance of each account: debits minus credits. */
export function balancesOf(
  postings: Pick<Posting, 'debit' | 'credit' | 'amount'>[],
): Record<Account, number> {
  const balances = Object.fromEntries(accounts.map((name) => [name, 0])) as Record<Account, number>;
  for (const { debit, credit, amount } of postings) {
    balances[debit] += amount;
    balances[credit] -= amount;
  }
  return balances;
}
