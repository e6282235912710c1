import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { findViolations } from '../../src/audit/invariants.ts';
import {
  compare,
  reconcile as reconcileRecords,
  runDailyReconciliation,
} from '../../src/audit/reconciliation/reconcile.ts';
import { findNewDisputes } from '../../src/disputes/check-disputes.ts';
import { commandLine, type Tranche } from '../support/cli.ts';
import { refundNow } from '../support/money.ts';
import { gatewayEnv, type Paying, type Shopper, startPaying } from '../support/payments.ts';

// Our rows against the records of the real test gateway.

let paying: Paying;
let tranche: Tranche;
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
  const env = { DATABASE_URL: paying.service.databaseUrl, ...gatewayEnv(paying.gateway) };
  tranche = commandLine(env, { clock: paying.clock });
});
after(() => paying.close());

async function reconcile() {
  const { code, stdout } = await tranche.run('gateway', 'reconcile', '--json');
  const { checked, findings } = JSON.parse(stdout);
  assert.equal(code, findings.length === 0 ? 0 : 1);
  return { checked, findings } as {
    checked: number;
    findings: {
      id: string;
      kind: string;
      reference: string;
      checkout_id: string;
      remedy: string;
    }[];
  };
}

async function bought(term: number): Promise<Shopper> {
  const shopper = await paying.shopper({ amount: 90_000 });
  await shopper.pay(term);
  return shopper;
}

/** The gateway's reference of a payment of the plan. */
async function referenceOf(shopper: Shopper, number: number): Promise<string> {
  const rows = await shopper.rows('instalments');
  return rows.find((row) => row.number === number).payment_ref;
}

test("the gateway's fees are posted once, however often they are read", async () => {
  const { deps } = paying.service;
  const shopper = await bought(3);
  await paying.pass({ days: 33 });
  await refundNow(paying, shopper, 40_000);
  const { body } = await paying.gateway.call('POST', '/_test/disputes', {
    payment_intent: await referenceOf(shopper, 1),
  });
  assert.ok(body.id);
  await findNewDisputes(deps);
  const fees = async () =>
    (await shopper.rows('postings'))
      .filter(({ kind }) => kind.startsWith('gateway_fee'))
      .map(({ kind, amount }) => `${kind} ${amount}`)
      .sort();
  assert.deepEqual(await fees(), []);
  const walks = Array.from({ length: 3 }, () => reconcileRecords(deps, { from: null, to: null }));
  await Promise.all(walks);
  await reconcile();
  // Two payments of 300 rand at 2.9 % and 2 rand each, and a dispute. Refunds cost nothing.
  const expected = ['gateway_fee 1070', 'gateway_fee 1070', 'gateway_fee 25000'];
  assert.deepEqual(await fees(), expected);
  const violations = await findViolations(deps.database, paying.clock.now().toString(), ['M10']);
  assert.deepEqual(violations, []);
});

test('a walk that is interrupted continues where it was', async () => {
  const { pool } = paying.service.deps.database;
  const runs = async () =>
    (await pool.query('select id, kind, ended_at from reconciliation_runs order by began_at')).rows;
  const before = (await runs()).length;
  const { checked } = await reconcile();
  paying.clock.advance({ seconds: 1 });
  // The SDK repeats a request whose connection was closed, once.
  await paying.gateway.fault({
    fault: 'drop_before',
    method: 'GET',
    path: '/v1/refunds',
    times: 2,
  });
  const broken = await tranche.run('gateway', 'reconcile', '--json');
  assert.equal(broken.code, 1);
  const [interrupted] = (await runs()).slice(before + 1);
  assert.deepEqual([interrupted.kind, interrupted.ended_at], ['refunds', null]);
  const continued = await reconcile();
  assert.equal(continued.checked, checked);
  assert.equal((await runs()).length, before + 2);
  assert.notEqual((await runs()).at(-1).ended_at, null);
  const { rows } = await pool.query('select count(*)::int as count from reconciliation_seen');
  assert.equal(rows[0].count, 0);
});

