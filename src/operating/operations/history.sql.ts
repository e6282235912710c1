import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { MessageKind, MessageStatus } from '#purchases/messages/message.ts';

export type HistoryMessage = {
  kind: MessageKind;
  status: MessageStatus;
  planned_at: Timestamp;
  settled_at: Timestamp | null;
};

/** Messages to the shopper of a checkout, oldest first, with those that are planned. */
export async function listHistoryMessages(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<HistoryMessage[]> {
  return await db
    .selectFrom('messages')
    .select(['kind', 'status', 'planned_at', 'settled_at'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('id')
    .execute();
}

export async function findStoredCard(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<{ brand: string | null; last4: string | null } | null> {
  const row = await db
    .selectFrom('stored_cards')
    .select(['brand', 'last4'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .executeTakeFirst();
  return row ?? null;
}
