import assert from 'node:assert/strict';
import type { Checkout } from '../checkouts/checkout.ts';
import type { Handle } from '../database/database.ts';
import { localDate, type Merchant } from '../merchants/merchant.ts';
import { insertInstalments } from './instalment.sql.ts';
import { planPayments } from './instalment.ts';

/** Writes the plan of a checkout that was just paid, in the transaction of its outcome (D22). */
export async function scheduleInstalments(
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
): Promise<void> {
  assert(checkout.completed_at !== null && checkout.number_of_payments !== null);
  const purchaseDate = localDate(merchant, Temporal.Instant.from(checkout.completed_at));
  const plan = planPayments(checkout.amount, checkout.number_of_payments, purchaseDate);
  await insertInstalments(
    db,
    plan.map((payment) => ({
      ...payment,
      merchant_id: checkout.merchant_id,
      checkout_id: checkout.id,
      currency: checkout.currency,
      // The first one is held on the card already; the others wait for their dates (D23).
      status: payment.number === 1 ? 'authorised' : 'scheduled',
    })),
  );
}
