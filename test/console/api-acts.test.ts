import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { runLongActs } from '../../src/acts/run-long-acts.ts';
import { raiseAlert } from '../../src/operators/raise-alert.ts';
import { addPerson, ask, type ConsolePerson, openConsole } from '../support/console.ts';
import { askExactly } from '../support/console-api.ts';
import { askRefund, assertBalanced, cards, partsOf, planOf } from '../support/money.ts';
import { assertSound, type Paying, startPaying } from '../support/payments.ts';
import { createAccount, rules } from '../support/service.ts';

let paying: Paying;
let app: FastifyInstance;
const console = () => ({ app, deps: paying.service.deps });
const post = (person: ConsolePerson, url: string, body?: object) =>
  askExactly(console(), person, 'POST', url, body);
const person = (role: 'admin' | 'refunds' | 'support' | 'on-call' = 'admin') =>
  addPerson(paying.service, { roles: [role] });

/** The answer of an act that was done. */
async function done(answer: ReturnType<typeof post>) {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** The sentence of an act that was refused. */
async function refused(status: number, answer: ReturnType<typeof post>): Promise<string> {
  const { status: given, body } = await answer;
  assert.equal(given, status, JSON.stringify(body));
  return body.error.message;
}

async function paid(term = 3, account = paying.account) {
  const shopper = await paying.shopper({}, account);
  await shopper.pay(term);
  return shopper;
}

before(async () => {
  paying = await startPaying();
  app = await openConsole(paying.service);
});
after(async () => {
  await app.close();
  await paying.close();
});

describe('a refund in the console', () => {
  test('is previewed payment by payment, and takes exactly that', async () => {
    const support = await person('support');
    const shopper = await paid();
    const url = `/api/checkouts/${shopper.id}`;
    const preview = await done(post(support, `${url}/refund-preview`, { amount: 60_000 }));
    assert.deepEqual(preview.parts, [
      { instalment: 3, kind: 'cancel', amount: 50_000 },
      { instalment: 2, kind: 'cancel', amount: 10_000 },
    ]);
    assert.deepEqual(
      preview.after.map(({ amount, status }: { amount: number; status: string }) => [
        amount,
        status,
      ]),
      [
        [50_000, 'authorised'],
        [40_000, 'scheduled'],
        [0, 'cancelled'],
      ],
    );
    assert.deepEqual([preview.refusal, preview.needs_second_person], [null, false]);
    const request_id = paying.service.deps.random.uuid();
    const body = { amount: 60_000, request_id, reason: 'The boots do not fit.' };
    const refund = await done(post(support, `${url}/refunds`, body));
    assert.deepEqual([refund.status, refund.requested_by.name], ['complete', support.email]);
    assert.deepEqual(await partsOf(shopper, refund.id), [
      '3 cancel 50000 done',
      '2 cancel 10000 done',
    ]);
    // The browser lost the answer and asks again.
    assert.equal((await done(post(support, `${url}/refunds`, body))).id, refund.id);
    assert.match(
      await refused(409, post(support, `${url}/refunds`, { ...body, amount: 1 })),
      /used for another refund/,
    );
    assert.equal((await shopper.rows('refund_requests')).length, 1);
    const tooMuch = await done(post(support, `${url}/refund-preview`, { amount: 90_001 }));
    assert.match(tooMuch.refusal, /remainder of 90000 cents/);
    const again = { amount: 90_001, request_id: paying.service.deps.random.uuid() };
    assert.match(await refused(409, post(support, `${url}/refunds`, again)), /remainder/);
    await assertBalanced(paying, shopper);
  });

  test('needs a fresh proof, and the permission', async () => {
    const shopper = await paid();
    const id = await askRefund(paying, shopper, 1_000);
    const stale = await addPerson(paying.service, { roles: ['admin'], proved: false });
    const answer = await post(stale, `/api/refunds/${id}/approve`);
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'proof_needed']);
    await refused(403, post(await person('support'), `/api/refunds/${id}/approve`));
    const [row] = await shopper.rows('refund_requests');
    assert.equal(row.approved_at, null);
  });

  test('two people in two tabs: one approves, the other is told what happened', async () => {
    const [first, second] = [await person('refunds'), await person('refunds')];
    for (let round = 0; round < 4; round += 1) {
      const shopper = await paid();
      const id = await askRefund(paying, shopper, 30_000);
      const acts = [
        post(first, `/api/refunds/${id}/approve`),
        post(second, `/api/refunds/${id}/decline`, { reason: 'The goods were kept.' }),
        post(first, `/api/refunds/${id}/approve`),
        post(second, `/api/refunds/${id}/approve`),
      ];
      const answers = await Promise.all(round % 2 === 0 ? acts : acts.reverse());
      const winners = answers.filter(({ status }) => status === 200);
      assert.equal(winners.length, 1, JSON.stringify(answers.map(({ body }) => body)));
      for (const { status, body } of answers.filter((one) => one.status !== 200)) {
        assert.equal(status, 409);
        assert.match(body.error.message, /only one that waits for review/);
      }
      await paying.work();
      const [row] = await shopper.rows('refund_requests');
      assert.ok(['complete', 'failed'].includes(row.status), row.status);
      assert.equal(row.status === 'failed', winners[0]?.body.reason !== null);
      await assertBalanced(paying, shopper);
    }
  });

  test('can be declined with a reason, and retried when it failed', async () => {
    const reviewer = await person('refunds');
    const shopper = await paid();
    const id = await askRefund(paying, shopper, 30_000);
    const reason = 'The goods were kept.';
    const declined = await done(post(reviewer, `/api/refunds/${id}/decline`, { reason }));
    assert.deepEqual([declined.view, declined.reason], ['failed', reason]);
    const retried = await done(post(reviewer, `/api/refunds/${id}/retry`));
    assert.equal(retried.status, 'complete');
    assert.match(await refused(409, post(reviewer, `/api/refunds/${id}/retry`)), /only a failed/);
    await assertBalanced(paying, shopper);
  });
});

