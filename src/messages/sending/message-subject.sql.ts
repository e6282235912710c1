import type { Handle } from '../../database/database.ts';
import type { Instalment } from '../../instalments/instalment.ts';
import type { Language } from '../../shared/language.ts';

/** What messages of one merchant are written from. */
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
    }
  >;
  instalments: Map<string, Instalment[]>;
  cards: Map<string, { brand: string | null; last4: string | null; expires: string | null }>;
};

/** Three statements for a whole batch, however many messages it has. */
export async function listMessageSources(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
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
    .select(['checkout_id', 'brand', 'last4', 'expires'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .execute();
  return {
    checkouts: new Map(checkouts.map((one) => [one.id, one])),
    instalments: Map.groupBy(instalments, (one) => one.checkout_id),
    cards: new Map(cards.map((one) => [one.checkout_id, one])),
  };
}
