import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Tranche, unknownId } from '../support/cli.ts';
import { assertSound, commandsOf, type Paying, startPaying } from '../support/payments.ts';
import { createAccount, send } from '../support/service.ts';

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

/** A checkout whose second payment is overdue. */
async function overdue(account = paying.account) {
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3);
  await paying.gateway.fault({
    fault: 'decline',
    decline_code: 'insufficient_funds',
    key_contains: `${shopper.id}:i2:`,
    times: 1_000,
  });
  await paying.pass({ days: 40 });
  return shopper;
}

test('overdue payments are listed by merchant, the longest overdue first', async () => {
  const account = await createAccount(paying.service);
  const [first, second] = [await overdue(account), await overdue(account)];
  const list = async (...how: string[]) => {
    const { data } = await tranche.json(
      'instalments',
      'list',
      '--merchant',
      account.merchant.id,
      ...how,
    );
    return data.map(({ id }: { id: string }) => id);
  };
  assert.deepEqual(await list(), [`${first.id}:2`, `${second.id}:2`]);
  assert.deepEqual(await list('--status', 'overdue'), await list());
  assert.deepEqual(await list('--status', 'scheduled'), [`${second.id}:3`]);
  const { data } = await tranche.json('instalments', 'list');
  const [one] = data.filter(({ id }: { id: string }) => id === `${first.id}:2`);
  assert.deepEqual([one.status, one.declines, one.due_at], ['overdue', 4, null]);
  const { stdout } = await tranche.run('instalments', 'list');
  assert.match(stdout, new RegExp(`${first.id}:2  15 December 2026  R\\s500,00`));
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
  await tranche.refused(2, /--status is "late"/, 'instalments', 'list', '--status', 'late');
  await tranche.refused(2, /must be an ID/, 'instalments', 'list', '--merchant', 'x');
});

test("an overdue payment is charged again only by an operator's retry", async () => {
  const { id, books } = await overdue();
  const retry = ['instalments', 'retry', `${id}:2`];
  const charged = async () =>
    (await books()).payment_intents.filter(({ status }) => status === 'succeeded').length;
  const before = await charged();
  const declined = await tranche.run(...retry);
  assert.equal(declined.code, 0);
  assert.match(declined.stdout, /declined again\. The payment stays overdue/);
  await paying.clearFaults();
  await paying.pass({ hours: 30 });
  assert.equal(await charged(), before);

  const outcomes = await Promise.all([tranche.run(...retry), tranche.run(...retry)]);
  assert.deepEqual(outcomes.map(({ code }) => code).sort(), [0, 1]);
  assert.match(outcomes.map(({ stderr }) => stderr).join(''), /only an overdue payment/);
  assert.equal(await charged(), before + 1);
  const { data } = await tranche.json('audit', 'list', '--subject', id);
  assert.deepEqual(
    data.map((row: Record<string, unknown>) => [row.operator, row.action, row.details]),
    [0, 1].map(() => ['nomsa', 'instalments retry', { instalment: 2 }]),
  );
  await tranche.refused(1, /is collected: only an overdue payment/, ...retry);
});

test('a payment that a refund cancelled, and an unknown payment, are not charged', async () => {
  const { id } = await overdue();
  const { body } = await send(paying.service, paying.account, 'POST', '/api/refunds', {
    body: { checkout_id: id, amount: 120_000 },
  });
  await paying.gateway.fault({ fault: 'error_before', path: '/v1/refunds' });
  const { stdout, stderr } = await tranche.run('refunds', 'approve', body.data.id, '--json');
  assert.equal(JSON.parse(stdout).status, 'pending');
  assert.match(stderr, /^tranche: the outcome of a refund is not known yet: .*status 500/);
  await tranche.refused(
    1,
    /is cancelled: only an overdue payment/,
    'instalments',
    'retry',
    `${id}:2`,
  );
  for (const what of [`${unknownId}:2`, `${id}:4`, `${id}:0`, id, 'x', `${id}:2x`]) {
    await tranche.refused(1, /There is no payment/, 'instalments', 'retry', what);
  }
  await paying.pass({ minutes: 1 });
});
