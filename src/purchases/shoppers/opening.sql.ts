import { compileOnce } from '#platform/database/compile-once.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type Opening = { merchant_id: string; checkout_id: string; id: string; at: Timestamp };

/** Writes nothing for checkouts whose pages have been opened before. */
export const insertOpenings = compileOnce((db, openings: Opening[]) =>
  db
    .insertInto('checkout_opens')
    .values(openings)
    .onConflict((conflict) => conflict.columns(['checkout_id', 'merchant_id']).doNothing()),
);
