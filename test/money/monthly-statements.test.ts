import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { changePage } from '#merchants/change-page.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { smtpTransport } from '#purchases/messages/sending/smtp-transport.ts';
import { makeDueMonthlyStatements } from '#purchases/payouts/make-monthly-statements.ts';
import { sendDueStatements } from '#purchases/payouts/send-statements.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { publishEnd } from '#record/alerts/publish-end.ts';
import { type NewEntry, postEntries, withoutFee } from '#record/ledger/post-entries.ts';
import { startWorker } from '#worker.ts';
import { commandLine, type Tranche } from '../support/cli.ts';
import { findNodes, isLockAwaited } from '../support/database-server.ts';
import { startGateway } from '../support/gateway.ts';
import { startMailServer } from '../support/mail.ts';
import { wholeTerms } from '../support/money.ts';
import { gatewayEnv } from '../support/payments.ts';
import { readPdf } from '../support/pdf.ts';
import {
  type Account,
  createAccount,
  createCheckout,
  movableClock,
  type Service,
  startService,
} from '../support/service.ts';
import { tamper } from '../support/tamper.ts';
import { until } from '../support/until.ts';

// Monthly statements of merchants whose books the tests write themselves, on clocks that they move.
// Each test begins at a month of its own.

const { hasCitus } = await findNodes();
const clock = movableClock('2026-01-05T08:00:00Z');
let service: Service;
let tranche: Tranche;
before(async () => {
  const env = { ISSUER_NAME: 'Pay Well', ISSUER_VAT_NUMBER: '4999999999' };
  service = await startService({ clock, env });
  tranche = commandLine({ DATABASE_URL: service.databaseUrl, ...env }, { clock });
});
after(async () => {
  try {
    assert.deepEqual(await statementDifferences(), []);
  } finally {
    await service.close();
  }
});

const statementDifferences = () =>
  findViolations(service.deps.database, timestamp(clock.now()), ['P6']);

async function merchantWith(): Promise<Account> {
  const account = await createAccount(service);
  await setTerms(service.deps, 'test', account.merchant.id, wholeTerms);
  return account;
}

const post = (account: Account, at: string, ...entries: NewEntry[]) =>
  postTo(service, account, at, entries);

async function postTo(
  { deps }: Service,
  { merchant }: Account,
  at: string,
  entries: NewEntry[],
): Promise<void> {
  const of = {
    merchant_id: merchant.id,
    currency: 'ZAR',
    at: timestamp(Temporal.Instant.from(at)),
  };
  await transaction(deps, ({ db }) => postEntries(deps, db, of, entries));
}

/** A sale of R 1 000,00 with a fee of R 50,00 and VAT of R 7,50. */
async function sell(
  account: Account,
  at: string,
  client_reference_id = 'order-1',
  on = service,
): Promise<string> {
  const checkout_id = await createCheckout(on, account, { client_reference_id });
  const amounts = { gross: 100_000, fee: 5_000, vat: 750, net: 94_250 };
  await postTo(on, account, at, [{ kind: 'sale', checkout_id, ...amounts }]);
  return checkout_id;
}

const held = (net: number): NewEntry => ({
  ...withoutFee(net),
  kind: 'reserve',
  release_on: '2030-01-01',
});

/** Writes many lines at once. */
const postMany = ({ merchant }: Account, at: string, count: number) =>
  service.deps.database.pool.query(
    `insert into settlement_entries (merchant_id, id, kind, gross, fee, vat, net, currency, at, release_on)
     select $1, gen_random_uuid(), 'reserve', -n, 0, 0, -n, 'ZAR', $2::timestamptz, '2030-01-01'
     from generate_series(1, $3::integer) n`,
    [merchant.id, at, count],
  );

const goTo = (at: string) => clock.set(at);
const make = () => makeDueMonthlyStatements(service.deps);
/** Makes all statements that are due, however many months that is. */
async function makeAll(): Promise<void> {
  while ((await make()) > 0);
}

type Listed = { id: string; number: number; month: string; closing: number; line_count: number };
async function statementsOf({ merchant }: Account): Promise<Listed[]> {
  const { data } = await tranche.json('statements', 'list', '--merchant', merchant.id);
  return data.toReversed();
}

const monthsOf = async (account: Account) =>
  (await statementsOf(account)).map(({ number, month, line_count }) => [
    number,
    month.slice(0, 7),
    line_count,
  ]);

