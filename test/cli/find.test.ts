import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createMerchant } from '#merchants/create-merchant.ts';
import { beginBulkAction } from '#operating/bulk-actions/begin-bulk-action.ts';
import { listAlertsPage } from '#operating/operations/alerts.sql.ts';
import { listActionsPage } from '#operating/operations/audit.sql.ts';
import { listCallbacksPage } from '#operating/operations/callbacks.sql.ts';
import { callbackList } from '#operating/operations/callbacks.ts';
import { listCheckoutsPage } from '#operating/operations/checkouts.sql.ts';
import { checkoutList } from '#operating/operations/checkouts.ts';
import { listDestinationsPage } from '#operating/operations/destinations.sql.ts';
import { listDisputesPage } from '#operating/operations/disputes.sql.ts';
import { instalmentList } from '#operating/operations/instalments.ts';
import { listIntegrationsPage } from '#operating/operations/integrations.sql.ts';
import { listMerchantsPage } from '#operating/operations/merchants.sql.ts';
import { listPayoutsPage } from '#operating/operations/payouts.sql.ts';
import { listRefundsPage } from '#operating/operations/refunds.sql.ts';
import { refundList } from '#operating/operations/refunds.ts';
import type { Viewer } from '#operating/operations/viewer.ts';
import { listPeople } from '#operating/people/person.sql.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import { namesIn, search } from '#operating/search/search.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { type Tranche, unknownId } from '../support/cli.ts';
import { addPerson } from '../support/console.ts';
import { findNodes } from '../support/database-server.ts';
import { openDispute, wholeTerms } from '../support/money.ts';
import { assertSound, commandsOf, type Paying, startPaying } from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { type Account, createAccount, rules, send } from '../support/service.ts';

const { hasCitus } = await findNodes();
const onCitus = hasCitus && 'the workers plan without the settings of this test';

let paying: Paying;
let tranche: Tranche;
let other: Account;
before(async () => {
  paying = await startPaying();
  tranche = commandsOf(paying);
  other = await createAccount(paying.service);
});
after(async () => {
  await assertSound(paying);
  await paying.close();
});

type Found = { kind: string; id: string; merchant_id: string; matched: string };

const find = async (text: string, ...options: string[]): Promise<Found[]> =>
  (await tranche.json('find', text, ...options)).data;

const idsOf = (found: { id: string }[]) => found.map(({ id }) => id).sort();

let number = 0;
/** Creates a checkout of a shopper that no other test uses. */
async function create(account = paying.account, customer: object = {}) {
  number += 1;
  const reference = `find-${number}-${Math.random().toString(36).slice(2)}`;
  const shopper = await paying.shopper(
    { client_reference_id: reference, customer: { email: `s${number}@find.example`, ...customer } },
    account,
  );
  return { shopper, id: shopper.id, reference, email: `s${number}@find.example` };
}

test('an open and an ended checkout are found by order reference, e-mail, name and id', async () => {
  const name = { first_name: 'Nomvula', last_name: 'van der Berg' };
  const { id, reference, email, shopper } = await create(paying.account, name);
  const texts = [
    [reference, 'order_reference'],
    [email, 'email'],
    [email.toUpperCase(), 'email'],
    ['van der Berg', 'name'],
    ['nomvula VAN DER berg', 'name'],
    ['Van der Berg, Nomvula', 'name'],
    [id, 'id'],
    [id.toUpperCase(), 'id'],
    [` ${id}:2 `, 'id'],
  ] as const;
  for (const end of [async () => {}, shopper.cancel]) {
    await end();
    for (const [text, matched] of texts) {
      const [found, ...more] = await find(text);
      assert.deepEqual([found?.kind, found?.id, found?.matched], ['checkout', id, matched], text);
      assert.deepEqual(more, [], text);
    }
  }
  const [{ merchant_id, ...rest } = {} as Found] = await find(reference);
  assert.equal(merchant_id, paying.account.merchant.id);
  assert.deepEqual(Object.keys(rest), [
    'kind',
    'id',
    'matched',
    'checkout_id',
    'client_reference_id',
    'email',
    'name',
    'status',
    'amount',
    'currency',
    'created_at',
  ]);
});

