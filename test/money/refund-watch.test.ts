import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { retryRefund } from '#purchases/refunds/review-refund.ts';
import {
  accountsOf,
  alertsOf,
  assertBalanced,
  atGateway,
  cards,
  partsOf,
  refundNow,
  statusOf,
} from '../support/money.ts';
import { type Paying, startPaying } from '../support/payments.ts';

// A card network may return a refund, including the part that a failed refund kept.

let paying: Paying;
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
});
after(() => paying.close());

test('what a failed refund kept on the card is watched, and booked back if the network returns it', async () => {
  const shopper = await paying.shopper({ amount: 100_000 });
  await shopper.pay(3, { card: cards.refundFails });
  await paying.pass({ days: 64 });
  const path = '/v1/refunds';
  await paying.gateway.fault({ fault: 'decline', method: 'POST', path, skip: 1 });

  const refund = await refundNow(paying, shopper, 66_666);
  assert.equal(refund.status, 'failed');
  assert.equal(refund.kept, 33_333);
  const parts = await partsOf(shopper, refund.id);
  assert.deepEqual(parts.map((part) => part.replace(/^\d /, '')).sort(), [
    'card 33333 done',
    'card 33333 failed',
  ]);
  await assertBalanced(paying, shopper);

  await paying.pass({ days: 2, hours: 23 });
  assert.equal((await accountsOf(shopper)).refunded, 33_333);
  await assertBalanced(paying, shopper);
  await paying.pass({ hours: 1 });
  assert.equal((await accountsOf(shopper)).refunded, undefined);
  assert.equal((await atGateway(shopper)).returned, 0);
  assert.deepEqual(await alertsOf(paying, shopper), ['refund_failed', 'refund_failed']);
  await assertBalanced(paying, shopper);

  // Nothing is kept any more, so the whole amount may be refunded again.
  const again = await retryRefund(paying.service.deps, 'nomsa', refund.id);
  assert.equal(again.status, 'complete');
  assert.equal((await atGateway(shopper)).returned, 66_666);
  await paying.pass({ days: 40 });
  assert.equal(await statusOf(paying, refund.id), 'failed');
  await assertBalanced(paying, shopper);
});

test('a check that the gateway does not answer is repeated, also after the last day', async () => {
  const shopper = await paying.shopper({ amount: 100_000 });
  await shopper.pay(1, { card: cards.refundFails });
  await paying.pass({ days: 2 });
  const refund = await refundNow(paying, shopper, 60_000);
  assert.equal(refund.status, 'complete');
  // The service is down for longer than a refund is watched, and the gateway fails for a while.
  const path = '/v1/refunds/:id';
  await paying.gateway.fault({ fault: 'error_before', method: 'GET', path, times: 3 });
  paying.clock.advance({ days: 40 });
  await paying.work();
  assert.equal(await statusOf(paying, refund.id), 'complete');
  await paying.pass({ hours: 1 });
  assert.equal(await statusOf(paying, refund.id), 'failed');
  await assertBalanced(paying, shopper);
});
