import type { Generated } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    legacy_credentials: {
      client_id: Fixed<string>;
      integration_id: Fixed<string>;
      secret_hash: Fixed<Buffer>;
      created_at: Fixed<Timestamp>;
      disabled_at: Timestamp | null;
    };
    legacy_tokens: {
      token_hash: Fixed<Buffer>;
      merchant_id: Fixed<string>;
      client_id: Fixed<string>;
      created_at: Fixed<Timestamp>;
      expires_at: Fixed<Timestamp>;
    };
    legacy_usage: {
      integration_id: Fixed<string>;
      day: Fixed<string>;
      logins: Generated<number>;
      checkouts: Generated<number>;
    };
  }
}
