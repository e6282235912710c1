import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import type { Clock } from '../shared/clock.ts';
import type { Language } from '../shared/language.ts';
import { moveLanguage } from './checkout.sql.ts';
import type { Checkout } from './checkout.ts';

/** Keeps the language that the shopper chose, for the page and for messages. */
export async function keepLanguage(
  deps: { database: Database; clock: Clock },
  checkout: Pick<Checkout, 'merchant_id' | 'id' | 'language'>,
  language: Language,
): Promise<void> {
  if (checkout.language === language) return;
  await transaction(deps, ({ db }) => moveLanguage(db, checkout, language));
}
