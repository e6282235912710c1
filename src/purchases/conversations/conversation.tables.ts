import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { ConversationStatus } from './conversation.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    conversations: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      status: ConversationStatus;
      moved_at: Timestamp;
    };
    conversation_entries: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      author: Fixed<'shopper' | 'person'>;
      person_id: Fixed<string | null>;
      name: Fixed<string | null>;
      text: Fixed<string>;
      at: Fixed<Timestamp>;
    };
  }
}
