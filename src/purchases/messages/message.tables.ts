import type { Generated, JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type {
  MessageFacts,
  MessageKind,
  AttemptOutcome as MessageOutcomeName,
  MessageStatus,
} from './message.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    messages: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string | null>;
      kind: Fixed<MessageKind>;
      about: Fixed<string>;
      facts: JSONColumnType<MessageFacts, string, never>;
      sealed_token: Buffer | null;
      status: MessageStatus;
      created_at: Fixed<Timestamp>;
      planned_at: Fixed<Timestamp>;
      due_at: Timestamp | null;
      settled_at: Timestamp | null;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
      payment_link_id: Fixed<string | null>;
    };
    message_attempts: {
      merchant_id: Fixed<string>;
      message_id: Fixed<string>;
      number: Fixed<number>;
      at: Fixed<Timestamp>;
      outcome: Fixed<MessageOutcomeName>;
      response: Fixed<string>;
    };
    archived_messages: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      archived_at: Timestamp;
      messages: JSONColumnType<object[], string, string>;
      attempts: JSONColumnType<object[], string, string>;
    };
    mailbox: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string | null>;
      sent_at: Fixed<Timestamp>;
      sender: Fixed<string>;
      recipient: Fixed<string>;
      subject: Fixed<string>;
      text: Fixed<string>;
      html: Fixed<string>;
    };
  }
}
