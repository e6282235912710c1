import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { auditSlice } from '#checks/books/audit-books.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Action } from '#operating/operations/audit.schema.ts';
import { openCsv } from '#operating/operations/csv.ts';
import { updatePerson } from '#operating/people/person.sql.ts';
import { rollUp, rollUpOverdue } from '#operating/rollups/roll-up.ts';
import { firstIdAt } from '#platform/shared/uuid.ts';
import { writeDestinationStatistics } from '#purchases/callbacks/delivery/destination-statistics.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { openPaymentLink } from '#purchases/payment-links/open-payment-link.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { operate } from '#record/actions/operate.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { addNote } from '#record/notes/add-note.ts';
import { addPerson, ask, type ConsolePerson, openConsole } from '../support/console.ts';
import { askExactly } from '../support/console-api.ts';
import { createLegacyCheckout, enablePlugin, logIn } from '../support/legacy.ts';
import { askRefund, cards, openDispute, refundNow, wholeTerms } from '../support/money.ts';
import {
  assertSound,
  challengeCard,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { type Account, createAccount } from '../support/service.ts';

// Two merchants with the same shoppers, orders and amounts, whose rows differ only in the merchant.
// Everything that a person of one merchant reads must be of that merchant.

let paying: Paying;
let app: FastifyInstance;
let theirs: Account;
let intermediary: string;
let admin: ConsolePerson;
let staff: ConsolePerson;
let newShopper: Shopper;
const shoppers: Shopper[] = [];
const theirShoppers: Shopper[] = [];
const console = () => ({ app, deps: paying.service.deps });
const get = async (url: string, person = admin) => {
  const answer = await askExactly(console(), person, 'GET', url);
  assert.equal(answer.status, 200, `${url}: ${JSON.stringify(answer.body)}`);
  return answer.body;
};

const formula = '=HYPERLINK("https://evil.example","pay")';
const secret = 'only-the-other-merchant';

before(async () => {
  paying = await startPaying();
  const { service } = paying;
  const { deps } = service;
  app = await openConsole(service);
  theirs = await createAccount(service);
  const broken = 'https://nowhere.example/callback';
  for (const [account, made, tag] of [
    [paying.account, shoppers, 'ours'],
    [theirs, theirShoppers, secret],
  ] as const) {
    await setTerms(deps, 'test', account.merchant.id, wholeTerms);
    const customer = { email: `thandi+${tag}@example.com`, last_name: `Dlamini-${tag}` };
    const create = (changes: object) =>
      paying.shopper({ customer, client_reference_id: `order-${tag}`, ...changes }, account);
    const open = async (changes: object = {}) => {
      const shopper = await create(changes);
      made.push(shopper);
      return shopper;
    };
    await offerPaymentLink(deps, 'test', account.merchant.id, {
      ...{ amount: 150_000, client_reference_id: `order-${tag}`, customer, notify_url: broken },
    });
    const paid = await open();
    await paid.send('GET', '');
    await paid.pay(3);
    const late = await open({ notify_url: broken });
    await late.pay(3, { card: cards.laterInsufficientFunds });
    const gone = await open({ client_reference_id: formula });
    await gone.cancel(1);
    await open();
    const declined = await open();
    await declined.pay(1, { card: '4000000000000002' });
    const refunded = await open();
    await refunded.pay(1);
    await askRefund(paying, paid, 20_000, account);
    await askRefund(paying, refunded, 10_000, account);
    await addNote(deps, 'nomsa', { merchant_id: account.merchant.id, id: paid.id }, `note ${tag}`);
    await (await actingOn(paying, paid)).post('report', { text: `question of ${tag}` });
    await raiseAlert(deps, deps.database.db, {
      kind: 'card_testing',
      merchant_id: account.merchant.id,
      detail: `about ${tag}`,
    });
    await raiseAlert(deps, deps.database.db, {
      kind: 'gateway_other_state',
      merchant_id: account.merchant.id,
      detail: `the gateway about ${tag}`,
    });
  }
  const ours = shoppers[5] as Shopper;
  await paying.pass({ days: 50 });
  await refundNow(paying, ours, 5_000);
  for (const shopper of [ours, theirShoppers[5] as Shopper]) await openDispute(paying, shopper);
  // The charts show 30 days, and the sales above are older.
  const newest = await paying.shopper({ client_reference_id: 'newest' });
  await newest.pay(1, { card: '4000000000000002' });
  await newest.pay(1);
  newShopper = newest;
  intermediary = (
    await createIntegration(deps, 'test', {
      refund_mode: 'manual',
      managed_merchant_ids: [paying.account.merchant.id, theirs.merchant.id],
    })
  ).id;
  for (let round = 0; round < 6; round += 1) await auditSlice(deps);
  while ((await rollUp(deps, 0)) > 0);
  await rollUpOverdue(deps);
  await writeDestinationStatistics(deps);
  admin = await addPerson(service, { roles: ['admin'] });
  staff = await addPerson(service, {
    roles: ['admin'],
    merchant_ids: [paying.account.merchant.id],
  });
});
after(async () => {
  await app.close();
  await paying.close();
});

const lists = [
  '/api/checkouts',
  '/api/checkouts?status=successful',
  '/api/checkouts?status=received',
  '/api/checkouts?status=cancelled',
  '/api/checkouts?gateway=main',
  '/api/checkouts?from=2026-11-01&to=2027-12-31',
  '/api/refunds',
  '/api/refunds?view=review',
  '/api/refunds?view=approved',
  '/api/refunds?view=complete',
  '/api/refunds?view=complete&from=2026-11-01&to=2027-12-31',
  '/api/overdue',
  '/api/callbacks',
  '/api/callbacks?status=delivered',
  '/api/callbacks?status=exhausted',
  '/api/callbacks?status=pending',
  '/api/callbacks?status=exhausted&host=nowhere.example',
  '/api/destinations',
  '/api/payment-links',
  '/api/conversations',
  '/api/conversations?status=open',
  '/api/disputes',
  '/api/disputes?status=needs_response',
  '/api/payouts',
  '/api/payouts?status=draft',
  '/api/statements',
  '/api/statements?month=2026-11',
  '/api/merchants',
  '/api/integrations',
];
const wholeLists = [
  ...lists,
  '/api/alerts',
  '/api/alerts?state=open',
  '/api/differences',
  '/api/audit',
  '/api/people',
];
const encoded = (text: string) => Buffer.from(text).toString('base64url');
const withQuery = (url: string, query: string) => `${url}${url.includes('?') ? '&' : '?'}${query}`;

/** Returns the rows of a list, and asserts that its pages have each of them once. */
async function readThrough(url: string) {
  const { data: whole, next } = await get(withQuery(url, 'limit=100'));
  assert.equal(next, null);
  const paged: unknown[] = [];
  for (let after = ''; ; ) {
    const page = await get(withQuery(url, `limit=2${after}`));
    assert.ok(page.data.length <= 2);
    paged.push(...page.data);
    if (page.next === null) break;
    after = `&after=${page.next}`;
  }
  // The merchant's clock runs on between two requests.
  const still = (rows: unknown[]) => JSON.stringify(rows).replaceAll(/"now":"[^"]*"/g, '');
  assert.equal(still(paged), still(whole));
  return whole;
}

describe('a list', () => {
  for (const url of wholeLists) {
    test(`${url} has each row once across its pages, in one order`, () => readThrough(url));
  }

  test('of the audit has the rows of one operator, of one subject, and of both', async () => {
    const [one, other] = [crypto.randomUUID(), crypto.randomUUID()];
    const recorded = [one, one, other, one, other].map((of, place) => [
      of,
      `operator ${place % 2}`,
    ]);
    for (const [subject_id = '', operator = ''] of recorded) {
      await operate(paying.service.deps, operator, 'test', async () => ({
        ...{ subject_id, details: {}, result: undefined },
      }));
    }
    for (const asked of [[one], [undefined, 'operator 0'], [one, 'operator 1']]) {
      const query = asked.map(
        (value, place) => value && `${['subject', 'operator'][place]}=${value}`,
      );
      const found = await readThrough(encodeURI(`/api/audit?${query.filter(Boolean).join('&')}`));
      assert.deepEqual(
        found.map(({ subject_id, operator }: Action) => [subject_id, operator]).sort(),
        recorded
          .filter((action) =>
            asked.every((value, place) => action[place] === (value ?? action[place])),
          )
          .sort(),
      );
    }
  });

  test('refuses a cursor that it did not issue, and a limit above 100', async () => {
    for (const url of wholeLists) {
      const cursors = ['x', ...['["x"]', '["\\u0000","x"]'].map(encoded)];
      for (const cursor of cursors) {
        const answer = await ask(console(), admin, 'GET', withQuery(url, `after=${cursor}`));
        assert.deepEqual([answer.status, answer.body.error.code], [400, 'bad_cursor'], url);
      }
      const tooMany = await ask(console(), admin, 'GET', withQuery(url, 'limit=101'));
      assert.equal(tooMany.status, 422, url);
    }
    const noDay = await ask(console(), admin, 'GET', '/api/checkouts?from=2026-02-30');
    assert.equal(noDay.status, 404);
    const { id } = paying.account.merchant;
    for (const day of ['0000-01-01', '9999-12-31']) {
      const url = `/api/checkouts?merchant=${id}&from=${day}`;
      assert.equal((await ask(console(), admin, 'GET', url)).status, 422, day);
    }
  });

  test('of checkouts that are not paid takes no amount or gateway, which would find none', async () => {
    for (const query of ['amount=150000', 'gateway=main']) {
      const url = `/api/checkouts?status=received&${query}`;
      const { status, body } = await ask(console(), admin, 'GET', url);
      assert.deepEqual([status, body.error?.code], [422, 'invalid'], url);
    }
  });

  test('of callbacks takes a host only with a status that has an index by host', async () => {
    for (const query of ['host=x', 'host=x&status=delivered', 'host=x&status=pending']) {
      for (const url of ['/api/callbacks', '/api/callbacks.csv']) {
        const { status, body } = await ask(console(), admin, 'GET', `${url}?${query}`);
        assert.deepEqual([status, body.error?.code], [422, 'invalid'], `${url}?${query}`);
      }
    }
    // The index of pending callbacks by host begins with the merchant.
    await get(`/api/callbacks?host=x&status=pending&merchant=${paying.account.merchant.id}`);
    await get('/api/callbacks?host=x&status=pending', staff);
  });

  test('of refunds can begin and end with a day, for one merchant and for all, in each view', async () => {
    type Listed = { id: string; created_at: string };
    const dayOf = ({ created_at }: Listed) =>
      Temporal.Instant.from(created_at)
        .toZonedDateTimeISO('Africa/Johannesburg')
        .toPlainDate()
        .toString();
    for (const whose of ['', `merchant=${paying.account.merchant.id}&`]) {
      for (const view of ['', 'view=complete&']) {
        const list = async (query: string): Promise<Listed[]> =>
          (await get(`/api/refunds?limit=100&${whose}${view}${query}`)).data;
        const all = await list('');
        assert.ok(all.length > 0);
        for (const day of new Set(all.map(dayOf))) {
          const onDay = all.filter((row) => dayOf(row) === day);
          assert.deepEqual(await list(`from=${day}&to=${day}`), onDay);
          const before = Temporal.PlainDate.from(day).subtract({ days: 1 });
          assert.deepEqual(
            await list(`to=${before}`),
            all.filter((row) => dayOf(row) < day),
          );
        }
      }
    }
  });

  test('of checkouts can begin and end with a day, for one merchant and for all', async () => {
    const { id } = paying.account.merchant;
    const ids = async (query: string) =>
      (await get(`/api/checkouts?limit=100&${query}`)).data.map((row: { id: string }) => row.id);
    const all = await ids(`merchant=${id}`);
    assert.equal(all.length, shoppers.length + 1);
    assert.deepEqual(await ids(`merchant=${id}&from=2026-11-15&to=2026-11-15`), all.slice(1));
    assert.deepEqual(await ids(`merchant=${id}&to=2026-11-14`), []);
    assert.deepEqual(await ids(`merchant=${id}&from=2026-11-16`), [newShopper.id]);
    // A list over all merchants is ordered by the ids, which contain the real time.
    const today = Temporal.Now.plainDateISO('UTC');
    const everything = (await get('/api/checkouts?limit=100')).data.length;
    const around = `from=${today.subtract({ days: 1 })}&to=${today.add({ days: 1 })}`;
    assert.equal((await ids(around)).length, everything);
    assert.deepEqual(await ids(`from=${today.add({ days: 2 })}`), []);
  });

  test('the sums of the last 30 days end with the merchant’s own day', async (t) => {
    const { deps } = paying.service;
    const { pool } = deps.database;
    const { merchant } = await createAccount(paying.service);
    const today = deps.clock.now().toZonedDateTimeISO('Africa/Johannesburg').toPlainDate();
    for (const [days, sold] of [
      [30, 100],
      [29, 40],
    ]) {
      await pool.query(
        'insert into merchant_days (merchant_id, day, sold, refunded) values ($1, $2, $3, 10)',
        [merchant.id, today.subtract({ days: days as number }).toString(), sold],
      );
    }
    const sums = async () => {
      const { sold, refunded, refund_rate } = await get(`/api/merchants/${merchant.id}`);
      return [sold, refunded, refund_rate];
    };
    assert.deepEqual(await sums(), [40, 10, 0.25]);
    const setClock = (ahead: number) =>
      pool.query('update merchants set clock_ahead_ms = $2 where id = $1', [merchant.id, ahead]);
    t.after(async () => {
      const none = 'update merchant_days set sold = 0, refunded = 0 where merchant_id = $1';
      await pool.query(none, [merchant.id]);
      await setClock(0);
    });
    await setClock(24 * 3_600_000);
    assert.deepEqual(await sums(), [0, 0, null]);
  });

  test('says what a reviewer, a collector and on-call need to decide', async () => {
    const { id } = paying.account.merchant;
    const { data: refunds } = await get(`/api/refunds?view=review&merchant=${id}`);
    const [first] = refunds;
    assert.equal(first.client_reference_id, 'order-ours');
    assert.deepEqual(
      [first.amount, first.checkout_amount, first.days_since_purchase, first.may_approve],
      [20_000, 150_000, 0, true],
    );
    const planned = first.planned.reduce(
      (sum: number, part: { amount: number }) => sum + part.amount,
      0,
    );
    assert.equal(planned, 20_000);
    assert.ok(first.refund_rate > 0);
    const { data: overdue } = await get(`/api/overdue?merchant=${id}`);
    assert.ok(overdue.length > 0);
    for (const row of overdue) {
      assert.deepEqual(
        [row.reason, row.is_retry_sensible, row.number_of_payments],
        ['insufficient_funds', true, 3],
      );
      assert.ok(row.days_late > 7);
    }
    const { data: destinations } = await get(`/api/destinations?merchant=${id}`);
    const nowhere = destinations.find((one: { host: string }) => one.host === 'nowhere.example');
    // The attempts to reach this host are older than the seven days of the statistics.
    assert.deepEqual([nowhere.success_rate, nowhere.attempts], [null, 0]);
    assert.ok(nowhere.last_error !== null);
    const works = destinations.find((one: { success_rate: number }) => one.success_rate === 1);
    assert.ok(works.p95_ms > 0);
  });
});

describe('the scope', () => {
  const foreign = () => [theirs.merchant.id, secret, ...theirShoppers.map(({ id }) => id)];

  test('leaves no row of another merchant in any list, search or chart', async () => {
    const urls = [
      ...lists,
      '/api/counts',
      '/api/overview',
      `/api/home?merchant=${paying.account.merchant.id}`,
      `/api/merchants/${paying.account.merchant.id}`,
      `/api/integrations/${intermediary}`,
      ...shoppers.map(({ id }) => `/api/checkouts/${id}`),
      ...['order', 'thandi', secret, `order-${secret}`, `thandi+${secret}@example.com`, '4242']
        .concat(foreign())
        .map((text) => `/api/search?q=${encodeURIComponent(text)}`),
    ];
    for (const url of urls) {
      const { status, body } = await ask(console(), staff, 'GET', url);
      assert.equal(status, 200, `${url}: ${JSON.stringify(body)}`);
      const text = JSON.stringify(body);
      for (const word of foreign()) assert.ok(!text.includes(word), `${url} shows ${word}`);
    }
  });

  test('does not show how an intermediary is used for its other merchants', async () => {
    const { service } = paying;
    const both = [paying.account.merchant.id, theirs.merchant.id];
    const { id } = await createIntegration(service.deps, 'test', {
      refund_mode: 'manual',
      managed_merchant_ids: both,
    });
    const plugin = await enablePlugin(service, id, theirs.merchant.id);
    await createLegacyCheckout(service, await logIn(service, plugin));
    type Row = {
      id: string;
      v1: { logins: number | null; checkouts: number | null };
      signing_keys: object[];
      managed_merchants: { id: string }[];
    };
    const seenBy = async (person: ConsolePerson, query = '') => {
      const list: { data: Row[] } = await get(`/api/integrations?limit=100${query}`, person);
      const { body } = await ask(console(), person, 'GET', `/api/integrations.csv?${query}`);
      return {
        rows: [
          list.data.find((row) => row.id === id),
          (await get(`/api/integrations/${id}`, person)) as Row,
        ].map((row) => row as Row),
        line: String(body)
          .split('\r\n')
          .find((line) => line.endsWith(id)),
      };
    };
    const whole = await seenBy(admin);
    for (const { v1, signing_keys } of whole.rows) {
      assert.deepEqual([v1.logins, v1.checkouts], [1, 1]);
      assert.ok(signing_keys.every((key) => 'first_used_at' in key));
    }
    assert.match(String(whole.line), /,1,[^,]+$/);
    for (const { rows, line } of [
      await seenBy(staff),
      await seenBy(staff, `&merchant=${both[0]}`),
    ]) {
      for (const { v1, signing_keys, managed_merchants } of rows) {
        assert.deepEqual([v1.logins, v1.checkouts], [null, null]);
        assert.ok(
          signing_keys.length > 0 && signing_keys.every((key) => !('first_used_at' in key)),
        );
        assert.deepEqual(
          managed_merchants.map((one) => one.id),
          [both[0]],
        );
      }
      assert.match(String(line), /,,[^,]+$/);
    }
    const managed = async (person: ConsolePerson) =>
      (await get(`/api/managed-merchants?integration=${id}`, person)).data.map(
        (one: Row) => one.id,
      );
    assert.deepEqual(await managed(admin), both.toSorted());
    assert.deepEqual(await managed(staff), [both[0]]);
    const another = await createIntegration(service.deps, 'test', {
      refund_mode: 'manual',
      managed_merchant_ids: [theirs.merchant.id],
    });
    const unseen = `/api/managed-merchants?integration=${another.id}`;
    assert.equal((await ask(console(), staff, 'GET', unseen)).status, 404);
    // The merchant's page lists it too.
    const { integrations } = await get(`/api/merchants/${both[0]}`, staff);
    const { v1 } = integrations.find((row: Row) => row.id === id);
    assert.deepEqual([v1.logins, v1.checkouts], [null, null]);
    const { v1: own } = await get(`/api/integrations/${paying.account.id}`, staff);
    assert.equal(own, null);
  });

  // `identity-matrix.test.ts` asks every route about a row of another merchant.
  test('answers 404 for an action on several rows, or on an intermediary, of another merchant', async () => {
    const { rows } = await paying.service.deps.database.pool.query(
      'select id from refund_requests where merchant_id = $1',
      [theirs.merchant.id],
    );
    const several = { body: { ids: [rows[0].id] } };
    assert.equal(
      (await ask(console(), staff, 'POST', '/api/refunds/approve', several)).status,
      404,
    );
    const all = { body: { merchant: theirs.merchant.id } };
    assert.equal(
      (await ask(console(), staff, 'POST', '/api/callbacks/retry-all', all)).status,
      404,
    );
    const issue = { body: { merchant_id: theirs.merchant.id, refund_mode: 'auto' } };
    assert.equal((await ask(console(), staff, 'POST', '/api/integrations', issue)).status, 404);
    const many = {
      body: { managed_merchant_ids: [paying.account.merchant.id], refund_mode: 'auto' },
    };
    assert.equal((await ask(console(), staff, 'POST', '/api/integrations', many)).status, 404);
    // They can see, but not change, an intermediary that acts for them and for others. They cannot
    // see its refused requests, which may be about another merchant.
    const requests = `/api/integrations/${intermediary}/refused-requests`;
    assert.equal((await ask(console(), staff, 'GET', requests)).status, 404);
    const revoke = await ask(console(), staff, 'POST', `/api/integrations/${intermediary}/revoke`);
    assert.equal(revoke.status, 404);
  });

  test('a filter by another merchant finds nothing', async () => {
    for (const url of lists.filter((one) => !one.startsWith('/api/merchants'))) {
      const { data } = await get(withQuery(url, `merchant=${theirs.merchant.id}`), staff);
      assert.deepEqual(data, [], url);
    }
    const overview = await ask(
      console(),
      staff,
      'GET',
      `/api/overview?merchant=${theirs.merchant.id}`,
    );
    assert.equal(overview.status, 404);
  });
});

describe('one checkout', () => {
  test('has its plan, one timeline, attempts, callback, refunds, books, audit and notes', async () => {
    const [paid] = shoppers as [Shopper];
    const details = await get(`/api/checkouts/${paid.id}`);
    assert.deepEqual(
      details.plan.map((one: { number: number; status: string }) => `${one.number} ${one.status}`),
      ['1 collected', '2 collected', '3 scheduled'],
    );
    assert.equal(details.collected + details.outstanding, details.amount);
    assert.equal(details.refundable, details.amount - 20_000);
    assert.equal(details.callback.history[0].outcome, 'delivered');
    assert.ok(details.callback.history[0].request_headers['x-signature'] !== undefined);
    assert.equal(details.refunds.length, 1);
    assert.ok(details.postings.length > 3 && details.balances.collected > 0);
    assert.deepEqual(
      details.notes.map(({ text, by }: { text: string; by: object }) => [text, by]),
      [['note ours', { person_id: null, name: 'nomsa' }]],
    );
    const kinds = new Set(details.timeline.map(({ kind }: { kind: string }) => kind));
    for (const kind of ['checkout', 'attempt', 'callback', 'collection', 'refund', 'note']) {
      assert.ok(kinds.has(kind), kind);
    }
    const times = details.timeline.map(({ at }: { at: string }) => at);
    assert.deepEqual(times, [...times].sort());
    // The reminder of the third payment is shown at the time when it will be sent, not when it was
    // planned.
    const toSend = details.timeline.findLast(({ description }: { description: string }) =>
      description.startsWith('message to send'),
    );
    assert.equal(toSend.description, 'message to send: payment is due soon');
    assert.ok(toSend.at > paying.clock.now().toString(), toSend.at);
  });

  test('hides the notes of the service’s staff, and where its people acted, from a merchant’s people', async () => {
    const url = `/api/checkouts/${shoppers[5]?.id}`;
    const support = await addPerson(paying.service, { roles: ['support'], name: 'Lindiwe Moyo' });
    const body = { text: 'Looked at it.' };
    assert.equal((await ask(console(), support, 'POST', `${url}/notes`, { body })).status, 200);
    const seen = await get(url, staff);
    const actionsOf = ({ audit }: { audit: { action: string }[] }) =>
      audit.map(({ action }) => action);
    assert.ok(!actionsOf(seen).includes('checkouts note'));
    assert.ok(!JSON.stringify(seen.audit).includes(support.email));
    assert.equal((await get(url)).audit.at(-1).operator, support.email);
    // The note stays hidden even when the person later works for the merchant, and so do the address
    // and the session of another action.
    const messages = (await shoppers[5]?.rows('messages')) ?? [];
    const again = `${url}/messages/${messages.find(({ kind }) => kind === 'receipt').id}/send-again`;
    assert.equal((await ask(console(), support, 'POST', again)).status, 200);
    const merchant_ids = [paying.account.merchant.id];
    const reader = await addPerson(paying.service, { roles: ['merchant-admin'], merchant_ids });
    await updatePerson(paying.service.deps.database.db, support.id, { merchant_ids });
    assert.equal((await ask(console(), reader, 'POST', `${url}/notes`, { body })).status, 200);
    const { audit } = await get(url, reader);
    const originsOf = ({ id }: ConsolePerson) =>
      audit
        .filter((one: { person_id: string }) => one.person_id === id)
        .map(({ action, address, session_id }: Record<string, unknown>) => [
          ...[action, address !== null, session_id !== null],
        ]);
    assert.deepEqual(originsOf(support), [['messages send-again', false, false]]);
    assert.deepEqual(originsOf(reader), [['checkouts note', true, true]]);
  });

  test('shows the books to those who may read money, and addresses to auditors', async () => {
    const viewer = await addPerson(paying.service, { roles: ['viewer'] });
    const [paid] = shoppers as [Shopper];
    const details = await get(`/api/checkouts/${paid.id}`, viewer);
    assert.deepEqual([details.postings, details.balances], [[], {}]);
    for (const action of details.audit) assert.equal(action.address, null);
  });
});

describe('a file', () => {
  test('has the rows of its list, and no cell that a spreadsheet would run', async () => {
    for (const url of wholeLists) {
      const { data } = await get(withQuery(url, 'limit=100'));
      const answer = await ask(console(), admin, 'GET', url.replace(/^([^?]+)/, '$1.csv'));
      assert.equal(answer.status, 200, url);
      assert.match(String(answer.headers['content-type']), /^text\/csv/);
      assert.match(
        String(answer.headers['content-disposition']),
        /^attachment; filename="[\w-]+\.csv"$/,
      );
      // Without a byte order mark Excel on Windows misreads every letter outside of ASCII.
      assert.ok(String(answer.body).startsWith('\u{feff}'), url);
      const lines = (answer.body as unknown as string).trimEnd().split('\r\n');
      // Each download is in the audit before its first line is written, so the file of the audit
      // has one row more than the page. The audit may also have further pages.
      const isAudit = url.startsWith('/api/audit') && lines.length > data.length;
      assert.ok(lines.length === data.length + 1 || isAudit, url);
      for (const line of lines) assert.doesNotMatch(line, /(^|,)"?[=+@]/, url);
    }
    const { body } = await ask(console(), admin, 'GET', '/api/checkouts.csv?status=cancelled');
    assert.ok(
      (body as unknown as string).includes(`"'=HYPERLINK(""https://evil.example"",""pay"")"`),
    );
  });

  /** Creates enough merchants for three pages of a download, many of them with the same time. */
  async function addMerchants(t: TestContext): Promise<string[]> {
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query<{ id: string }>(
      `insert into merchants (id, name, territory, rules, created_at)
       select gen_random_uuid(), 'Bulk ' || n, 'ZA', '[]',
         timestamptz '2020-01-01' + n / 400 * interval '1 day'
       from generate_series(1, 1100) n returning id`,
    );
    t.after(() => pool.query(`delete from merchants where name like 'Bulk %'`));
    return rows.map(({ id }) => id);
  }

  test('has each row once, however many pages it is read in', async (t) => {
    const added = await addMerchants(t);
    const { body } = await ask(console(), admin, 'GET', '/api/merchants.csv');
    const found = [...String(body).matchAll(/,([^,"]+)\r\n/g)].map(([, id]) => id);
    assert.equal(new Set(found).size, found.length);
    assert.deepEqual(
      added.filter((id) => !found.includes(id)),
      [],
    );
    assert.ok(found.includes(theirs.merchant.id));
  });

  test('that breaks off after its first page does not look complete', async (t) => {
    const added = await addMerchants(t);
    // One of the oldest rows, on a later page, cannot be shown.
    const { pool } = paying.service.deps.database;
    await pool.query(`update merchants set rules = '[null]' where id = $1`, [added[0]]);
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const headers = { cookie: admin.cookie };
    const download = await fetch(`${url}/api/merchants.csv`, { headers });
    assert.equal(download.status, 200);
    await assert.rejects(download.text(), { name: 'TypeError', message: 'terminated' });
  });

  test('says at its end that there are more rows than it may have', async () => {
    const read = (count: number) => async (page: { after: string | null; limit: number }) => {
      const first = Number(page.after ?? 0);
      const end = Math.min(first + page.limit, count);
      const data = Array.from({ length: end - first }, (_, index) => first + index);
      return { data, next: end < count ? String(end) : null };
    };
    const linesOf = async (count: number) => {
      const limits = { pageSize: 2, rowsMax: 5 };
      const lines = await openCsv<number>([['N', (row) => row]], read(count), limits);
      return (await Array.fromAsync(lines)).join('').trimEnd().split('\r\n');
    };
    assert.deepEqual(await linesOf(5), ['N', '0', '1', '2', '3', '4']);
    const note = 'Only the first 5 rows are here. Narrow the filters.';
    assert.deepEqual(await linesOf(6), ['N', '0', '1', '2', '3', '4', note]);
  });
});

describe('the overview', () => {
  test('has what waits and the sums of the books by day', async () => {
    const { id } = paying.account.merchant;
    const overview = await get(`/api/overview?merchant=${id}`);
    assert.deepEqual(overview.counts.refunds_to_review, { count: 2, more: false });
    assert.ok(overview.counts.overdue.count > 0 && overview.counts.callbacks_exhausted.count > 0);
    assert.equal(overview.oldest_refund_at, '2026-11-15T08:00:00.000Z');
    assert.equal(overview.books.agree, true);
    assert.ok(overview.books.proved_at !== null && overview.as_of !== null);
    const { rows } = await paying.service.deps.database.pool.query(
      `select coalesce(sum(amount - reduced) filter (where status = 'overdue'), 0) as overdue,
         coalesce(sum(amount - reduced) filter (where status in ('authorised', 'scheduled')), 0)
           as due
       from instalments where merchant_id = $1`,
      [id],
    );
    assert.equal(overview.overdue_amount, Number(rows[0].overdue));
    const due = overview.due.reduce((sum: number, day: { amount: number }) => sum + day.amount, 0);
    assert.equal(due, Number(rows[0].due));
    assert.equal(overview.days.length, 30);
    assert.equal(overview.due.length, 90);
  });

  test('has the check of all merchants’ books for those who may read differences', async () => {
    const merchant_ids = [paying.account.merchant.id];
    const people: [Parameters<typeof addPerson>[1], boolean][] = [
      [{ roles: ['finance'] }, true],
      [{ roles: ['viewer', 'support'] }, false],
      [{ roles: ['admin'], merchant_ids }, false],
      [{ roles: ['merchant-admin'], merchant_ids }, false],
    ];
    for (const [options, isShown] of people) {
      const person = await addPerson(paying.service, options);
      const { books } = await get('/api/overview', person);
      assert.equal(books !== null, isShown, options.roles.join());
    }
  });

  test('says up to when it is complete, and an undecided attempt does not set that back', async (t) => {
    const { deps } = paying.service;
    const { pool } = deps.database;
    while ((await rollUp(deps, 0)) > 0);
    const readAsOf = async () => Date.parse((await get('/api/overview')).as_of);
    const before = await readAsOf();
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    await shopper.pay(1, { card: challengeCard });
    const [{ written_id }] = await shopper.rows('payment_attempts');
    const write = (id: string) =>
      pool.query(
        'update payment_attempts set written_id = $3 where merchant_id = $1 and checkout_id = $2',
        [account.merchant.id, shopper.id, id],
      );
    t.after(() => write(written_id));
    // Ids contain the real time. It is now three days later, with one attempt two minutes ago.
    const now = before + 3 * 24 * 3_600_000;
    const triedAt = now - 120_000;
    await write(firstIdAt(triedAt));
    const later = { ...deps, random: { ...deps.random, uuid: () => firstIdAt(now) } };
    await rollUp(later);
    assert.equal(await readAsOf(), triedAt);
    // An attempt that the shopper has left may still end as declined.
    const move = (from: string, to: string) =>
      pool.query(
        `update payment_attempts set status = $3 where merchant_id = $1 and checkout_id = $2
           and status = $4`,
        [account.merchant.id, shopper.id, to, from],
      );
    await move('challenged', 'voiding');
    await rollUp(later);
    assert.equal(await readAsOf(), triedAt);
    await move('voiding', 'challenged');
    // A process whose clock is behind does not change it either.
    await rollUp(deps, 0);
    assert.equal(await readAsOf(), triedAt);
    await shopper.decide('approve');
    await shopper.comeBack();
    await rollUp(later);
    assert.equal(await readAsOf(), now - 90_000);
    await write(written_id);
    await pool.query(`update rollups set after = $1 where stream = 'attempts'`, [written_id]);
  });

  test('has the money of a day by merchant and in all, within the scope', async () => {
    const sold = async (person: ConsolePerson, query = '') => {
      const { data } = await get(`/api/money-days?date=2026-11-15${query}`, person);
      const totals = await get(`/api/money-totals?date=2026-11-15${query}`, person);
      const sum = data.reduce((all: number, row: { sold: number }) => all + row.sold, 0);
      assert.deepEqual(
        totals.totals.map((total: { sold: number }) => total.sold),
        [sum],
      );
      const ids = data.map((row: { merchant_id: string }) => row.merchant_id);
      return { ids: ids.sort(), seesAccountFees: totals.account_fees !== null };
    };
    const [one, other] = [paying.account.merchant.id, theirs.merchant.id];
    assert.deepEqual(await sold(admin), { ids: [one, other].sort(), seesAccountFees: true });
    const own = { ids: [one], seesAccountFees: false };
    assert.deepEqual(await sold(staff), own);
    assert.deepEqual(await sold(admin, `&merchant=${one}`), own);
    const lines = await get(`/api/balance-lines?merchant=${one}&limit=100`, staff);
    const balance = await get(`/api/merchants/${one}/balance`, staff);
    const net = lines.data.reduce((all: number, row: { net: number }) => all + row.net, 0);
    assert.ok(lines.data.length > 0);
    assert.equal(net, balance.open);
  });

  test('of a shop has what waits for its people, its week and its next payout', async () => {
    const { id } = paying.account.merchant;
    const home = await get(`/api/home?merchant=${id}`, staff);
    const { counts, days } = await get(`/api/overview?merchant=${id}`, staff);
    for (const name of [
      'refunds_to_review',
      'callbacks_exhausted',
      'disputes_to_answer',
      'messages_to_answer',
    ]) {
      assert.deepEqual(home[name], counts[name], name);
    }
    const sum = (some: { sold: number; paid: number }[]) => ({
      sold: some.reduce((all, { sold }) => all + sold, 0),
      paid: some.reduce((all, { paid }) => all + paid, 0),
    });
    assert.deepEqual(
      [home.week, home.week_before],
      [sum(days.slice(-7)), sum(days.slice(-14, -7))],
    );
    const balance = await get(`/api/merchants/${id}/balance`, staff);
    const next = balance.next_payout;
    const isPaid = next !== null && next.amount > 0;
    const wanted = isPaid ? { business_on: next.business_on, amount: next.amount } : null;
    assert.deepEqual(home.next_payout, wanted);
    assert.ok(balance.payout_count > 0);
    assert.deepEqual(home.unpaid_payouts, {
      ...{ count: balance.payout_count, amount: balance.sums.payouts },
    });
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      `select exists (select from refund_requests where merchant_id = $1) as refund_requested,
         exists (select from callbacks where merchant_id = $1 and status = 'delivered')
           as callback_delivered,
         exists (select from bank_accounts where merchant_id = $1 and confirmed_at is not null)
           as bank_account,
         exists (select from integrations where merchant_id = $1 and signing_required_at is not null)
           as signed_request, false as drill_passed`,
      [id],
    );
    assert.deepEqual(home.go_live, rows[0]);
    const support = await addPerson(paying.service, { roles: ['support'], merchant_ids: [id] });
    const { next_payout, unpaid_payouts } = await get(`/api/home?merchant=${id}`, support);
    assert.deepEqual([next_payout, unpaid_payouts], [null, null]);
    const other = `/api/home?merchant=${theirs.merchant.id}`;
    assert.equal((await ask(console(), staff, 'GET', other)).status, 404);
  });

  test('shows 7, 30 or 90 days or a calendar month, of the same sums', async () => {
    const { id } = paying.account.merchant;
    const read = (query: string) => get(`/api/overview?merchant=${id}&${query}`);
    const long = await read('days=90');
    assert.equal(long.days.length, 90);
    assert.equal(long.days.at(-1).day, long.today);
    for (const days of [7, 30]) {
      assert.deepEqual((await read(`days=${days}`)).days, long.days.slice(-days));
    }
    const month = await read('month=2026-11');
    assert.deepEqual(
      [month.days.length, month.days[0].day, month.days.at(-1).day],
      [30, '2026-11-01', '2026-11-30'],
    );
    assert.ok(month.funnel.created > 0);
    assert.equal((await read('month=2024-02')).days.length, 29);
    for (const query of ['days=8', 'month=2026-13', 'month=1999-01']) {
      const { status } = await ask(
        { app, deps: paying.service.deps },
        admin,
        'GET',
        `/api/overview?${query}`,
      );
      assert.equal(status, 422, query);
    }
  });

  test('counts the rows of the list that each figure leads to, for one merchant and for all', async () => {
    const lists = {
      refunds_to_review: '/api/refunds?view=review',
      overdue: '/api/overdue',
      callbacks_exhausted: '/api/callbacks?status=exhausted',
      alerts: '/api/alerts',
      disputes_to_answer: '/api/disputes?status=needs_response',
      payouts_to_approve: '/api/payouts?status=draft',
      messages_to_answer: '/api/conversations?status=open',
    };
    for (const query of ['', `merchant=${theirs.merchant.id}`]) {
      const { counts } = await get(withQuery('/api/overview', query));
      assert.deepEqual(Object.keys(counts).sort(), Object.keys(lists).sort());
      for (const [name, url] of Object.entries(lists)) {
        const { data } = await get(withQuery(url, `${query}&limit=100`));
        assert.ok(data.length > 0, name);
        assert.deepEqual(counts[name], { count: data.length, more: false }, `${name} ${query}`);
      }
    }
  });

  test('says nothing of what the person may not read, in the figures and in the navigation', async () => {
    const support = await addPerson(paying.service, { roles: ['support'] });
    for (const [who, hidden] of [
      [support, ['alerts', 'payouts_to_approve']],
      [staff, ['alerts', 'payouts_to_approve']],
      [admin, []],
    ] as const) {
      for (const counts of [
        await get('/api/counts', who),
        (await get('/api/overview', who)).counts,
      ]) {
        const names = Object.keys(counts).filter((name) => counts[name] === null);
        assert.deepEqual(names, hidden);
      }
    }
  });

  test('counts every row once, however often the sums are added up, in any batches', async () => {
    const { deps } = paying.service;
    while ((await rollUp(deps, 0)) > 0);
    const { pool } = deps.database;
    const { rows: sums } = await pool.query(
      `select merchant_id, sum(created)::int as created, sum(opened)::int as opened,
         sum(tried)::int as tried, sum(paid)::int as paid, sum(approved)::int as approved,
         sum(declined)::int as declined, sum(sold) as sold, sum(collected) as collected,
         sum(refunded) as refunded
       from merchant_days group by merchant_id order by merchant_id`,
    );
    // One statement per merchant: Citus does not plan subqueries that follow another table's rows.
    const { rows: merchants } = await pool.query('select id from merchants order by id');
    const facts = [];
    for (const { id } of merchants) {
      const { rows } = await pool.query(
        `select $1::uuid as merchant_id,
         (select count(*)::int from checkouts c where c.merchant_id = $1) as created,
         (select count(*)::int from (
            select checkout_id from checkout_opens where merchant_id = $1
            union select checkout_id from payment_attempts where merchant_id = $1
              and purpose = 'first_payment') o) as opened,
         (select count(*)::int from payment_attempts a where a.merchant_id = $1
            and purpose = 'first_payment' and number = 1) as tried,
         (select count(*)::int from checkouts c where c.merchant_id = $1
            and status = 'successful') as paid,
         (select count(*)::int from payment_attempts a where a.merchant_id = $1
            and status = 'authorised') as approved,
         (select count(*)::int from payment_attempts a where a.merchant_id = $1
            and purpose = 'first_payment' and status = 'declined') as declined,
         (select coalesce(sum(amount), 0) from postings p where p.merchant_id = $1
            and kind = 'sold') as sold,
         (select coalesce(sum(amount), 0) from postings p where p.merchant_id = $1
            and debit = 'collected' and credit = 'outstanding') as collected,
         (select coalesce(sum(case when kind in ('refunded', 'cancelled') then amount
            else -amount end), 0) from postings p where p.merchant_id = $1
            and kind in ('refunded', 'cancelled', 'returned', 'restored')) as refunded
      `,
        [id],
      );
      facts.push(...rows);
    }
    assert.deepEqual(sums, facts);
    const { rows: dues } = await pool.query(
      `select (select sum(amount) from merchant_dues) as due,
         (select sum(case when debit = 'outstanding' then amount else -amount end) from postings
          where debit = 'outstanding' or credit = 'outstanding') as outstanding`,
    );
    assert.equal(dues[0].due, dues[0].outstanding);
    const before = await get('/api/overview');
    await Promise.all([rollUp(deps, 0), rollUp(deps, 0), rollUp(deps, 0)]);
    const again = await get('/api/overview');
    assert.deepEqual({ ...again, as_of: null }, { ...before, as_of: null });
    assert.equal(before.decline_reasons.length > 0, true);
    await assertSound(paying);
  });
});

describe('a day of a filter', () => {
  test('is a day in the zone that times are shown in: the merchant’s, or home for all', async (t) => {
    const { pool } = paying.service.deps.database;
    const account = await createAccount(paying.service);
    const { id: merchant } = account.merchant;
    const { id: original } = await paying.shopper({}, account);
    // 28 February in UTC is 1 March in Johannesburg.
    const at = '2027-02-28T22:30:00.000Z';
    const id = firstIdAt(Date.parse(at));
    const setTotal = (total: number) =>
      pool.query(
        `update list_totals set total = $2 where merchant_id = $1 and list = 'checkouts'`,
        [merchant, total],
      );
    await pool.query(
      `insert into checkouts select (jsonb_populate_record(c, $3)).* from checkouts c
       where merchant_id = $1 and id = $2`,
      [merchant, original, JSON.stringify({ id, number: 2, created_at: at })],
    );
    await setTotal(2);
    t.after(async () => {
      await pool.query('delete from checkouts where merchant_id = $1 and id = $2', [merchant, id]);
      await setTotal(1);
    });
    const found = async (query: string) => {
      const { data } = await get(`/api/checkouts?limit=100&${query}`);
      return data.some((row: { id: string }) => row.id === id);
    };
    for (const whose of [`merchant=${merchant}&`, '']) {
      assert.equal(await found(`${whose}from=2027-03-01`), true, whose);
      assert.equal(await found(`${whose}from=2027-03-01&to=2027-03-01`), true, whose);
      assert.equal(await found(`${whose}from=2027-01-01&to=2027-02-28`), false, whose);
      assert.equal(await found(`${whose}from=2027-03-02`), false, whose);
    }
  });
});

describe('merchants', () => {
  test('are found by the beginning of their name in any case, within the scope', async (t) => {
    const { pool } = paying.service.deps.database;
    const made = await pool.query(
      `insert into merchants (id, name, territory, rules, created_at)
       select gen_random_uuid(), 'Many ' || to_char(n, 'FM000'), 'ZA', '[]', now()
       from generate_series(1, 101) n returning id, name`,
    );
    t.after(() => pool.query(`delete from merchants where name like 'Many %'`));
    const namesOf = async (query: string, person = admin) =>
      (await get(`/api/merchant-names?${query}`, person)).data.map(
        ({ name }: { name: string }) => name,
      );
    assert.deepEqual(await namesOf('q=mANY%20101'), ['Many 101']);
    const first = await namesOf('q=many');
    assert.deepEqual([first.length, first[0], first.at(-1)], [20, 'Many 001', 'Many 020']);
    assert.deepEqual(await namesOf('q=any'), []);
    assert.deepEqual(await namesOf('q=many%25'), []);
    const last = made.rows.find(({ name }) => name === 'Many 101')?.id;
    assert.deepEqual(await namesOf(`ids=${last},${theirs.merchant.id}`), [
      theirs.merchant.name,
      'Many 101',
    ]);
    assert.deepEqual(await namesOf('q=many', staff), []);
    assert.deepEqual(await namesOf(`ids=${last},${theirs.merchant.id}`, staff), []);
    assert.equal((await namesOf('', staff)).length, 1);
    // The search box finds it too.
    const { data } = await get('/api/search?q=many%20101');
    assert.deepEqual(
      data.map((hit: { kind: string; id: string }) => [hit.kind, hit.id]),
      [['merchant', last]],
    );
  });

  test('a search finds nothing that the person’s roles do not open', async () => {
    const till = await addPerson(paying.service, { roles: ['till'] });
    const { data: callbacks } = await get('/api/callbacks?view=all');
    for (const id of [paying.account.merchant.id, callbacks[0].id]) {
      assert.equal((await get(`/api/search?q=${id}`)).data[0].id, id);
      assert.deepEqual((await get(`/api/search?q=${id}`, till)).data, []);
    }
  });
});

test('the first page of a shop names the keys that expire soon, and the steps before going live as they are completed', async () => {
  const { deps } = paying.service;
  const account = await createAccount(paying.service);
  const url = `/api/home?merchant=${account.merchant.id}`;
  const before = await get(url);
  assert.deepEqual([before.ending_keys, before.go_live.drill_passed], [[], false]);
  await rotateCredential(deps, 'test', {
    ...{ id: account.id, credential: 'signing_key', overlapSeconds: 3_600 },
  });
  await operate(deps, 'test', 'sandbox drill', async () => ({
    ...{ subject_id: account.merchant.id, details: { passed: true }, result: undefined },
  }));
  const now = await get(url);
  assert.deepEqual(
    now.ending_keys.map(({ kind, integration_id }: { kind: string; integration_id: string }) => [
      kind,
      integration_id,
    ]),
    [['signing_key', account.id]],
  );
  assert.equal(now.go_live.drill_passed, true);

  // A shop that sells by link has no server, so the steps do not ask for one.
  const { merchant } = account;
  const id = await offerPaymentLink(deps, 'test', merchant.id, {
    ...{ amount: 150_000, client_reference_id: 'till', notify_url: null },
  });
  const key = { merchant_id: merchant.id, id };
  const own = await findMerchant(deps.database.db, deps.clock, merchant.id);
  assert(own);
  await openPaymentLink(deps, own, key, { email: 'thandi@example.com', amount: null });
  assert.deepEqual((await get(url)).go_live, {
    ...{ signed_request: null, callback_delivered: null, drill_passed: null },
    ...{ refund_requested: false, bank_account: false },
  });
});
