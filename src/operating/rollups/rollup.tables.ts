import type { Generated } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { EntryKind } from '#record/ledger/settlement.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    rollups: {
      stream: Fixed<'checkouts' | 'opens' | 'attempts' | 'postings' | 'entries'>;
      after: string;
      as_of: Timestamp | null;
    };
    merchant_days: {
      merchant_id: Fixed<string>;
      day: Fixed<string>;
      created: Generated<number>;
      opened: Generated<number>;
      tried: Generated<number>;
      paid: Generated<number>;
      approved: Generated<number>;
      declined: Generated<number>;
      sold: Generated<number>;
      collected: Generated<number>;
      refunded: Generated<number>;
      card_refunds: Generated<number>;
      disputed: Generated<number>;
      fees: Generated<number>;
      vat: Generated<number>;
      paid_out: Generated<number>;
    };
    merchant_entries: {
      merchant_id: Fixed<string>;
      kind: Fixed<EntryKind>;
      gross: number;
      fee: number;
      vat: number;
      net: number;
    };
    merchant_declines: {
      merchant_id: Fixed<string>;
      day: Fixed<string>;
      reason: Fixed<string>;
      count: number;
    };
    merchant_dues: {
      merchant_id: Fixed<string>;
      day: Fixed<string>;
      amount: number;
    };
    merchant_overdue: {
      merchant_id: Fixed<string>;
      amount: number;
      as_of: Timestamp;
    };
  }
}
