import { send } from '#platform/database/compile-once.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import { updateLanguage } from './checkout.sql.ts';
import type { Checkout } from './checkout.ts';

type Spoken = Pick<Checkout, 'merchant_id' | 'id' | 'language'>;

/** Stores the language that the shopper chose, for the page and for messages. */
export async function keepLanguage(
  deps: { database: Database; clock: Clock },
  checkout: Spoken,
  language: Language,
): Promise<void> {
  if (checkout.language === language) return;
  await transaction(deps, ({ db }) => writeLanguage(db, checkout, language));
}

/** Stores the shopper's language in the transaction of a payment that begins. */
export async function writeLanguage(
  db: Handle,
  { merchant_id, id, language: stored }: Spoken,
  language: Language,
): Promise<void> {
  if (stored !== language) await send(db, updateLanguage({ merchant_id, id, language }));
}
