import type { Generated } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { EventKind } from './integration.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    integrations: {
      id: Fixed<string>;
      merchant_id: Fixed<string | null>;
      intermediary: Fixed<boolean>;
      refund_mode: 'manual' | 'auto';
      signing_required_at: Timestamp | null;
      revoked_at: Timestamp | null;
      created_at: Fixed<Timestamp>;
      events: Generated<EventKind[]>;
      events_url: string | null;
    };
    managed_merchants: {
      integration_id: Fixed<string>;
      merchant_id: Fixed<string>;
      added_at: Fixed<Timestamp>;
    };
    integration_limits: {
      integration_id: Fixed<string>;
      endpoint: Fixed<string>;
      max_requests: number;
      window_seconds: number;
    };
    client_secrets: {
      secret_hash: Fixed<Buffer>;
      integration_id: Fixed<string>;
      created_at: Fixed<Timestamp>;
      expires_at: Timestamp | null;
      seen_without_lift: Fixed<boolean>;
    };
    signing_keys: {
      id: Fixed<string>;
      integration_id: Fixed<string>;
      sealed_key: Buffer;
      created_at: Fixed<Timestamp>;
      expires_at: Timestamp | null;
      first_used_at: Timestamp | null;
    };
    refused_requests: {
      id: Fixed<string>;
      integration_id: Fixed<string>;
      at: Fixed<Timestamp>;
      /** The method and the path. */
      request: Fixed<string>;
      /** The value of X-Signature. */
      header: Fixed<string>;
      user_agent: Fixed<string | null>;
      /** The body, or its beginning if it is long. `body_bytes` counts all of it. */
      body: Fixed<string>;
      body_bytes: Fixed<number>;
      expected: Fixed<string>;
      mistake: Fixed<string | null>;
    };
  }
}