describe('above the threshold of a merchant', () => {
  const large = async () => {
    const account = await createAccount(paying.service);
    const admin = await person();
    const url = `/api/merchants/${account.merchant.id}`;
    const changed = await askExactly(console(), admin, 'PATCH', url, { four_eyes_above: 20_000 });
    assert.equal(changed.body.four_eyes_above, 20_000);
    return { account, shopper: await paid(3, account) };
  };

  test('a merchant’s refund needs two different reviewers', async () => {
    const { account, shopper } = await large();
    const [first, second] = [await person('refunds'), await person('refunds')];
    const small = await askRefund(paying, shopper, 20_000, account);
    assert.equal((await done(post(first, `/api/refunds/${small}/approve`))).status, 'complete');
    const id = await askRefund(paying, shopper, 20_001, account);
    const once = await done(post(first, `/api/refunds/${id}/approve`));
    assert.deepEqual(
      [once.view, once.first_approved_by.name, once.may_approve],
      ['review', first.email, false],
    );
    assert.match(
      await refused(409, post(first, `/api/refunds/${id}/approve`)),
      /Another person has to give the second/,
    );
    await paying.work();
    assert.equal(
      (await shopper.rows('refund_requests')).filter((r) => r.status === 'complete').length,
      1,
    );
    const twice = await done(post(second, `/api/refunds/${id}/approve`));
    assert.equal(twice.status, 'complete');
    await assertBalanced(paying, shopper);
  });

  test('of reviewers who approve at once, one is the first and one the second', async () => {
    const { account, shopper } = await large();
    const reviewers = [await person('refunds'), await person('refunds')];
    const id = await askRefund(paying, shopper, 60_000, account);
    // Each of them clicks twice.
    const answers = await Promise.all(
      [...reviewers, ...reviewers].map((one) => post(one, `/api/refunds/${id}/approve`)),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 2);
    await paying.work();
    const [row] = await shopper.rows('refund_requests');
    assert.equal(row.status, 'complete');
    assert.notEqual(row.first_approved_by, null);
    await assertBalanced(paying, shopper);
  });

  test('a refund that a person asks for waits for another person', async () => {
    const { shopper } = await large();
    const [asking, other] = [await person('refunds'), await person('refunds')];
    const url = `/api/checkouts/${shopper.id}`;
    const preview = await done(post(asking, `${url}/refund-preview`, { amount: 30_000 }));
    assert.equal(preview.needs_second_person, true);
    const request_id = paying.service.deps.random.uuid();
    const refund = await done(post(asking, `${url}/refunds`, { amount: 30_000, request_id }));
    assert.deepEqual([refund.view, refund.may_approve], ['review', false]);
    assert.match(
      await refused(409, post(asking, `/api/refunds/${refund.id}/approve`)),
      /You asked for this refund/,
    );
    await paying.work();
    assert.deepEqual(await planOf(shopper), ['1 authorised', '2 scheduled', '3 scheduled']);
    assert.equal((await done(post(other, `/api/refunds/${refund.id}/approve`))).status, 'complete');
    await assertBalanced(paying, shopper);
  });
});