test('a payment is found by its card and by every reference of the gateway', async () => {
  const { id, shopper } = await create();
  await shopper.pay(3, { card: '5555555555554444' });
  assert.ok(idsOf(await find('4444')).includes(id));
  const { rows } = await paying.service.deps.database.pool.query(
    'select id, payment_ref, customer_ref from payment_attempts where checkout_id = $1',
    [id],
  );
  for (const value of Object.values(rows[0]) as string[]) {
    assert.deepEqual(idsOf(await find(value)), [id], value);
  }
  await paying.pass({ days: 40 });
  const { rows: charges } = await paying.service.deps.database.pool.query(
    `select payment_ref from collections where checkout_id = $1 and kind = 'charge'`,
    [id],
  );
  assert.deepEqual(idsOf(await find(charges[0].payment_ref)), [id]);

  const answer = await send(paying.service, paying.account, 'POST', '/api/refunds', {
    body: { checkout_id: id, amount: 100_000 },
  });
  const refund = answer.body.data.id;
  await tranche.json('refunds', 'approve', refund);
  const { rows: parts } = await paying.service.deps.database.pool.query(
    'select refund_ref from refund_parts where refund_id = $1 and refund_ref is not null',
    [refund],
  );
  for (const text of [refund, parts[0].refund_ref]) {
    const [found] = await find(text);
    assert.deepEqual([found?.kind, found?.id], ['refund', refund]);
  }
});

test('a card that the shopper used later is found by its digits, its reference and its id', async () => {
  const { id, shopper } = await create();
  await shopper.pay(3);
  const acting = await actingOn(paying, shopper);
  await acting.replaceCard('378282246310005');
  await acting.pay('next');
  assert.deepEqual(idsOf(await find('0005')), [id]);
  const attempts = await shopper.planAttempts();
  const charges = await shopper.rows('collections');
  assert.deepEqual([attempts.length, charges.length > 0], [2, true]);
  const foreign: Scope = { merchant_ids: [other.merchant.id] };
  const texts = [...attempts, ...charges].flatMap((row) => [row.id, row.payment_ref]);
  for (const text of ['0005', ...texts]) {
    assert.deepEqual(idsOf(await find(text)), [id], text);
    assert.deepEqual(await search(paying.service.deps, foreign, text, 10), [], text);
  }
});

test('a merchant is found by the beginning of its name, and only within the scope', async () => {
  const { deps } = paying.service;
  const name = 'Überwald & Sons';
  const { id } = await createMerchant(deps, 'test', { name, territory: 'ZA', rules });
  for (const text of ['Überwald', name]) {
    const [found, ...more] = await find(text);
    assert.deepEqual([found?.kind, found?.id, found?.matched], ['merchant', id, 'merchant_name']);
    assert.deepEqual(more, []);
  }
  const foreign: Scope = { merchant_ids: [other.merchant.id] };
  assert.deepEqual(await search(deps, foreign, name, 10), []);
});

test('a person and a bulk action are found by their ids, by readers of all merchants', async () => {
  const { deps } = paying.service;
  const person = await addPerson(paying.service, { roles: ['support'], name: 'Nomsa Dube' });
  const origin = {
    person_id: person.id,
    access_id: person.id,
    roles: ['support'],
    address: '192.0.2.7',
    session_id: person.session_id,
    counts_from: null,
  };
  const wanted = { merchant_ids: null, host: null, until_id: unknownId };
  const id = await beginBulkAction({ ...deps, origin }, 'nomsa', 'callbacks retry', wanted, {
    total: 0,
    shares: [],
  });
  const own: Scope = { merchant_ids: [paying.account.merchant.id] };
  for (const [text, kind, called] of [
    [person.id, 'person', 'Nomsa Dube'],
    [id, 'bulk_action', 'callbacks retry'],
  ] as const) {
    const { data } = await tranche.json('find', text);
    assert.deepEqual(
      data.map((hit: { kind: string; id: string; name: string }) => [hit.kind, hit.id, hit.name]),
      [[kind, text, called]],
    );
    assert.deepEqual(await search(deps, own, text, 10), []);
  }
  const { stdout } = await tranche.run('find', id);
  assert.match(stdout, /callbacks retry/);
  assert.doesNotMatch(stdout, /null|</);
});

