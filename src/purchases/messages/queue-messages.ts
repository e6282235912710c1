import { send } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertMessages } from './message.sql.ts';
import type { MessageFacts, MessageKind } from './message.ts';

export type QueueDeps = {
  random: Random;
  sendsMessages: boolean;
};

export type QueuedMessage = {
  merchant_id: string;
  /** Null for the mail of a payment link, which has `payment_link_id`. */
  checkout_id: string | null;
  payment_link_id?: string;
  kind: MessageKind;
  /** Which payment, refund or link the message is about. */
  about?: string;
  facts?: MessageFacts | undefined;
  /** A one-time link. Its token was sealed for `id`, so the message must get this id. */
  link?: { id: string; sealed_token: Buffer };
  at: Timestamp;
  /** When the message falls due, on the merchant's clock. If absent, it is due at once. */
  due_at?: Timestamp;
};

/** Writes messages in the transaction that causes them. */
export async function queueMessages(
  deps: QueueDeps,
  db: Handle,
  messages: QueuedMessage[],
): Promise<void> {
  const written = messagesOf(deps, messages);
  if (written) await send(db, written);
}

/**
 * Messages to be written in the transaction that causes them, so that a message exists exactly when
 * its cause does. Returns null if there are none, or if the service sends no mail: rows that are
 * never sent would stay due.
 */
export function messagesOf(deps: QueueDeps, messages: QueuedMessage[]) {
  if (!deps.sendsMessages || messages.length === 0) return null;
  return insertMessages(
    messages.map(
      ({ merchant_id, checkout_id, kind, about = '', facts = {}, link, at, due_at, ...of }) => ({
        merchant_id,
        id: link?.id ?? deps.random.uuid(),
        checkout_id,
        kind,
        about,
        facts: JSON.stringify(facts),
        sealed_token: link?.sealed_token ?? null,
        status: 'pending' as const,
        created_at: at,
        planned_at: due_at ?? at,
        due_at: due_at ?? at,
        settled_at: null,
        lease: null,
        leased_until: null,
        payment_link_id: of.payment_link_id ?? null,
      }),
    ),
  );
}