describe('a long act', () => {
  /** Runs long acts as a worker does, until there are none. */
  async function work() {
    while ((await runLongActs(paying.service.deps)) > 0);
  }

  test('approves several refunds, says which were refused, and is seen by its person only', async () => {
    const reviewer = await person('refunds');
    const shoppers = [await paid(), await paid(), await paid()];
    const ids: string[] = [];
    for (const shopper of shoppers) ids.push(await askRefund(paying, shopper, 10_000));
    await done(post(reviewer, `/api/refunds/${ids[1]}/decline`, { reason: 'No.' }));
    const act = await done(post(reviewer, '/api/refunds/approve', { ids }));
    assert.deepEqual([act.total, act.done, act.finished_at], [3, 0, null]);
    await work();
    const { body } = await askExactly(console(), reviewer, 'GET', `/api/acts/${act.id}`);
    assert.deepEqual([body.done, body.failed], [2, 1]);
    assert.equal(body.problems[0].id, ids[1]);
    assert.notEqual(body.finished_at, null);
    const { body: own } = await askExactly(console(), reviewer, 'GET', '/api/acts');
    assert.equal(own.data[0].id, act.id);
    const other = await person();
    assert.equal((await ask(console(), other, 'GET', `/api/acts/${act.id}`)).status, 404);
    const { rows } = await paying.service.deps.database.pool.query(
      `select person_id from operator_actions where action = 'refunds approve'
       and subject_id = any($1)`,
      [ids],
    );
    assert.deepEqual(
      rows.map(({ person_id }) => person_id),
      [reviewer.id, reviewer.id],
    );
    for (const shopper of shoppers) await assertBalanced(paying, shopper);
  });

  test('resends what was given up, and goes on after a stop', async () => {
    const account = await createAccount(paying.service);
    const onCall = await person('on-call');
    const { deps } = paying.service;
    const made = [await paid(1, account), await paid(1, account), await paid(1, account)];
    await deps.database.pool.query(
      `update callbacks set status = 'exhausted', due_at = null where merchant_id = $1`,
      [account.merchant.id],
    );
    const body = { merchant: account.merchant.id };
    const act = await done(post(onCall, '/api/callbacks/retry-all', body));
    assert.equal(act.total, 3);
    const stopping = new AbortController();
    stopping.abort();
    await runLongActs(deps, stopping.signal);
    const stopped = await askExactly(console(), onCall, 'GET', `/api/acts/${act.id}`);
    assert.deepEqual([stopped.body.done, stopped.body.finished_at], [0, null]);
    await Promise.all([work(), work()]);
    const { body: finished } = await askExactly(console(), onCall, 'GET', `/api/acts/${act.id}`);
    assert.deepEqual([finished.done, finished.failed], [3, 0]);
    for (const shopper of made) {
      const [callback] = await shopper.rows('callbacks');
      assert.equal(callback.status, 'delivered');
    }
    await assertSound(paying);
  });

  test('does nothing more once its person is revoked', async () => {
    const reviewer = await person('refunds');
    const shopper = await paid();
    const id = await askRefund(paying, shopper, 10_000);
    const act = await done(post(reviewer, '/api/refunds/approve', { ids: [id] }));
    await paying.service.deps.database.pool.query(
      'update people set revoked_at = now() where id = $1',
      [reviewer.id],
    );
    await work();
    const { rows } = await paying.service.deps.database.pool.query(
      'select done, failed from long_acts where id = $1',
      [act.id],
    );
    assert.deepEqual(rows, [{ done: 0, failed: 1 }]);
    const [row] = await shopper.rows('refund_requests');
    assert.equal(row.approved_at, null);
  });
});