test('a callback, a merchant, an integration and an alert are found by their ids', async () => {
  const { id, shopper } = await create();
  await shopper.cancel();
  const { pool } = paying.service.deps.database;
  const { rows } = await pool.query('select id from callbacks where checkout_id = $1', [id]);
  const alert = '01a1e041-95a5-73f9-b11c-2dfb907b8efb';
  await pool.query(
    `insert into alerts (id, at, kind, merchant_id, detail)
     values ($1, '2026-11-15T08:00:00Z', 'test', $2, 'x')`,
    [alert, paying.account.merchant.id],
  );
  for (const [kind, text] of [
    ['callback', rows[0].id],
    ['merchant', paying.account.merchant.id],
    ['integration', paying.account.id],
    ['alert', alert],
  ] as const) {
    const found = await find(text);
    assert.deepEqual(
      found.map((one) => [one.kind, one.id, one.merchant_id]),
      [[kind, text, paying.account.merchant.id]],
    );
  }
});

test('a dispute and a payout are found by their ids and references, and only within the scope', async () => {
  const { deps } = paying.service;
  const account = await createAccount(paying.service);
  const merchant_id = account.merchant.id;
  await setTerms(deps, 'test', merchant_id, wholeTerms);
  const { id, shopper } = await create(account);
  await shopper.pay(1);
  await paying.pass({ days: 5 });
  const dispute = await openDispute(paying, shopper);
  const { rows } = await deps.database.pool.query(
    `select p.id as payout, p.reference as line, d.dispute_ref as reference from payouts p
     join disputes d using (merchant_id) where p.merchant_id = $1`,
    [merchant_id],
  );
  const [{ payout, line, reference }] = rows;
  const foreign: Scope = { merchant_ids: [other.merchant.id] };
  for (const [text, kind, found, matched, checkout] of [
    [dispute, 'dispute', dispute, 'id', id],
    [reference, 'dispute', dispute, 'gateway_reference', id],
    [payout, 'payout', payout, 'id', null],
    [line.toLowerCase(), 'payout', payout, 'payout_reference', null],
  ]) {
    const hits = await tranche.json('find', text);
    assert.equal(hits.data.length, 1, text);
    const [hit] = hits.data;
    assert.deepEqual(
      [hit.kind, hit.id, hit.merchant_id, hit.matched, hit.checkout_id],
      [kind, found, merchant_id, matched, checkout],
    );
    assert.deepEqual(await search(deps, foreign, text, 100), [], text);
  }
  // Every reference that a list prints is one that `show` takes.
  const { client_reference_id: order } = await tranche.json('checkouts', 'show', id);
  for (const [command, wanted, ...references] of [
    ['payouts', payout, line, payout.slice(0, 30)],
    ['disputes', dispute, reference, order, `${id}:1`, dispute.slice(0, 30)],
    ['checkouts', id, order, id.slice(0, 30), `${id}:1`],
  ]) {
    for (const text of references) {
      assert.equal((await tranche.json(command, 'show', text)).id, wanted, `${command} ${text}`);
    }
  }
  assert.match((await tranche.json('disputes', 'evidence', order)).hash, /^[0-9a-f]{64}$/);
  await tranche.refused(1, /There is no payout TR19990101-1/, 'payouts', 'show', 'TR19990101-1');
  const { stdout } = await tranche.run('find', payout);
  assert.match(stdout, new RegExp(`^payout +${payout}`, 'm'));
});

