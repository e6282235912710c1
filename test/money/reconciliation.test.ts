import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { compare, remedies } from '#checks/reconciliation/compare.ts';
import {
  reconcile as reconcileRecords,
  runDailyReconciliation,
} from '#checks/reconciliation/reconcile.ts';
import { type Gateway, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { findNewDisputes } from '#purchases/disputes/check-disputes.ts';
import type { Tranche } from '../support/cli.ts';
import { findNodes } from '../support/database-server.ts';
import { gatewayOf, onlyGateway } from '../support/gateway.ts';
import { openDispute, refundNow } from '../support/money.ts';
import {
  assertSound,
  commandsOf,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { until } from '../support/until.ts';

// Compares our rows with the records of the real test gateway.

const { hasCitus } = await findNodes();

let paying: Paying;
let tranche: Tranche;
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
  tranche = commandsOf(paying);
});
after(() => paying.close());

async function reconcile() {
  const { code, stdout } = await tranche.run('gateway', 'reconcile', '--json');
  const { checked, differences } = JSON.parse(stdout);
  assert.equal(code, differences.length === 0 ? 0 : 1);
  return { checked, differences } as {
    checked: number;
    differences: {
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
  const runs = Array.from({ length: 3 }, () => reconcileRecords(deps, { from: null, to: null }));
  await Promise.all(runs);
  await reconcile();
  // Two payments of 300 rand at 2.9 % and 2 rand each, and a dispute. Refunds cost nothing.
  const expected = ['gateway_fee 1070', 'gateway_fee 1070', 'gateway_fee 25000'];
  assert.deepEqual(await fees(), expected);
  const violations = await findViolations(deps.database, paying.clock.now().toString(), ['M10']);
  assert.deepEqual(violations, []);
});

test('what the gateway charges without a payment is posted once and shown by the day', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  // Both transactions below are of one day.
  const headers = {
    'Tranche-Merchant': paying.account.merchant.id,
    'Tranche-Merchant-Time': paying.clock.now().toString(),
  };
  const path = '/_test/balance_transactions';
  const moved = async (type: string, amount: string) =>
    (await paying.gateway.call('POST', path, { type, amount }, headers)).body;
  const [charged, returned] = [
    await moved('stripe_fee', '-2300'),
    await moved('stripe_fee', '300'),
  ];
  // The owner of the account was paid, which is not a fee.
  await moved('payout', '-50000');
  assert.deepEqual((await reconcile()).differences, []);
  await reconcileRecords(deps, { from: null, to: null });
  const { rows } = await pool.query(
    'select transaction_ref, type, fee, currency from gateway_account_fees order by fee',
  );
  const of = { type: 'stripe_fee', currency: 'ZAR' };
  assert.deepEqual(rows, [
    { transaction_ref: returned.id, fee: -300, ...of },
    { transaction_ref: charged.id, fee: 2_300, ...of },
  ]);
  // Citus has no triggers.
  if (!hasCitus) {
    await assert.rejects(pool.query('delete from gateway_account_fees'), /append-only/);
  }
  const date = Temporal.Instant.fromEpochMilliseconds(charged.created * 1000)
    .toZonedDateTimeISO('Africa/Johannesburg')
    .toPlainDate();
  const day = async (on: Temporal.PlainDate) =>
    (await tranche.json('money', 'day', '--date', on.toString())).account_fees;
  assert.deepEqual(await day(date), [{ currency: 'ZAR', amount: 2_000 }]);
  assert.deepEqual(await day(date.add({ days: 2 })), []);
  const { stdout } = await tranche.run('money', 'day', '--date', date.toString());
  assert.match(stdout, /Gateway's account fees +R\s?20[.,]00/);
});

test('a run that is interrupted continues where it was', async () => {
  const { pool } = paying.service.deps.database;
  const runs = async () =>
    (await pool.query('select id, kind, ended_at from reconciliation_runs order by began_at')).rows;
  const before = (await runs()).length;
  const { checked } = await reconcile();
  paying.clock.advance({ seconds: 1 });
  // The SDK repeats a request once if its connection was closed.
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

test('a process that is killed within a kind of records is continued after the last batch', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  for (let count = 0; count < 12; count += 1) await bought(1);
  const calls: (string | null)[] = [];
  const killed = Promise.withResolvers<never>();
  // Pages of one record, so that ten payments are a batch.
  const paged = (killAt: number | null): Gateway => ({
    ...gatewayOf(deps),
    async listRecords(kind, range) {
      if (kind !== 'payments') return await gatewayOf(deps).listRecords(kind, range);
      calls.push(range.after);
      if (calls.length === killAt) return await killed.promise;
      const { records, next } = await gatewayOf(deps).listRecords(kind, range);
      const [record] = records;
      const hasMore = records.length > 1 || next !== null;
      return { records: records.slice(0, 1), next: hasMore ? (record?.reference ?? null) : null };
    },
  });
  const range = { from: '2025-12-01T00:00:00.000Z', to: null };
  const reconcileBy = (gateway: Gateway) =>
    reconcileRecords({ ...deps, gateways: onlyGateway(gateway) }, range);
  const interrupted = assert.rejects(reconcileBy(paged(12)), /killed/);
  const findRun = async () => {
    const { rows } = await pool.query(
      'select id, after, checked from reconciliation_runs where ended_at is null and from_at = $1',
      [range.from],
    );
    return rows[0];
  };
  await until(
    'the first batch to be recorded',
    async () => calls.length === 12 && (await findRun())?.checked === 10,
  );
  const run = await findRun();
  assert.equal(run.after, calls[10]);
  // The connection of a killed process ends, and its lock with it. On a busy machine that takes
  // time.
  await pool.query(
    `select pg_terminate_backend(pid, 20000) from pg_locks where locktype = 'advisory' and granted
       and (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 97)`,
    [run.id],
  );
  killed.reject(new Error('killed'));
  await interrupted;
  calls.length = 0;
  const continued = await reconcileBy(paged(null));
  assert.equal(calls[0], run.after);
  const whole = await reconcileRecords(deps, range);
  assert.deepEqual([continued.checked, continued.differences], [whole.checked, whole.differences]);
});

test('a run waits when the gateway answers 429, and then continues', async () => {
  const { checked } = await reconcile();
  const path = '/v1/charges';
  await paying.gateway.fault({ fault: 'too_many', method: 'GET', path, times: 2 });
  assert.equal((await reconcile()).checked, checked);
});

test('what the gateway could not list in the range is not missing there', async () => {
  const { deps } = paying.service;
  const start = paying.clock.now();
  const shopper = await bought(3);
  await paying.pass({ days: 2 });
  // The hold is older than the range, and its capture is not.
  const from = start.add({ hours: 1 }).toString();
  const late = await reconcileRecords(deps, { from, to: null });
  assert.deepEqual(late.differences, []);
  // A payment is collected after the run has read the payments.
  let isCollected = false;
  const gateway: Gateway = {
    ...gatewayOf(deps),
    async listRecords(kind, range) {
      if (kind === 'charges' && !isCollected) {
        isCollected = true;
        await paying.pass({ days: 31 });
      }
      // A dispute of an old payment opens after the run has read the disputes.
      if (kind === 'transactions' && (await shopper.rows('disputes')).length === 0) {
        const payment_intent = await referenceOf(shopper, 1);
        await paying.gateway.call('POST', '/_test/disputes', { payment_intent });
        await findNewDisputes(deps);
      }
      return await gatewayOf(deps).listRecords(kind, range);
    },
  };
  const reconciled = await reconcileRecords(
    { ...deps, gateways: onlyGateway(gateway) },
    { from: null, to: null },
  );
  assert.equal((await shopper.rows('instalments'))[1].status, 'collected');
  assert.equal((await shopper.rows('disputes')).length, 1);
  assert.deepEqual(reconciled.differences, []);
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
  for (let count = 0; count < 5; count += 1) held.push(await bought(3));
  const at = (index: number) => plans[index] as Shopper;
  const dispute = async (index: number): Promise<string> => {
    const payment_intent = await referenceOf(at(index), 1);
    const { body } = await paying.gateway.call('POST', '/_test/disputes', { payment_intent });
    return body.id;
  };
  const known = await dispute(5);
  await findNewDisputes(deps);
  // A row from the last minutes may be younger than the gateway's list.
  paying.clock.advance({ minutes: 10 });
  const clean = await reconcile();
  assert.deepEqual(clean.differences, []);
  assert.ok(clean.checked >= 42);

  const expected: string[] = [];
  const repairs: (() => Promise<unknown>)[] = [];
  const change = async (text: string, values: unknown[]) => {
    const { rowCount } = await pool.query(text, values);
    assert.equal(rowCount, 1, text);
  };
  /** Changes a row of ours until the test repairs it. */
  const plant = async (
    difference: string,
    table: string,
    set: [set: string, repair: string],
    [where, ...values]: [string, ...unknown[]],
  ) => {
    await change(`update ${table} set ${set[0]} where ${where}`, values);
    repairs.push(() => change(`update ${table} set ${set[1]} where ${where}`, values));
    expected.push(difference);
  };
  const second = (index: number): [string, string] => [
    'checkout_id = $1 and instalment = 2',
    at(index).id,
  ];
  const time = { id: paying.account.merchant.id, now: paying.clock.now().toString() };
  // A payment that another program made.
  const [card] = await at(0).rows('stored_cards');
  const charge = await gatewayOf(deps).charge({
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
  // A dispute that we have not found yet, and one that withdrew another amount than our row says.
  expected.push(`unknown_to_us ${await dispute(1)}`);
  await plant(
    `other_amount ${known}`,
    'disputes',
    // An open dispute is read again anyway, and is not compared. An ended one does not reopen as
    // long as no more money is withdrawn.
    [
      "withdrawn = 40000, status = 'lost', closed_at = created_at, due_at = null",
      "withdrawn = 30000, status = 'needs_response', closed_at = null, due_at = created_at",
    ],
    ['dispute_ref = $1', known],
  );
  // A refund that an operator made in the gateway's own console.
  const { refund_ref: byHand } = await gatewayOf(deps).refund({
    key: randomUUID(),
    merchant: time,
    payment_ref: await referenceOf(at(2), 1),
    amount: 100,
    refund_id: randomUUID(),
  });
  expected.push(`unknown_to_us ${byHand}`);
  await plant(
    'missing_there pi_missing',
    'collections',
    ["payment_ref = 'pi_missing'", `payment_ref = '${await referenceOf(at(4), 2)}'`],
    second(4),
  );
  for (const index of [6, 7]) {
    await plant(
      `other_amount ${await referenceOf(at(index), 2)}`,
      'collections',
      ['amount = amount - 1', 'amount = amount + 1'],
      second(index),
    );
  }
  await plant(
    `other_state ${await referenceOf(at(8), 2)}`,
    'collections',
    ["status = 'declined'", "status = 'collected'"],
    second(8),
  );
  // The gateway corrects its balance, and nothing of ours explains it.
  const correction = { type: 'adjustment', amount: '-700' };
  const moved = await paying.gateway.call('POST', '/_test/balance_transactions', correction);
  expected.push(`unknown_to_us ${moved.body.id}`);
  for (const [index, shopper] of refunded.entries()) {
    const parts = await shopper.rows('refund_parts');
    const { id, refund_ref } = parts.find(({ kind }) => kind === 'card');
    const missing = `re_missing_${index}`;
    const [difference, set] = (
      [
        [`other_state ${refund_ref}`, ["status = 'failed'", "status = 'done'"]],
        [`other_amount ${refund_ref}`, ['amount = amount + 1', 'amount = amount - 1']],
        [`missing_there ${missing}`, [`refund_ref = '${missing}'`, `refund_ref = '${refund_ref}'`]],
      ] as const
    )[index % 3] as [string, [string, string]];
    await plant(difference, 'refund_parts', set, ['id = $1', id]);
  }
  for (const shopper of held.slice(0, 2)) {
    const payment_ref = await referenceOf(shopper, 1);
    await gatewayOf(deps).void({ key: randomUUID(), merchant: time, payment_ref });
    expected.push(`other_state ${payment_ref}`);
  }
  const unheld = held.pop() as Shopper;
  await plant(
    'missing_there pi_missing_hold',
    'instalments',
    ["payment_ref = 'pi_missing_hold'", `payment_ref = '${await referenceOf(unheld, 1)}'`],
    ['checkout_id = $1 and number = 1', unheld.id],
  );
  for (const shopper of held.slice(2)) {
    const payments = await shopper.rows('instalments');
    const { due_at } = payments.find(({ number }) => number === 1);
    const earlier = Temporal.Instant.from(due_at).subtract({ hours: 96 });
    await plant(
      `held_too_long ${await referenceOf(shopper, 1)}`,
      'instalments',
      [`due_at = '${earlier}'`, `due_at = '${due_at}'`],
      ['checkout_id = $1 and number = 1', shopper.id],
    );
  }
  assert.equal(expected.length, 20);

  const { differences } = await reconcile();
  const named = (list: typeof differences) =>
    list.map((one) => `${one.kind} ${one.reference}`).sort();
  assert.deepEqual(named(differences), expected.sort());
  assert.deepEqual(
    [...new Set(differences.map(({ kind }) => kind))].sort(),
    Object.keys(remedies).sort(),
  );
  for (const { id, remedy } of differences) {
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.ok(remedy.length > 20);
  }

  // Each difference is one alert, however often it is found, even after an operator has closed it.
  for (const { id } of differences.slice(0, 3)) {
    await tranche.json('alerts', 'close', id, '--reason', 'refunded by hand');
  }
  const again = await reconcile();
  assert.deepEqual(
    again.differences.map(({ id }) => id).sort(),
    differences.map(({ id }) => id).sort(),
  );
  const { rows } = await pool.query(
    `select close_reason from alerts
     where kind like 'gateway\\_%' and kind <> 'gateway_trouble'`,
  );
  const reasons = rows.map(({ close_reason }) => close_reason);
  assert.equal(reasons.length, 20);
  assert.equal(reasons.filter((reason) => reason === 'refunded by hand').length, 3);

  // Repaired rows are no longer found, and the planted rows were the only wrong ones.
  for (const repair of repairs) await repair();
  assert.equal((await reconcile()).differences.length, 20 - repairs.length);
  await paying.work();
  await assertSound(paying);
});

test('one refund of payments that were paid at once agrees with its parts', async () => {
  const shopper = await bought(3);
  await paying.pass({ days: 2 });
  await (await actingOn(paying, shopper)).pay('rest');
  assert.equal((await refundNow(paying, shopper, 50_000)).status, 'complete');
  const { refunds } = await shopper.books();
  assert.deepEqual(
    refunds.map(({ amount }) => amount),
    [50_000],
  );
  const { differences } = await reconcile();
  assert.deepEqual(
    differences.filter(({ checkout_id }) => checkout_id === shopper.id),
    [],
  );
});

test('a dispute that is not recorded, or cannot be, is a difference until it is found', async () => {
  const { deps } = paying.service;
  const gateway = gatewayOf(deps);
  const shopper = await bought(1);
  await paying.pass({ days: 2 });
  const payment_intent = await referenceOf(shopper, 1);
  const { body } = await paying.gateway.call('POST', '/_test/disputes', { payment_intent });
  const from = timestamp(paying.clock.now().add({ hours: 24 * 100 }));
  const cannot: Record<string, Gateway['dispute']> = {
    'it is refused': async () => {
      throw new RequestRefused('No such dispute');
    },
    'too many requests': async () => {
      throw new OutcomeUnknown('Too many requests', 'too_many');
    },
    'it is in another currency': async (...of) => {
      return { ...(await gateway.dispute(...of)), currency: 'USD' };
    },
  };
  let pauses = 0;
  const sleep = async () => {
    pauses += 1;
  };
  for (const [why, dispute] of Object.entries(cannot)) {
    const failing = {
      ...deps,
      ...{ clock: { ...deps.clock, sleep }, operator: 'nomsa', isStopped: true },
      gateways: onlyGateway({ ...gateway, dispute }),
    };
    const run = await reconcileRecords(failing, { from, to: null, recorder: failing });
    const found = run.differences.map(({ reference }) => reference);
    assert.deepEqual([run.recorded, found.includes(body.id)], [0, true], why);
  }
  assert.ok(pauses > 0, 'it waits while there are too many requests');
  const isFound = async () =>
    (await reconcile()).differences.some(({ reference }) => reference === body.id);
  assert.equal(await isFound(), true);
  await findNewDisputes(paying.service.deps);
  assert.equal(await isFound(), false);
});

test('an ended dispute that changed at the gateway is recorded, though it began before the range', async () => {
  const { deps } = paying.service;
  const gateway = gatewayOf(deps);
  const shopper = await bought(1);
  await paying.pass({ days: 2 });
  const id = await openDispute(paying, shopper);
  await tranche.json('disputes', 'accept', id);
  const [{ dispute_ref, due_at }] = await shopper.rows('disputes');
  assert.equal(due_at, null, 'it is not read again by itself');
  /** Runs while the gateway says that the dispute was won after all. */
  const run = async (problem: string | null) => {
    const listRecords: Gateway['listRecords'] = async (kind, range) => {
      const page = await gateway.listRecords(kind, range);
      const records = page.records.map((record) =>
        record.reference === dispute_ref
          ? { ...record, amount: 0, state: 'nothing' as const }
          : record,
      );
      return { ...page, records };
    };
    const dispute: Gateway['dispute'] = async (...of) => {
      return { ...(await gateway.dispute(...of)), status: 'won', withdrawn: 0 };
    };
    const gateways = onlyGateway({ ...gateway, listRecords, dispute });
    const money = { ...deps.money, problem: async () => problem };
    // Daily runs begin to read forty days before today.
    const from = timestamp(paying.clock.now().add({ hours: 24 * 100 }));
    const { differences } = await reconcileRecords(
      { ...deps, gateways, money },
      { from, to: null },
    );
    const found = differences.filter(({ reference }) => reference === dispute_ref);
    return found.map(({ kind, remedy }) => `${kind} ${remedy}`);
  };
  // After a restore, payments must be recorded before disputes.
  const [reported = '', ...others] = await run('stopped');
  assert.match(reported, /^other_state .*`tranche gateway reconcile` reads it again/);
  assert.deepEqual(others, []);
  assert.equal((await shopper.rows('disputes'))[0].status, 'lost');
  assert.deepEqual(await run(null), []);
  const [row] = await shopper.rows('disputes');
  assert.deepEqual([row.status, row.withdrawn, row.is_pausing], ['won', 0, false]);
  await findNewDisputes(deps);
  await paying.work();
  await assertSound(paying);
});

test('a range of dates reads only the records of that range', async () => {
  const run = await tranche.run('gateway', 'reconcile', '--from', '2036-01-01', '--json');
  assert.deepEqual(JSON.parse(run.stdout), { checked: 0, differences: [], not_compared: [] });
  await tranche.refused(2, /must be a date/, 'gateway', 'reconcile', '--from', 'monday');
  // The last day of the range is the day before --to.
  const read = async (...dates: string[]) => {
    const { stdout } = await tranche.run('gateway', 'reconcile', ...dates, '--json');
    return JSON.parse(stdout).checked as number;
  };
  await paying.pass({ days: 2 });
  const made = paying.clock.now().toZonedDateTimeISO('UTC').toPlainDate();
  const next = made.add({ days: 1 }).toString();
  const before = await read('--to', next);
  await bought(1);
  assert.equal(await read('--to', made.toString()), before);
  // The payment and its charge are two records.
  assert.equal(await read('--to', next), before + 2);
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

test('an operator is alerted once when no daily run has ended for a day and a half', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const alerts = async () =>
    (await pool.query(`select * from alerts where kind = 'gateway_not_reconciled'`)).rows;
  paying.clock.advance({ hours: 25 });
  await runDailyReconciliation(deps);
  assert.deepEqual(await alerts(), []);
  const path = '/v1/balance_transactions';
  await paying.gateway.fault({ fault: 'error_before', method: 'GET', path, times: 1_000 });
  for (let hours = 0; hours < 48; hours += 6) {
    paying.clock.advance({ hours: 6 });
    // The first day's run is not due yet.
    if (hours < 18) await runDailyReconciliation(deps);
    else await assert.rejects(runDailyReconciliation(deps));
  }
  const [alert, ...others] = await alerts();
  assert.match(alert?.detail ?? '', /was due at .* and has not ended/);
  assert.deepEqual(others, []);
  await closeEndedAlerts(deps);
  assert.equal((await alerts())[0].closed_at, null);
  await paying.clearFaults();
  paying.clock.advance({ hours: 1 });
  await runDailyReconciliation(deps);
  await closeEndedAlerts(deps);
  assert.notEqual((await alerts())[0].closed_at, null);
  const { rows } = await pool.query('select due_at, leased_until from reconciliation');
  assert.ok(rows[0].due_at > paying.clock.now().toString());
  assert.equal(rows[0].leased_until, null);
});

test('a daily run whose lease another process has claimed stops', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  paying.clock.advance({ hours: 25 });
  let isOvertaken = false;
  const gateway: Gateway = {
    ...gatewayOf(deps),
    async listRecords(kind, range) {
      // No batch has been read yet that could renew the lease meanwhile.
      if (!isOvertaken) {
        isOvertaken = true;
        paying.clock.advance({ hours: 1 });
        await runDailyReconciliation(deps);
      }
      return await gatewayOf(deps).listRecords(kind, range);
    },
  };
  const slow = runDailyReconciliation({ ...deps, gateways: onlyGateway(gateway) });
  await assert.rejects(slow, /another process has claimed/);
  const { rows } = await pool.query('select due_at from reconciliation');
  assert.ok(rows[0].due_at > paying.clock.now().toString());
});

test('an outcome that the service does not know yet is not a difference', () => {
  const now = () => Temporal.Instant.from('2026-01-05T08:00:00Z');
  const row = { amount: 100, captures_at: null, merchant_id: '' };
  const open = [{ ...row, state: 'in_flight' as const }];
  assert.equal(compare({ amount: 100, state: 'taken' }, open, now), null);
  assert.equal(compare({ amount: 100, state: 'in_flight' }, [], now), null);
  const taken = [{ ...row, state: 'taken' as const }];
  assert.equal(compare({ amount: 200, state: 'taken' }, [...taken, ...taken], now), null);
  assert.equal(compare({ amount: 100, state: 'nothing' }, taken, now), 'other_state');
});
