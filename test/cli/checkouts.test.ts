import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Tranche, unknownId } from '../support/cli.ts';
import { assertSound, commandsOf, type Paying, startPaying } from '../support/payments.ts';
import { send } from '../support/service.ts';

let paying: Paying;
let tranche: Tranche;
before(async () => {
  paying = await startPaying();
  tranche = commandsOf(paying);
});
after(async () => {
  try {
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

test('a checkout is shown with its whole history, in order of time', async () => {
  const client_reference_id = `order \x1b[31m${'7'.repeat(200)}`;
  const shopper = await paying.shopper({ client_reference_id });
  const { id } = shopper;
  paying.clock.advance({ minutes: 1 });
  await shopper.pay(3, { card: '4000000000009995' });
  paying.clock.advance({ minutes: 1 });
  await shopper.pay(3, { card: '4000000000005126' });
  await paying.gateway.fault({
    fault: 'decline',
    decline_code: 'insufficient_funds',
    key_contains: `${id}:i2:a1`,
  });
  await paying.pass({ days: 35 });
  const answer = await send(paying.service, paying.account, 'POST', '/api/refunds', {
    body: { checkout_id: id, amount: 120_000 },
  });
  const refund = answer.body.data.id;
  paying.clock.advance({ hours: 1 });
  await tranche.json('refunds', 'approve', refund);
  await paying.pass({ days: 10 });
  await tranche.json('refunds', 'retry', refund);
  const other = await send(paying.service, paying.account, 'POST', '/api/refunds', {
    body: { checkout_id: id, amount: 10_000 },
  });
  await tranche.json('refunds', 'decline', other.body.data.id, '--reason', 'It was worn.');

  const shown = await tranche.json('checkouts', 'show', id);
  const descriptions = shown.timeline.map((entry: { description: string }) =>
    entry.description.replace(/\s/g, ' '),
  );
  assert.deepEqual(descriptions, [
    'created, R 1 500,00',
    'attempt 1 to pay R 500,00, the first of 3 payments, declined: insufficient funds',
    'attempt 2 to pay R 500,00, the first of 3 payments, with Visa ending 5126, authorised',
    'successful, 3 payments',
    'callback, attempt 1, delivered',
    'payment 1, capture of R 500,00, collected',
    'payment 2, charge of R 500,00, declined: insufficient funds',
    'payment 2, charge of R 500,00, collected',
    'refund 1 requested, R 1 200,00',
    'refund 1 approved by nomsa',
    'refund 1 takes R 500,00 off payment 3',
    'refund 1 takes R 500,00 of payment 2 back to the card',
    'refund 1 takes R 200,00 of payment 1 back to the card',
    'refund 1 complete',
    'refund 1 has R 500,00 of payment 2 returned by the card network',
    'refund 1 has R 200,00 of payment 1 returned by the card network',
    'refund 1 failed',
    'refund 1 retried by nomsa',
    'refund 1 takes R 500,00 of payment 2 back to the card',
    'refund 1 takes R 200,00 of payment 1 back to the card',
    'refund 1 complete',
    'refund 2 requested, R 100,00',
    'refund 2 declined by nomsa: It was worn.',
  ]);
  const times = shown.timeline.map(({ at }: { at: string }) => at);
  assert.deepEqual(times, [...times].sort());
  assert.deepEqual(
    shown.instalments.map((one: Record<string, unknown>) => [one.number, one.status, one.reduced]),
    [
      [1, 'collected', 0],
      [2, 'collected', 0],
      [3, 'cancelled', 50_000],
    ],
  );
  const { balances } = shown;
  assert.equal(
    balances.collected + balances.outstanding + balances.refunded + balances.cancelled,
    150_000,
  );
  assert.equal(
    Object.values(balances as Record<string, number>).reduce((sum, one) => sum + one, 0),
    0,
  );
  assert.equal(shown.callback.history.length, 1);
  assert.equal(shown.refunds.length, 2);
  const text = JSON.stringify(shown);
  for (const secret of ['sealed_card_token', 'challenge_url', '"lease"', 'card_ref']) {
    assert.ok(!text.includes(secret), secret);
  }

  const { code, stdout } = await tranche.run('checkouts', 'show', id);
  assert.equal(code, 0);
  for (const heading of ['Plan', 'Refunds', 'Timeline', 'Books', 'Operators']) {
    assert.match(stdout, new RegExp(`^${heading}$`, 'm'));
  }
  assert.ok(!stdout.includes('\x1b'));
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
});

test('a new checkout is shown, and an unknown ID is refused', async () => {
  const { id } = await paying.shopper();
  const shown = await tranche.json('checkouts', 'show', id.toUpperCase());
  assert.deepEqual([shown.id, shown.status, shown.callback], [id, 'received', null]);
  assert.deepEqual([shown.timeline.length, shown.postings, shown.instalments], [1, [], []]);
  assert.match((await tranche.run('checkouts', 'show', id)).stdout, /Callback +none/);
  for (const what of [unknownId, 'x']) {
    await tranche.refused(1, /There is no checkout/, 'checkouts', 'show', what);
  }
  await tranche.refused(2, /ID is missing/, 'checkouts', 'show');
});
