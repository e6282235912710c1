import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertPostings } from './posting.sql.ts';
import { type MovementKind, movements } from './posting.ts';
import { settleMovements } from './settle-movements.ts';

export type Movement = {
  kind: MovementKind;
  merchant_id: string;
  checkout_id: string;
  amount: number;
  currency: string;
  instalment?: number;
  refund_id?: string;
  dispute_id?: string;
};

/**
 * Writes movements of one merchant into the books, and their effects into the merchant's own books.
 * Runs in the transaction of the change that caused them.
 */
export async function postMovements(
  deps: { random: Random },
  db: Handle,
  at: Timestamp,
  list: Movement[],
): Promise<void> {
  if (list.length === 0) return;
  await insertPostings(
    db,
    list.map(({ instalment, refund_id, dispute_id, ...movement }) => ({
      ...movement,
      ...movements[movement.kind],
      id: deps.random.uuid(),
      instalment: instalment ?? null,
      refund_id: refund_id ?? null,
      dispute_id: dispute_id ?? null,
      at,
    })),
  );
  await settleMovements(deps, db, at, list);
}
