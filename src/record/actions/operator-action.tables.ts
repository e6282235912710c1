import type { Generated, JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    operator_actions: {
      id: Fixed<string>;
      at: Fixed<Timestamp>;
      operator: Fixed<string>;
      action: Fixed<string>;
      subject_id: Fixed<string | null>;
      details: JSONColumnType<object, string, never>;
      os_user: Fixed<string | null>;
      host: Fixed<string | null>;
      number: Fixed<number>;
      hash: Fixed<Buffer>;
      person_id: Fixed<string | null>;
      roles: Fixed<string[] | null>;
      address: Fixed<string | null>;
      session_id: Fixed<string | null>;
      merchant_id: Fixed<string | null>;
    };
    action_texts: {
      action_id: Fixed<string>;
      field: Fixed<string>;
      digest: Fixed<Buffer>;
      salt: Buffer | null;
      text: string | null;
      erased_at: Generated<Timestamp | null>;
    };
    operator_chain: {
      id: Fixed<boolean>;
      number: number;
      hash: Buffer;
    };
  }
}
