import type { Handle } from '#platform/database/database.ts';
import type { PlanKey } from './plan-access.sql.ts';

type CardFace = { brand: string | null; last4: string | null };

/**
 * The card that paid one payment, for its receipt. The shopper may have replaced it since, or have
 * paid with a card that was not kept. Null if it is not known.
 */
export async function findPayingCard(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  instalment: number,
): Promise<CardFace | null> {
  const collection = await db
    .selectFrom('collections')
    .select(['kind', 'card_ref', 'payment_ref'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('instalment', '=', instalment)
    .where('status', '=', 'collected')
    .executeTakeFirst();
  if (collection?.kind === 'charge') {
    const stored = db
      .selectFrom('stored_cards')
      .select(['brand', 'last4'])
      .where('merchant_id', '=', merchant_id)
      .where('checkout_id', '=', checkout_id);
    // A charge that was recorded after a restore has no card.
    if (collection.card_ref === null) return (await stored.executeTakeFirst()) ?? null;
    const card = await stored
      .where('card_ref', '=', collection.card_ref)
      .unionAll(
        db
          .selectFrom('replaced_cards')
          .select(['brand', 'last4'])
          .where('merchant_id', '=', merchant_id)
          .where('checkout_id', '=', checkout_id)
          .where('card_ref', '=', collection.card_ref),
      )
      .executeTakeFirst();
    return card ?? null;
  }
  const succeeded = db
    .selectFrom('payment_attempts')
    .select(['card_brand as brand', 'card_last4 as last4'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id);
  const attempt =
    collection?.kind === 'shopper'
      ? succeeded.where('status', '=', 'charged').where('payment_ref', '=', collection.payment_ref)
      : succeeded.where('status', '=', 'authorised');
  return (await attempt.executeTakeFirst()) ?? null;
}
