import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import { moveLanguage } from './checkout.sql.ts';
import type { Checkout } from './checkout.ts';

/** Stores the language that the shopper chose, for the page and for messages. */
export async function keepLanguage(
  deps: { database: Database; clock: Clock },
  checkout: Pick<Checkout, 'merchant_id' | 'id' | 'language'>,
  language: Language,
): Promise<void> {
  if (checkout.language === language) return;
  await transaction(deps, ({ db }) => moveLanguage(db, checkout, language));
}
