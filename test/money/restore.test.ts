import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { KyselyPlugin } from 'kysely';
import { createMoneyGuard } from '../../src/audit/reconciliation/money-guard.ts';
import { reconcile } from '../../src/audit/reconciliation/reconcile.ts';
import { OutcomeUnknown } from '../../src/gateway/gateway.ts';
import { approveRefund } from '../../src/refunds/review-refund.ts';
import { timestamp } from '../../src/shared/clock.ts';
import { actingOn } from '../support/acts.ts';
import { commandLine } from '../support/cli.ts';
import {
  askRefund,
  assertBalanced,
  atGateway,
  openDispute,
  planOf,
  statusOf,
} from '../support/money.ts';
import {
  challengeCard,
  continueOn,
  gatewayEnv,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { backUp, type Restorable, startRestorable } from '../support/restore.ts';
import { createCheckout, startService } from '../support/service.ts';

// A database is restored from a backup while the gateway remembers everything. The restored service
// does again what the lost one did, and no money may move twice.

const checkouts = 20;
/** How long after the lost work the database is restored. The gateway forgets keys after a day. */
const delays = { 'within an hour': { minutes: 10 }, 'after three days': { days: 3 } };

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(() => paying.close());

/** Runs a test on a service that continues from a backup, at the time of now. */
async function restored(
  backup: { url: string; drop(): Promise<void> },
  work: (paying: Paying) => Promise<void>,
): Promise<void> {
  const service = await startService({
    databaseUrl: backup.url,
    clock: paying.clock,
    env: gatewayEnv(paying.gateway),
  });
  try {
    await work(continueOn(paying, service));
  } finally {
    await service.close();
    await backup.drop();
  }
}

async function bought(amount = 100_000): Promise<Shopper> {
  const shopper = await paying.shopper({ amount });
  assert.equal((await shopper.pay(3)).status, 'successful');
  return shopper;
}

/** The second payment is collected, or tried. */
async function passDueDate(shopper: Shopper): Promise<void> {
  const second = (await shopper.rows('instalments')).find(({ number }) => number === 2);
  await paying.pass(Temporal.Instant.from(second.due_at).add({ minutes: 1 }).toString());
}

async function declineNext({ id }: Shopper): Promise<void> {
  const path = '/v1/payment_intents';
  await paying.gateway.fault({ fault: 'decline', method: 'POST', path, key_contains: id });
}

/** How the gateway's records of a checkout differ from its rows. */
async function differencesOf({ service, clock }: Paying, { id }: Shopper): Promise<string[]> {
  const from = timestamp(clock.now().subtract({ hours: 24 * 30 }));
  const { findings } = await reconcile(service.deps, { from, to: null });
  return findings.filter(({ checkout_id }) => checkout_id === id).map(({ kind }) => kind);
}

for (const [name, delay] of Object.entries(delays)) {
  describe(`a service that is restored ${name}`, () => {
    test('charges no instalment twice', async () => {
      const shoppers: Shopper[] = [];
      for (let number = 0; number < checkouts; number += 1) shoppers.push(await bought());
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      await passDueDate(shoppers.at(-1) as Shopper);
      for (const shopper of shoppers) {
        assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
      }
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await again.work();
        for (const { id } of shoppers) {
          const shopper = again.open(id);
          assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
          assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
          await assertBalanced(again, shopper);
        }
      });
    });

    test('charges no instalment twice that was declined first', async () => {
      const shopper = await bought();
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      await declineNext(shopper);
      await passDueDate(shopper);
      await paying.pass({ days: 1 });
      assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await again.pass({ days: 5 });
        const one = again.open(shopper.id);
        assert.deepEqual(await planOf(one), ['1 collected', '2 collected', '3 scheduled']);
        assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
        await assertBalanced(again, one);
        assert.deepEqual(await differencesOf(again, one), []);
      });
    });

    test('records a decline that was lost, and carries out no request twice', async () => {
      const shopper = await bought();
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      await declineNext(shopper);
      await passDueDate(shopper);
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        const one = again.open(shopper.id);
        const requests = async () =>
          (await one.books()).payment_intents.map(({ metadata }) => metadata.attempt_id);
        const sent = await requests();
        await again.work();
        assert.deepEqual(await requests(), sent, 'the request is looked up and not sent');
        assert.deepEqual(await planOf(one), ['1 collected', '2 scheduled', '3 scheduled']);
        await again.pass({ days: 8 });
        assert.deepEqual(await planOf(one), ['1 collected', '2 collected', '3 scheduled']);
        assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
        assert.equal(new Set(await requests()).size, sent.length + 1);
        assert.equal((await requests()).length, sent.length + 1);
        await assertBalanced(again, one);
        assert.deepEqual(await differencesOf(again, one), []);
      });
    });

    test('captures and voids no hold twice', async () => {
      const [captured, voided] = [await bought(), await bought()];
      const backup = await backUp(paying.service.databaseUrl);
      const refund = await askRefund(paying, voided, 100_000);
      await approveRefund(paying.service.deps, 'nomsa', refund);
      await paying.pass({ hours: 20 });
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        const [one, other] = [again.open(captured.id), again.open(voided.id)];
        await again.work();
        assert.deepEqual(await planOf(one), ['1 collected', '2 scheduled', '3 scheduled']);
        assert.deepEqual(await atGateway(one), { taken: [33_334], held: [], returned: 0 });
        // The refund is lost with the database. Its hold is not, and the card takes its place.
        assert.deepEqual(await planOf(other), ['1 scheduled', '2 scheduled', '3 scheduled']);
        assert.deepEqual(await atGateway(other), { taken: [], held: [], returned: 0 });
        await assertBalanced(again, one);
        await assertBalanced(again, other);
      });
    });

    test('refunds nothing twice', async () => {
      const shoppers: Shopper[] = [];
      for (let number = 0; number < 5; number += 1) shoppers.push(await bought());
      await paying.pass({ days: 35 });
      const refunds: string[] = [];
      for (const shopper of shoppers) refunds.push(await askRefund(paying, shopper, 60_000));
      const backup = await backUp(paying.service.databaseUrl);
      const approve = async (service: Paying) => {
        for (const id of refunds) await approveRefund(service.service.deps, 'nomsa', id);
        await service.work();
      };
      await approve(paying);
      for (const shopper of shoppers) {
        assert.equal((await atGateway(shopper)).returned, 26_667);
      }
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await approve(again);
        for (const { id } of shoppers) {
          const shopper = again.open(id);
          assert.equal((await atGateway(shopper)).returned, 26_667);
          await assertBalanced(again, shopper);
        }
      });
    });
  });
}

