import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import {
  claimAudit,
  findMerchantSlice,
  moveAudit,
  moveAuditProved,
} from '#checks/books/audit.sql.ts';
import { auditSlice, checkLedger } from '#checks/books/audit-books.ts';
import { findDifferences, findMerchantDifferences } from '#checks/invariants/invariants.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { advanceClock } from '#operating/clock/advance-clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { onDatabase } from '../support/database-server.ts';
import { accountsOf, assertBalanced, planOf, refundNow } from '../support/money.ts';
import { type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { createAccount } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';
import { until } from '../support/until.ts';

let paying: Paying;
/** A checkout with two collected payments and a partial refund. */
let shopper: Shopper;
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
  shopper = await paying.shopper({ amount: 100_000 });
  await shopper.pay(3);
  await paying.pass({ days: 33 });
  await refundNow(paying, shopper, 50_000);
});
after(() => paying.close());

const firstId = '00000000-0000-0000-0000-000000000000';

async function run(sql: string): Promise<void> {
  await tamper(paying.service.deps.database.pool, sql);
}

test('the books of every checkout add up at every moment of its life', async () => {
  const other = await paying.shopper({ amount: 100_001 });
  assert.deepEqual(await accountsOf(other), {});
  await other.pay(3);
  assert.deepEqual(await accountsOf(other), { outstanding: 100_001, held: 33_335 });
  await paying.pass({ days: 33 });
  assert.deepEqual(await accountsOf(other), { outstanding: 33_333, collected: 66_668 });
  await refundNow(paying, other, 50_000);
  const expected = { collected: 50_001, refunded: 16_667, cancelled: 33_333 };
  assert.deepEqual(await accountsOf(other), expected);
  await assertBalanced(paying, other);
});

test('the books of a merchant may take longer to add up than a request may wait', async () => {
  const { databaseUrl, deps } = paying.service;
  const { id } = paying.account.merchant;
  const limit = 500;
  const options = `-c statement_timeout=${limit}ms`;
  const server = new pg.Pool({ connectionString: databaseUrl, max: 1, options });
  const client = await server.connect();
  // The driver gives up too, on every statement of the check that does not ask for more time.
  const patience = { query_timeout: limit };
  const limited = {
    query: (sent: string | pg.QueryConfig, values?: unknown[]) => {
      if (typeof sent !== 'string') return client.query({ ...patience, ...sent });
      return values ? client.query({ ...patience, text: sent, values }) : client.query(sent);
    },
    release: () => client.release(),
  };
  const pool = { connect: async () => limited } as unknown as pg.Pool;
  const other = await deps.database.pool.connect();
  try {
    await other.query('begin');
    await other.query('lock table settlement_entries in access exclusive mode');
    const checked = findMerchantDifferences({ pool }, id, id).catch((error) => error.message);
    const isLate = async () => {
      const { rows } = await deps.database.pool.query(
        `select from pg_stat_activity where datname = current_database()
           and wait_event_type = 'Lock' and query_start < now() - $1 * interval '1 millisecond'`,
        [limit + 100],
      );
      return rows.length > 0;
    };
    const late = until('the check to wait for longer than a statement may', isLate);
    await Promise.race([late, checked.then((ended) => assert.fail(`it ended: ${ended}`))]);
    await other.query('commit');
    assert.deepEqual(await checked, []);
  } finally {
    other.release(true);
    await server.end();
  }
});

describe('every kind of difference is found', () => {
  const of = () => `checkout_id = '${shopper.id}'`;
  for (const [name, change, undo, invariant] of [
    [
      'a posting that is missing',
      () => `create table gone as select * from postings where ${of()} and kind = 'refunded';
             delete from postings where ${of()} and kind = 'refunded'`,
      () => 'insert into postings select * from gone; drop table gone',
      'M8',
    ],
    [
      'a posting that is there twice',
      () => `insert into postings select merchant_id, gen_random_uuid(), checkout_id, kind, debit,
             credit, amount, currency, instalment, refund_id, '2000-01-01' from postings
             where ${of()} and kind = 'captured'`,
      () => "delete from postings where at = '2000-01-01'",
      'M8',
    ],
    [
      'a payment collected without a request',
      () => `update collections set status = 'lost' where ${of()} and instalment = 2`,
      () => `update collections set status = 'collected' where ${of()} and instalment = 2`,
      'M5',
    ],
    [
      'a payment of another amount',
      () => `update instalments set amount = amount + 1 where ${of()} and number = 2`,
      () => `update instalments set amount = amount - 1 where ${of()} and number = 2`,
      'M1',
    ],
    [
      'a refund whose parts do not sum to its amount',
      () => `update refund_parts set amount = amount - 1 where ${of()} and kind = 'card'`,
      () => `update refund_parts set amount = amount + 1 where ${of()} and kind = 'card'`,
      'M6',
    ],
    [
      'a payment reduced without a refund',
      () => `update instalments set reduced = 1 where ${of()} and number = 1`,
      () => `update instalments set reduced = 0 where ${of()} and number = 1`,
      'M7',
    ],
  ] as const) {
    test(name, async () => {
      await run(change());
      try {
        const { differences } = await checkLedger(paying.service.deps);
        assert.ok(
          differences.some((one) => one.name === invariant),
          JSON.stringify(differences),
        );
      } finally {
        await run(undo());
      }
      assert.deepEqual((await checkLedger(paying.service.deps)).differences, []);
    });
  }
});