async function fileOf({ merchant }: Account, month: string, format: string): Promise<string> {
  const show = ['statements', 'show', '--merchant', merchant.id, '--month', month];
  const { code, stdout } = await tranche.run(...show, '--format', format);
  assert.equal(code, 0);
  return stdout;
}

/** The days whose published end of the operators' record is printed in the statement of a month. */
async function endsOf(account: Account, month: string): Promise<string[]> {
  const { rows } = await service.deps.database.pool.query<{ on_date: string; end: string }>(
    `select on_date, number || ':' || encode(hash, 'hex') as end from published_ends order by 1`,
  );
  const { pages } = readPdf(Buffer.from(await fileOf(account, month, 'pdf'), 'latin1'));
  const text = pages.flat().join('\n');
  return rows.filter(({ end }) => text.includes(end)).map(({ on_date }) => on_date);
}

test('a statement is made on the first business day after its month, by the merchant’s clock and zone', async () => {
  goTo('2026-01-20T08:00:00Z');
  const account = await merchantWith();
  // The last moment of January in Johannesburg, and the first of February.
  await sell(account, '2026-01-31T21:59:59.999Z', 'january');
  await sell(account, '2026-01-31T22:00:00.000Z', 'february');
  // The first of February is a Sunday.
  goTo('2026-02-02T03:59:00Z');
  await makeAll();
  assert.deepEqual(await monthsOf(account), []);
  goTo('2026-02-02T04:00:00Z');
  await makeAll();
  assert.deepEqual(await monthsOf(account), [[1, '2026-01', 1]]);
  assert.match(
    await fileOf(account, '2026-01', 'csv'),
    /2026-01-31,2026-01-31T21:59:59.999Z.*january/,
  );
  goTo('2026-03-02T04:00:00Z');
  await makeAll();
  assert.match(
    await fileOf(account, '2026-02', 'csv'),
    /2026-02-01,2026-01-31T22:00:00.000Z.*february/,
  );
});

test('its sums add up from the balance before to the balance after, and equal the books', async () => {
  goTo('2026-03-10T08:00:00Z');
  const account = await merchantWith();
  const { merchant } = account;
  const profile = { address: '12 Long Street\nCape Town', vat_number: '4123456789' };
  await changePage(service.deps, 'test', { id: merchant.id, ...profile });
  await sell(account, '2026-03-11T10:00:00Z', '=HYPERLINK("x")<b>');
  goTo('2026-04-01T08:00:00Z');
  await makeAll();
  const checkout_id = await sell(account, '2026-04-02T10:00:00Z', 'order-2');
  const refund = {
    kind: 'refund',
    checkout_id,
    gross: -40_000,
    fee: 0,
    vat: 0,
    net: -40_000,
  } as const;
  await post(account, '2026-04-20T10:00:00Z', refund, held(-1_000));
  goTo('2026-05-04T08:00:00Z');
  await makeAll();
  const show = ['statements', 'show', '--merchant', merchant.id, '--month', '2026-04'];
  const { id, merchant_id, created_at, reference, ...sums } = await tranche.json(...show);
  assert.equal(reference, `${merchant.id.slice(-12).toUpperCase()}-0002`);
  assert.deepEqual(sums, {
    merchant_name: 'Bean There',
    number: 2,
    month: '2026-04-01',
    currency: 'ZAR',
    opening: 94_250,
    sales: 100_000,
    refunds: -40_000,
    disputes: 0,
    fees: -5_000,
    vat: -750,
    reserve: -1_000,
    paid: 0,
    closing: 147_500,
    line_count: 3,
    corrects: null,
    corrected_by: null,
  });
  const books = await service.deps.database.pool.query(
    'select sum(net)::integer as net from settlement_entries where merchant_id = $1',
    [merchant.id],
  );
  assert.equal(sums.closing, books.rows[0].net);
  const csv = (await fileOf(account, '2026-04', 'csv')).trimEnd().split('\r\n');
  const nets = csv.slice(1).map((line) => Number(line.split(',').at(-3)));
  assert.equal(Math.round(nets.reduce((sum, net) => sum + net, 0) * 100), 147_500 - 94_250);
  const { pages, source } = readPdf(Buffer.from(await fileOf(account, '2026-03', 'pdf'), 'latin1'));
  const text = pages.flat().join('\n').replaceAll('\u00a0', ' ');
  for (const said of [
    ...['Statement and tax invoice', 'March 2026', 'Pay Well, VAT number 4999999999'],
    'Bean There, 12 Long Street, Cape Town, VAT number 4123456789',
    ...['Balance on 1 March 2026', 'R 0,00', 'R 942,50', 'Balance on 31 March 2026', 'R 57,50'],
    ...['=HYPERLINK("x")<b>', '2026-03-11'],
  ]) {
    assert.ok(text.includes(said), `${said} in ${text}`);
  }
  assert.match(source, /\/S \/TH\b/);
});

