import type { Generated, JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type {
  AttemptOutcome as AttemptOutcomeName,
  CallbackStatus,
  CallbackTrigger as CallbackTriggerName,
  EventName,
} from './callback.ts';

type ReceivedHeaders = Record<string, string | string[]>;
type Timings = Record<string, number>;

declare module '#platform/database/tables.ts' {
  interface Tables {
    callbacks: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string | null>;
      integration_id: Fixed<string>;
      notify_url: Fixed<string>;
      payload: Fixed<Buffer>;
      status: CallbackStatus;
      created_at: Fixed<Timestamp>;
      due_at: Timestamp | null;
      attempts: Generated<number>;
      run: Generated<number>;
      run_attempts: Generated<number>;
      attempts_expired: Generated<number>;
      host: Fixed<string>;
      redirect_url: string | null;
      delivered_at: Timestamp | null;
      lease: string | null;
      leased_until: Timestamp | null;
      sealed_verify: Fixed<Buffer | null>;
      sent_attempt: number | null;
      event: Fixed<EventName | null>;
      subject_id: Fixed<string | null>;
      sequence: Fixed<number | null>;
      listed_id: Fixed<string>;
    };
    callback_attempts: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      callback_id: Fixed<string>;
      number: Fixed<number>;
      run: Fixed<number>;
      trigger: Fixed<CallbackTriggerName>;
      operator: Fixed<string | null>;
      started_at: Fixed<Timestamp>;
      finished_at: Timestamp | null;
      outcome: AttemptOutcomeName;
      reason: string | null;
      request_headers: JSONColumnType<Record<string, string>, string, never>;
      address: string | null;
      tls_version: string | null;
      response_status: number | null;
      response_headers: JSONColumnType<ReceivedHeaders | null, string | null, string | null>;
      response_body: Buffer | null;
      response_header_bytes: number | null;
      response_body_bytes: number | null;
      timings: JSONColumnType<Timings | null, string | null, string | null>;
    };
    destinations: {
      merchant_id: Fixed<string>;
      host: Fixed<string>;
      failures: number;
      alerted: boolean;
    };
    destination_days: {
      merchant_id: Fixed<string>;
      host: Fixed<string>;
      day: Fixed<string>;
      attempts: number;
      delivered: number;
      buckets: number[];
    };
    destination_states: {
      merchant_id: Fixed<string>;
      host: Fixed<string>;
      last_attempt_at: Timestamp;
      last_error: string | null;
      last_error_at: Timestamp | null;
    };
  }
}
