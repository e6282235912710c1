import type { GatewayRecord, RefundOrigin } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { writeTogether } from '#platform/database/write-together.ts';
import { CannotRecord } from '#platform/shared/cannot-record.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { reserveRefund } from './create-refund.ts';
import { lockRefund, movePart, sumRefunds } from './refund.sql.ts';
import { byPayment } from './refund.ts';
import { readStart } from './refund-sources.sql.ts';
import { startRefund, sumOf } from './start-refund.ts';

/**
 * Records a refund that the gateway made before the database was restored (decision 0098), in a
 * transaction that holds the checkout's lock. The request is written again under its own id and
 * split again. Each refund at the gateway must have the amount that this split takes from its
 * payment. The service then continues the request like any other.
 */
export async function recordLostRefund(
  deps: { clock: Clock; random: Random },
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  request: RefundOrigin,
  records: Pick<GatewayRecord, 'own_id' | 'amount' | 'reference'>[],
): Promise<void> {
  const { merchant_id, id: checkout_id, currency } = checkout;
  const show = (cents: number) => showMoney(cents, { currency, locale: merchant.territory.locale });
  if (checkout.status !== 'successful')
    throw new CannotRecord(`the checkout is ${checkout.status}`);
  const known = await lockRefund(db, { merchant_id, id: request.id });
  if (known !== null && (known.status !== 'requested' || known.amount !== request.amount)) {
    throw new CannotRecord(`the refund of ${show(known.amount)} is ${known.status}`);
  }
  if (known === null) {
    const left = checkout.amount - (await sumRefunds(db, merchant_id, checkout_id));
    if (request.amount > left) throw new CannotRecord(`only ${show(left)} can be refunded`);
  }
  const now = Temporal.Instant.from(request.created_at);
  const refund =
    known ??
    (await reserveRefund(deps, db, { merchant, now }, checkout, {
      id: request.id,
      amount: request.amount,
      integration_id: checkout.integration_id,
      signed: false,
      isApproved: true,
      requester: null,
      reason: null,
    }));
  const at = timestamp(merchant.now());
  const claim = { at, lease: null, leased_until: null };
  const facts = await readStart(db, refund, at);
  const started = await startRefund(deps, db, merchant, refund, facts, 'requested', claim);
  if (typeof started === 'string') throw new CannotRecord('the refund cannot begin now');
  await writeTogether(db, started.writes);
  const requests = byPayment(started.parts.filter(({ kind }) => kind === 'card'));
  for (const { own_id, amount, reference } of records) {
    const parts = requests.find(([first]) => first.id === own_id) ?? [];
    if (sumOf(parts) !== amount) {
      throw new CannotRecord('the refund would now be taken from other payments');
    }
    // A part with a reference is looked up and never sent.
    for (const part of parts) await movePart(db, part, { refund_ref: reference });
  }
}