test('nothing is found where there is nothing, whatever the text', async () => {
  for (const text of [unknownId, 'no-such-order', '0000', 'pi_nothing', "' or 1=1 --", '%', '😀']) {
    assert.deepEqual(await find(text), [], text);
  }
  assert.deepEqual(await find('x'.repeat(10_000)), []);
  const { stdout } = await tranche.run('find', 'no-such-order');
  assert.match(
    stdout,
    /^Nothing was found\. `tranche find --help` says what you can search for\.$/m,
  );
  await tranche.refused(2, /TEXT is missing/, 'find', ' ');
});

test('no search and no list returns a row outside of its scope', async () => {
  const email = 'same@find.example';
  const customer = { email, first_name: 'Ayanda', last_name: 'Mokoena' };
  const rows = [];
  for (const account of [paying.account, other]) {
    const { shopper, id } = await create(account, customer);
    await shopper.pay(3, { card: '4000000000005126' });
    await send(paying.service, account, 'POST', '/api/refunds', {
      body: { checkout_id: id, amount: 10_000 },
    });
    rows.push({ id, merchant_id: account.merchant.id });
  }
  const [ours, theirs] = rows as [(typeof rows)[0], (typeof rows)[0]];
  const { deps } = paying.service;
  const { rows: refs } = await deps.database.pool.query(
    `select payment_ref, customer_ref, a.id, c.id as callback, r.id as refund
     from payment_attempts a join callbacks c using (checkout_id, merchant_id)
     join refund_requests r using (checkout_id, merchant_id) where checkout_id = $1`,
    [theirs.id],
  );
  const texts = [email, 'Mokoena', 'Ayanda Mokoena', '5126', theirs.id, theirs.merchant_id];
  const scope: Scope = { merchant_ids: [ours.merchant_id] };
  const several: Scope = { merchant_ids: [ours.merchant_id, unknownId] };
  for (const within of [scope, several]) {
    for (const text of [...texts, ...(Object.values(refs[0]) as string[])]) {
      for (const hit of await search(deps, within, text, 100)) {
        assert.equal(hit.merchant_id, ours.merchant_id, text);
      }
    }
    const page = { after: null, limit: 1_000 };
    const viewer: Viewer = { deps, operator: 'test', scope: within, may: () => true };
    const lists = [
      await checkoutList.read(viewer, {}, page),
      await callbackList.read(viewer, {}, page),
      await instalmentList.read(viewer, { status: 'scheduled' }, page),
      await refundList.read(viewer, {}, page),
      await refundList.read(viewer, { view: 'requested' }, page),
    ];
    for (const { data } of lists) {
      assert.ok(data.length > 0);
      for (const row of data) assert.equal(row.merchant_id, ours.merchant_id);
    }
  }
  for (const text of texts.slice(0, 4)) {
    const found = idsOf(await find(text, '--merchant', theirs.merchant_id));
    assert.deepEqual(found, [theirs.id], text);
    const all = idsOf(await find(text));
    assert.ok(all.includes(ours.id) && all.includes(theirs.id), text);
  }
  const nobody: Scope = { merchant_ids: [] };
  assert.deepEqual(await search(deps, nobody, email, 10), []);
});

