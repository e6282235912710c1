import type { Generated, JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type { EntryKind, KindSums } from '#record/ledger/settlement.ts';
import type { PayoutStatus } from './payout.ts';
import type { StatementMailStatus } from './statement-mail.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    holidays: {
      territory: Fixed<string>;
      on_date: Fixed<string>;
      name: Fixed<string>;
    };
    payouts: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      number: Fixed<number>;
      reference: Fixed<string>;
      business_on: Fixed<string>;
      amount: Fixed<number>;
      currency: Fixed<string>;
      lines: Fixed<number>;
      status: PayoutStatus;
      created_at: Fixed<Timestamp>;
      first_approver: string | null;
      approver: string | null;
      approved_at: Timestamp | null;
      export_id: string | null;
      exported_at: Timestamp | null;
      paid_at: Timestamp | null;
      bank_reference: string | null;
      returned_at: Timestamp | null;
      return_reason: string | null;
      return_noted_by: string | null;
      bank_account: number | null;
      compare_since: Timestamp | null;
    };
    bank_accounts: {
      merchant_id: Fixed<string>;
      number: Fixed<number>;
      holder: Fixed<string>;
      bank: Fixed<string>;
      branch_code: Fixed<string>;
      sealed_account: Buffer;
      last4: Fixed<string>;
      created_at: Fixed<Timestamp>;
      proposed_by: Fixed<string>;
      proposed_person_id: Fixed<string | null>;
      confirmed_by: string | null;
      confirmed_person_id: string | null;
      confirmed_at: Timestamp | null;
      wrong_numbers: number;
    };
    statement_addresses: {
      merchant_id: Fixed<string>;
      email: string;
      changed_at: Timestamp;
    };
    statement_mails: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      payout_id: Fixed<string | null>;
      statement_id: Fixed<string | null>;
      status: StatementMailStatus;
      created_at: Fixed<Timestamp>;
      due_at: Timestamp | null;
      settled_at: Timestamp | null;
      attempts: Generated<number>;
      response: string | null;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    statement_months: {
      merchant_id: Fixed<string>;
      month: string;
      number: Generated<number>;
      lines: Generated<number>;
      due_at: Timestamp;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    monthly_statements: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      number: Fixed<number>;
      reference: Fixed<string>;
      month: Fixed<string>;
      created_at: Fixed<Timestamp>;
      corrects: Fixed<number | null>;
      lines_of: Fixed<number>;
      currency: Fixed<string>;
      lines: Fixed<number>;
      opening: Fixed<number>;
      closing: Fixed<number>;
      reserve: Fixed<number>;
      sums: JSONColumnType<KindSums[], string, never>;
      merchant_name: Fixed<string>;
      merchant_address: Fixed<string | null>;
      merchant_vat_number: Fixed<string | null>;
      issuer_name: Fixed<string>;
      issuer_address: Fixed<string | null>;
      issuer_vat_number: Fixed<string | null>;
      language: Fixed<Language>;
      locale: Fixed<string>;
      time_zone: Fixed<string>;
      record_end: Fixed<string | null>;
    };
    payout_sums: {
      merchant_id: Fixed<string>;
      kind: Fixed<EntryKind>;
      gross: number;
      fee: number;
      vat: number;
      net: number;
    };
    payout_days: {
      merchant_id: Fixed<string>;
      due_at: Timestamp;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
      compare_before: Timestamp | null;
    };
  }
}