test('a month that is made late gets its own statement, and a month without entries gets no number', async () => {
  goTo('2026-05-10T08:00:00Z');
  const account = await merchantWith();
  await sell(account, '2026-05-11T08:00:00Z');
  await sell(account, '2026-07-11T08:00:00Z');
  await sell(account, '2026-08-11T08:00:00Z');
  goTo('2026-09-15T08:00:00Z');
  await makeAll();
  assert.deepEqual(await monthsOf(account), [
    [1, '2026-05', 1],
    [2, '2026-07', 1],
    [3, '2026-08', 1],
  ]);
  const show = ['statements', 'show', '--merchant', account.merchant.id, '--month'];
  await tranche.refused(1, /no statement for 2026-06/, ...show, '2026-06');
  await tranche.refused(2, /a month such as/, ...show, '2026-13');
});

test('a statement has the same bytes for ever, and a late entry is a line of the next one', async () => {
  goTo('2026-09-20T08:00:00Z');
  const account = await merchantWith();
  const { id } = account.merchant;
  await sell(account, '2026-09-21T08:00:00Z');
  await publishEnd(service.deps);
  goTo('2026-10-01T08:00:00Z');
  await makeAll();
  const files = async () => [
    await fileOf(account, '2026-09', 'pdf'),
    await fileOf(account, '2026-09', 'csv'),
  ];
  const first = await files();
  await sell(account, '2026-09-22T08:00:00Z', 'late');
  const changes = { vat_number: '4000000001', address: 'Elsewhere', language: 'zu' } as const;
  await changePage(service.deps, 'test', { id, ...changes });
  goTo('2026-11-02T08:00:00Z');
  await publishEnd(service.deps);
  await makeAll();
  assert.deepEqual(await files(), first);
  assert.deepEqual(await endsOf(account, '2026-09'), ['2026-09-20']);
  assert.deepEqual(await endsOf(account, '2026-10'), ['2026-11-02']);
  assert.deepEqual(await monthsOf(account), [
    [1, '2026-09', 1],
    [2, '2026-10', 1],
  ]);
  assert.match(await fileOf(account, '2026-10', 'csv'), /2026-09-22.*late/);
});

test('no statement and no line of one can be changed', {
  skip: hasCitus && 'Citus has no triggers',
}, async () => {
  const { pool } = service.deps.database;
  for (const change of [
    'update monthly_statements set closing = closing + 1',
    'delete from monthly_statements',
    'update settlement_entries set statement = statement + 1 where statement is not null',
    'update settlement_entries set statement = null, statement_line = null where statement is not null',
  ]) {
    await assert.rejects(pool.query(change), /is append-only/, change);
  }
});

test('concurrent processes, and one that dies between two batches, leave no gap and repeat no line', async () => {
  goTo('2026-11-10T08:00:00Z');
  const account = await merchantWith();
  const { pool } = service.deps.database;
  const ids = [account.merchant.id];
  await postMany(account, '2026-11-11T08:00:00Z', 10_001);
  await postMany(account, '2026-12-11T08:00:00Z', 7);
  // The process dies when its first 10,000 lines are committed and before the last one is.
  await pool.query(`create function die() returns trigger language plpgsql
    as $$ begin raise exception 'killed'; end $$`);
  await pool.query(
    'create trigger killed before insert on monthly_statements for each row execute function die()',
  );
  goTo('2027-01-04T08:00:00Z');
  await assert.rejects(make(), /killed/);
  const stated =
    'select count(*)::integer from settlement_entries where merchant_id = $1 and statement = 1';
  assert.equal((await pool.query(stated, ids)).rows[0].count, 10_000);
  assert.deepEqual(await monthsOf(account), []);
  // The lines that it committed are no difference, because the due row counts them.
  assert.deepEqual(await statementDifferences(), []);
  await pool.query('drop trigger killed on monthly_statements');
  // Another process continues once the lease has ended.
  await makeAll();
  assert.deepEqual(await monthsOf(account), []);
  clock.advance({ seconds: 601 });
  while ((await Promise.all(Array.from({ length: 4 }, make))).some((made) => made > 0));
  assert.deepEqual(await monthsOf(account), [
    [1, '2026-11', 10_001],
    [2, '2026-12', 7],
  ]);
  const { rows } = await pool.query(
    `select statement, count(*)::integer as lines, count(distinct statement_line)::integer as distinct,
       max(statement_line) as last
     from settlement_entries where merchant_id = $1 group by statement order by statement`,
    ids,
  );
  assert.deepEqual(rows, [
    { statement: 1, lines: 10_001, distinct: 10_001, last: 10_001 },
    { statement: 2, lines: 7, distinct: 7, last: 7 },
  ]);
});

