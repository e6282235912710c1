import type { Generated } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    alerts: {
      id: Fixed<string>;
      at: Fixed<Timestamp>;
      merchant_at: Fixed<Timestamp | null>;
      kind: Fixed<string>;
      integration_id: Fixed<string | null>;
      merchant_id: Fixed<string | null>;
      subject_id: Fixed<string | null>;
      detail: Fixed<string>;
      is_private: Generated<boolean>;
      posted_at: Timestamp | null;
      attempts: Generated<number>;
      due_at: Timestamp | null;
      caused_by: Fixed<string | null>;
      caused_person_id: Fixed<string | null>;
      taken_at: Timestamp | null;
      taken_by: string | null;
      taken_person_id: string | null;
      closed_at: Timestamp | null;
      closed_by: string | null;
      closed_person_id: string | null;
      close_reason: string | null;
    };
    published_ends: {
      on_date: Fixed<string>;
      at: Fixed<Timestamp>;
      number: Fixed<number>;
      hash: Fixed<Buffer>;
    };
  }
}