describe('a shopper who pays again after a restore', () => {
  for (const [name, term, live] of [
    ['in the same term pays with the first hold', 3, [33_334]],
    ['in another term holds the new amount alone', 1, [100_000]],
  ] as const) {
    test(name, async () => {
      const shopper = await paying.shopper({ amount: 100_000 });
      const backup = await backUp(paying.service.databaseUrl);
      assert.equal((await shopper.pay(3)).status, 'successful');
      await restored(backup, async (again) => {
        const one = again.open(shopper.id);
        let page = await one.pay(term);
        if (page.status === 'open') page = await one.pay(term);
        assert.equal(page.status, 'successful');
        await again.pass({ minutes: 15 });
        assert.deepEqual(await one.live(), live);
        await assertBalanced(again, one);
      });
    });
  }
});

test('a charge that differs from what the gateway did under its key is not sent again', async () => {
  const shopper = await bought();
  await paying.pass({ days: 20 });
  const backup = await backUp(paying.service.databaseUrl);
  await paying.pass({ days: 15 });
  await restored(backup, async (again) => {
    const one = again.open(shopper.id);
    // In the restored history a refund comes first, so the second payment is smaller.
    const id = await askRefund(again, one, 50_000);
    await approveRefund(again.service.deps, 'nomsa', id);
    await again.pass({ minutes: 30 });
    assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
    assert.deepEqual((await planOf(one))[1], '2 scheduled -16667');
    const { rows } = await again.service.deps.database.pool.query(
      `select kind from alerts where subject_id = $1`,
      [shopper.id],
    );
    assert.deepEqual(rows, [{ kind: 'gateway_trouble' }]);
  });
});

