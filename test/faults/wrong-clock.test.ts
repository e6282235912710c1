import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { buildApp } from '#app.ts';
import { findViolations } from '#checks/invariants/invariants.ts';
import { createDeps } from '#main.ts';
import { type Clock, systemClock } from '#platform/shared/clock.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { commandLine } from '../support/cli.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  createTestDatabase,
  log,
  type Service,
  send,
  startService,
  testConfig,
} from '../support/service.ts';
import { until } from '../support/until.ts';

// Nodes share rows, so a node whose clock is wrong must not date them.

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let healthy: Service;
let account: Account;
before(async () => {
  database = await createTestDatabase();
  healthy = await startService({ databaseUrl: database.url, rateLimitStore: 'postgres' });
  account = await createAccount(healthy);
});
after(async () => {
  await healthy.close();
  await database.drop();
});

/**
 * The clock of a machine, whose time the test sets. Its monotonic time is right, and its pauses
 * between comparisons with the database are short.
 */
function settableClock(hours: number): Clock & { set(hours: number): void } {
  let ahead = hours;
  return {
    now: () => systemClock.now().add({ hours: ahead }),
    monotonic: systemClock.monotonic,
    after: systemClock.after,
    sleep: (milliseconds, signal) =>
      systemClock.sleep(milliseconds === 10_000 ? 20 : milliseconds, signal),
    set(next) {
      ahead = next;
    },
  };
}

async function startNode(machineClock: Clock): Promise<Pick<Service, 'app' | 'deps'>> {
  const config = testConfig(database.url, {}, 'postgres');
  const deps = await createDeps(config, log, { machineClock });
  const app = buildApp(deps);
  await app.ready();
  return { app, deps };
}

const create = (service: Pick<Service, 'app'>) =>
  send(service, account, 'POST', '/api/checkouts', { body: checkoutBody() });

const readiness = async ({ app }: Pick<Service, 'app'>) => {
  const { statusCode, body } = await app.inject('/readyz');
  return { status: statusCode, ...JSON.parse(body) };
};

/**
 * Asserts that the newest checkout was created just now, to within far less than a wrong clock's
 * error.
 */
async function assertDatedNow(): Promise<void> {
  const { rows } = await healthy.deps.database.pool.query(
    'select created_at from checkouts order by number desc limit 1',
  );
  const hours = (Date.now() - Date.parse(rows[0].created_at)) / 3_600_000;
  assert.ok(Math.abs(hours) < 1, rows[0].created_at);
}

async function assertWhole(): Promise<void> {
  const now = new Date().toISOString();
  assert.deepEqual(await findViolations(healthy.deps.database, now), []);
}

for (const hours of [24, -24]) {
  test(`a node whose clock is ${hours} hours off does not start`, async () => {
    await assert.rejects(startNode(settableClock(hours)), {
      // A round trip that takes long makes the figure less exact.
      message: new RegExp(`86[34]\\d\\d seconds ${hours > 0 ? 'ahead of' : 'behind'} the database`),
    });
  });

  test(`a node whose clock jumps by ${hours} hours reports it, and dates rows correctly`, async () => {
    const clock = settableClock(0);
    const node = await startNode(clock);
    try {
      assert.equal((await create(node)).status, 200);
      assert.equal((await readiness(node)).status, 'ok');
      clock.set(hours);
      // This request comes before any comparison.
      assert.equal((await create(node)).status, 200);
      await assertDatedNow();
      await until('/readyz to report it', async () => {
        const { reason = '' } = await readiness(node);
        return /86[34]\d\d seconds/.test(reason);
      });
      assert.equal((await create(node)).status, 200);
      await assertDatedNow();
      // A healthy node is not affected: neither its times nor its rate limits.
      assert.equal((await create(healthy)).status, 200);
      await assertDatedNow();
      clock.set(0);
      await until('/readyz to be fine again', async () => (await readiness(node)).status === 'ok');
    } finally {
      await node.app.close();
      await node.deps.close();
    }
    await assertWhole();
  });
}

test('tranche database repair-clock undoes what a wrong clock did to shared rows', async () => {
  const { pool } = healthy.deps.database;
  assert.equal((await create(healthy)).status, 200);
  // A node whose clock is a day ahead would write such rows.
  await pool.query(`update list_totals set last_created_at = now() + interval '1 day'`);
  await pool.query(
    `insert into rate_limits select key, 1000000, now() + interval '1 day' from rate_limits
     on conflict (key) do update set count = excluded.count, resets_at = excluded.resets_at`,
  );
  await pool.query(`update audit set leased_until = now() + interval '1 day'`);
  await raiseAlert(healthy.deps, healthy.deps.database.db, {
    kind: 'card_testing',
    detail: 'late',
  });
  await pool.query(
    `update alerts set (at, due_at) = (at + interval '1 day', at + interval '1 day')`,
  );
  const tranche = commandLine({ DATABASE_URL: database.url });
  const repaired = await tranche.json('database', 'repair-clock');
  assert.deepEqual(repaired, { list_positions: 1, leases: 1, due_rows: 1 });
  // A limit that a wrong clock left behind does not outlive the next request.
  assert.equal((await create(healthy)).status, 200);
  await assertDatedNow();
  const again = await tranche.json('database', 'repair-clock');
  assert.deepEqual(again, { list_positions: 0, leases: 0, due_rows: 0 });
  const { rows } = await pool.query(
    `select details from operator_actions where action = 'database repair-clock' order by at`,
  );
  assert.equal(rows.length, 2);
  assert.deepEqual(rows[0].details, repaired);
  await assertWhole();
});

test('a node whose clock is a second off shows the time of the database', async () => {
  const clock = settableClock(0);
  const node = await startNode({
    ...clock,
    now: () => systemClock.now().add({ milliseconds: 1_500 }),
  });
  try {
    assert.equal((await readiness(node)).status, 'ok');
    // A comparison is only as exact as the database's answer is quick, so a pause of this machine
    // spoils it. The next one comes soon.
    await until('the time of the database', () => {
      const ahead = node.deps.clock.now().epochMilliseconds - Date.now();
      return Math.abs(ahead) < 1_200;
    });
  } finally {
    await node.app.close();
    await node.deps.close();
  }
});
