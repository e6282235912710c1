import type { JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    idempotency_keys: {
      integration_id: Fixed<string>;
      key: Fixed<string>;
      fingerprint: Buffer;
      status: 200 | 422;
      answer: JSONColumnType<object>;
      created_at: Timestamp;
    };
    rate_limits: {
      key: Fixed<string>;
      count: number;
      resets_at: Timestamp;
    };
  }
}
