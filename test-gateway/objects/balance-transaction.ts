import type { Kept } from '../store.ts';
import { daySeconds, type Made, newId } from './made.ts';

/**
 * The fee of a payment is a share of the amount and a fixed part. The fee of a dispute is fixed.
 * Amounts are in cents.
 */
export type Fees = { basisPoints: number; fixed: number; dispute: number };

export const defaultFees: Fees = { basisPoints: 290, fixed: 200, dispute: 25_000 };

/** Movements of the balance without a payment, by type, with their names in reports. */
export const unpaidCategories = {
  stripe_fee: 'fee',
  adjustment: 'other_adjustment',
  payout: 'payout',
} as const;
export type UnpaidType = keyof typeof unpaidCategories;

const availableAfterSeconds = 2 * daySeconds;

/** The currency of the balance, if it is not that of the payments, and the exchange rate. */
export type Settlement = { currency: string; rate: number };

export function makeBalanceTransaction(
  { merchant, now }: Made,
  given: {
    type: 'charge' | 'refund' | 'refund_failure' | 'adjustment' | UnpaidType;
    reporting_category:
      | ('charge' | 'refund' | 'refund_failure' | 'dispute' | 'dispute_reversal')
      | (typeof unpaidCategories)[UnpaidType];
    amount: number;
    fee: { amount: number; description: string } | null;
    currency: string;
    description: string | null;
    source: string | null;
  },
  settlement: Settlement | null,
): Kept<'balance_transaction'> {
  const converted = (cents: number) => Math.round(cents * (settlement?.rate ?? 1));
  const amount = converted(given.amount);
  const fee = converted(given.fee?.amount ?? 0);
  const currency = settlement?.currency ?? given.currency;
  return {
    object: {
      id: newId('txn'),
      object: 'balance_transaction',
      amount,
      available_on: now + (given.amount > 0 ? availableAfterSeconds : 0),
      balance_type: 'payments',
      created: now,
      currency,
      description: given.description,
      exchange_rate: settlement?.rate ?? null,
      fee,
      fee_details: given.fee
        ? [
            {
              amount: fee,
              application: null,
              currency,
              description: given.fee.description,
              type: 'stripe_fee',
            },
          ]
        : [],
      net: amount - fee,
      reporting_category: given.reporting_category,
      source: given.source,
      status: given.amount > 0 ? 'pending' : 'available',
      type: given.type,
    },
    hidden: {},
    merchant,
  };
}

/** Money that came in can be paid out only after some days. */
export function agedTransaction(
  kept: Kept<'balance_transaction'>,
  now: number,
): Kept<'balance_transaction'> {
  if (kept.object.status === 'available' || now < kept.object.available_on) return kept;
  return { ...kept, object: { ...kept.object, status: 'available' } };
}

/** The fee of a payment, rounded half up. */
export function paymentFee(fees: Fees, amount: number): { amount: number; description: string } {
  return {
    amount: Math.floor((amount * fees.basisPoints) / 10_000 + 0.5) + fees.fixed,
    description: 'Processing fees',
  };
}