test('every page of a list together has each row once, in order', async () => {
  const account = await createAccount(paying.service);
  const made: string[] = [];
  for (let index = 0; index < 7; index += 1) {
    const { shopper, id } = await create(account);
    await shopper.pay(3);
    made.push(id);
    await send(paying.service, account, 'POST', '/api/refunds', {
      body: { checkout_id: id, amount: 10_000 },
    });
  }
  const pages = async (...argv: string[]) => {
    const ids: string[] = [];
    for (let after: string[] = []; ; ) {
      const { data, next } = await tranche.json(...argv, '--limit', '3', ...after);
      assert.ok(data.length <= 3);
      ids.push(...data.map((row: { id: string }) => row.id));
      if (next === null) return ids;
      after = ['--after', next];
    }
  };
  const merchant = ['--merchant', account.merchant.id];
  const newest = [...made].reverse();
  assert.deepEqual(await pages('checkouts', 'list', ...merchant), newest);
  for (const status of ['pending', 'delivered', 'exhausted']) {
    const whole = await tranche.json('callbacks', 'list', ...merchant, '--status', status);
    const paged = await pages('callbacks', 'list', ...merchant, '--status', status);
    assert.deepEqual(
      paged,
      whole.data.map(({ id }: { id: string }) => id),
    );
  }
  assert.equal((await pages('callbacks', 'list', ...merchant)).length, 7);
  assert.equal(
    (await pages('instalments', 'list', '--status', 'scheduled', ...merchant)).length,
    14,
  );
  const refunds = await pages('refunds', 'list', ...merchant);
  assert.deepEqual(await pages('refunds', 'list', '--status', 'requested', ...merchant), [
    ...refunds.toReversed(),
  ]);
  for (const list of [
    ['checkouts', 'list'],
    ['callbacks', 'list'],
    ['refunds', 'list'],
    ['refunds', 'list', '--status', 'requested'],
    ['instalments', 'list', '--status', 'scheduled'],
    ['instalments', 'list', '--status', 'authorised'],
    ['instalments', 'list', '--status', 'cancelled'],
    ['instalments', 'list', '--status', 'overdue'],
  ]) {
    const whole = await tranche.json(...list, '--limit', '1000');
    assert.equal(whole.next, null);
    assert.deepEqual(
      await pages(...list),
      whole.data.map(({ id }: { id: string }) => id),
      list.join(' '),
    );
  }
  await tranche.refused(2, /not a cursor/, 'checkouts', 'list', '--after', 'x');
  const wrong = Buffer.from('["x"]').toString('base64url');
  await tranche.refused(2, /not a cursor/, 'checkouts', 'list', '--after', wrong);
  await tranche.refused(2, /--limit must be from 1 to 1000/, 'checkouts', 'list', '--limit', '0');
});

test('a list names the merchant, the order and the shopper, with whole ids and the next page', async () => {
  const account = await createAccount(paying.service);
  const customer = { first_name: 'Lerato', last_name: 'Khumalo' };
  const { id, reference, shopper } = await create(account, customer);
  await shopper.pay(3);
  const { email } = await create(account, customer);
  const list = ['checkouts', 'list', '--merchant', account.merchant.id];
  const { stdout } = await tranche.run(...list, '--limit', '1');
  assert.match(stdout, new RegExp(`Lerato Khumalo <${email}>`));
  assert.match(stdout, /More:\n {2}tranche checkouts list --merchant \S+ --limit 1 --after \S+\n$/);
  const page = (await tranche.run(...list)).stdout;
  for (const line of page.split('\n')) assert.ok(line.length <= 80, line);
  assert.match(page, new RegExp(`^${id} .* successful `, 'm'));
  assert.ok(page.includes(account.merchant.name) && page.includes(reference));
  assert.match(page.replaceAll(/\s+/g, ' '), /term 3 · collected R 0,00 · outstanding R 1 500,00/);
});

test('the lists of merchants, integrations and actions have pages', async () => {
  const { pool } = paying.service.deps.database;
  await pool.query(
    `insert into operator_actions (id, at, operator, action, details, number, hash)
     select gen_random_uuid(), '2020-01-01T00:00:00Z', 'many', 'a test', '{}', 1000000 + n, ''
     from generate_series(1, 101) n`,
  );
  const actions = ['audit', 'list', '--operator', 'many', '--limit', '100'];
  const first = await tranche.json(...actions);
  const second = await tranche.json(...actions, '--after', first.next);
  assert.deepEqual([first.data.length, second.data.length, second.next], [100, 1, null]);
  for (const [list, ids] of [
    ['merchants', 'select id from merchants order by created_at, id'],
    ['integrations', 'select id from integrations order by created_at, id'],
  ] as const) {
    const { rows } = await pool.query(ids);
    const paged: string[] = [];
    for (let after: string[] = []; ; ) {
      const page = await tranche.json(list, 'list', '--limit', '2', ...after);
      assert.ok(page.data.length <= 2);
      paged.push(...page.data.map(({ id }: { id: string }) => id));
      if (page.next === null) break;
      after = ['--after', page.next];
    }
    assert.deepEqual(
      paged,
      rows.map(({ id }) => id),
      list,
    );
    const { stdout } = await tranche.run(list, 'list', '--limit', '1');
    assert.match(stdout, new RegExp(`More:\n +tranche ${list} list --limit 1 --after `));
    await tranche.refused(2, /not a cursor/, list, 'list', '--after', 'x');
  }
});

