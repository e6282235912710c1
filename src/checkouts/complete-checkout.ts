import type { Handle } from '../database/database.ts';
import type { Clock } from '../shared/clock.ts';
import { timestamp } from '../shared/clock.ts';
import { moveSuccessful } from './checkout.sql.ts';
import type { Checkout } from './checkout.ts';

/**
 * Records that the payment was authorised, in the transaction of whoever found out. Null when the
 * checkout had reached another outcome before: then the payment is not its outcome.
 */
export async function completeCheckout(
  deps: { clock: Clock },
  db: Handle,
  checkout: { merchant_id: string; id: string },
  number_of_payments: number,
): Promise<Checkout | null> {
  return await moveSuccessful(db, checkout, number_of_payments, timestamp(deps.clock.now()));
}
