import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { proveGateway } from '#checks/proof/prove.ts';
import { importFees } from '#checks/reconciliation/import-fees.ts';
import { createMoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { reconcile } from '#checks/reconciliation/reconcile.ts';
import { recordLost } from '#checks/reconciliation/record-lost.ts';
import { reportMissingGateways } from '#checks/reconciliation/report-missing-gateways.ts';
import { type Gateway, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { type GatewayName, gatewayName, mainGateway } from '#gateway/gateway-name.ts';
import { createGateways, eachGateway, type Gateways } from '#gateway/gateways.ts';
import { guardGateways, MoneyStopped } from '#gateway/guard-gateway.ts';
import { paymentId } from '#gateway/hyperswitch/ids.ts';
import { chooseGateways } from '#merchants/choose-gateway.ts';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { mustFindDispute } from '#purchases/disputes/answer-dispute.ts';
import { gatewayEventRoutes } from '#purchases/disputes/gateway-event.routes.ts';
import { recordDispute } from '#purchases/disputes/record-dispute.ts';
import { collectionId } from '#purchases/instalments/instalment.ts';
import { routeCheckout } from '#purchases/payments/route-checkout.ts';
import { exportPayouts } from '#purchases/payouts/review-payout.ts';
import { payPlan } from '#purchases/shoppers/pay-plan.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { commandLine } from '../support/cli.ts';
import { type GatewayUnderTest, startGateway } from '../support/gateway.ts';
import { useHyperswitch } from '../support/hyperswitch.ts';
import { assertBalanced, atGateway, openDispute, planOf, refundNow } from '../support/money.ts';
import {
  bothEnv,
  continueOn,
  type Paying,
  secondGateway as peach,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { backUp } from '../support/restore.ts';
import { type Service, startService } from '../support/service.ts';

// A service with two gateways, each with books of its own: a request that reaches the wrong one
// finds nothing there.

const webhookSecret = 'a secret of the second one';

let atMain: Paying;
let atPeach: Paying;
let second: GatewayUnderTest;

before(async () => {
  const started = await startGateway();
  second = { ...started, ...useHyperswitch(started.url) };
  atMain = await startPaying({
    second: started,
    env: {
      GATEWAY_PEACH_HYPERSWITCH_WEBHOOK_SECRET: webhookSecret,
      STRIPE_WEBHOOK_SECRET: 'whsec_of_the_first_one',
    },
  });
  atPeach = continueOn({ ...atMain, gateway: second }, atMain.service);
  watchCalls(atMain.service.deps.gateways);
});

after(async () => {
  await atMain?.close();
  await second?.close();
});

beforeEach(async () => {
  await choose(null);
});

const choose = async (gateway: GatewayName | null, second_gateway: GatewayName | null = null) => {
  const { id } = atMain.account.merchant;
  await chooseGateways(atMain.service.deps, 'nomsa', { id, gateway, second_gateway });
  // A process caches a merchant for a second.
  atMain.clock.advance({ seconds: 2 });
};

type Call = { gateway: GatewayName; name: string; texts: string[] };
const calls: Call[] = [];

/** Records every request with the texts in it. */
function watchCalls(gateways: Gateways): void {
  for (const gateway of gateways.names) {
    const port = gateways.of(gateway) as unknown as Record<string, unknown>;
    for (const [name, member] of Object.entries(port)) {
      if (typeof member !== 'function' || name === 'isAnswering') continue;
      port[name] = (...args: unknown[]) => {
        calls.push({ gateway, name, texts: textsOf(args) });
        return member(...args);
      };
    }
  }
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return [];
  return Object.values(value).flatMap(textsOf);
}

/** All our references to payments, each with the gateway of its checkout. */
const names = `
  select c.gateway, unnest(array[c.id::text, a.id::text, a.payment_ref, a.customer_ref, a.card_ref]) as name
  from checkouts c join payment_attempts a on a.checkout_id = c.id
  union select c.gateway, unnest(array[k.id::text, k.payment_ref])
  from checkouts c join collections k on k.checkout_id = c.id
  union select c.gateway, unnest(array[p.id::text, p.refund_ref])
  from checkouts c join refund_parts p on p.checkout_id = c.id
  union select c.gateway, unnest(array[d.id::text, d.dispute_ref])
  from checkouts c join disputes d on d.checkout_id = c.id`;

/**
 * Asserts that every request about a payment went to the gateway that holds it. Returns how many
 * there were.
 */
async function assertNoneWentAstray(): Promise<Map<string, number>> {
  const { rows } = await atMain.service.deps.database.pool.query(names);
  const holders = new Map<string, GatewayName>(rows.map(({ name, gateway }) => [name, gateway]));
  const counts = new Map<string, number>();
  for (const { gateway, name, texts } of calls) {
    const known = texts.flatMap((text) => holders.get(text) ?? []);
    for (const holder of known) assert.equal(holder, gateway, `${name} of a payment at ${holder}`);
    if (known.length > 0) {
      const key = `${gateway} ${name}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  return counts;
}

const gatewayOfCheckout = async ({ id }: Shopper): Promise<string> => {
  const { pool } = atMain.service.deps.database;
  const { rows } = await pool.query('select gateway from checkouts where id = $1', [id]);
  return rows[0].gateway;
};

const changes = { amount: 90_000 };

test('each checkout keeps the gateway that it began with, whatever its merchant chooses later', async () => {
  const buy = async (chosen: GatewayName | null, paying: Paying, term: number) => {
    await choose(chosen);
    const shopper = await paying.shopper(changes);
    assert.equal((await shopper.pay(term)).status, 'successful');
    assert.equal(await gatewayOfCheckout(shopper), chosen ?? mainGateway);
    return shopper;
  };
  const first = await buy(null, atMain, 3);
  const two = await buy(peach, atPeach, 1);
  const three = await buy(mainGateway, atMain, 1);
  const four = await buy(peach, atPeach, 3);
  const five = await buy(peach, atPeach, 3);
  // A refund of the whole order voids its hold before it is captured.
  assert.equal((await refundNow(atPeach, four, 90_000)).status, 'complete');
  await atMain.pass({ days: 2 });
  await choose(mainGateway);
  await refundNow(atPeach, two, 10_000);
  await refundNow(atMain, three, 10_000);
  await openDispute(atPeach, two);
  await openDispute(atMain, three);
  await atMain.pass({ days: 62 });
  for (const shopper of [first, five]) {
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 collected']);
  }
  await assertBalanced(atPeach, five, first, four);
  const counts = await assertNoneWentAstray();
  for (const name of ['begin', 'capture', 'charge', 'refund', 'dispute']) {
    assert.ok(counts.has(`peach ${name}`), `peach ${name}`);
    assert.ok(counts.has(`main ${name}`), `main ${name}`);
  }
});

test('the records of each gateway are compared with its own payments alone', async () => {
  const shopper = await atMain.shopper(changes);
  await shopper.pay(1);
  await choose(peach);
  const other = await atPeach.shopper(changes);
  await other.pay(1);
  await atMain.pass({ days: 2 });
  const { deps } = atMain.service;
  const range = { from: null, to: null };
  const { checked, differences } = await reconcile(deps, range);
  assert.deepEqual(differences, []);
  const one = await reconcile(deps, { ...range, gateway: peach });
  assert.ok(one.checked > 0 && one.checked < checked);
  // A payment that only the other gateway has is missing at the one that its checkout names.
  const { pool } = deps.database;
  await pool.query(`update checkouts set gateway = 'main' where id = $1`, [other.id]);
  try {
    const astray = await reconcile(deps, range);
    const kinds = astray.differences
      .filter(({ checkout_id }) => checkout_id === other.id)
      .map(({ kind }) => kind);
    assert.deepEqual(kinds.toSorted(), ['missing_there', 'other_state']);
  } finally {
    await pool.query(`update checkouts set gateway = 'peach' where id = $1`, [other.id]);
  }
});

test('an event counts only with the secret of the gateway whose address it was sent to', async () => {
  const hint = { type: 'dispute_details', object: { dispute_id: 'dp_1' } };
  const payload = JSON.stringify({ event_id: 'evt_1', event_type: 'x', content: hint });
  const signature = createHmac('sha512', webhookSecret).update(payload).digest('hex');
  const post = async (url: string, app: FastifyInstance = atMain.service.app) => {
    const headers = { 'content-type': 'application/json', 'x-webhook-signature-512': signature };
    const answer = await app.inject({ method: 'POST', url, headers, payload });
    return answer.statusCode;
  };
  calls.length = 0;
  assert.equal(await post('/gateway/events/peach'), 200);
  const reads = () =>
    calls.flatMap(({ gateway, name }) => (name === 'readEvent' ? [] : [`${gateway} ${name}`]));
  assert.deepEqual(reads(), ['peach listDisputes']);
  // The gateway repeats an event until it gets an answer.
  assert.equal(await post('/gateway/events/peach'), 200);
  assert.deepEqual(reads(), ['peach listDisputes']);
  assert.equal(await post('/gateway/events/main'), 400);
  assert.equal(await post('/gateway/events'), 400);
  assert.equal(await post('/gateway/events/other'), 404);
  // An address that a gateway was given stays valid if the names in the settings change their
  // order.
  const { deps } = atMain.service;
  const gateways = createGateways(
    [peach, mainGateway].map((name) => ({
      ...{ name, isClosed: false, gateway: deps.gateways.of(name) },
    })),
  );
  const other = Fastify();
  await gatewayEventRoutes(other, { ...deps, gateways });
  assert.equal(await post('/gateway/events/peach', other), 200);
  assert.notEqual(await post('/gateway/events', other), 200);
});

test('heartbeats are raised at each gateway, and one that is ahead stops money at all of them', async () => {
  const { deps } = atMain.service;
  const { pool } = deps.database;
  atMain.clock.advance({ minutes: 2 });
  await deps.money.raiseHeartbeat();
  const { rows } = await pool.query(
    'select gateway, heartbeat::int, id from gateway_heartbeats, gateway_heartbeat order by gateway',
  );
  assert.deepEqual(
    rows.map(({ gateway }) => gateway),
    ['main', 'peach'],
  );
  const port = deps.gateways.of(peach);
  const there = (await port.listHeartbeats()).find(({ database }) => database === rows[1].id);
  assert(there);
  assert.equal(there.count, rows[1].heartbeat);
  const heartbeat = { heartbeat_ref: there.heartbeat_ref, database: rows[1].id as string };
  await port.writeHeartbeat({ ...heartbeat, count: there.count + 5 });
  try {
    atMain.clock.advance({ minutes: 2 });
    await deps.money.raiseHeartbeat();
    for (const name of [mainGateway, peach, undefined]) {
      atMain.clock.advance({ seconds: 2 });
      assert.match((await deps.money.problem(name)) ?? '', /The gateway peach is ahead/);
    }
  } finally {
    await pool.query(`update gateway_heartbeats set heartbeat = $1 where gateway = 'peach'`, [
      there.count + 5,
    ]);
    await pool.query('update gateway_heartbeat set stopped_at = null, stopped_reason = null');
    atMain.clock.advance({ seconds: 2 });
    assert.equal(await deps.money.problem(), null);
  }
});

/** Makes a separate guard, with gateways that answer as a test wants. */
const guardAt = (
  changes: { [name: string]: Partial<Gateway> },
  of = atMain.service.deps.gateways,
) => {
  const { deps } = atMain.service;
  const gateways = eachGateway(of, (port, name) => ({ ...port, ...changes[name] }));
  return createMoneyGuard({ ...deps, gateways, environment: 'sandbox', endAccess: async () => {} });
};

test('while money is stopped, a card can be verified without a hold but not with one', async () => {
  const money = { problem: async () => 'stopped', accountProblem: async () => null };
  const real = atMain.service.deps.gateways;
  const verifyWith = async (verificationAmount: number) => {
    const gateways = eachGateway(real, (port) => ({
      ...port,
      capabilities: { ...port.capabilities, verificationAmount },
      beginVerification: async () => 'sent' as never,
    }));
    return await guardGateways(gateways, money)
      .of(mainGateway)
      .beginVerification({} as never);
  };
  assert.equal(await verifyWith(0), 'sent');
  await assert.rejects(verifyWith(1_000), MoneyStopped);
});

describe('a name that leads to the account of another gateway', () => {
  /** Makes the gateways of a service that starts with these adapters, and its money guard. */
  const startWith = (ports: Record<string, Gateway>) => {
    const gateways = createGateways(
      Object.entries(ports).map(([name, gateway]) => ({
        ...{ name: gatewayName(name) as GatewayName, isClosed: false, gateway },
      })),
    );
    const money = guardAt({}, gateways);
    return { money, gateways: guardGateways(gateways, money) };
  };
  /**
   * Calls that may go to any account: heartbeats, which tell accounts apart, and calls that send
   * nothing.
   */
  const asksAnyAccount = new Set(['listHeartbeats', 'writeHeartbeat', 'readEvent', 'isAnswering']);
  type Call0 = () => Promise<unknown>;
  const port = (name: GatewayName) => atMain.service.deps.gateways.of(name);

  before(async () => {
    await choose(null);
    await (await atMain.shopper(changes)).pay(1);
    atMain.clock.advance({ minutes: 2 });
    await atMain.service.deps.money.raiseHeartbeat();
  });

  test('gets no request: the keys of two gateways were exchanged, or one was renamed', async () => {
    const { pool } = atMain.service.deps.database;
    const exchanged = { main: port(peach), peach: port(mainGateway) };
    const renamed = { main: port(mainGateway), acquirer: port(peach) };
    for (const [ports, name, account] of [
      [exchanged, 'main', 'peach'],
      [exchanged, 'peach', 'main'],
      [renamed, 'acquirer', 'peach'],
    ] as const) {
      const { money, gateways } = startWith(ports);
      const wrong = gateways.of(name as GatewayName);
      const said = new RegExp(`gateway ${name} lead to the account that is called ${account} here`);
      calls.length = 0;
      for (const [call, member] of Object.entries(wrong)) {
        if (typeof member !== 'function' || asksAnyAccount.has(call)) continue;
        await assert.rejects(async () => await (member as Call0)(), said, call);
      }
      assert.deepEqual([...new Set(calls.map((one) => one.name))], ['listHeartbeats']);
      await money.raiseHeartbeat();
      assert.match((await money.problem(name as GatewayName)) ?? '', said);
      assert.equal(await money.stopReason(), null);
    }
    const { rows } = await pool.query(
      `select detail from alerts where kind = 'gateway_other_account'`,
    );
    assert.equal(rows.length, 3, 'one for each name, however many times it is checked');
    assert.equal(await guardAt({}).problem(), null, 'with the right settings money moves at once');
    await pool.query(`delete from gateway_heartbeats where gateway = 'acquirer'`);
  });

  test('stops every comparison and every recording, at the other gateways too', async () => {
    const { deps } = atMain.service;
    // The first gateway is right, the second one is not.
    const { money, gateways } = startWith({ main: port(mainGateway), acquirer: port(peach) });
    const wrong = { ...deps, money, gateways };
    const said = /acquirer lead to the account that is called peach here/;
    calls.length = 0;
    await assert.rejects(reconcile(wrong, { from: null, to: null }), said);
    await assert.rejects(recordLost(wrong, 'nomsa'), said);
    assert.match((await proveGateway(wrong, () => {})).cannot_compare.join(), said);
    assert.deepEqual([...new Set(calls.map((one) => one.name))], ['listHeartbeats']);
    await deps.database.pool.query(`delete from gateway_heartbeats where gateway = 'acquirer'`);
  });

  test('leaves it open after a takeover whether the others lost anything, and says so', async () => {
    const { pool } = atMain.service.deps.database;
    await pool.query(`update gateway_heartbeats set server = 'another' where gateway = 'peach'`);
    const money = guardAt({ peach: { listHeartbeats: () => port(mainGateway).listHeartbeats() } });
    assert.match(
      (await money.problem(mainGateway)) ?? '',
      /^It is not known yet whether the gateway peach is ahead of the database\. .*called main here/,
    );
    assert.equal(await money.accountProblem(mainGateway), null);
    assert.equal(await guardAt({}).problem(mainGateway), null);
  });

  test('is not suspected where the account is known to be right and the row cannot be read', async () => {
    const { deps } = atMain.service;
    let { database } = deps;
    const money = createMoneyGuard({
      ...{ ...deps, environment: 'sandbox', endAccess: async () => {} },
      get database() {
        return database;
      },
    });
    assert.equal(await money.accountProblem(mainGateway), null);
    database = {} as typeof database;
    await assert.rejects(money.problem(mainGateway), OutcomeUnknown);
    assert.equal(await money.accountProblem(mainGateway), null);
  });

  test('moves no more money, even in a process that found the right account when it began', async () => {
    let account = port(mainGateway);
    const money = guardAt({ main: { listHeartbeats: () => account.listHeartbeats() } });
    assert.equal(await money.problem(mainGateway), null);
    account = port(peach);
    atMain.clock.advance({ minutes: 2 });
    await money.raiseHeartbeat();
    assert.match(
      (await money.problem(mainGateway)) ?? '',
      /main lead to the account .* peach here/,
    );
  });
});

test('a backup that is older than the first use of a gateway stops money until its records are read', async () => {
  const { deps } = atMain.service;
  const { pool } = deps.database;
  const { rows } = await pool.query(
    `delete from gateway_heartbeats where gateway = 'peach' returning *`,
  );
  assert.ok(rows[0].heartbeat > 0);
  const guard = guardAt({});
  assert.match((await guard.problem(peach)) ?? '', /gateway peach is ahead .* 0 here/);
  assert.notEqual(await guard.problem(mainGateway), null);
  const { differences } = await recordLost(deps, 'nomsa');
  assert.deepEqual(differences, []);
  const { rows: after } = await pool.query(
    `select * from gateway_heartbeats where gateway = 'peach'`,
  );
  assert.ok(Number(after[0].heartbeat) > Number(rows[0].heartbeat));
  assert.equal(await guardAt({}).problem(), null);
});

test('an alert about a late comparison ends with the next comparison of that gateway alone', async () => {
  const { deps } = atMain.service;
  const { pool } = deps.database;
  const due = `insert into reconciliation (gateway, due_at) values ($1, $2)
    on conflict (gateway) do update set due_at = excluded.due_at`;
  const now = atMain.clock.now();
  const raised: string[] = [];
  for (const name of ['main', 'gone']) {
    const detail = `The daily reconciliation with the gateway ${name} was due at x and has not ended.`;
    raised.push(
      await raiseAlert(deps, deps.database.db, { kind: 'gateway_not_reconciled', detail }),
    );
    await pool.query(due, [name, timestamp(now.subtract({ hours: 40 }))]);
  }
  const openOnes = async () => {
    await closeEndedAlerts(deps);
    const open = 'select id from alerts where id = any($1) and closed_at is null';
    return (await pool.query(open, [raised])).rows.map(({ id }) => id);
  };
  assert.equal((await openOnes()).length, 2);
  await pool.query(due, ['main', timestamp(now.add({ hours: 24 }))]);
  // A gateway whose settings are gone is no longer compared.
  assert.deepEqual(await openOnes(), [raised[1]]);
  await pool.query(`delete from reconciliation where gateway = 'gone'`);
});

test('a gateway that refuses our key does not stop the heartbeats of the others', async () => {
  const { pool } = atMain.service.deps.database;
  const count = `select heartbeat::int from gateway_heartbeats where gateway = 'peach'`;
  const { rows: before } = await pool.query(count);
  const refused = new RequestRefused('the key is not known');
  const guard = guardAt({ main: { listHeartbeats: () => Promise.reject(refused) } });
  atMain.clock.advance({ minutes: 2 });
  await assert.rejects(guard.raiseHeartbeat(), refused);
  const { rows: after } = await pool.query(count);
  assert.equal(after[0].heartbeat, before[0].heartbeat + 1);
});

test('a file for the bank needs the new heartbeat at one gateway, and an export needs all of them compared', async () => {
  const away = () => Promise.reject(new OutcomeUnknown('no answer', 'no_answer'));
  for (const main of [{ writeHeartbeat: away }, { listHeartbeats: away }]) {
    assert.equal(await guardAt({ main }).raiseHeartbeatNow(), null);
    const none = guardAt({ main, peach: { writeHeartbeat: away } });
    await assert.rejects(none.raiseHeartbeatNow(), OutcomeUnknown);
  }
  const { deps } = atMain.service;
  const money = guardAt({ main: { listHeartbeats: away } });
  const exporting = exportPayouts({ ...deps, money }, 'nomsa', 'csv');
  await assert.rejects(exporting, /does not say whether it is ahead/);
  // In a database that may be a backup, one gateway does not stand in for another.
  const { pool } = deps.database;
  await pool.query(`update gateway_heartbeats set server = 'another'`);
  const moved = guardAt({ main: { listHeartbeats: away } });
  await assert.rejects(moved.raiseHeartbeatNow(), OutcomeUnknown);
  assert.equal(await guardAt({}).problem(), null);
});

test('after a restore no money moves anywhere until each gateway has been compared', async () => {
  const { pool } = atMain.service.deps.database;
  await pool.query(`update gateway_heartbeats set server = 'another' where gateway = 'peach'`);
  const failures = [new OutcomeUnknown('no answer', 'no_answer'), new RequestRefused('no key')];
  for (const failure of failures) {
    const guard = guardAt({ peach: { listHeartbeats: () => Promise.reject(failure) } });
    await assert.rejects(guard.problem(mainGateway), OutcomeUnknown);
  }
  assert.equal(await guardAt({}).problem(mainGateway), null);
  const { rows } = await pool.query(`select from gateway_heartbeats where server = 'another'`);
  assert.equal(rows.length, 0);
});

describe('two gateways that use the same references', () => {
  let shoppers: [GatewayName, Shopper][];
  before(async () => {
    await choose(null);
    const one = await atMain.shopper(changes);
    await one.pay(1);
    await choose(peach);
    const two = await atPeach.shopper(changes);
    await two.pay(1);
    await atMain.pass({ days: 2 });
    shoppers = [
      [mainGateway, one],
      [peach, two],
    ];
  });

  test('each have a dispute, and an operator must say which one', async () => {
    const { deps } = atMain.service;
    const { merchant } = atMain.account;
    const now = timestamp(atMain.clock.now());
    const own = { ...merchant, now: () => atMain.clock.now() };
    const ids: string[] = [];
    for (const [gateway, shopper] of shoppers) {
      const [{ payment_ref }] = await shopper.rows('instalments');
      const dispute = await recordDispute(
        deps,
        own,
        { checkout_id: shopper.id, gateway },
        {
          ...{ dispute_ref: 'dp_same', payment_ref, amount: 90_000, currency: 'ZAR' },
          ...{ reason: 'fraudulent', network_reason_code: null, status: 'closed', opened_at: now },
          ...{ due_by: null, has_answer: false, withdrawn: 0, fee: 0, other_currency: null },
        },
      );
      assert.deepEqual([dispute.checkout_id, dispute.gateway], [shopper.id, gateway]);
      ids.push(dispute.id);
    }
    const { db } = deps.database;
    await assert.rejects(mustFindDispute(db, 'dp_same'), /More than one dispute has the reference/);
    for (const id of ids) assert.equal((await mustFindDispute(db, id)).dispute.id, id);
  });

  test('each have their own fees', async () => {
    const { deps } = atMain.service;
    for (const [name, shopper] of shoppers) {
      const [{ payment_ref }] = await shopper.rows('instalments');
      const lines = [
        'transaction_id,payment_id,type,amount,currency,created_at',
        `tx_same,${payment_ref},card,100,ZAR,2026-11-20T08:00:00Z`,
        'tx_of_account,,monthly,9900,ZAR,2026-11-20T08:00:00Z',
      ];
      const gateway = { name, capabilities: deps.gateways.of(peach).capabilities };
      const read = () => importFees({ ...deps, gateway }, 'nomsa', Readable.from(lines));
      assert.equal((await read()).posted, 2);
      assert.equal((await read()).posted, 0);
      // The batches before the broken line were posted, and the audit names who posted them.
      const broken = Readable.from([...lines, 'tx_broken']);
      await assert.rejects(importFees({ ...deps, gateway }, `sipho at ${name}`, broken), /Line 4/);
      const { rows } = await deps.database.pool.query(
        `select details from operator_actions where action = 'gateway fees' and operator = $1`,
        [`sipho at ${name}`],
      );
      assert.deepEqual(rows, [{ details: { gateway: name, is_begun: true } }]);
    }
  });
});

test('without the settings of a gateway its pages say that payments are paused', async () => {
  await choose(peach);
  const [finished, running, open] = [
    await atPeach.shopper(changes),
    await atPeach.shopper(changes),
    await atPeach.shopper(changes),
  ];
  await finished.pay(1);
  await running.pay(3);
  await atMain.pass({ days: 2 });
  const late = await atPeach.shopper(changes);
  const body = await late.payBody(1);
  const { deps } = atMain.service;
  const { gateways, money } = deps;
  deps.gateways = createGateways([
    { name: mainGateway, isClosed: false, gateway: gateways.of(mainGateway) },
  ]);
  deps.money = guardAt({}, deps.gateways);
  try {
    for (const [shopper, paused] of [
      [finished, false],
      [running, true],
      [open, true],
      [late, true],
    ] as const) {
      assert.equal((await shopper.send('GET', '')).status, 200);
      const { body: page } = await shopper.send('GET', 'state');
      assert.deepEqual([page.card_entry, page.paused], [null, paused]);
    }
    const { status, body: page } = await late.send('POST', 'pay', body);
    assert.deepEqual([status, page.paused], [200, true]);
    assert.deepEqual(await late.attempts(), []);
    const { merchant } = atMain.account;
    const checkout = { merchant_id: merchant.id, id: running.id, gateway: peach };
    const wanted = {
      what: 'next' as const,
      payments: [2],
      amount: 30_000,
      keep_card: false,
      consent: null,
    };
    const request = { ...wanted, card_token: null };
    const refusal = await payPlan(deps, merchant, checkout, request, '192.0.2.1');
    assert.equal(refusal, 'payments_paused');
  } finally {
    deps.gateways = gateways;
    deps.money = money;
  }
});

const count = `select from alerts where kind = 'gateway_without_settings'`;

test('without the settings of a gateway its rows wait, an alert says so, and nothing is lost', async () => {
  await choose(peach);
  const shopper = await atPeach.shopper(changes);
  await shopper.pay(1);
  const { deps } = atMain.service;
  const alone = createGateways([
    { name: mainGateway, isClosed: false, gateway: deps.gateways.of(mainGateway) },
  ]);
  const { gateways } = deps;
  deps.gateways = alone;
  try {
    assert.deepEqual(await reportMissingGateways(deps), [peach]);
    await reportMissingGateways(deps);
    const { rows } = await deps.database.pool.query(
      `select detail from alerts where kind = 'gateway_without_settings'`,
    );
    assert.equal(rows.length, 1);
    assert.match(rows[0].detail, /no gateway peach/);
    // An operator closes the alert. It comes again only if the settings are missing once more.
    const closed = `update alerts set closed_at = now() where kind = 'gateway_without_settings'`;
    await deps.database.pool.query(closed);
    atMain.clock.advance({ minutes: 2 });
    await reportMissingGateways(deps);
    assert.equal((await deps.database.pool.query(`${count} and closed_at is null`)).rowCount, 0);
    atMain.clock.advance({ days: 1 });
    const { collectDueInstalments } = await import('#purchases/instalments/collect-instalments.ts');
    await collectDueInstalments(deps);
    assert.deepEqual(await planOf(shopper), ['1 authorised']);
  } finally {
    deps.gateways = gateways;
  }
  await atMain.pass({ days: 1 });
  assert.deepEqual(await planOf(shopper), ['1 collected']);
  await assertNoneWentAstray();
  await deps.money.raiseHeartbeat();
  atMain.clock.advance({ minutes: 2 });
  await reportMissingGateways({ ...deps, gateways: alone });
  assert.equal((await deps.database.pool.query(`${count} and closed_at is null`)).rowCount, 1);
});

describe('while the gateway of a merchant does not answer', () => {
  const down = new Set<GatewayName>();
  before(() => {
    const { gateways } = atMain.service.deps;
    for (const name of gateways.names) gateways.of(name).isAnswering = () => !down.has(name);
  });
  beforeEach(async () => {
    down.clear();
    await choose(mainGateway, peach);
  });
  const { load } = { load: (shopper: Shopper) => shopper.send('GET', '') };

  test('a shopper who has not begun to pay is moved to the second one', async () => {
    const shopper = await atPeach.shopper(changes);
    assert.equal(await gatewayOfCheckout(shopper), 'main');
    down.add(mainGateway);
    const { headers } = await load(shopper);
    assert.ok(String(headers['content-security-policy']).includes(new URL(second.url).host));
    assert.equal(await gatewayOfCheckout(shopper), 'peach');
    assert.equal((await shopper.pay(3)).status, 'successful');
    down.clear();
    await atMain.pass({ days: 32 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
    await assertNoneWentAstray();
  });

  test('a card that was entered for the first one begins nothing at the second', async () => {
    const shopper = await atMain.shopper(changes);
    const body = { ...(await shopper.payBody(1)), gateway: 'main' };
    down.add(mainGateway);
    await load(shopper);
    const answer = await shopper.send('POST', 'pay', body);
    assert.equal(answer.status, 200);
    assert.deepEqual([answer.body.status, answer.body.gateway], ['open', 'peach']);
    assert.deepEqual(await shopper.attempts(), []);
  });

  test('an attempt of unknown outcome, or one that was declined, keeps the checkout where it is', async () => {
    const unknown = await atMain.shopper(changes);
    await atMain.gateway.fault({
      fault: 'drop_after',
      method: 'POST',
      path: '/v1/payment_intents',
      times: 2,
    });
    assert.equal((await unknown.pay(1)).status, 'paying');
    const declined = await atMain.shopper(changes);
    await declined.pay(1, { card: '4000000000000002' });
    down.add(mainGateway);
    for (const shopper of [unknown, declined]) {
      await load(shopper);
      assert.equal(await gatewayOfCheckout(shopper), 'main');
    }
    down.clear();
    await atMain.clearFaults();
    await atMain.pass({ minutes: 10 });
    assert.equal((await unknown.state()).status, 'successful');
    await assertNoneWentAstray();
  });

  test('no one is sent to a gateway that is not the merchant’s, or does not answer either', async () => {
    const shopper = await atMain.shopper(changes);
    down.add(mainGateway);
    down.add(peach);
    await load(shopper);
    assert.equal(await gatewayOfCheckout(shopper), 'main');
    down.delete(peach);
    await choose(mainGateway);
    await load(shopper);
    assert.equal(await gatewayOfCheckout(shopper), 'main');
  });

  test('a payment and a move at the same time end at one gateway, in either order', async () => {
    const { deps } = atMain.service;
    for (let round = 0; round < 8; round += 1) {
      const shopper = await atMain.shopper(changes);
      const body = { ...(await shopper.payBody(1)), gateway: 'main' };
      const { merchant } = atMain.account;
      const { rows } = await deps.database.pool.query('select * from checkouts where id = $1', [
        shopper.id,
      ]);
      down.add(mainGateway);
      const move = () =>
        routeCheckout(deps, { ...merchant, gateway: mainGateway, second_gateway: peach }, rows[0]);
      const pay = () => shopper.send('POST', 'pay', body);
      const [moved] = await (round % 2 === 0
        ? Promise.all([move(), pay()])
        : Promise.all([pay(), move()]).then(([paid, isMoved]) => [isMoved, paid] as const));
      down.clear();
      const attempts = await shopper.attempts();
      assert.equal(await gatewayOfCheckout(shopper), moved ? 'peach' : 'main');
      assert.equal(attempts.length, moved ? 0 : 1);
      for (const attempt of attempts) assert.equal(attempt.gateway, 'main');
    }
    await atMain.work();
    await assertNoneWentAstray();
  });
});

describe('a database of two gateways that is restored', () => {
  type Sold = { paying: Paying; plan: Shopper; refunded: Shopper; late: Shopper };
  const sold: Sold[] = [];
  let service: Service;
  let done: unknown[];
  let drop: () => Promise<void>;
  /** The same shoppers, now served by the restored service. */
  const again = ({ paying, ...shoppers }: Sold) => {
    const now = continueOn(paying, service);
    const open = ({ id }: Shopper) => now.open(id);
    const { plan, refunded, late } = shoppers;
    return { paying: now, plan: open(plan), refunded: open(refunded), late: open(late) };
  };
  const stateOf = async ({ plan, refunded, late }: Sold) =>
    await Promise.all(
      [plan, refunded, late].map(async (one) => ({
        plan: await planOf(one),
        there: await atGateway(one),
        schemes: (await one.rows('collections'))
          .sort((before, after) => before.instalment - after.instalment)
          .map(({ scheme }) => scheme),
      })),
    );
  const raiseHeartbeat = async () => {
    atMain.clock.advance({ minutes: 2 });
    await atMain.service.deps.money.raiseHeartbeat();
  };

  before(async () => {
    for (const [chosen, paying] of [
      [mainGateway, atMain],
      [peach, atPeach],
    ] as const) {
      await choose(chosen);
      const [plan, refunded] = [await paying.shopper(changes), await paying.shopper(changes)];
      await plan.pay(3);
      await refunded.pay(1);
      sold.push({ paying, plan, refunded, late: await paying.shopper(changes) });
    }
    await raiseHeartbeat();
    const backup = await backUp(atMain.service.databaseUrl);
    drop = backup.drop;
    for (const { late } of sold) assert.equal((await late.pay(3)).status, 'successful');
    await atMain.pass({ days: 2 });
    for (const { paying, refunded } of sold) {
      assert.equal((await refundNow(paying, refunded, 10_000)).status, 'complete');
    }
    await atMain.pass({ days: 31 });
    await raiseHeartbeat();
    done = await Promise.all(sold.map(stateOf));
    const env = bothEnv(atMain.gateway, second);
    service = await startService({ databaseUrl: backup.url, clock: atMain.clock, env });
    watchCalls(service.deps.gateways);
    calls.length = 0;
  });
  after(async () => {
    await service?.close();
    await drop?.();
  });

  test('moves no money at either of them, and its people cannot sign in', async () => {
    const { money, database } = service.deps;
    for (const name of [mainGateway, peach]) assert.notEqual(await money.problem(name), null);
    for (const one of sold) {
      const { attempt } = await (await actingOn(again(one).paying, again(one).plan)).pay('next');
      assert.equal(attempt?.refusal, 'payments_paused');
    }
    const { rows } = await database.pool.query('select access_stopped_at from gateway_heartbeat');
    assert.notEqual(rows[0].access_stopped_at, null);
  });

  test('records what each of them did, waits where it is asked to, and resumes at both', async () => {
    const [, atSecond] = sold as [Sold, Sold];
    const held = (await atSecond.late.attempts())[0]?.id ?? '';
    const path = { method: 'GET', path: '/payments/:id' };
    const tooMany = {
      ...path,
      fault: 'too_many',
      key_contains: paymentId(held),
      times: 2,
    } as const;
    // The look-up of a charge is not answered. Only the ids of the card network are lost with it.
    const charged = paymentId(collectionId(atSecond.plan.id, 2, 1));
    const failing = { ...path, fault: 'error_before', key_contains: charged, times: 9 } as const;
    for (const fault of [tooMany, failing]) await second.fault(fault);
    const pauses: number[] = [];
    const sleep = async (milliseconds: number) => void pauses.push(milliseconds);
    const deps = { ...service.deps, clock: { ...service.deps.clock, sleep } };
    const { differences } = await recordLost(deps, 'nomsa');
    await second.call('DELETE', '/_test/faults');
    assert.deepEqual([differences, pauses], [[], [500, 1_000]]);
    atMain.clock.advance({ seconds: 2 });
    assert.equal(await service.deps.money.problem(), null);
    await continueOn(atMain, service).work();
    const [{ schemes }] = done[1] as [{ schemes: unknown[] }];
    assert.notEqual(schemes[1], null);
    schemes[1] = null;
    assert.deepEqual(await Promise.all(sold.map(again).map(stateOf)), done);
    for (const one of sold.map(again)) await assertBalanced(one.paying, one.plan);
    await assertNoneWentAstray();
    // Sign-ins are confirmed separately from money.
    const tranche = commandLine({ DATABASE_URL: service.databaseUrl });
    assert.notEqual((await tranche.json('operators', 'confirm')).waits_since, null);
    const confirm = ['operators', 'confirm', '--reason', 'Compared with the alerts.'];
    assert.equal((await tranche.json(...confirm)).waits_since, null);
  });
});
