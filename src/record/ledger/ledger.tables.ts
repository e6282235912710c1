import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Account, MovementKind } from './posting.ts';
import type {
  EntryKind,
  Funding as FundingName,
  RefundFee as RefundFeeName,
} from './settlement.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    postings: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      kind: Fixed<MovementKind>;
      debit: Fixed<Account>;
      credit: Fixed<Account>;
      amount: Fixed<number>;
      currency: Fixed<string>;
      instalment: Fixed<number | null>;
      refund_id: Fixed<string | null>;
      dispute_id: Fixed<string | null>;
      at: Fixed<Timestamp>;
    };
    settlement_terms: {
      merchant_id: Fixed<string>;
      from_on: Fixed<string>;
      funding: FundingName;
      basis_points: number;
      fixed: number;
      vat_basis_points: number;
      refund_fee: RefundFeeName;
      reserve_basis_points: number;
      reserve_days: number;
      created_at: Timestamp;
    };
    settlement_entries: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      kind: Fixed<EntryKind>;
      checkout_id: Fixed<string | null>;
      instalment: Fixed<number | null>;
      refund_id: Fixed<string | null>;
      dispute_id: Fixed<string | null>;
      gross: Fixed<number>;
      fee: Fixed<number>;
      vat: Fixed<number>;
      net: Fixed<number>;
      currency: Fixed<string>;
      at: Fixed<Timestamp>;
      release_on: Fixed<string | null>;
      reserve_id: Fixed<string | null>;
      paid_payout_id: Fixed<string | null>;
      payout_id: string | null;
      line: number | null;
      statement: number | null;
      statement_line: number | null;
    };
    gateway_fees: {
      transaction_ref: Fixed<string>;
      type: Fixed<string>;
      payment_ref: Fixed<string>;
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      fee: Fixed<number>;
      currency: Fixed<string>;
      at: Fixed<Timestamp>;
      gateway: Fixed<string>;
    };
    gateway_account_fees: {
      transaction_ref: Fixed<string>;
      type: Fixed<string>;
      fee: Fixed<number>;
      currency: Fixed<string>;
      at: Fixed<Timestamp>;
      gateway: Fixed<string>;
    };
  }
}