test('a statement is mailed once, in the merchant’s language, with the files that the console has', async () => {
  goTo('2027-01-10T08:00:00Z');
  const account = await merchantWith();
  const { id } = account.merchant;
  await tranche.json('merchants', 'bank', id, '--statements-to', 'books@karoo.example');
  const { language } = await tranche.json('merchants', 'page', id, '--language', 'af');
  assert.equal(language, 'af');
  await sell(account, '2027-01-11T08:00:00Z');
  goTo('2027-02-01T08:00:00Z');
  await makeAll();
  const server = await startMailServer();
  const mail = smtpTransport({ url: server.url, from: 'payments@tranche.example' });
  try {
    assert.equal(await sendDueStatements({ ...service.deps, mail }), 1);
    assert.equal(await sendDueStatements({ ...service.deps, mail }), 0);
  } finally {
    await mail.close();
    await server.stop();
  }
  const [sent, ...others] = server.mails;
  assert.ok(sent && others.length === 0);
  assert.deepEqual(sent.to, ['books@karoo.example']);
  assert.match(sent.source, /Subject: Staat van Januarie 2027/);
  const joined = sent.source.replaceAll('\r\n', '');
  for (const format of ['pdf', 'csv']) {
    const content = await fileOf(account, '2027-01', format);
    // A downloaded file has the byte order mark too.
    const bytes =
      format === 'pdf' ? Buffer.from(content, 'latin1') : Buffer.from(`\u{feff}${content}`);
    assert.ok(joined.includes(bytes.toString('base64')), format);
  }
  const { pages } = readPdf(Buffer.from(await fileOf(account, '2027-01', 'pdf'), 'latin1'));
  assert.ok(pages.flat().includes('Staat en belastingfaktuur'));
});

test('a statement with more lines than anyone prints is a PDF of its sums', {
  skip: hasCitus && 'Citus has no triggers to lift',
}, async () => {
  goTo('2027-02-10T08:00:00Z');
  const account = await merchantWith();
  await sell(account, '2027-02-11T08:00:00Z');
  goTo('2027-03-01T08:00:00Z');
  await makeAll();
  const setLines = (lines: number) =>
    tamper(
      service.deps.database.pool,
      'update monthly_statements set lines = $2 where merchant_id = $1',
      [account.merchant.id, lines],
    );
  await setLines(20_001);
  const { pages } = readPdf(Buffer.from(await fileOf(account, '2027-02', 'pdf'), 'latin1'));
  assert.equal(pages.length, 1);
  assert.ok(pages.flat().includes('The 20001 lines of this statement are in the CSV file.'));
  await setLines(1);
});

test('a payout and a statement of the same entries take turns, so neither can deadlock the other', async () => {
  goTo('2027-03-10T08:00:00Z');
  const account = await merchantWith();
  const { id } = account.merchant;
  await sell(account, '2027-03-11T08:00:00Z');
  goTo('2027-04-01T08:00:00Z');
  const { pool } = service.deps.database;
  const payout = await pool.connect();
  try {
    await payout.query('begin');
    await payout.query('select from payout_days where merchant_id = $1 for update', [id]);
    const making = makeAll();
    await until('the statement to wait', () => isLockAwaited(pool));
    const entries = 'select from settlement_entries where merchant_id = $1 for update nowait';
    assert.equal((await payout.query(entries, [id])).rowCount, 1);
    await payout.query('commit');
    await making;
  } finally {
    payout.release();
  }
  assert.deepEqual(await monthsOf(account), [[1, '2027-03', 1]]);
});