describe('a service whose data folder is restored after it marked the gateway', () => {
  let server: Restorable;
  let own: Paying;
  before(async () => {
    server = await startRestorable();
    own = await startPaying({ databaseUrl: server.url });
  });
  after(async () => {
    await own.close();
    await server.stop();
  });

  const beat = async () => {
    own.clock.advance({ minutes: 2 });
    await own.service.deps.money.beat();
  };
  const problemOf = (one: Paying) => one.service.deps.money.problem();
  const readiness = async (one: Paying) => {
    const { statusCode, body } = await one.service.app.inject('/readyz');
    return { statusCode, ...JSON.parse(body) };
  };

  test('moves no money until what the gateway did is recorded, and then nothing twice', async () => {
    const env = { ...gatewayEnv(own.gateway), DATABASE_URL: server.url };
    const buy = async () => {
      const shopper = await own.shopper({ amount: 100_000 });
      assert.equal((await shopper.pay(3)).status, 'successful');
      return shopper;
    };
    const [early, charged, refunded] = [await buy(), await buy(), await buy()];
    // A dispute that ends after the backup, and two that come after it.
    const [ending, disputed, disputedLater] = [await buy(), await buy(), await buy()];
    await own.pass({ days: 20 });
    const captured = await buy();
    const late = await own.shopper({ amount: 100_000 });
    const voided = await buy();
    const ended = await openDispute(own, ending);
    // In flight at the backup: two first payments, and a payment of a shopper at their bank.
    const atBank = await buy();
    const acting = await actingOn(own, atBank);
    assert.equal((await acting.pay('next', { card: challengeCard })).act?.status, 'challenge');
    const challenged = await own.shopper({ amount: 100_000 });
    assert.equal((await challenged.pay(3, { card: challengeCard })).status, 'challenge');
    const unanswered = await own.shopper({ amount: 100_000 });
    const fault = { fault: 'drop_after', method: 'POST', path: '/v1/payment_intents' } as const;
    await own.gateway.fault({ ...fault, key_contains: unanswered.id, times: 2 });
    assert.equal((await unanswered.pay(3)).status, 'paying');
    await own.clearFaults();
    await beat();
    await server.save();

    // What the backup does not know.
    await openDispute(own, disputed);
    await commandLine(env, { clock: own.clock }).json(
      ...['sandbox', 'gateway', 'resolve', ended, '--won'],
    );
    assert.equal((await acting.decide('approve')).act?.status, 'done');
    await challenged.decide('approve');
    assert.equal((await challenged.comeBack()).status, 'successful');
    await own.pass({ minutes: 1 });
    assert.equal((await unanswered.state()).status, 'successful');
    assert.equal((await late.pay(3)).status, 'successful');
    const lost = await buy();
    const shopper = await actingOn(own, early);
    await shopper.pay('next');
    assert.deepEqual(await shopper.attempts(), ['charged 2 33333']);
    await approveRefund(own.service.deps, 'nomsa', await askRefund(own, voided, 100_000));
    await own.pass({ days: 13 });
    await openDispute(own, disputedLater);
    const refund = await askRefund(own, refunded, 60_000);
    await approveRefund(own.service.deps, 'nomsa', refund);
    await own.work();
    const contested = [ending, disputed, disputedLater];
    const known = [early, charged, refunded, captured, late, atBank, challenged, unanswered];
    const there = () => Promise.all([...known, ...contested, voided, lost].map(atGateway));
    const plans = () => Promise.all([...known, ...contested].map(planOf));
    const done = { there: await there(), plans: await plans() };
    await beat();
    own.clock.advance({ days: 2 });
    await server.restore();

    // The process that ran on notices that the beat fell.
    assert.match((await problemOf(own)) ?? '', /The beat of the database fell from 2 to 1/);
    await own.service.deps.database.pool.query(
      'update gateway_mark set stopped_at = null, stopped_reason = null',
    );
    const service = await startService({ databaseUrl: server.url, clock: own.clock, env });
    const again = continueOn(own, service);
    try {
      assert.match((await problemOf(again)) ?? '', /The gateway is ahead .* reconcile --adopt/);
      const ready = await readiness(again);
      assert.deepEqual([ready.statusCode, ready.status], [200, 'degraded']);
      assert.match(ready.reason, /The gateway is ahead/);
      const alerts = await service.deps.database.pool.query(
        `select from alerts where kind = 'gateway_ahead' and detail like '%is ahead%'`,
      );
      assert.equal(alerts.rowCount, 1);
      // Creates and reads go on. A shopper who pays now is told that nothing was charged.
      const open = again.open(await createCheckout(service, own.account));
      const { status, paused } = await open.pay(1);
      assert.deepEqual([status, paused, await open.live()], ['open', true, []]);
      assert.deepEqual(await open.attempts(), []);
      const words = (await service.app.inject(open.url)).body;
      assert.match(words, /Payments are paused at the moment\. Nothing was charged\./);
      const refused = await (await actingOn(again, again.open(early.id))).pay('next');
      assert.equal(refused.act?.refusal, 'payments_paused');
      const other = await actingOn(again, again.open(charged.id));
      assert.equal((await other.replaceCard(challengeCard)).act?.refusal, 'payments_paused');
      assert.deepEqual(await shopper.attempts(), []);
      const tranche = commandLine(env, { clock: own.clock });
      await tranche.refused(1, /The gateway is ahead/, 'instalments', 'retry', `${early.id}:2`);

      const { code, stdout } = await tranche.run('gateway', 'reconcile', '--adopt', '--json');
      const { findings, adopted } = JSON.parse(stdout);
      // The gateway cannot say which refund voided a hold, nor what a lost checkout was for.
      assert.deepEqual(
        findings
          .map((one: { kind: string; checkout_id: string }) => `${one.kind} ${one.checkout_id}`)
          .sort(),
        [`other_state ${voided.id}`, `unknown_to_us ${lost.id}`].sort(),
      );
      // Eleven by comparison, and three that were in flight.
      assert.deepEqual([code, adopted], [1, 14]);
      // A process reads once a second whether money may move.
      own.clock.advance({ seconds: 2 });
      assert.equal(await problemOf(again), null);
      assert.equal((await readiness(again)).status, 'ok');
      const paid = await open.pay(1);
      assert.deepEqual([paid.status, paid.paused], ['successful', false]);

      await again.work();
      assert.deepEqual({ there: await there(), plans: await plans() }, done);
      assert.equal(await statusOf(again, refund), 'complete');
      for (const one of known) await assertBalanced(again, one);
      const blocked = ['1 authorised', '2 scheduled', '3 scheduled'];
      assert.deepEqual(await planOf(voided), blocked);

      await again.pass({ days: 31 });
      for (const one of known) await assertBalanced(again, one);
      assert.deepEqual((await atGateway(early)).taken, [33_333, 33_333, 33_334]);
      assert.deepEqual((await atGateway(voided)).taken, []);
      const { returned } = await atGateway(refunded);
      assert.equal(returned, 26_667);

      // The operator has settled the lost refund with the merchant.
      const release = ['gateway', 'release', voided.id, '--reason', 'the shopper pays after all'];
      await tranche.json(...release);
      await tranche.refused(1, /Nothing blocks/, ...release);
      assert.equal((await again.open(voided.id).rows('instalments'))[0].paused, false);
    } finally {
      await service.close();
    }
  });
});

