import type { Generated, JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { MerchantAlertKind } from '#purchases/messages/merchant-mail.ts';
import type { InvitedAccess } from './person-link.sql.ts';
import type { PersonMailFacts, PersonMailKind, PersonMailStatus } from './person-mail.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    people: {
      id: Fixed<string>;
      email: Fixed<string>;
      name: string;
      roles: string[];
      merchant_ids: string[] | null;
      oidc_subject: string | null;
      created_at: Fixed<Timestamp>;
      registered_at: Timestamp | null;
      access_since: Timestamp;
      unconfirmed_since: Timestamp | null;
      unconfirmed_by: string | null;
      revoked_at: Timestamp | null;
      identity_id: Fixed<string | null>;
    };
    person_links: {
      token_hash: Fixed<Buffer>;
      person_id: Fixed<string>;
      purpose: Fixed<'register' | 'sign_in' | 'notice'>;
      created_at: Fixed<Timestamp>;
      expires_at: Fixed<Timestamp>;
      made_by: Fixed<string>;
      made_by_person_id: Fixed<string | null>;
      by_staff: Fixed<boolean>;
      access: JSONColumnType<InvitedAccess | null, string | null, never>;
      released_at: Fixed<Timestamp | null>;
      used_at: Timestamp | null;
    };
    person_mails: {
      id: Fixed<string>;
      person_id: string;
      kind: Fixed<PersonMailKind>;
      facts: JSONColumnType<PersonMailFacts, string, never>;
      sealed_token: Buffer | null;
      status: PersonMailStatus;
      created_at: Fixed<Timestamp>;
      due_at: Timestamp | null;
      settled_at: Timestamp | null;
      attempts: Generated<number>;
      response: string | null;
      event: Fixed<string | null>;
    };
    alert_mails: {
      merchant_id: Fixed<string>;
      person_id: string;
      kind: Fixed<MerchantAlertKind>;
      is_wanted: boolean;
      /** The day on which an export falls due, on the merchant's clock. */
      due_on: string | null;
    };
    passkeys: {
      id: Fixed<string>;
      person_id: Fixed<string>;
      credential_id: Fixed<string>;
      public_key: Fixed<Buffer>;
      counter: number;
      transports: Fixed<string[]>;
      name: string;
      created_at: Fixed<Timestamp>;
      used_at: Timestamp | null;
    };
    console_sessions: {
      id: Fixed<string>;
      token_hash: Buffer;
      person_id: Fixed<string>;
      access_id: Fixed<string>;
      method: Fixed<'passkey' | 'oidc' | 'sandbox_link'>;
      address: Fixed<string>;
      user_agent: Fixed<string>;
      created_at: Fixed<Timestamp>;
      seen_at: Timestamp;
      expires_at: Fixed<Timestamp>;
      proof_at: Timestamp | null;
      passkey_id: string | null;
      ended_at: Timestamp | null;
    };
    console_challenges: {
      challenge_hash: Fixed<Buffer>;
      purpose: Fixed<'register' | 'sign_in' | 'proof' | 'oidc'>;
      person_id: Fixed<string | null>;
      session_id: Fixed<string | null>;
      sealed_oidc: Fixed<Buffer | null>;
      expires_at: Fixed<Timestamp>;
    };
  }
}