test('every search and every list reads an index, and sorts nothing but its own page', {
  skip: onCitus,
}, async () => {
  const { deps } = paying.service;
  const statements: { sql: string; parameters: readonly unknown[] }[] = [];
  const original = deps.database.db;
  const recorded = original.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => result,
  });
  const executor = recorded.getExecutor();
  const compile = executor.compileQuery.bind(executor);
  recorded.getExecutor = () => executor;
  executor.compileQuery = ((...args: Parameters<typeof compile>) => {
    const compiled = compile(...args);
    statements.push(compiled);
    return compiled;
  }) as typeof executor.compileQuery;
  const within = { ...deps, database: { ...deps.database, db: recorded } };
  const one: Scope = { merchant_ids: [paying.account.merchant.id] };
  for (const scope of ['all merchants', one] satisfies Scope[]) {
    for (const text of [
      'order-1',
      'a@b.example',
      'Thandi Dlamini',
      '4242',
      'pi_1',
      'R 1 500,00',
      '0199a8f0-7c',
      unknownId,
    ]) {
      await search(within, scope, text, 20);
    }
    const page = { after: null, limit: 20 };
    const viewer: Viewer = { deps: within, operator: 'test', scope, may: () => true };
    await checkoutList.read(viewer, {}, page);
    await checkoutList.read(viewer, { amount: 150_000 }, page);
    await checkoutList.read(viewer, { shopper: 'Thandi Dlamini' }, page);
    await callbackList.read(viewer, {}, page);
    for (const status of ['pending', 'delivered', 'exhausted'] as const) {
      await callbackList.read(viewer, { status }, page);
    }
    for (const status of ['overdue', 'scheduled', 'collected', 'cancelled'] as const) {
      await instalmentList.read(viewer, { status }, page);
    }
    // These lists exist only in the console.
    for (const status of ['received', 'successful', 'cancelled', 'invalid_payload'] as const) {
      await listCheckoutsPage(recorded, scope, { status }, page);
    }
    const days = { from: '2026-11-01T00:00:00.000Z', until: '2026-12-01T00:00:00.000Z' };
    await listCheckoutsPage(recorded, scope, days, page);
    for (const view of [null, 'requested', 'failed', 'review', 'approved'] as const) {
      await listRefundsPage(recorded, scope, { view }, page);
      await listRefundsPage(recorded, scope, { view, ...days }, page);
    }
    await listCallbacksPage(recorded, scope, 'exhausted', 'shop.example', page);
    await listDestinationsPage(recorded, scope, page);
    const ofActions = [{ subject_id: unknownId }, { person_id: unknownId }, { operator: 'nomsa' }];
    for (const filter of [{}, ...ofActions]) {
      await listActionsPage(recorded, scope, filter, page);
    }
    // In a narrower scope the statement names the merchants, and may sort their few rows.
    if (scope === 'all merchants') await listMerchantsPage(recorded, scope, page);
    await listIntegrationsPage(recorded, scope, page);
    await listPeople(recorded, null, page.limit);
    for (const state of ['open', 'taken', 'closed'] as const) {
      await listAlertsPage(recorded, scope, { state, kinds: null }, page);
    }
    await listAlertsPage(recorded, scope, { kinds: null }, page);
    for (const status of [null, 'draft', 'paid'] as const) {
      await listPayoutsPage(recorded, scope, status, page);
    }
    const ofDisputes = [
      { status: 'needs_response' },
      { status: 'won' },
      { gateway: 'main' },
    ] as const;
    for (const filter of [{}, ...ofDisputes]) await listDisputesPage(recorded, scope, filter, page);
  }
  assert.ok(statements.length > 60, String(statements.length));
  const client = await deps.database.pool.connect();
  try {
    await client.query('begin');
    await client.query('set local enable_seqscan = off');
    await client.query('set local enable_bitmapscan = off');
    for (const { sql, parameters } of statements) {
      const isByName = /merchants.name\) collate "C"/.test(sql) && !/"merchants"."id" = /.test(sql);
      const isPage = isByName || / limit /.test(sql);
      if (/from "(merchants|integrations|alerts)"/.test(sql) && !isPage) continue;
      const { rows } = await client.query(`explain ${sql}`, parameters as unknown[]);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      assert.doesNotMatch(plan, /Seq Scan on (?!territories|merchants)/, `${sql}\n${plan}`);
      if (isByName) assert.match(plan, /merchants_by_name/, `${sql}\n${plan}`);
      // A statement that names the ids of a page may sort. So may the pending callbacks of one
      // merchant, because they are only its backlog.
      const isBacklog = /"due_at" is not null and "callbacks"."merchant_id"/.test(sql);
      if (!isBacklog && !/"checkout_id" in \(|"id" in \(/.test(sql)) {
        assert.doesNotMatch(plan, /(?<!Incremental )Sort {2}\(/, `${sql}\n${plan}`);
      }
    }
  } finally {
    await client.query('rollback');
    client.release();
  }
});