describe('a copy of the database on another server', () => {
  const beat = async () => {
    paying.clock.advance({ minutes: 2 });
    await paying.service.deps.money.beat();
  };

  test('goes on by itself if it has lost nothing', async () => {
    await beat();
    await bought();
    const backup = await backUp(paying.service.databaseUrl);
    await restored(backup, async (again) => {
      assert.equal(await again.service.deps.money.problem(), null);
    });
  });

  test('moves no money if it lacks what came after the last beat', async () => {
    await beat();
    const backup = await backUp(paying.service.databaseUrl);
    await bought();
    await restored(backup, async (again) => {
      const problem = await again.service.deps.money.problem();
      assert.match(problem ?? '', /does not know the gateway's pi_/);
    });
  });
});

type Gate = ReturnType<typeof createGate>;
/** Holds the first caller that passes until it is opened. */
function createGate() {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const pass = () => {
    reached.resolve();
    return opened.promise;
  };
  /** Waits until the work is held. */
  const holds = (work: Promise<unknown>) =>
    Promise.race([reached.promise, work.then(() => assert.fail('it ended without being held'))]);
  return { holds, open: opened.resolve, pass };
}

describe('whether money may move', () => {
  const guard = (changes: Partial<Parameters<typeof createMoneyGuard>[0]> = {}) =>
    createMoneyGuard({
      ...paying.service.deps,
      gateway: paying.gateway.gateway,
      environment: 'sandbox',
      ...changes,
    });

  test('is not known before the gateway has answered', async () => {
    const money = guard();
    // The SDK repeats a request whose connection was closed, once.
    const fault = { fault: 'drop_before', method: 'GET', path: '/v1/customers', times: 2 } as const;
    await paying.gateway.fault(fault);
    await assert.rejects(money.problem(), OutcomeUnknown);
    assert.equal(await money.stopReason(), null);
    paying.clock.advance({ seconds: 2 });
    assert.equal(await money.problem(), null);
  });

  test('is read from the row for the load balancer, without waiting for the gateway', async () => {
    const money = guard();
    const path = '/v1/customers';
    await paying.gateway.fault({ fault: 'latency', method: 'GET', path, ms: 30_000, times: 1 });
    const asked = money.problem().then(() => 'the gateway answered');
    assert.equal(await Promise.race([money.stopReason(), asked]), null);
    await paying.clearFaults();
    assert.equal(await asked, 'the gateway answered');
  });

  test('stays known while many processes raise the beat at once', async () => {
    const guards = Array.from({ length: 8 }, () => guard());
    for (let round = 0; round < 5; round += 1) {
      paying.clock.advance({ minutes: 2 });
      await Promise.all(guards.flatMap((one) => [one.beat(), one.problem()]));
    }
    assert.deepEqual(
      await Promise.all(guards.map((one) => one.problem())),
      guards.map(() => null),
    );
    const marks = await paying.gateway.gateway.listMarks();
    const { rows } = await paying.service.deps.database.pool.query('select * from gateway_mark');
    const own = marks.filter(({ database }) => database === rows[0].id);
    assert.deepEqual(
      own.map(({ beat }) => beat),
      [rows[0].beat],
    );
  });

  /** A guard of a process that is slow where the test wants it to be. */
  function slowGuard() {
    const slow: { row?: Gate; marks?: Gate; write?: Gate } = {};
    const pass = async (place: keyof typeof slow) => {
      const gate = slow[place];
      delete slow[place];
      await gate?.pass();
    };
    const readings = new WeakSet<object>();
    const rowReader: KyselyPlugin = {
      transformQuery({ node, queryId }) {
        if (node.kind === 'SelectQueryNode') readings.add(queryId);
        return node;
      },
      async transformResult({ result, queryId }) {
        if (readings.has(queryId)) await pass('row');
        return result;
      },
    };
    const { database } = paying.service.deps;
    const { gateway } = paying.gateway;
    const money = guard({
      database: { ...database, db: database.db.withPlugin(rowReader) },
      gateway: {
        ...gateway,
        async listMarks() {
          const marks = await gateway.listMarks();
          await pass('marks');
          return marks;
        },
        async writeMark(mark) {
          await pass('write');
          await gateway.writeMark(mark);
        },
      },
    });
    return {
      money,
      /** The next answer at this place waits until the gate is opened. */
      hold(place: keyof typeof slow): Gate {
        const gate = createGate();
        slow[place] = gate;
        return gate;
      },
    };
  }

  async function readMarks() {
    const { rows } = await paying.service.deps.database.pool.query('select * from gateway_mark');
    const marks = await paying.gateway.gateway.listMarks();
    return { row: rows[0], there: marks.find(({ database }) => database === rows[0].id) };
  }

  /** The process compares the beats to raise its own, while it reads an older row elsewhere. */
  async function readDuringBeat({ money, hold }: ReturnType<typeof slowGuard>) {
    paying.clock.advance({ minutes: 2 });
    assert.equal(await money.problem(), null);
    const marks = hold('marks');
    const beat = money.beat();
    await marks.holds(beat);
    paying.clock.advance({ seconds: 2 });
    const row = hold('row');
    const reading = money.stopReason();
    await row.holds(reading);
    marks.open();
    await beat;
    row.open();
    await reading;
  }

  test('is not lost by a reading that began before the process raised the beat', async () => {
    const process = slowGuard();
    const before = (await readMarks()).row.beat;
    await readDuringBeat(process);
    const { row } = await readMarks();
    assert.deepEqual([row.beat, row.stopped_reason], [before + 1, null]);
    assert.equal(await process.money.problem(), null);
  });

  test('is not changed by a process that writes its beat after the next one', async () => {
    const [late, quick] = [slowGuard(), slowGuard()];
    paying.clock.advance({ minutes: 2 });
    const write = late.hold('write');
    const beat = late.money.beat();
    await write.holds(beat);
    paying.clock.advance({ minutes: 2 });
    await quick.money.beat();
    const { row, there } = await readMarks();
    assert.equal(there?.beat, row.beat);
    write.open();
    await beat;
    // The gateway's beat is lower until the next one, and that stops nothing.
    assert.equal((await readMarks()).there?.beat, row.beat - 1);
    for (const { money } of [late, quick, slowGuard()]) {
      paying.clock.advance({ minutes: 2 });
      await money.beat();
      assert.equal(await money.problem(), null);
    }
    assert.deepEqual((await readMarks()).there?.beat, row.beat + 3);
  });

  test('stays refused if a reading from before the stop ends after it', async () => {
    const process = slowGuard();
    const { row, there } = await readMarks();
    assert.ok(there);
    const mark = { mark_ref: there.mark_ref, database: row.id };
    await process.money.problem();
    await paying.gateway.gateway.writeMark({ ...mark, beat: row.beat + 5 });
    try {
      await readDuringBeat(process);
      assert.match((await process.money.problem()) ?? '', /The gateway is ahead/);
    } finally {
      await paying.gateway.gateway.writeMark({ ...mark, beat: row.beat });
      await paying.service.deps.database.pool.query(
        'update gateway_mark set stopped_at = null, stopped_reason = null',
      );
    }
  });

  test('is refused to a production database that is new to an account with a history', async () => {
    paying.clock.advance({ minutes: 2 });
    await guard().beat();
    const { clock } = paying;
    const fresh = await startService({ clock, env: gatewayEnv(paying.gateway) });
    try {
      const money = guard({ ...fresh.deps, gateway: paying.gateway.gateway });
      assert.equal(await money.problem(), null);
      const { gateway } = paying.gateway;
      const strict = guard({ ...fresh.deps, gateway, environment: 'production' });
      assert.match((await strict.problem()) ?? '', /Another database has used this account/);
    } finally {
      await fresh.close();
    }
  });
});
