import assert from 'node:assert/strict';
import type { Checkout } from '../checkouts/checkout.ts';
import type { Handle } from '../database/database.ts';
import { postMovements } from '../ledger/post-movements.ts';
import { localDate, type Merchant } from '../merchants/merchant.ts';
import { timestamp } from '../shared/clock.ts';
import type { Random } from '../shared/random.ts';
import { insertInstalments } from './instalment.sql.ts';
import { capturesAt, collectsAt, planPayments } from './instalment.ts';

/**
 * Writes the plan of a checkout that was just paid, and the sale into the books, in the
 * transaction of its outcome (D22). The first payment is held already; the others wait for their
 * dates (D23).
 */
export async function scheduleInstalments(
  deps: { random: Random },
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  held: { payment_ref: string },
): Promise<void> {
  const { merchant_id, id: checkout_id, currency, completed_at, number_of_payments } = checkout;
  assert(completed_at !== null && number_of_payments !== null);
  const { time_zone } = merchant.territory;
  const purchaseDate = localDate(merchant, Temporal.Instant.from(completed_at));
  const plan = planPayments(checkout.amount, number_of_payments, purchaseDate);
  await insertInstalments(
    db,
    plan.map((payment) => {
      const isHeld = payment.number === 1;
      return {
        ...payment,
        merchant_id,
        checkout_id,
        currency,
        status: isHeld ? 'authorised' : 'scheduled',
        payment_ref: isHeld ? held.payment_ref : null,
        due_at: timestamp((isHeld ? capturesAt : collectsAt)(payment.due_on, time_zone)),
      };
    }),
  );
  const of = { merchant_id, checkout_id, currency };
  await postMovements(deps, db, completed_at, [
    { ...of, kind: 'sold', amount: checkout.amount },
    { ...of, kind: 'authorised', amount: plan[0]?.amount ?? 0, instalment: 1 },
  ]);
}
