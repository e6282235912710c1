import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertOpening } from './opening.sql.ts';

/**
 * Notes that the page of a checkout was opened, once for each, for the console's charts. The page is
 * shown whether or not that could be written.
 */
export async function noteOpening(
  deps: { database: Database; clock: Clock; random: Random; log: Logger },
  merchant: Merchant,
  checkout: { merchant_id: string; id: string },
): Promise<void> {
  try {
    await insertOpening(deps.database.db, {
      merchant_id: checkout.merchant_id,
      checkout_id: checkout.id,
      id: deps.random.uuid(),
      at: timestamp(merchant.now()),
    });
  } catch (error) {
    deps.log.warn({ err: error }, 'the opening of a page could not be noted');
  }
}
