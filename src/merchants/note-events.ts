import type { Handle } from '#platform/database/database.ts';
import { type MerchantIds, moveHasEvents } from './merchant.sql.ts';

/**
 * Records that an integration acting for these merchants asked for events. From then on,
 * changes at these merchants look for receivers (decision 0033).
 */
export async function noteEvents(db: Handle, merchant_ids: MerchantIds): Promise<void> {
  if (!Array.isArray(merchant_ids) || merchant_ids.length > 0) {
    await moveHasEvents(db, merchant_ids);
  }
}