test('an order is found by the beginning of its reference and by its amount, and a reference that fits two is refused', async () => {
  const account = await createAccount(paying.service);
  const made = [];
  // In the order of references, the oldest order comes last.
  const old = `Begin-${account.merchant.id}-9`;
  await paying.shopper({ client_reference_id: old, amount: 123_458 }, account);
  for (const end of ['1', '10']) {
    paying.clock.advance({ minutes: 1 });
    const shopper = await paying.shopper(
      { client_reference_id: `Begin-${account.merchant.id}-${end}`, amount: 123_457 },
      account,
    );
    await shopper.pay(1);
    made.push(shopper.id);
  }
  const [first, second] = made as [string, string];
  const merchant = ['--merchant', account.merchant.id];
  const idsOf = (hits: { id: string }[]) => hits.map(({ id }) => id).sort();
  const beginning = `Begin-${account.merchant.id}-`;
  assert.deepEqual(idsOf(await find(`${beginning}1`)), [first, second].sort());
  for (const scope of [[], merchant]) {
    const newest = (await find(beginning, ...scope, '--limit', '2')).map(({ id }) => id);
    assert.deepEqual(newest, [second, first], 'the newest come first');
    const [whole, ...more] = await find(`${beginning}1`, ...scope, '--limit', '1');
    assert.deepEqual([whole?.id, more], [first, []], 'an exact match goes before newer orders');
  }
  for (const text of ['1234,57', 'R 1 234,57', '1,234.57']) {
    assert.deepEqual(idsOf(await find(text, ...merchant)), [first, second].sort(), text);
  }
  const shown = await tranche.json('checkouts', 'show', `Begin-${account.merchant.id}-1`);
  assert.equal(shown.id, first, 'an exact match goes before a beginning');
  await tranche.refused(
    1,
    /means more than one checkout\. Give one of these:/,
    'checkouts',
    'show',
    `Begin-${account.merchant.id}`,
  );
  const listed = async (...how: string[]) =>
    idsOf((await tranche.json('checkouts', 'list', ...merchant, ...how)).data);
  assert.deepEqual(await listed('--amount', '123457'), [first, second].sort());
  assert.deepEqual(await listed('--amount', '123458'), []);
  assert.deepEqual(await listed('--shopper', 'no-one@example.com'), []);
});

test('a text is read as a name in every order in which people write one', () => {
  assert.deepEqual(namesIn('Dlamini'), [{ last: 'Dlamini', first: null }]);
  assert.deepEqual(namesIn('Dlamini, Thandi'), [
    { last: 'Dlamini Thandi', first: null },
    { last: 'Thandi', first: 'Dlamini' },
    { last: 'Dlamini', first: 'Thandi' },
  ]);
  for (const text of ['', 'order-7', 'a@b', 'pi_1', 'a b c d e f g']) {
    assert.deepEqual(namesIn(text), [], text);
  }
});