test('the worker audits slice by slice and raises one alert for a difference, whatever its figures are', async () => {
  const { deps } = paying.service;
  const alerts = async () => {
    const { rows } = await deps.database.pool.query(
      "select detail from alerts where kind = 'books_differ'",
    );
    return rows;
  };
  for (let round = 0; round < 3; round += 1) await auditSlice(deps);
  assert.deepEqual(await alerts(), []);
  const where = `where checkout_id = '${shopper.id}' and number = 1`;
  await run(`update instalments set reduced = 1 ${where}`);
  for (let round = 0; round < 6; round += 1) await auditSlice(deps);
  const told = await alerts();
  assert.ok(told.length > 0);
  assert.match(told[0].detail, new RegExp(`^M.*${shopper.id}`));
  // The figures change with every sale, and the difference is still the same one.
  await run(`update instalments set reduced = 2 ${where}`);
  for (let round = 0; round < 6; round += 1) await auditSlice(deps);
  assert.equal((await alerts()).length, told.length);
  // A closed alert does not hide a difference that comes back.
  await run("update alerts set closed_at = at where kind = 'books_differ'");
  for (let round = 0; round < 6; round += 1) await auditSlice(deps);
  assert.equal((await alerts()).length, 2 * told.length);
  await run(`update instalments set reduced = 0 ${where}`);
});

test('a check that outlasts its lease moves nothing', async () => {
  const { db } = paying.service.deps.database;
  const at = (minute: number) => timestamp(Temporal.Instant.from(`2030-01-01T00:0${minute}:00Z`));
  const position = await claimAudit(db, at(0), at(1));
  assert(position);
  assert.deepEqual(await claimAudit(db, at(2), at(3)), position);
  await moveAudit(db, at(1), { ...position, after: shopper.id }, 1);
  await moveAuditProved(db, at(1), shopper.id, at(2));
  assert.equal(await claimAudit(db, at(2), at(4)), null, 'the other still has it');
  assert.deepEqual(await claimAudit(db, at(3), at(4)), position);
  await moveAudit(db, at(4), position, 0);
});

test('the check of a range continues after a migration has changed a column that it returns', async () => {
  const { deps, databaseUrl } = paying.service;
  const check = () => findDifferences(deps.database, shopper.id, shopper.id);
  const alter = (type: string) =>
    onDatabase(databaseUrl, (client) =>
      client.query(`alter table refund_requests alter kept type ${type}`),
    );
  for (let times = 0; times < 4; times += 1) await check();
  await alter('numeric');
  try {
    assert.deepEqual(await check(), []);
  } finally {
    await alter('bigint');
  }
});

test('the check of a range of checkouts reads no rows of the others', async () => {
  const client = await paying.service.deps.database.pool.connect();
  const plans: string[] = [];
  // The tables are so small that the planner would read them in full.
  const begin = 'set local enable_seqscan = off; set local enable_bitmapscan = off';
  const explaining = {
    async query(sent: string | pg.QueryConfig) {
      if (typeof sent === 'string') {
        return await client.query(sent.startsWith('begin') ? `${sent}; ${begin}` : sent);
      }
      const { rows } = await client.query(`explain ${sent.text}`, sent.values);
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return { rows: [] };
    },
    release: () => client.release(),
  };
  const pool = { connect: async () => explaining } as unknown as pg.Pool;
  await findDifferences({ pool }, shopper.id, shopper.id);
  assert.ok(plans.length > 10, String(plans.length));
  for (const plan of plans) {
    assert.doesNotMatch(
      plan,
      /(Seq|Index|Only) Scan .*on (?!merchants|territories)\w.*\n(?!\s+Index Cond)/,
    );
  }
});

test('ranges of merchants leave no merchant out, and end at one with many checkouts', async () => {
  const { db, pool } = paying.service.deps.database;
  for (let more = 0; more < 3; more += 1) await createAccount(paying.service);
  const { rows } = await pool.query(
    `select m.id, coalesce(t.total, 0)::integer as checkouts from merchants m
     left join list_totals t on t.merchant_id = m.id and t.list = 'checkouts' order by m.id`,
  );
  for (const max of [
    { merchants: 2, checkouts: 1_000 },
    { merchants: 100, checkouts: 1 },
  ]) {
    let rest = rows;
    for (let after = firstId; ; ) {
      const slice = await findMerchantSlice(db, after, max);
      if (slice === null) break;
      assert.equal(slice.first, rest[0].id);
      const size = rest.findIndex(({ id }) => id === slice.last) + 1;
      assert.ok(size > 0 && size <= max.merchants);
      const others = rest.slice(0, size - 1);
      assert.ok(others.reduce((sum, { checkouts }) => sum + checkouts, 0) < max.checkouts);
      rest = rest.slice(size);
      after = slice.last;
    }
    assert.deepEqual(rest, []);
  }
});

test('moving a merchant’s clock by a year collects each payment on its day', async () => {
  const { deps } = paying.service;
  const account = await createAccount(paying.service);
  const buyer = await paying.shopper({ amount: 120_000 }, account);
  await buyer.pay(12);
  const by = Temporal.Duration.from({ hours: 24 * 366 });
  const moved = await advanceClock(deps, 'nomsa', account.merchant.id, { by });
  assert.equal(moved.next_event_at, null);
  assert.deepEqual(
    (await planOf(buyer)).map((line) => line.split(' ')[1]),
    Array.from({ length: 12 }, () => 'collected'),
  );
  const merchant = await findMerchant(deps.database.db, deps.clock, account.merchant.id);
  assert.ok((merchant?.clock_ahead_ms ?? 0) > 365 * 86_400_000);
  await assertBalanced(paying, buyer);
});
