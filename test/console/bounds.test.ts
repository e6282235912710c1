import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import pg from 'pg';
import { setEvents } from '#merchants/integrations/set-events.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { changeAccess } from '#operating/people/manage-people.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { askMerchant } from '#purchases/conversations/ask-merchant.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { exportPayouts } from '#purchases/payouts/review-payout.ts';
import { confirmAccount, proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { printedLinesMax } from '#purchases/payouts/statement.ts';
import { exportShopper } from '#purchases/shoppers/export-shopper.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { addNote } from '#record/notes/add-note.ts';
import { addPerson, ask, type ConsolePerson, openConsole, readPages } from '../support/console.ts';
import { cards, openDispute, refundNow, wholeTerms } from '../support/money.ts';
import { type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { isLong } from '../support/service.ts';
import { statementsOf } from '../support/statements.ts';
import { tamper } from '../support/tamper.ts';

// Everything that an answer is made from has more rows than a process may read at once: 25,000, and
// 100,000 in `npm run test:long`. No statement of an answer returns more than a few thousand of
// them. While the process answers, it must keep answering others, so the test asks /healthz over
// HTTP all the time. Between two answers of /healthz the thread may work for 100 ms. Only processor
// time counts: a machine that pauses, or has other work, makes every answer late and says nothing
// about ours. A slow processor may take as long as it needs to write 66,000 rows as JSON. Other
// processors do that in less than 100 ms.

/** A month's document with this many lines is above its limit, so it has only the sums. */
const rowCount = isLong ? 100_000 : 25_000;
/** The rows that one statement may return: more than a page of a file, and less than all. */
const rowsMax = 5_000;
/** The rows of one checkout: more than one statement may return. */
const historyCount = isLong ? rowCount : rowsMax + 1_000;
/**
 * The rows of each list. A list reads one page of an index, however long it is, so fewer rows prove
 * the same sooner.
 */
const listCount = isLong ? rowCount : 3_000;
/** The file of a list ends after 50,000 lines and says so. */
const fileLinesMax = 50_000;
const fileLinesMin = Math.min(listCount, fileLinesMax);
/**
 * The lines that are read of a file. It is written page by page, so its first pages prove the same
 * sooner.
 */
const linesMax = isLong ? Number.POSITIVE_INFINITY : 3_000;

let paying: Paying;
let app: FastifyInstance;
let url: string;
let healthUrl: string;
const healthAgent = new http.Agent({ keepAlive: true });
let admin: ConsolePerson;
let paid: Shopper;
let late: Shopper;
let refunded: Shopper;
let callback: string;
let payout: string;
let statement: string;
let dispute: string;
let till: string;
const intermediary = randomUUID();
const refundedEmail = 'refunded.often@example.com';

const planted = `('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`;

/** Copies one row many times, with different keys. `n` is the number of the copy. */
async function plant(
  pool: pg.Pool,
  table: string,
  where: string,
  changes: Record<string, string>,
  count: number,
): Promise<void> {
  const { rows } = await pool.query(
    `select column_name as name from information_schema.columns
     where table_name = $1 and table_schema = current_schema()`,
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
  refunded = await paying.shopper({ customer: { email: refundedEmail } });
  await refunded.pay(3);
  await paying.pass({ days: 50 });
  await refundNow(paying, paid, 5_000);
  await refundNow(paying, refunded, 5_000);
  await paying.pass({ days: 1 });
  dispute = await openDispute(paying, paid);
  const key = { merchant_id: account.merchant.id, id: paid.id };
  await addNote(deps, 'nomsa', key, 'x'.repeat(2_000));
  const about = { merchant_id: key.merchant_id, detail: 'A test.' };
  await raiseAlert(deps, deps.database.db, { kind: 'card_testing', ...about });
  await raiseAlert(deps, deps.database.db, { kind: 'gateway_other_state', ...about });
  till = await offerPaymentLink(deps, 'nomsa', key.merchant_id, {
    ...{ amount: 150_000, client_reference_id: 'till-1', reusable: true, notify_url: null },
  });
  const merchant = await findMerchant(deps.database.db, deps.clock, key.merchant_id);
  assert(merchant);
  await askMerchant(deps, merchant, key, 'x'.repeat(1_000));
  payout = (await pool.query('select id from payouts limit 1')).rows[0].id;
  admin = await addPerson(service, { roles: ['admin'] });
  const of = `checkout_id = '${paid.id}'`;
  const id = planted;
  const otherId = planted.replace('7000', '7001');
  const number = 'n + 1000';
  const plantMany = (table: string, where: string, changes: Record<string, string>) =>
    plant(pool, table, where, changes, historyCount);
  const plantList = (table: string, where: string, changes: Record<string, string>) =>
    plant(pool, table, where, changes, listCount);
  const lineNumbers = { instalment: number, line: 'n + 10', statement_line: 'n + 10' };
  await plant(
    pool,
    'settlement_entries',
    `payout_id = '${payout}'`,
    { ...lineNumbers, id, statement: '1' },
    rowCount,
  );
  await plant(
    pool,
    'settlement_entries',
    `payout_id = '${payout}' and kind = 'sale'`,
    {
      ...{ id: otherId, instalment: 'n + 1000000', payout_id: 'null', line: 'null' },
      ...{ statement: 'null', statement_line: 'null' },
    },
    historyCount,
  );
  await tamper(pool, `update payouts set lines = ${rowCount + 10} where id = '${payout}'`);
  const stated = `update monthly_statements set lines = ${rowCount + 10} where number = 1 returning id`;
  statement = (await tamper(pool, stated)).rows[0].id;
  await plantList('monthly_statements', 'number = 1', {
    id,
    number,
    lines_of: number,
    reference: 'n',
    month: "date '2027-06-01' + make_interval(months => n)",
  });
  await plantList('refund_requests', of, { id, number });
  await plantList('refund_parts', of, { id, refund_id: id });
  const ofRefunded = `checkout_id = '${refunded.id}'`;
  const otherNumber = `n + 1000 + ${historyCount}`;
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
  await plantList('checkouts', `id = '${paid.id}'`, { id, number, payment_link_id: `'${till}'` });
  const newest = { checkouts: '1', checkout_id: `'${paid.id}'` };
  await plantList('payment_links', `id = '${till}'`, { id, number, ...newest });
  await plantList('conversations', of, { checkout_id: id });
  await plantList('conversation_entries', of, { id, checkout_id: id });
  await plantList('conversation_entries', of, { id: otherId });
  await plantList('people', `id = '${admin.id}'`, {
    ...{ id, email: "n || '@planted.example'", roles: "array['viewer']" },
  });
  await plantList('instalments', "status = 'overdue'", { checkout_id: id });
  await plantList('callbacks', of, { id, checkout_id: id, listed_id: id });
  await plantList('payouts', `id = '${payout}'`, {
    id,
    number,
    reference: 'n',
    business_on: "date '2027-01-01' + n",
  });
  await plantList('alerts', "kind = 'card_testing'", { id });
  await plantList('alerts', "kind = 'gateway_other_state'", { id: 'gen_random_uuid()' });
  await plantList('merchants', 'true', { id, name: "'Planted ' || n" });
  await plantList('integrations', 'true', { id });
  await plant(
    pool,
    'integrations',
    'true',
    { id: `'${intermediary}'`, intermediary: 'true', merchant_id: 'null' },
    1,
  );
  await pool.query('insert into managed_merchants select $1, id, created_at from merchants', [
    intermediary,
  ]);
  // The server would analyse the tables itself, but later.
  await tamper(pool, 'analyze');
  app = await openConsole(service);
  url = await app.listen({ host: '127.0.0.1', port: 0 });
  healthUrl = await service.app.listen({ host: '127.0.0.1', port: 0 });
  watchRows();
});

after(async () => {
  driverRows.addRow = addRow;
  healthAgent.destroy();
  await app?.close();
  await paying?.close();
});

/** The processor time of this thread, in milliseconds. */
function readThreadTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

const pauseMilliseconds = 100;

/**
 * How long /healthz may wait, judged by the time that this processor takes to write rows as JSON.
 */
function measureLimit(): number {
  const at = '2026-11-15T08:00:00.000Z';
  const rows = Array.from({ length: 66_000 }, (_, n) => ({
    ...{ id: `0199a8f2-31b4-7c05-8e6d-${n}`, status: 'successful', amount: 150_000 + n },
    ...{ client_reference_id: `order-${n}`, customer: { email: refundedEmail }, created_at: at },
  }));
  const before = readThreadTime();
  JSON.stringify(rows);
  return Math.max(pauseMilliseconds, readThreadTime() - before);
}

async function askHealth(): Promise<void> {
  const request = http.get(`${healthUrl}/healthz`, { agent: healthAgent });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  assert.equal(response.statusCode, 200);
  response.resume();
  await once(response, 'end');
}

/**
 * Asks /healthz repeatedly. Returns a function that ends this, and returns the longest processor
 * time that this thread spent between two answers.
 */
function watchHealth(): () => Promise<number> {
  let longest = 0;
  let isOn = true;
  const watching = (async () => {
    let before = readThreadTime();
    while (isOn) {
      // The server may close a connection that was idle while the machine paused. Asking again
      // takes longer, and that counts.
      await askHealth().catch(askHealth);
      const now = readThreadTime();
      longest = Math.max(longest, now - before);
      before = now;
      // Without a pause the requests would themselves be most of the work.
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  return async () => {
    isOn = false;
    await watching;
    return longest;
  };
}

/** The most rows that one statement has returned. */
let mostRows = 0;

/** The driver's class for the rows of a statement. */
const { prototype: driverRows } = (
  pg as unknown as { Result: { prototype: { rows: unknown[]; addRow(row: unknown): void } } }
).Result;
const { addRow } = driverRows;

function watchRows(): void {
  driverRows.addRow = function count(row) {
    addRow.call(this, row);
    mostRows = Math.max(mostRows, this.rows.length);
  };
}

/**
 * Fails if a statement of an answer returns too many rows, or if an answer keeps /healthz waiting
 * too long ten times. The first answers of a kind may compile code or collect garbage, so fewer
 * times do not count.
 */
async function answering<T>(path: string, read: () => Promise<T>): Promise<T> {
  const pauses: string[] = [];
  for (;;) {
    mostRows = 0;
    const stop = watchHealth();
    // A watch that continues after `read` failed would keep the process alive.
    const answer = await read().finally(stop);
    const longest = await stop();
    assert.ok(mostRows <= rowsMax, `${path}: a statement returned ${mostRows} rows`);
    if (longest < pauseMilliseconds) return answer;
    const limit = measureLimit();
    if (longest < limit) return answer;
    pauses.push(`${longest.toFixed(1)} of ${limit.toFixed(1)}`);
    assert.ok(pauses.length < 10, `${path} kept /healthz waiting for ${pauses} ms`);
  }
}

/** Reads an answer without keeping it. Returns its status and how many lines were read. */
async function download(path: string, cookie = admin.cookie, linesMax = Number.POSITIVE_INFINITY) {
  const request = http.get(`${url}${path}`, { headers: { cookie }, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  let lines = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    for (const byte of piece) if (byte === 10) lines += 1;
    if (lines >= linesMax) break;
  }
  return { status: response.statusCode, lines };
}

/** No dispute was won, so this file has no lines. */
const shortFile = '/api/disputes.csv?status=won';

const lists = [
  'checkouts',
  'refunds',
  'overdue',
  'callbacks',
  'disputes',
  'payouts',
  'statements',
  'merchants',
  'integrations',
  'alerts',
  'differences',
  'audit',
  'payment-links',
  'conversations',
  'people',
];

describe('with very many rows behind each answer, the console reads few at once, and /healthz is answered within 100 ms', () => {
  async function holds(path: string, expect: { status?: number; linesMin?: number } = {}) {
    const { status, lines } = await answering(path, async () => {
      // A person reads one file at a time, and a reader who left may still count as reading.
      const reader = await addPerson(paying.service, { roles: ['admin'] });
      return await download(path, reader.cookie, linesMax);
    });
    assert.equal(status, expect.status ?? 200, path);
    const linesMin = Math.min(expect.linesMin ?? 0, linesMax);
    assert.ok(lines >= linesMin, `${path} has ${lines} lines`);
  }

  before(async () => {
    // The first answers compile what the others run.
    for (const path of [`/api/checkouts/${late.id}`, shortFile]) await download(path);
  });

  test('the statement of a payout, and its page', async () => {
    await holds(`/api/payouts/${payout}/statement.csv`, { linesMin: rowCount });
    await holds(`/api/payouts/${payout}`);
    await holds(`/api/payouts/${payout}/statement.html`, { status: 409 });
    await holds(`/api/payouts/${payout}/statement.pdf`, { status: 409 });
  });

  test('the statement of a month, as a table and as a document', async () => {
    await holds(`/api/statements/${statement}/statement.csv`, { linesMin: rowCount });
    await holds(`/api/statements/${statement}/statement.pdf`);
    await tamper(
      paying.service.deps.database.pool,
      `update monthly_statements set lines = ${isLong ? 20_000 : printedLinesMax + 1} where id = '${statement}'`,
    );
    await holds(`/api/statements/${statement}/statement.pdf`);
  });

  test('the balance of a merchant, its lines, and the money of a day', async () => {
    const { id } = paying.account.merchant;
    await holds(`/api/merchants/${id}/balance`);
    await holds(`/api/balance-lines.csv?merchant=${id}&kind=sale`, {
      linesMin: Math.min(historyCount, fileLinesMax),
    });
    await holds('/api/money-days.csv', { linesMin: 1 });
    await holds('/api/money-totals');
  });

  for (const name of lists) {
    test(`the file of ${name}`, () => holds(`/api/${name}.csv`, { linesMin: fileLinesMin }));
  }

  test('a checkout with its timeline, its notes and its messages', async () => {
    await holds(`/api/checkouts/${refunded.id}`);
    await holds(`/api/checkouts/${paid.id}`);
    await holds(`/api/checkouts/${paid.id}/notes`);
    await holds(`/api/checkouts/${paid.id}/messages`);
    const { rows } = await paying.service.deps.database.pool.query(
      'select id from messages where checkout_id = $1 limit 1',
      [paid.id],
    );
    await holds(`/api/checkouts/${paid.id}/messages/${rows[0].id}`);
  });

  test('the page of a shopper, which has the newest refunds and counts the others', async () => {
    for (const action of ['', 'state']) {
      await late.send('GET', action);
      // The first page has refunds. The second one also has attempts, collections and disputes.
      for (const shopper of [refunded, paid]) {
        const answer = await answering(`/pay/…/${action}`, () => shopper.send('GET', action));
        assert.equal(answer.status, 200);
        assert.ok(JSON.stringify(answer.body).length < 100_000);
      }
    }
    assert.equal((await paid.state()).plan?.dispute, 'open');
    const { plan } = await refunded.state();
    assert.equal(plan?.refunds.length, 50);
    assert.equal(plan?.refunds_before, historyCount + 1 - 50);
  });

  test('an intermediary and the merchants that it acts for', async () => {
    await holds(`/api/integrations/${intermediary}`);
    await holds(`/api/managed-merchants.csv?integration=${intermediary}`, {
      linesMin: fileLinesMin,
    });
    const { deps } = paying.service;
    const chosen = { id: intermediary, enable: ['refunds' as const], disable: [] };
    await answering('events', () => setEvents(deps, 'nomsa', chosen));
  });

  test('the export of a shopper, of which an operator runs one at a time', async () => {
    const { deps } = paying.service;
    const found = { pieces: 0, longest: 0 };
    // Reading more rows would prove nothing new, so only a long run reads them all.
    const piecesMax = isLong ? Number.POSITIVE_INFINITY : 3_000;
    let second: Promise<void> | null = null;
    const write = async (piece: string) => {
      found.pieces += 1;
      found.longest = Math.max(found.longest, piece.length);
      second ??= assert.rejects(
        exportShopper(deps, 'nomsa', refundedEmail, async () => assert.fail()),
        /already exporting/,
      );
      await second;
      if (found.pieces > piecesMax) throw new Error('The reader left.');
    };
    const exported = answering('shoppers export', () =>
      exportShopper(deps, 'nomsa', refundedEmail, write),
    );
    await (isLong ? exported : assert.rejects(exported, /was interrupted/));
    assert.ok(found.pieces > Math.min(piecesMax, historyCount), `${found.pieces} pieces`);
    assert.ok(found.longest < 10_000, `${found.longest} characters`);
    const { rows } = await deps.database.pool.query(
      "select details from operator_actions where action = 'shoppers export'",
    );
    assert.deepEqual(rows, [{ details: { checkouts: 1, first_ids: [refunded.id] } }]);
  });

  test('a callback, a dispute and its evidence', async () => {
    await holds(`/api/callbacks/${callback}`);
    await holds(`/api/disputes/${dispute}`);
    await holds(`/api/disputes/${dispute}/evidence.html`);
  });

  test('the payment link of a till with its orders, and the questions of a shopper', async () => {
    await holds(`/api/payment-links/${till}`);
    await holds(`/api/conversations/${paid.id}`);
    const console = { app, deps: paying.service.deps };
    const { body: link } = await ask(console, admin, 'GET', `/api/payment-links/${till}`);
    const { body: asked } = await ask(console, admin, 'GET', `/api/conversations/${paid.id}`);
    assert.deepEqual([link.orders.length, asked.entries.length], [50, 50]);
    assert.deepEqual([link.is_cut, asked.is_cut], [true, true]);
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

test('a checkout takes a few hundred notes and no more', async () => {
  const key = { merchant_id: paying.account.merchant.id, id: paid.id };
  await assert.rejects(addNote(paying.service.deps, 'nomsa', key, 'one more'), /has 300 notes/);
});

test('a person downloads one file at a time, and the next one when that has ended or broken off', async () => {
  const other = await addPerson(paying.service, { roles: ['admin'] });
  const headers = { cookie: admin.cookie };
  const path = `/api/payouts/${payout}/statement.csv`;
  const request = http.get(`${url}${path}`, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  // The answer is not read, so it has not ended.
  assert.equal(response.statusCode, 200);
  assert.equal((await download('/api/merchants.csv')).status, 429);
  assert.equal((await download(shortFile, other.cookie)).status, 200);
  response.destroy();
  // The server notices on one of its next turns.
  for (;;) {
    const { status } = await download(shortFile);
    if (status === 200) break;
    assert.equal(status, 429);
  }
});

test('a download of another process counts too, until its lease has ended', async () => {
  const { deps } = paying.service;
  const person = await addPerson(paying.service, { roles: ['admin'] });
  const until = timestamp(deps.clock.now().add({ seconds: 60 }));
  await deps.database.pool.query('insert into downloads values ($1, gen_random_uuid(), $2)', [
    ...[person.id, until],
  ]);
  assert.equal((await download('/api/merchants.csv', person.cookie)).status, 429);
  paying.clock.advance({ seconds: 61 });
  assert.equal((await download('/api/merchants.csv', person.cookie)).status, 200);
  assert.equal((await download('/api/merchants.csv', person.cookie)).status, 200);
});

test('the audit has each file before its first line, and its number of lines when it has ended or broken off', async () => {
  const { deps } = paying.service;
  const finance = await addPerson(paying.service, { roles: ['admin'] });
  const read = async () => {
    const { rows } = await deps.database.pool.query(
      "select action, details from operator_actions where action like 'files %' and person_id = $1 order by number",
      [finance.id],
    );
    return rows;
  };
  const { lines } = await download('/api/disputes.csv?status=won', finance.cookie);
  const file = 'disputes.csv';
  assert.deepEqual(await read(), [
    { action: 'files read', details: { file, filters: { status: 'won' } } },
    { action: 'files sent', details: { file, lines, is_whole: true } },
  ]);
  const headers = { cookie: finance.cookie };
  const request = http.get(`${url}/api/payouts/${payout}/statement.csv`, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  assert.deepEqual((await read()).length, 3);
  response.destroy();
  while ((await read()).length < 4) await new Promise(setImmediate);
  const [, , begun, broken] = await read();
  assert.deepEqual([begun.action, begun.details.filters], ['files read', {}]);
  assert.equal(broken.details.is_whole, false);
  assert.ok(broken.details.lines > 0 && broken.details.lines < rowCount);
});

test('a file breaks off once its reader’s session has ended or their access was narrowed', async () => {
  const { deps } = paying.service;
  const losses: ((of: ConsolePerson) => Promise<unknown>)[] = [
    (of) => ask({ app, deps }, of, 'DELETE', '/api/session'),
    (of) => changeAccess(deps, 'sipho', of.id, { roles: ['till'] }),
  ];
  for (const lose of losses) {
    const reader = await addPerson(paying.service, { roles: ['finance'] });
    const headers = { cookie: reader.cookie };
    const path = `/api/payouts/${payout}/statement.csv`;
    const request = http.get(`${url}${path}`, { headers, agent: false });
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    await lose(reader);
    paying.clock.advance({ seconds: 2 });
    let lines = 0;
    await assert.rejects(async () => {
      for await (const chunk of response) lines += String(chunk).split('\n').length - 1;
    });
    assert.ok(lines < rowCount, `${lines} lines`);
    const sent = `select details from operator_actions where action = 'files sent' and person_id = $1`;
    const { rows } = await deps.database.pool.query(sent, [reader.id]);
    assert.equal(rows[0].details.is_whole, false);
    assert.ok(rows[0].details.lines >= lines);
  }
});

test('a person who reads a hundred different pages of people in an hour re-authenticates, and is in the audit', async () => {
  const { deps } = paying.service;
  const console = { app, deps };
  const unproved = await addPerson(paying.service, { roles: ['admin'], isFresh: false });
  const proved = await addPerson(paying.service, { roles: ['admin'] });
  const page = async (person: ConsolePerson, limit: number, of = 'people') => {
    const { status, body } = await ask(console, person, 'GET', `/api/${of}?limit=${limit}`);
    return status === 200 ? 200 : body.error.code;
  };
  for (const person of [unproved, proved]) {
    await readPages(deps, person, 97);
    assert.equal(await page(person, 7), 200);
    assert.equal(await page(person, 7), 200, 'the same page counts once');
    for (const limit of [7, 8]) assert.equal(await page(person, limit, 'disputes'), 200);
  }
  assert.equal(await page(unproved, 51), 'proof_needed');
  assert.equal(await page(unproved, 7), 200, 'a page that refreshes itself');
  assert.equal(await page(unproved, 51, 'payouts'), 200, 'no people are in it');
  const { rows: kept } = await deps.database.pool.query(
    `insert into refused_requests (id, integration_id, at, request, header, body, body_bytes, expected)
     select gen_random_uuid(), id, now(), 'POST /api/checkouts', 'wrong', '{}', 2, 'right'
     from integrations limit 1 returning integration_id`,
  );
  const requests = `integrations/${kept[0].integration_id}/refused-requests`;
  const reading = await ask(console, unproved, 'GET', `/api/${requests}`);
  assert.equal(reading.body.error?.code, 'proof_needed', 'the bodies name shoppers');
  const link = await ask(console, unproved, 'GET', `/api/payment-links/${till}`);
  assert.equal(link.body.error?.code, 'proof_needed', 'its orders name many shoppers');
  assert.deepEqual([await page(proved, 51), await page(proved, 51)], [200, 200]);
  const { rows } = await deps.database.pool.query(
    "select person_id, details from operator_actions where action = 'lists read'",
  );
  const details = { list: 'people', filters: { limit: 51 } };
  assert.deepEqual(rows, [{ person_id: proved.id, details }]);
});

test('a person who opens three hundred different orders in an hour re-authenticates, and is in the audit', async () => {
  const { deps } = paying.service;
  const { rows: found } = await deps.database.pool.query(
    'select id, merchant_id from checkouts order by number desc limit 2',
  );
  const [first, second] = found as { id: string; merchant_id: string }[];
  assert.ok(first && second);
  const read = async (person: ConsolePerson, { id }: { id: string }, part = '') => {
    const path = `/api/checkouts/${id}${part}`;
    const { status, body } = await ask({ app, deps }, person, 'GET', path);
    return status === 200 ? 200 : body.error.code;
  };
  const unproved = await addPerson(paying.service, { roles: ['support'], isFresh: false });
  const proved = await addPerson(paying.service, {
    roles: ['merchant-admin'],
    merchant_ids: [...new Set([first.merchant_id, second.merchant_id])],
  });
  for (const person of [unproved, proved]) {
    await readPages(deps, person, 299, 'rows');
    assert.equal(await read(person, first), 200);
    assert.equal(await read(person, first, '/notes'), 200, 'the order counts once');
  }
  assert.equal(await read(unproved, second), 'proof_needed');
  assert.equal(await read(unproved, first), 200, 'a page that refreshes itself');
  assert.equal(await read(unproved, { id: crypto.randomUUID() }), 'not_found');
  const list = await ask({ app, deps }, unproved, 'GET', '/api/checkouts?limit=7');
  assert.equal(list.status, 200, 'pages of lists have a limit of their own');
  assert.deepEqual([await read(proved, second), await read(proved, second)], [200, 200]);
  const { rows } = await deps.database.pool.query(
    `select merchant_id, details from operator_actions
     where action = 'lists read' and person_id = any($1)`,
    [[unproved.id, proved.id]],
  );
  const { id, merchant_id } = second;
  const details = { list: 'checkouts', filters: { merchant: merchant_id, id } };
  assert.deepEqual(rows, [{ merchant_id, details }]);
});

test('a hundred searches that find different people in an hour count as bulk reading, too', async () => {
  const { deps } = paying.service;
  const console = { app, deps };
  const unproved = await addPerson(paying.service, { roles: ['admin'], isFresh: false });
  const proved = await addPerson(paying.service, { roles: ['admin'] });
  const find = async (person: ConsolePerson, q: string) => {
    const { status, body } = await ask(console, person, 'GET', `/api/search?q=${q}`);
    return status === 200 ? body.data.length > 0 : body.error.code;
  };
  const { rows: ids } = await deps.database.pool.query(
    'select id from checkouts order by number desc limit 3',
  );
  const [first, second, third] = ids.map(({ id }) => id);
  for (const person of [unproved, proved]) {
    await readPages(deps, person, 98);
    for (const id of [first, second]) assert.equal(await find(person, id), true);
  }
  assert.equal(await find(unproved, third), 'proof_needed');
  assert.equal(await find(unproved, first), true, 'found before');
  assert.equal(await find(unproved, 'nothing-of-this-name'), false);
  assert.equal(await find(proved, third), true);
  const { rows } = await deps.database.pool.query(
    `select t.text from operator_actions o join action_texts t on t.action_id = o.id
     where o.action = 'lists read' and o.person_id = $1`,
    [proved.id],
  );
  assert.deepEqual(rows, [{ text: third }]);
});

test('bulk reading by a person with more than fifty shops is in the audit of the shops that were shown', async () => {
  const { deps } = paying.service;
  const { rows: found } = await deps.database.pool.query(
    'select id, merchant_id from checkouts order by number desc limit 1',
  );
  const [{ id, merchant_id: shown }] = found;
  const others = Array.from({ length: 50 }, () => crypto.randomUUID());
  const person = await addPerson(paying.service, {
    roles: ['merchant-admin'],
    merchant_ids: [shown, ...others],
  });
  const read = async (url: string) => {
    const { status, body } = await ask({ app, deps }, person, 'GET', url);
    return status === 200 ? 200 : body.error.code;
  };
  await readPages(deps, person, 100);
  assert.equal(await read(`/api/search?q=${id}`), 200);
  const tooMany = 'choose_merchant';
  assert.equal(await read('/api/checkouts?limit=7'), tooMany);
  assert.equal(await read('/api/checkouts.csv'), tooMany);
  assert.equal(await read(`/api/checkouts?limit=7&merchant=${shown}`), 200);
  const { rows } = await deps.database.pool.query(
    `select merchant_id, details->>'list' as list from operator_actions
     where action = 'lists read' and person_id = $1 order by number`,
    [person.id],
  );
  assert.deepEqual(rows, [
    { merchant_id: shown, list: 'search' },
    { merchant_id: shown, list: 'checkouts' },
  ]);
});

test('a file that names people needs a recent re-authentication, and a refusal is a security event', async () => {
  const { deps } = paying.service;
  const counted = async () => {
    const metric = deps.metrics.registry.getSingleMetric('tranche_security_events_total');
    const { values = [] } = (await metric?.get()) ?? {};
    return Object.fromEntries(values.map(({ labels, value }) => [labels.event, value]));
  };
  const unproved = await addPerson(paying.service, { roles: ['admin'], isFresh: false });
  const console = { app, deps };
  for (const name of ['checkouts', 'refunds', 'overdue', 'disputes', 'people', 'audit', 'alerts']) {
    const { status, body } = await ask(console, unproved, 'GET', `/api/${name}.csv`);
    assert.deepEqual([status, body.error.code], [403, 'proof_needed'], name);
  }
  const evidence = await ask(console, unproved, 'GET', `/api/disputes/${dispute}/evidence.html`);
  assert.deepEqual([evidence.status, evidence.body.error.code], [403, 'proof_needed']);
  assert.equal((await ask(console, unproved, 'GET', '/api/statements.csv')).status, 200);
  const viewer = await addPerson(paying.service, { roles: ['viewer'] });
  assert.equal((await ask(console, viewer, 'GET', '/api/people.csv')).status, 403);
  const token = 'x'.repeat(43);
  await ask(console, null, 'POST', '/api/sign-in/link', { body: { token } });
  assert.deepEqual(await counted(), { permission_refused: 1, sign_in_refused: 1 });
});

test('an export takes 1,000 payouts in few statements, whatever it must leave out before them', async () => {
  const { service, account } = paying;
  const { deps } = service;
  const { id } = account.merchant;
  const account_number = '4079112233';
  const bank = { holder: 'Bean There', bank: 'Absa', branch_code: '632005' };
  await proposeAccount(deps, 'nomsa', id, { ...bank, account_number });
  await confirmAccount(deps, 'sipho', id, { number: 1, account_number });
  // The oldest payouts were approved for an earlier account.
  const approved = `update payouts set status = 'approved', first_approver = 'nomsa',
    approver = 'sipho', approved_at = created_at, export_id = null, exported_at = null,
    bank_account = case when number > ${1000 + 1500} then 1 end`;
  const console = { app, deps };
  const exported = await answering('export', async () => {
    await tamper(deps.database.pool, approved);
    return await ask(console, admin, 'POST', '/api/payouts/export');
  });
  assert.equal(exported.status, 200);
  const { body } = exported;
  assert.deepEqual([body.payouts, body.is_full, body.to_approve_again.length], [1_000, true, 100]);
  assert.equal(body.file.trim().split('\r\n').length, 1_001);
  const statements = await statementsOf(service.databaseUrl, (database) =>
    exportPayouts({ ...deps, database }, 'nomsa', 'pain.001'),
  );
  assert.ok(statements.length < 40, `${statements.length} statements`);
});