test('the check finds a line without a statement, and sums or a reserve that are not those of the lines', {
  skip: hasCitus && 'Citus has no triggers to lift',
}, async () => {
  goTo('2027-04-10T08:00:00Z');
  const account = await merchantWith();
  const { id } = account.merchant;
  await sell(account, '2027-04-12T08:00:00Z');
  await post(account, '2027-04-12T08:00:00Z', held(-1_000));
  goTo('2027-05-03T08:00:00Z');
  await makeAll();
  assert.deepEqual(await statementDifferences(), []);
  const { pool } = service.deps.database;
  const both: [change: string, back: string][] = [
    [
      'update settlement_entries set statement = 9 where merchant_id = $1 and statement_line = 2',
      'update settlement_entries set statement = 1 where merchant_id = $1 and statement_line = 2',
    ],
    [
      'update monthly_statements set reserve = reserve + 1 where merchant_id = $1',
      'update monthly_statements set reserve = reserve - 1 where merchant_id = $1',
    ],
    [
      `update monthly_statements set sums = jsonb_set(sums, '{0,gross}', '1') where merchant_id = $1`,
      `update monthly_statements set sums = jsonb_set(sums, '{0,gross}', '-1000') where merchant_id = $1`,
    ],
  ];
  for (const [change, back] of both) {
    await tamper(pool, change, [id]);
    const found = await statementDifferences();
    assert.ok(found.length > 0, change);
    await tamper(pool, back, [id]);
    assert.deepEqual(await statementDifferences(), [], back);
  }
});

test('a correction is a new statement with the same lines that refers to the old one, which stays', async () => {
  goTo('2027-06-05T08:00:00Z');
  const account = await merchantWith();
  const { id } = account.merchant;
  await tranche.json('merchants', 'bank', id, '--statements-to', 'books@karoo.example');
  await sell(account, '2027-06-06T08:00:00Z');
  goTo('2027-07-01T08:00:00Z');
  await makeAll();
  const [old] = await statementsOf(account);
  assert.ok(old);
  const correct = (of: string) => ['statements', 'correct', of];
  await tranche.refused(1, /nothing to correct/, ...correct(old.id));
  // A shell without the service's settings must not report the service's name as changed.
  const bare = commandLine({ DATABASE_URL: service.databaseUrl }, { clock });
  await bare.refused(1, /nothing to correct/, ...correct(old.id));
  const oldFile = ['statements', 'show', old.id, '--format', 'pdf'];
  const before = (await tranche.run(...oldFile)).stdout;
  await changePage(service.deps, 'test', {
    id,
    address: '7 Loop Street',
    vat_number: '4000000002',
  });
  // Two processes correct the statement at once, while another makes the statement of the next
  // month.
  await sell(account, '2027-07-06T08:00:00Z');
  goTo('2027-08-02T08:00:00Z');
  const [one, other] = await Promise.all([
    tranche.run(...correct(old.id), '--json'),
    tranche.run(...correct(old.id), '--json'),
    makeAll(),
  ]);
  // A process that met a correction has left its statement for later.
  await makeAll();
  const [made, refused] = one.code === 0 ? [one, other] : [other, one];
  assert.deepEqual([made.code, refused.code], [0, 1]);
  const corrected = JSON.parse(made.stdout);
  const { id: newId, number, reference, created_at, corrects, ...rest } = corrected;
  assert.ok(refused.stderr.includes(`is replaced by ${reference}. Correct the newer one.`));
  const months = number === 2 ? ['06', '06', '07'] : ['06', '07', '06'];
  const inTurn = months.map((month, at) => [at + 1, `2027-${month}`, 1]);
  assert.deepEqual(await monthsOf(account), inTurn);
  const was = await tranche.json('statements', 'show', old.id);
  assert.deepEqual(corrects, { id: old.id, reference: was.reference });
  assert.deepEqual(was.corrected_by, { id: newId, reference });
  const { id: oldId, number: first, reference: of, created_at: at, ...same } = was;
  assert.deepEqual({ ...rest, corrects: null }, { ...same, corrected_by: null });
  assert.equal((await tranche.run(...oldFile)).stdout, before);
  // The file of the month is that of the newest statement.
  const { pages } = readPdf(Buffer.from(await fileOf(account, '2027-06', 'pdf'), 'latin1'));
  const text = pages.flat().join('\n');
  for (const said of ['Corrected statement and tax invoice', reference, of, '7 Loop Street']) {
    assert.ok(text.includes(said), `${said} in ${text}`);
  }
  assert.match(
    await fileOf(account, '2027-06', 'csv'),
    new RegExp(`^${reference},2027-06,1,.*,ZAR,${of}\r$`, 'm'),
  );
  // A correction can be corrected. The next month has the next number and continues the balance.
  await changePage(service.deps, 'test', { id, address: '8 Loop Street' });
  await tranche.json(...correct(newId));
  await sell(account, '2027-08-06T08:00:00Z');
  goTo('2027-09-01T08:00:00Z');
  await makeAll();
  assert.deepEqual(await monthsOf(account), [...inTurn, [4, '2027-06', 1], [5, '2027-08', 1]]);
  assert.equal((await statementsOf(account)).at(-1)?.closing, 3 * 94_250);
  const mails = 'select count(*)::integer from statement_mails where merchant_id = $1';
  assert.equal((await service.deps.database.pool.query(mails, [id])).rows[0].count, 5);
  assert.deepEqual(await statementDifferences(), []);
});

