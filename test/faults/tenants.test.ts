import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { onDatabase } from '../support/sandbox-process.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  type Service,
  send,
  startService,
} from '../support/service.ts';

// All merchants share commits. One merchant's locked rows, or a worker of Citus that is away, must
// not delay the others.

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.close());

async function create(account: Account): Promise<{ status: number; milliseconds: number }> {
  const begun = performance.now();
  const { status } = await send(service, account, 'POST', '/api/checkouts', {
    body: checkoutBody(),
  });
  return { status, milliseconds: performance.now() - begun };
}

async function createAccounts(count: number): Promise<Account[]> {
  const accounts = await Promise.all(Array.from({ length: count }, () => createAccount(service)));
  // The first checkout makes the row that the test locks.
  for (const account of accounts) assert.equal((await create(account)).status, 200);
  return accounts;
}

const slowestOf = (creates: { milliseconds: number }[]) =>
  Math.max(...creates.map(({ milliseconds }) => milliseconds));

/** Runs `work` while another session holds the lists of these merchants. */
async function whileLocked(accounts: Account[], work: () => Promise<void>): Promise<void> {
  await onDatabase(service.databaseUrl, async (client) => {
    await client.query('begin');
    await client.query('select from list_totals where merchant_id = any($1) for update', [
      accounts.map(({ merchant }) => merchant.id),
    ]);
    await work();
    await client.query('rollback');
  });
}

async function assertWhole(accounts: Account[], checkouts: number): Promise<void> {
  const now = new Date().toISOString();
  assert.deepEqual(await findViolations(service.deps.database, now), []);
  const { rows } = await service.deps.database.pool.query(
    'select count(*) as count from checkouts where merchant_id = any($1)',
    [accounts.map(({ merchant }) => merchant.id)],
  );
  assert.equal(rows[0].count, checkouts);
}

for (const [lockedCount, milliseconds] of [
  [1, 1_000],
  [10, 1_500],
] as const) {
  test(`locked rows of ${lockedCount} delay no other merchant by ${milliseconds} ms`, async (t) => {
    const locked = await createAccounts(lockedCount);
    const others = await createAccounts(5);
    const usual = slowestOf(await Promise.all(others.map(create)));
    const delayed: ReturnType<typeof create>[] = [];
    const served: Awaited<ReturnType<typeof create>>[] = [];
    await whileLocked(locked, async () => {
      // All in one batch first, and then more of both kinds.
      for (let round = 0; round < 5; round += 1) {
        delayed.push(...locked.map(create));
        served.push(...(await Promise.all(others.map(create))));
      }
    });
    const slowest = slowestOf(served);
    t.diagnostic(`the slowest of ${served.length} took ${slowest.toFixed(0)} ms`);
    assert.deepEqual([...new Set(served.map(({ status }) => status))], [200]);
    // A busy machine takes longer over everything.
    const limit = milliseconds + 5 * usual;
    assert.ok(slowest < limit, `${slowest} ms, and usually ${usual} ms`);
    const late = await Promise.all(delayed);
    assert.deepEqual([...new Set(late.map(({ status }) => status))], [200]);
    await assertWhole(locked, 6 * lockedCount);
    await assertWhole(others, 35);
  });
}

test('merchants share commits again once the lock is gone', async () => {
  const accounts = await createAccounts(8);
  await whileLocked(accounts.slice(0, 1), async () => {
    void create(accounts[0] as Account);
    await Promise.all(accounts.slice(1).map(create));
  });
  await Promise.all(accounts.map(create));
  const commits = async () => {
    const { rows } = await service.deps.database.pool.query(
      'select count(distinct xmin::text) as count from checkouts where merchant_id = any($1)',
      [accounts.map(({ merchant }) => merchant.id)],
    );
    return rows[0].count;
  };
  const before = await commits();
  await Promise.all(accounts.map(create));
  assert.ok((await commits()) < before + 4, 'not one commit each');
});

test('merchants whose worker of Citus is away wait for it, and the others go on', async () => {
  const away = await createAccounts(8);
  const others = await createAccounts(5);
  // The error is what Citus reports for a statement that needs such a worker.
  const ids = away.map(({ merchant }) => `'${merchant.id}'`).join(', ');
  await onDatabase(service.databaseUrl, (client) =>
    client.query(`
      create function be_away() returns trigger language plpgsql as $$
        begin raise exception 'connection to the remote node failed' using errcode = '08006'; end $$;
      create trigger be_away before insert on checkouts for each row
        when (new.merchant_id in (${ids})) execute function be_away()`),
  );
  const delayed: ReturnType<typeof create>[] = [];
  try {
    for (let round = 0; round < 5; round += 1) {
      delayed.push(...away.map(create));
      const served = await Promise.all(others.map(create));
      assert.deepEqual([...new Set(served.map(({ status }) => status))], [200]);
    }
    const first = await Promise.race([...delayed, Promise.resolve(null)]);
    assert.equal(first, null, 'a request that needs the worker is not answered yet');
  } finally {
    await onDatabase(service.databaseUrl, (client) =>
      client.query('drop trigger be_away on checkouts; drop function be_away'),
    );
  }
  const late = await Promise.all(delayed);
  assert.deepEqual([...new Set(late.map(({ status }) => status))], [200]);
  await assertWhole(away, 6 * away.length);
  await assertWhole(others, 6 * others.length);
});
