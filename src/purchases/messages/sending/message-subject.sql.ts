import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';

/** The facts that messages of one merchant are written from. */
export type MessageSources = {
  checkouts: Map<
    string,
    {
      id: string;
      merchant_id: string;
      amount: number;
      currency: string;
      client_reference_id: string;
      number_of_payments: number | null;
      customer: { email: string };
      language: Language | null;
      erased_at: Timestamp | null;
    }
  >;
  instalments: Map<string, Instalment[]>;
  /** The stored cards, by checkout. */
  cards: Map<string, CardFace>;
  /** The cards that the messages name, by reference. */
  namedCards: Map<string, CardFace>;
};

export type CardFace = { brand: string | null; last4: string | null; expires: string | null };

/** Three statements for a whole batch, and a fourth if a message names a card that was replaced. */
export async function listMessageSources(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
  card_refs: string[],
): Promise<MessageSources> {
  const checkouts = await db
    .selectFrom('checkouts')
    .select([
      'id',
      'merchant_id',
      'amount',
      'currency',
      'client_reference_id',
      'number_of_payments',
      'customer',
      'language',
      'erased_at',
    ])
    .where('merchant_id', '=', merchant_id)
    .where('id', 'in', checkout_ids)
    .execute();
  const instalments = await db
    .selectFrom('instalments')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .orderBy('checkout_id')
    .orderBy('number')
    .execute();
  const cards = await db
    .selectFrom('stored_cards')
    .select(['checkout_id', 'card_ref', 'brand', 'last4', 'expires'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .execute();
  const missing = card_refs.filter((ref) => !cards.some(({ card_ref }) => card_ref === ref));
  const replaced =
    missing.length === 0
      ? []
      : await db
          .selectFrom('replaced_cards')
          .select(['card_ref', 'brand', 'last4', 'expires'])
          .where('merchant_id', '=', merchant_id)
          .where('checkout_id', 'in', checkout_ids)
          .where('card_ref', 'in', missing)
          .execute();
  return {
    checkouts: new Map(checkouts.map((one) => [one.id, one])),
    instalments: Map.groupBy(instalments, (one) => one.checkout_id),
    cards: new Map(cards.map((one) => [one.checkout_id, one])),
    namedCards: new Map([...cards, ...replaced].map((one) => [one.card_ref, one])),
  };
}
