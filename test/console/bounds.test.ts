import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { addNote } from '#record/notes/add-note.ts';
import { addPerson, ask, type ConsolePerson, openConsole } from '../support/console.ts';
import { cards, openDispute, refundNow, wholeTerms } from '../support/money.ts';
import { type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { isLong } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

// Everything that an answer is made from has 100,000 rows. While the process answers, it must go on
// answering others: between two turns of the event loop it may work for 100 ms at most. The test counts
// processor time of the thread, so that other processes of the machine do not matter.

const rowCount = 100_000;
/** A list reads a page of an index, whatever its length, so fewer rows show the same sooner. */
const listCount = isLong ? rowCount : 3_000;
const stretchMillisecondsMax = 100;

let paying: Paying;
let app: FastifyInstance;
let url: string;
let admin: ConsolePerson;
let paid: Shopper;
let late: Shopper;
let refunded: Shopper;
let callback: string;
let payout: string;
let dispute: string;

const planted = `('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`;

/** Copies one row many times, with other keys. `n` is the number of the copy. */
async function plant(
  pool: pg.Pool,
  table: string,
  where: string,
  changes: Record<string, string>,
  count: number,
): Promise<void> {
  const { rows } = await pool.query(
    `select column_name as name from information_schema.columns
     where table_name = $1 and table_schema = current_schema() and is_generated = 'NEVER'`,
    [table],
  );
  const names = rows.map(({ name }) => name);
  const { rowCount: made } = await tamper(
    pool,
    `insert into ${table} (${names.map((name) => `"${name}"`).join(', ')})
     select ${names.map((name) => changes[name] ?? `t."${name}"`).join(', ')}
     from (select * from ${table} where ${where} limit 1) t, generate_series(1, ${count}) n`,
  );
  assert.equal(made, count, table);
}

before(async () => {
  paying = await startPaying();
  const { service, account } = paying;
  const { deps } = service;
  const { pool } = deps.database;
  await setTerms(deps, 'test', account.merchant.id, wholeTerms);
  paid = await paying.shopper();
  await paid.pay(1, { card: '4000000000000002' });
  await paid.pay(3);
  late = await paying.shopper();
  await late.pay(3, { card: cards.laterInsufficientFunds });
  refunded = await paying.shopper();
  await refunded.pay(3);
  await paying.pass({ days: 50 });
  await refundNow(paying, paid, 5_000);
  await refundNow(paying, refunded, 5_000);
  await paying.pass({ days: 1 });
  dispute = await openDispute(paying, paid);
  const key = { merchant_id: account.merchant.id, id: paid.id };
  await addNote(deps, 'nomsa', key, 'x'.repeat(2_000));
  const about = { merchant_id: key.merchant_id, detail: 'A test.' };
  await raiseAlert(deps, deps.database.db, { kind: 'a_test', ...about });
  await raiseAlert(deps, deps.database.db, { kind: 'gateway_other_state', ...about });
  payout = (await pool.query('select id from payouts limit 1')).rows[0].id;
  admin = await addPerson(service, { roles: ['admin'] });
  const of = `checkout_id = '${paid.id}'`;
  const id = planted;
  const number = 'n + 1000';
  const plantMany = (table: string, where: string, changes: Record<string, string>) =>
    plant(pool, table, where, changes, rowCount);
  const plantList = (table: string, where: string, changes: Record<string, string>) =>
    plant(pool, table, where, changes, listCount);
  await plantMany('settlement_entries', `payout_id = '${payout}'`, {
    id,
    instalment: number,
    line: 'n + 10',
  });
  await tamper(pool, `update payouts set lines = ${rowCount + 10} where id = '${payout}'`);
  await plantMany('refund_requests', of, { id, number });
  await plantMany('refund_parts', of, { id, refund_id: id });
  const ofRefunded = `checkout_id = '${refunded.id}'`;
  const otherId = planted.replace('7000', '7001');
  const otherNumber = `n + 1000 + ${rowCount}`;
  await plantMany('refund_requests', ofRefunded, { id: otherId, number: otherNumber });
  await plantMany('refund_parts', ofRefunded, { id: otherId, refund_id: otherId });
  await plantMany('messages', `${of} and status = 'sent'`, { id, about: 'n' });
  await plantMany('payment_attempts', `${of} and status = 'declined'`, { id, number });
  const declined = { id, number, checkout_id: `'${paid.id}'` };
  await plantMany('collections', `status = 'declined'`, declined);
  callback = (await pool.query(`select id from callbacks where ${of}`)).rows[0].id;
  await plantMany('callback_attempts', `callback_id = '${callback}'`, { id, number });
  await plantMany('postings', of, { id });
  await plantMany('notes', of, { id });
  await plantMany('operator_actions', `subject_id = '${paid.id}'`, { id, number });
  await plantList('disputes', of, { id, dispute_ref: 'n' });
  await plantList('checkouts', `id = '${paid.id}'`, { id, number });
  await plantList('instalments', "status = 'overdue'", { checkout_id: id });
  await plantList('callbacks', of, { id, checkout_id: id });
  await plantList('payouts', `id = '${payout}'`, {
    id,
    number,
    reference: 'n',
    business_on: "date '2027-01-01' + n",
  });
  await plantList('alerts', "kind = 'a_test'", { id });
  await plantList('alerts', "kind = 'gateway_other_state'", { id: 'gen_random_uuid()' });
  await plantList('merchants', 'true', { id, name: "'Planted ' || n" });
  await plantList('integrations', 'true', { id });
  // The server would do it by itself, later.
  await pool.query('analyze');
  app = await openConsole(service);
  url = await app.listen({ host: '127.0.0.1', port: 0 });
});

after(async () => {
  await app?.close();
  await paying?.close();
});

/** The longest processor time of this thread between two turns of the event loop. */
function watchTurns(): () => number {
  let longest = 0;
  let isOn = true;
  let before = process.threadCpuUsage();
  const turn = () => {
    const now = process.threadCpuUsage();
    const used = now.user + now.system - before.user - before.system;
    longest = Math.max(longest, used / 1_000);
    before = now;
    if (isOn) setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    isOn = false;
    return longest;
  };
}

/** Reads an answer without keeping it. Returns its status and how many lines it has. */
async function download(path: string, cookie = admin.cookie) {
  const request = http.get(`${url}${path}`, { headers: { cookie }, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  let lines = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    for (const byte of piece) if (byte === 10) lines += 1;
  }
  return { status: response.statusCode, lines };
}

const lists = [
  'checkouts',
  'refunds',
  'overdue',
  'callbacks',
  'disputes',
  'payouts',
  'merchants',
  'integrations',
  'alerts',
  'differences',
  'audit',
];

describe('with 100,000 rows below each answer, the event loop turns within 100 ms of work', () => {
  async function holds(path: string, expect: { status?: number; linesMin?: number } = {}) {
    const { status, lines } = await turning(path, () => download(path));
    assert.equal(status, expect.status ?? 200, path);
    assert.ok(lines >= (expect.linesMin ?? 0), `${path} has ${lines} lines`);
  }

  async function turning<T>(path: string, read: () => Promise<T>): Promise<T> {
    const stop = watchTurns();
    const answer = await read();
    const longest = stop();
    assert.ok(longest < stretchMillisecondsMax, `${path} worked for ${longest} ms without a turn`);
    return answer;
  }

  before(async () => {
    // The first answers compile what the others run.
    for (const path of [`/api/checkouts/${late.id}`, '/api/people.csv']) await download(path);
  });

  test('the statement of a payout, and its page', async () => {
    await holds(`/api/payouts/${payout}/statement.csv`, { linesMin: rowCount });
    await holds(`/api/payouts/${payout}`);
    await holds(`/api/payouts/${payout}/statement.html`, { status: 409 });
  });

  for (const name of lists) {
    test(`the file of ${name}`, () => holds(`/api/${name}.csv`, { linesMin: listCount }));
  }

  test('a checkout with its timeline, its notes and its messages', async () => {
    await holds(`/api/checkouts/${paid.id}`);
    await holds(`/api/checkouts/${paid.id}/notes`);
    await holds(`/api/checkouts/${paid.id}/messages`);
  });

  test('the page of a shopper, which has the newest refunds and counts the others', async () => {
    for (const action of ['', 'state']) {
      await late.send('GET', action);
      const answer = await turning(`/pay/…/${action}`, () => refunded.send('GET', action));
      assert.equal(answer.status, 200);
      assert.ok(JSON.stringify(answer.body).length < 100_000);
    }
    const { plan } = await refunded.state();
    assert.equal(plan?.refunds.length, 50);
    assert.equal(plan?.refunds_before, rowCount + 1 - 50);
  });

  test('a callback, a dispute and its evidence', async () => {
    await holds(`/api/callbacks/${callback}`);
    await holds(`/api/disputes/${dispute}`);
    await holds(`/api/disputes/${dispute}/evidence.html`);
  });
});

test('the page of a checkout has the newest of each kind, says what it left out, and pages notes', async () => {
  const { body } = await ask(
    { app, deps: paying.service.deps },
    admin,
    'GET',
    `/api/checkouts/${paid.id}`,
  );
  const kinds = ['notes', 'messages', 'postings', 'refund_requests', 'callback_attempts'];
  for (const kind of kinds) assert.ok(body.cut.includes(kind), kind);
  assert.equal(body.notes.length, 50);
  assert.equal(body.refunds.length, 200);
  assert.ok(JSON.stringify(body).length < 2_000_000);
  const page = await ask(
    { app, deps: paying.service.deps },
    admin,
    'GET',
    `/api/checkouts/${paid.id}/notes?limit=100`,
  );
  assert.equal(page.body.data.length, 100);
  assert.ok(page.body.next !== null);
});

test('a checkout takes some hundred notes and no more', async () => {
  const key = { merchant_id: paying.account.merchant.id, id: paid.id };
  await assert.rejects(addNote(paying.service.deps, 'nomsa', key, 'one more'), /has 300 notes/);
});

test('a person downloads one file at a time, and the next one when that has ended or broke off', async () => {
  const other = await addPerson(paying.service, { roles: ['admin'] });
  const headers = { cookie: admin.cookie };
  const path = `/api/payouts/${payout}/statement.csv`;
  const request = http.get(`${url}${path}`, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  // It is not read, so it has not ended.
  assert.equal(response.statusCode, 200);
  assert.equal((await download('/api/merchants.csv')).status, 429);
  assert.equal((await download('/api/people.csv', other.cookie)).status, 200);
  response.destroy();
  // The server notices on one of its next turns.
  for (;;) {
    const { status } = await download('/api/people.csv');
    if (status === 200) break;
    assert.equal(status, 429);
  }
});

test('the audit has each file that was read: its filters, its lines, and whether it was whole', async () => {
  const { deps } = paying.service;
  const finance = await addPerson(paying.service, { roles: ['admin'] });
  const read = async () => {
    const { rows } = await deps.database.pool.query(
      "select details from operator_actions where action = 'files read' and person_id = $1 order by at, id",
      [finance.id],
    );
    return rows.map(({ details }) => details);
  };
  const { lines } = await download('/api/disputes.csv?status=won', finance.cookie);
  const filters = { status: 'won' };
  assert.deepEqual(await read(), [{ file: 'disputes.csv', filters, lines, is_whole: true }]);
  const headers = { cookie: finance.cookie };
  const request = http.get(`${url}/api/payouts/${payout}/statement.csv`, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.destroy();
  while ((await read()).length < 2) await new Promise(setImmediate);
  const [, broken] = await read();
  assert.equal(broken.is_whole, false);
  assert.ok(broken.lines > 0 && broken.lines < rowCount, `${broken.lines} lines`);
});

test('a file that names people needs a fresh proof, and a refusal is a security event', async () => {
  const { deps } = paying.service;
  const counted = async () => {
    const metric = deps.metrics.registry.getSingleMetric('tranche_security_events_total');
    const { values = [] } = (await metric?.get()) ?? {};
    return Object.fromEntries(values.map(({ labels, value }) => [labels.event, value]));
  };
  const unproved = await addPerson(paying.service, { roles: ['admin'], proved: false });
  const console = { app, deps };
  for (const name of ['checkouts', 'refunds', 'overdue', 'disputes', 'people', 'audit', 'alerts']) {
    const { status, body } = await ask(console, unproved, 'GET', `/api/${name}.csv`);
    assert.deepEqual([status, body.error.code], [403, 'proof_needed'], name);
  }
  assert.equal((await ask(console, unproved, 'GET', '/api/payouts.csv')).status, 200);
  const viewer = await addPerson(paying.service, { roles: ['viewer'] });
  assert.equal((await ask(console, viewer, 'GET', '/api/people.csv')).status, 403);
  const token = 'x'.repeat(43);
  await ask(console, null, 'POST', '/api/sign-in/link', { body: { token } });
  assert.deepEqual(await counted(), { permission_refused: 1, sign_in_refused: 1 });
});