test('no correction takes the number of a statement that is being made', async () => {
  goTo('2027-09-07T08:00:00Z');
  const account = await merchantWith();
  const { id } = account.merchant;
  await sell(account, '2027-09-08T08:00:00Z');
  goTo('2027-10-01T08:00:00Z');
  await makeAll();
  const [old] = await statementsOf(account);
  await changePage(service.deps, 'test', { id, address: '7 Loop Street' });
  const lines = (count: number) =>
    service.deps.database.pool.query(
      'update statement_months set lines = $2 where merchant_id = $1',
      [id, count],
    );
  await lines(1);
  await tranche.refused(1, /2027-10 is being made/, 'statements', 'correct', old?.id ?? '');
  await lines(0);
  assert.equal((await tranche.json('statements', 'correct', old?.id ?? '')).number, 2);
});

test('a process makes and mails no statement, and makes no payout, before it has compared its database', async () => {
  goTo('2027-10-07T08:00:00Z');
  const gateway = await startGateway();
  const own = await startService({ clock, env: gatewayEnv(gateway) });
  const server = await startMailServer();
  const mail = smtpTransport({ url: server.url, from: 'payments@tranche.example' });
  const account = await createAccount(own);
  const { id } = account.merchant;
  await setTerms(own.deps, 'test', id, wholeTerms);
  const commands = commandLine({ DATABASE_URL: own.databaseUrl }, { clock });
  await commands.json('merchants', 'bank', id, '--statements-to', 'books@karoo.example');
  const made = async () => {
    const { rows } = await own.deps.database.pool.query(
      `select (select count(*)::integer from monthly_statements) as statements,
         (select count(*)::integer from payouts) as payouts`,
    );
    return [rows[0].statements, rows[0].payouts, server.mails.length];
  };
  await sell(account, '2027-10-08T08:00:00Z', 'order-1', own);
  goTo('2027-11-01T08:00:00Z');
  await makeDueMonthlyStatements(own.deps);
  await sell(account, '2027-11-02T08:00:00Z', 'order-2', own);
  // Three things are due: the mail of October, the statement of November, and a payout.
  goTo('2027-12-01T08:00:00Z');
  await gateway.fault({ fault: 'drop_before', method: 'GET', path: '/v1/customers', times: 1_000 });
  let asked = 0;
  const { money } = own.deps;
  const problem: typeof money.problem = (name) => {
    if (name === undefined) asked += 1;
    return money.problem(name);
  };
  const worker = startWorker({ ...own.deps, mail, money: { ...money, problem } });
  try {
    const isAsked = async () => asked >= 3 || (await made()).join() !== '1,0,0';
    await until('all three to be claimed, or to wait', isAsked);
    assert.deepEqual(await made(), [1, 0, 0]);
    await gateway.call('DELETE', '/_test/faults');
    await until('all three', async () => (await made()).join() === '2,1,2');
  } finally {
    await worker.stop();
    await mail.close();
    await server.stop();
    await own.close();
    await gateway.close();
  }
});
