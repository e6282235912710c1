import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { send } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type QueueDeps, queueMessages } from '#purchases/messages/queue-messages.ts';
import { cardExpiryMessages } from './card-expiry.ts';
import {
  type CheckoutKey,
  insertStoredCard,
  listInstalments,
  moveCardReplaced,
} from './instalment.sql.ts';

/**
 * Charges another card from now on, in the caller's transaction, which holds the checkout's lock.
 * Requests in flight keep the card that they were opened with. The earlier card is detached at the
 * gateway once none of them needs it.
 */
export async function replaceCard(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  key: CheckoutKey & { gateway: GatewayName },
  card: {
    customer_ref: string;
    card_ref: string;
    brand: string | null;
    last4: string | null;
    expires: string | null;
    card_key: string | null;
    consent: object;
  },
  at: Timestamp,
): Promise<void> {
  const { merchant_id, checkout_id } = key;
  await moveCardReplaced(db, key, at);
  await send(db, insertStoredCard({ merchant_id, checkout_id, ...card, created_at: at }));
  const toCome = (await listInstalments(db, key)).filter(({ status }) => status === 'scheduled');
  const { time_zone } = merchant.territory;
  await queueMessages(deps, db, [
    { merchant_id, checkout_id, kind: 'card_replaced', about: card.card_ref, at },
    ...cardExpiryMessages({ merchant_id, checkout_id, at }, toCome, card, time_zone),
  ]);
}
