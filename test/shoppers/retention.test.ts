import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from 'kysely';
import { readConfig } from '#config.ts';
import { openLog } from '#hosting/running/log.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { findNewDisputes } from '#purchases/disputes/check-disputes.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { openPaymentLink } from '#purchases/payment-links/open-payment-link.ts';
import { eraseExpired, findExpired } from '#purchases/shoppers/erase-expired.ts';
import { eraseShopper } from '#purchases/shoppers/erase-shopper.ts';
import {
  insertDeletedCustomers,
  insertErasures,
  insertMissingRetentionDates,
} from '#purchases/shoppers/retention.sql.ts';
import { assertBalanced, cards, refundNow } from '../support/money.ts';
import { assertSound, type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { findTraces } from '../support/traces.ts';

// Each test continues at the time of the one before.

const person = {
  email: 'Lindiwe.Mokoena@example.co.za',
  first_name: 'Lindiwe',
  last_name: 'Mokoena',
  phone_number: '+27825550142',
  billing_address: '9 Strelitzia Avenue',
};
const traces = [person.email, 'Lindiwe', 'Mokoena', '825550142', 'Strelitzia'];

let folder: string;
let log: ReturnType<typeof openLog>;
let paying: Paying;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tranche-retention-'));
  log = openLog({ logLevel: 'trace', traces: null }, join(folder, 'log'));
  paying = await startPaying({ log, env: { RETENTION_DAYS: '40' } });
});
after(async () => {
  await paying.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => paying.clearFaults());

const bodyOf = (order: string) => ({
  client_reference_id: `${order} ${person.email}`,
  customer: person,
  line_items: [{ name: 'Ring for Lindiwe', amount: 150_000, quantity: 1 }],
});

const isErased = async (shopper: Shopper) =>
  (await shopper.rows('checkouts'))[0].erased_at !== null;

async function customersOf(shopper: Shopper): Promise<{ deleted?: boolean; email?: string }[]> {
  const attempts = await shopper.attempts();
  const refs = [...new Set(attempts.flatMap(({ customer_ref }) => customer_ref ?? []))];
  return await Promise.all(
    refs.map(async (ref) => (await paying.gateway.call('GET', `/v1/customers/${ref}`)).body),
  );
}

describe('after the retention period', () => {
  test('what is finished is erased by itself, here and at the gateway, and the rest stays', async () => {
    const once = await paying.shopper(bodyOf('order-1'));
    await once.pay(1);
    const plan = await paying.shopper(bodyOf('order-2'));
    await plan.pay(3);
    const abandoned = await paying.shopper(bodyOf('order-3'));
    const late = await paying.shopper();
    await late.pay(3, { card: cards.laterLost });
    const all = [once, plan, abandoned, late];
    const erased = async () => {
      const states = await Promise.all(all.map(isErased));
      return states.map((state) => (state ? 'erased' : 'kept')).join(' ');
    };

    // The first payment was captured in the night to 16 November.
    await paying.pass('2026-12-25T23:59:00Z');
    assert.equal(await erased(), 'kept kept erased kept');
    assert.equal((await customersOf(once))[0]?.email, person.email);
    await paying.pass('2026-12-26T00:01:00Z');
    assert.equal(await erased(), 'erased kept erased kept');
    assert.deepEqual(
      (await customersOf(once)).map(({ deleted }) => deleted),
      [true],
    );
    assert.equal((await customersOf(plan))[0]?.email, person.email);
    // The last payment of the plan was collected on 15 January.
    await paying.pass('2027-02-24T05:59:00Z');
    assert.equal(await erased(), 'erased kept erased kept');
    await paying.pass('2027-02-24T06:01:00Z');
    assert.equal(await erased(), 'erased erased erased kept');
    await paying.pass('2027-04-01T00:00:00Z');
    assert.equal(await erased(), 'erased erased erased kept', 'a payment is overdue');

    assert.deepEqual(await findTraces(paying.service.deps.database, traces), []);
    await log.settled();
    const lines = (await readFile(join(folder, 'log'), 'utf8')).toLowerCase();
    for (const trace of traces) assert.ok(!lines.includes(trace.toLowerCase()), trace);
    await assertBalanced(paying, once, plan);
    const [row] = await late.rows('erasures');
    assert.ok(row.due_at > '2027-04-01');
  });

  test('a movement restarts the retention period, and an erased checkout can still be refunded', async () => {
    paying.clock.set('2027-04-02T08:00:00Z');
    await paying.work();
    const shopper = await paying.shopper(bodyOf('order-4'));
    await shopper.pay(1);
    await paying.pass({ days: 30 });
    await refundNow(paying, shopper, 50_000);
    await paying.pass({ days: 39 });
    assert.equal(await isErased(shopper), false);
    await paying.pass({ days: 3 });
    assert.equal(await isErased(shopper), true);
    assert.deepEqual(
      (await customersOf(shopper)).map(({ deleted }) => deleted),
      [true],
    );
    await assertBalanced(paying, shopper);
  });

  test('more checkouts than a batch are all found, each once', async () => {
    const shoppers: Shopper[] = [];
    for (let count = 0; count < 210; count += 1) shoppers.push(await paying.shopper());
    await paying.pass({ days: 41 });
    const { rows } = await paying.service.deps.database.pool.query(
      'select count(*)::integer as count from checkouts where erased_at is null and id = any($1)',
      [shoppers.map(({ id }) => id)],
    );
    assert.equal(rows[0].count, 0);
    await assertSound(paying);
  });
});

test('an opened payment link is not cancelled by a short retention period while it can be paid', async () => {
  const { deps } = paying.service;
  const { id: merchant_id } = paying.account.merchant;
  const order = { amount: 150_000, client_reference_id: 'order-8', customer: person };
  const id = await offerPaymentLink(deps, 'nomsa', merchant_id, order);
  const merchant = await findMerchant(deps.database.db, deps.clock, merchant_id);
  assert.ok(merchant);
  const typed = { email: null, amount: null };
  const opened = await openPaymentLink(deps, merchant, { merchant_id, id }, typed);
  assert.ok(opened !== null && typeof opened !== 'string');
  const shopper = paying.open(opened.id);
  const eraseAfter = async (passed: { days: number }) => {
    paying.clock.advance({ hours: 24 * passed.days });
    const now = timestamp(deps.clock.now());
    await insertErasures(deps.database.db, merchant_id, [opened.id], now);
    await eraseExpired({ ...deps, retentionDays: 7 });
    const { rows } = await deps.database.pool.query(
      `select cancelled_at is not null as is_cancelled, due_at = expires_at as is_due_then
       from payment_links l left join erasures e on e.checkout_id = l.checkout_id where l.id = $1`,
      [id],
    );
    return { is_erased: await isErased(shopper), ...rows[0] };
  };
  const waits = { is_erased: false, is_cancelled: false, is_due_then: true };
  assert.deepEqual(await eraseAfter({ days: 8 }), waits);
  const erased = { is_erased: true, is_cancelled: true, is_due_then: null };
  assert.deepEqual(await eraseAfter({ days: 22 }), erased);
});

test('a disputed payment keeps its checkout from being erased', async () => {
  const customer = { email: 'zanele@example.com' };
  const shopper = await paying.shopper({ customer });
  await shopper.pay(1, { card: '4000000000000259' });
  await paying.pass({ days: 2 });
  await findNewDisputes(paying.service.deps);
  const { erased, refused } = await eraseShopper(paying.service.deps, 'nomsa', customer.email);
  assert.deepEqual(erased, []);
  assert.deepEqual(refused, [{ checkout_id: shopper.id, reason: 'a payment is disputed' }]);
});

describe("the gateway's record of an erased shopper", () => {
  async function erased(): Promise<Shopper> {
    const shopper = await paying.shopper(bodyOf('order-5'));
    await shopper.pay(1);
    await paying.pass({ days: 2 });
    await eraseShopper(paying.service.deps, 'nomsa', person.email);
    return shopper;
  }

  for (const fault of ['error_before', 'error_after', 'drop_before', 'drop_after'] as const) {
    test(`is deleted although the gateway fails first: ${fault}`, async () => {
      const shopper = await erased();
      await paying.gateway.fault({ fault, method: 'DELETE', path: '/v1/customers/:id', times: 3 });
      await paying.pass({ minutes: 10 });
      await paying.gateway.struck(fault);
      const [row] = await shopper.rows('deleted_customers');
      assert.ok(row.deleted_at !== null);
      assert.deepEqual(
        (await customersOf(shopper)).map(({ deleted }) => deleted),
        [true],
      );
      assert.equal(row.due_at, null);
      await assertSound(paying);
    });
  }

  test('is found and deleted although the answer that named it was lost', async () => {
    const path = '/v1/customers';
    await paying.gateway.fault({ fault: 'drop_after', method: 'POST', path, times: 20 });
    const shopper = await paying.shopper(bodyOf('order-6'));
    await shopper.pay(1);
    await shopper.cancel(1);
    await paying.gateway.struck('drop_after');
    await paying.clearFaults();
    await paying.pass({ hours: 2 });
    const [attempt] = await shopper.attempts();
    assert.equal(attempt?.customer_ref, null);
    const query = `metadata['checkout_id']:'${shopper.id}'`;
    const found = async () => (await paying.gateway.call('GET', `${path}/search`, { query })).body;
    assert.deepEqual(
      (await found()).data.map(({ email }: { email: string }) => email),
      [person.email],
    );
    await eraseShopper(paying.service.deps, 'nomsa', person.email);
    await paying.pass({ minutes: 50 });
    assert.equal((await found()).data.length, 1, 'a new record may not be found for an hour');
    await paying.pass({ minutes: 20 });
    assert.deepEqual((await found()).data, []);
    assert.ok((await shopper.rows('deleted_customers'))[0].deleted_at);
    await assertSound(paying);
  });

  test('is deleted by one request, however often the checkout is erased', async () => {
    const shopper = await erased();
    await paying.work();
    const [merchant_id, checkout_id] = [paying.account.merchant.id, shopper.id];
    await transaction(paying.service.deps, ({ db }) =>
      insertDeletedCustomers(db, { merchant_id, checkout_id }, '2030-01-01T00:00:00.000Z'),
    );
    const rows = await shopper.rows('deleted_customers');
    assert.equal(rows.length, 1);
    assert.ok(rows[0].deleted_at);
  });
});

test('without a retention period nothing falls due', async () => {
  await findExpired({ ...paying.service.deps, retentionDays: null });
  for (const table of ['retention_dates', 'erasures']) {
    const { rows } = await paying.service.deps.database.pool.query(`select 1 from ${table}`);
    assert.deepEqual(rows, []);
  }
  assert.equal(readConfig({}).retentionDays, null);
  assert.equal(readConfig({ RETENTION_DAYS: '400' }).retentionDays, 400);
  for (const wrong of ['0', 'x', '1.5', '40000']) {
    assert.throws(() => readConfig({ RETENTION_DAYS: wrong }), /RETENTION_DAYS/);
  }
});

test('a retention period begins for more merchants than a statement may have values', async () => {
  const { deps } = paying.service;
  const undone = new Error('undone');
  const begin = transaction(deps, async ({ db }) => {
    await sql`insert into merchants (id, name, territory, rules, created_at)
      select gen_random_uuid(), 'Shop ' || n, 'ZA', '[]', now()
      from generate_series(1, 22000) n`.execute(db);
    await insertMissingRetentionDates(db, timestamp(deps.clock.now()));
    const { rows } = await sql<{ begun: boolean }>`
      select (select count(*) from merchants) = (select count(*) from retention_dates) as begun
    `.execute(db);
    assert.deepEqual(rows, [{ begun: true }]);
    throw undone;
  });
  await assert.rejects(begin, undone);
});
