import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { onDatabase } from '../support/database-server.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  type Service,
  send,
  startService,
} from '../support/service.ts';

// All merchants share commits. One merchant's locked rows, or a Citus worker that does not answer,
// must not delay the others.

let service: Service;
before(async () => {
  // The monotonic clock stands still, so that a slow machine uses up no deadline while rows are
  // locked.
  service = await startService({ clock: { ...systemClock, monotonic: () => 0 } });
});
after(() => service.close());

async function create(account: Account): Promise<number> {
  const body = checkoutBody();
  return (await send(service, account, 'POST', '/api/checkouts', { body })).status;
}

async function createAccounts(count: number): Promise<Account[]> {
  const accounts = await Promise.all(Array.from({ length: count }, () => createAccount(service)));
  // The first checkout makes the row that the test locks.
  for (const account of accounts) assert.equal(await create(account), 200);
  return accounts;
}

/** Runs `work` while another session locks the rows of these merchants in `list_totals`. */
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

for (const lockedCount of [1, 10]) {
  test(`while rows of ${lockedCount} are locked, every other merchant is answered`, async () => {
    const locked = await createAccounts(lockedCount);
    const others = await createAccounts(5);
    const delayed: Promise<number>[] = [];
    const served: number[] = [];
    await whileLocked(locked, async () => {
      // All requests are sent in one batch first, and then more of both kinds.
      for (let round = 0; round < 5; round += 1) {
        delayed.push(...locked.map(create));
        served.push(...(await Promise.all(others.map(create))));
      }
    });
    assert.deepEqual([...new Set(served)], [200]);
    assert.deepEqual([...new Set(await Promise.all(delayed))], [200]);
    await assertWhole(locked, 6 * lockedCount);
    await assertWhole(others, 30);
  });
}

test('merchants share commits again once the lock is gone', async () => {
  const accounts = await createAccounts(8);
  await whileLocked(accounts.slice(0, 1), async () => {
    void create(accounts[0] as Account);
    await Promise.all(accounts.slice(1).map(create));
  });
  const commits = async () => {
    const { rows } = await service.deps.database.pool.query(
      'select count(distinct xmin::text) as count from checkouts where merchant_id = any($1)',
      [accounts.map(({ merchant }) => merchant.id)],
    );
    return rows[0].count;
  };
  const before = await commits();
  const creates = Array.from({ length: 5 }, () => accounts.map(create)).flat();
  await Promise.all(creates);
  const made = (await commits()) - before;
  assert.ok(made < creates.length / 2, `${made} commits of ${creates.length} checkouts`);
});

test('merchants whose Citus worker is away wait for it, and the others are served', async () => {
  const away = await createAccounts(8);
  const others = await createAccounts(5);
  // Citus reports this error for a statement that needs a worker which does not answer.
  const ids = away.map(({ merchant }) => `'${merchant.id}'`).join(', ');
  await onDatabase(service.databaseUrl, (client) =>
    client.query(`
      create function be_away() returns trigger language plpgsql as $$
        begin raise exception 'connection to the remote node failed' using errcode = '08006'; end $$;
      create trigger be_away before insert on checkouts for each row
        when (new.merchant_id in (${ids})) execute function be_away()`),
  );
  const delayed: Promise<number>[] = [];
  try {
    for (let round = 0; round < 5; round += 1) {
      delayed.push(...away.map(create));
      const served = await Promise.all(others.map(create));
      assert.deepEqual([...new Set(served)], [200]);
    }
    const first = await Promise.race([...delayed, Promise.resolve(null)]);
    assert.equal(first, null, 'a request that needs the worker is not answered yet');
  } finally {
    await onDatabase(service.databaseUrl, (client) =>
      client.query('drop trigger be_away on checkouts; drop function be_away'),
    );
  }
  assert.deepEqual([...new Set(await Promise.all(delayed))], [200]);
  await assertWhole(away, 6 * away.length);
  await assertWhole(others, 6 * others.length);
});