test('reconciliation finds each of twenty planted differences and nothing else', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const plans: Shopper[] = [];
  for (let count = 0; count < 16; count += 1) plans.push(await bought(3));
  await paying.pass({ days: 33 });
  const refunded: Shopper[] = [];
  for (const shopper of plans.slice(10, 16)) {
    // The third payment is cancelled, and the rest goes back to the card.
    await refundNow(paying, shopper, 40_000);
    refunded.push(shopper);
  }
  const held: Shopper[] = [];
  for (let count = 0; count < 4; count += 1) held.push(await bought(3));
  const clean = await reconcile();
  assert.deepEqual(clean.findings, []);
  assert.ok(clean.checked >= 42);

  const expected: string[] = [];
  const time = { id: paying.account.merchant.id, now: paying.clock.now().toString() };
  const at = (index: number) => plans[index] as Shopper;
  for (const index of [0, 1]) {
    // A payment that another program made.
    const [card] = await at(index).rows('stored_cards');
    const charge = await deps.gateway.charge({
      key: randomUUID(),
      merchant: time,
      checkout_id: randomUUID(),
      instalment: 2,
      attempt_id: randomUUID(),
      customer_ref: card.customer_ref,
      card_ref: card.card_ref,
      amount: 5_000,
      currency: 'ZAR',
      statement: { merchant_name: 'Bean There', instalments: [2], number_of_payments: 3 },
    });
    expected.push(`unknown_to_us ${charge.payment_ref}`);
  }
  for (const index of [2, 3]) {
    // A refund that an operator made in the gateway's own console.
    const { refund_ref } = await deps.gateway.refund({
      key: randomUUID(),
      merchant: time,
      payment_ref: await referenceOf(at(index), 1),
      amount: 100,
      refund_id: randomUUID(),
    });
    expected.push(`unknown_to_us ${refund_ref}`);
  }
  for (const index of [4, 5]) {
    await pool.query(
      `update collections set payment_ref = $2 where checkout_id = $1 and instalment = 2`,
      [at(index).id, `pi_missing_${index}`],
    );
    expected.push(`missing_there pi_missing_${index}`);
  }
  for (const index of [6, 7]) {
    await pool.query(
      `update collections set amount = amount - 1 where checkout_id = $1 and instalment = 2`,
      [at(index).id],
    );
    expected.push(`other_amount ${await referenceOf(at(index), 2)}`);
  }
  for (const index of [8, 9]) {
    await pool.query(
      `update collections set status = 'declined' where checkout_id = $1 and instalment = 2`,
      [at(index).id],
    );
    expected.push(`other_state ${await referenceOf(at(index), 2)}`);
  }
  for (const [index, shopper] of refunded.entries()) {
    const parts = await shopper.rows('refund_parts');
    const { refund_ref } = parts.find(({ kind }) => kind === 'card');
    const [change, kind] = [
      ["status = 'failed'", 'other_state'],
      ['amount = amount + 1', 'other_amount'],
      [`refund_ref = 're_missing_${index}'`, 'missing_there'],
    ][index % 3] as [string, string];
    await pool.query(`update refund_parts set ${change} where refund_ref = $1`, [refund_ref]);
    expected.push(`${kind} ${kind === 'missing_there' ? `re_missing_${index}` : refund_ref}`);
  }
  for (const shopper of held.slice(0, 2)) {
    const payment_ref = await referenceOf(shopper, 1);
    await deps.gateway.void({ key: randomUUID(), merchant: time, payment_ref });
    expected.push(`other_state ${payment_ref}`);
  }
  for (const shopper of held.slice(2)) {
    await pool.query(
      `update instalments set due_at = due_at - interval '4 days'
       where checkout_id = $1 and number = 1`,
      [shopper.id],
    );
    expected.push(`held_too_long ${await referenceOf(shopper, 1)}`);
  }
  assert.equal(expected.length, 20);

  const { findings } = await reconcile();
  assert.deepEqual(
    findings.map(({ kind, reference }) => `${kind} ${reference}`).sort(),
    expected.sort(),
  );
  for (const { id, remedy } of findings) {
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.ok(remedy.length > 20);
  }
  // Each difference is one alert, however often it is found.
  const again = await reconcile();
  assert.deepEqual(again.findings.map(({ id }) => id).sort(), findings.map(({ id }) => id).sort());
  const { rows } = await pool.query(
    "select id from alerts where kind like 'gateway\\_%' and kind <> 'gateway_trouble'",
  );
  assert.equal(rows.length, 20);
  await tranche.json('alerts', 'close', findings[0]?.id ?? '', '--reason', 'refunded by hand');
});

test('a dispute that is not recorded is a difference until it is found', async () => {
  const shopper = await bought(1);
  await paying.pass({ days: 2 });
  const payment_intent = await referenceOf(shopper, 1);
  const { body } = await paying.gateway.call('POST', '/_test/disputes', { payment_intent });
  const isFound = async () =>
    (await reconcile()).findings.some(({ reference }) => reference === body.id);
  assert.equal(await isFound(), true);
  await findNewDisputes(paying.service.deps);
  assert.equal(await isFound(), false);
});

test('a range of dates reads only the records of that range', async () => {
  const run = await tranche.run('gateway', 'reconcile', '--from', '2036-01-01', '--json');
  assert.deepEqual(JSON.parse(run.stdout), { checked: 0, findings: [] });
  await tranche.refused(2, /must be a date/, 'gateway', 'reconcile', '--from', 'monday');
});

test('the daily run begins a day after the first start and is made by one process', async () => {
  const { deps } = paying.service;
  const lines: object[] = [];
  const log = { ...deps.log, info: (facts: object) => lines.push(facts) } as typeof deps.log;
  const run = () => runDailyReconciliation({ ...deps, log });
  await run();
  assert.equal(lines.length, 0);
  paying.clock.advance({ hours: 25 });
  await Promise.all([run(), run(), run()]);
  assert.equal(lines.length, 1);
  await run();
  assert.equal(lines.length, 1);
});

test('what the service is still finding out is no difference', () => {
  const now = () => Temporal.Instant.from('2026-01-05T08:00:00Z');
  const row = { amount: 100, captures_at: null, merchant_id: '' };
  const open = [{ ...row, state: 'in_flight' as const }];
  assert.equal(compare({ amount: 100, state: 'taken' }, open, now), null);
  assert.equal(compare({ amount: 100, state: 'in_flight' }, [], now), null);
  const taken = [{ ...row, state: 'taken' as const }];
  assert.equal(compare({ amount: 200, state: 'taken' }, [...taken, ...taken], now), null);
  assert.equal(compare({ amount: 100, state: 'nothing' }, taken, now), 'other_state');
});
