import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { moveExpired } from './checkout.sql.ts';

export const expireCheckout = (
  db: Handle,
  key: { merchant_id: string; id: string },
  now: Timestamp,
): Promise<void> => moveExpired(db, key, now);
