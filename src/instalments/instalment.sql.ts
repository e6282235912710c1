import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Instalment } from './instalment.ts';

export async function insertInstalments(db: Handle, instalments: Instalment[]): Promise<void> {
  await db.insertInto('instalments').values(instalments).execute();
}

export async function insertStoredCard(
  db: Handle,
  card: {
    merchant_id: string;
    checkout_id: string;
    customer_ref: string;
    card_ref: string;
    brand: string | null;
    last4: string | null;
    consent: object;
    created_at: Timestamp;
  },
): Promise<void> {
  await db
    .insertInto('stored_cards')
    .values({ ...card, consent: JSON.stringify(card.consent) })
    .execute();
}
