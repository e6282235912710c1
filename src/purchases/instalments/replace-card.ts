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
 * Stores the card that the shopper entered, so that it is charged from now on. Runs in the
 * transaction of the shopper's attempt, which holds the checkout's lock. Requests in flight keep
 * the card that they were opened with. The earlier card is detached at the gateway once none of
 * them needs it, unless the shopper entered the same card again.
 */
export async function replaceCard(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  attempt: CheckoutKey & { gateway: GatewayName; number: number },
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
  const { merchant_id, checkout_id } = attempt;
  await moveCardReplaced(db, attempt, card.card_ref, at);
  await send(db, insertStoredCard({ merchant_id, checkout_id, ...card, created_at: at }));
  const toCome = (await listInstalments(db, attempt)).filter(
    ({ status }) => status === 'scheduled',
  );
  const { time_zone } = merchant.territory;
  await queueMessages(deps, db, [
    // The attempt is part of `about`, because the shopper may enter the same card again later.
    { merchant_id, checkout_id, kind: 'card_replaced', about: `attempt ${attempt.number}`, at },
    ...cardExpiryMessages({ merchant_id, checkout_id, at }, toCome, card, time_zone),
  ]);
}