describe('the acts of the command line', () => {
  test('a note is kept beside the checkout, and its text is not in the audit', async () => {
    const support = await person('support');
    const shopper = await paid();
    const text = '<img src=x onerror=alert(1)> called on Monday';
    const note = await done(post(support, `/api/checkouts/${shopper.id}/notes`, { text }));
    assert.deepEqual([note.text, note.by], [text, { person_id: support.id, name: support.email }]);
    const { rows } = await paying.service.deps.database.pool.query(
      `select details::text from operator_actions where action = 'checkouts note'`,
    );
    assert.ok(rows.length > 0 && rows.every(({ details }) => !details.includes('Monday')));
    await refused(409, post(support, `/api/checkouts/${shopper.id}/notes`, { text: ' ' }));
  });

  test('an overdue payment is retried, and a callback is sent again', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3, { card: cards.laterInsufficientFunds });
    await paying.pass({ days: 50 });
    const onCall = await person('on-call');
    const url = `/api/instalments/${shopper.id}`;
    const retried = await done(post(onCall, `${url}/2/retry`));
    assert.deepEqual([retried.status, retried.reason], ['overdue', 'insufficient_funds']);
    assert.match(await refused(409, post(onCall, `${url}/1/retry`)), /only an overdue/);
    assert.equal((await post(onCall, `${url}/x/retry`)).status, 404);
    const [callback] = await shopper.rows('callbacks');
    const sent = await done(post(onCall, `/api/callbacks/${callback.id}/retry`));
    assert.deepEqual([sent.status, sent.reason], ['delivered', null]);
    await assertSound(paying);
  });

  test('a merchant and its integration are made, changed, limited, rotated and revoked', async () => {
    const admin = await person();
    const merchant = await done(post(admin, '/api/merchants', { name: 'Bean There', rules }));
    const bad = { name: 'x', rules: [{ from_amount: 5, to_amount: 1, terms: [1] }] };
    assert.match(await refused(409, post(admin, '/api/merchants', bad)), /to_amount/);
    const patched = await askExactly(console(), admin, 'PATCH', `/api/merchants/${merchant.id}`, {
      preselected_term: 3,
      no_fees: true,
    });
    assert.deepEqual([patched.body.preselected_term, patched.body.no_fees], [3, true]);
    const body = { merchant_id: merchant.id, refund_mode: 'manual' };
    const issued = await done(post(admin, '/api/integrations', body));
    assert.match(issued.client_secret, /^cs_sandbox_/);
    const url = `/api/integrations/${issued.id}`;
    const wanted = { credential: 'signing_key', overlap_seconds: 3600 };
    const rotated = await done(post(admin, `${url}/rotate`, wanted));
    assert.match(rotated.value, /^sig_sandbox_/);
    const limit = { endpoint: 'POST /api/checkouts', max_requests: 7, window_seconds: 1 };
    await done(post(admin, `${url}/limit`, limit));
    await done(post(admin, `${url}/require-signing`));
    const { body: shown } = await askExactly(console(), admin, 'GET', url);
    assert.deepEqual(shown.limits, [limit]);
    assert.equal(shown.signing_keys.length, 2);
    assert.ok(!JSON.stringify(shown).includes(rotated.value));
    await done(post(admin, `${url}/revoke`));
    await refused(409, post(admin, `${url}/rotate`, wanted));
    const moved = await done(
      post(admin, `/api/merchants/${merchant.id}/clock`, { by_seconds: 3600 }),
    );
    assert.equal(moved.merchant_id, merchant.id);
    const { body: details } = await askExactly(
      console(),
      admin,
      'GET',
      `/api/merchants/${merchant.id}`,
    );
    assert.equal(details.integrations.length, 1);
    const { body: audit } = await askExactly(
      console(),
      admin,
      'GET',
      `/api/audit?subject=${merchant.id}&person=${admin.id}`,
    );
    const changed = audit.data.find((one: { action: string }) => one.action === 'merchants rules');
    assert.deepEqual(
      [changed.details.before, changed.details.preselected_term, changed.person_id],
      [{ preselected_term: null }, 3, admin.id],
    );
  });

  test('an alert is taken by one person, and closed with a reason', async () => {
    const { deps } = paying.service;
    await raiseAlert(deps, deps.database.db, { kind: 'a_test', detail: 'Look at this.' });
    const [one, other] = [await person('on-call'), await person('on-call')];
    const { body } = await askExactly(console(), one, 'GET', '/api/alerts?state=open&limit=1');
    const url = `/api/alerts/${body.data[0].id}`;
    const answers = await Promise.all([post(one, `${url}/take`), post(other, `${url}/take`)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
    const closed = await done(post(other, `${url}/close`, { reason: 'Repaired.' }));
    assert.deepEqual([closed.state, closed.closed_by], ['closed', other.email]);
    const { body: list } = await askExactly(console(), one, 'GET', '/api/alerts?state=closed');
    assert.equal(list.data[0].id, closed.id);
  });
});
