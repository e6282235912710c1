import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { changePage } from '#merchants/change-page.ts';
import { changeRules } from '#merchants/change-rules.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import { consoleRoutes } from '#operating/console/routes.ts';
import { readCheckoutHistory } from '#operating/operations/checkout-history.ts';
import { timelineOf } from '#operating/operations/checkout-timeline.ts';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import { invitePerson } from '#operating/people/invite-person.ts';
import { changeAccess, revokePerson } from '#operating/people/manage-people.ts';
import type { OperatorRole } from '#operating/people/permission.ts';
import { currentDeadline, type Deadline, hasCommitted } from '#platform/database/deadline.ts';
import { transaction } from '#platform/database/transaction.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { findNewDisputes } from '#purchases/disputes/check-disputes.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { confirmAccount, proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { reserveRefund } from '#purchases/refunds/create-refund.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import { closeAlert, takeAlert } from '#record/alerts/handle-alert.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { verifyCallback } from '../../sdk/src/index.ts';
import { commandLine, type Tranche } from '../support/cli.ts';
import { addPerson, ask, type ConsolePerson, openConsole } from '../support/console.ts';
import { askExactly } from '../support/console-api.ts';
import { pdfFile } from '../support/files.ts';
import {
  askRefund,
  assertBalanced,
  cards,
  openDispute,
  partsOf,
  planOf,
  refundNow,
  wholeTerms,
} from '../support/money.ts';
import {
  assertSound,
  endWork,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import {
  type Account,
  createAccount,
  liftLimits,
  rules,
  startService,
} from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

let paying: Paying;
let app: FastifyInstance;
let tranche: Tranche;
const console = () => ({ app, deps: paying.service.deps });
const post = (person: ConsolePerson, url: string, body: object = {}) =>
  askExactly(console(), person, 'POST', url, body);
const person = (role: OperatorRole = 'admin', name = 'Nomsa Dube') =>
  addPerson(paying.service, { roles: [role], name });

/** The answer to an action that was done. */
async function done(answer: ReturnType<typeof post>) {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Asserts that an action was refused with this status. Returns the message of the refusal. */
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

const bankAccount = {
  holder: 'Bean There',
  bank: 'A Bank',
  branch_code: '051001',
  account_number: '0123456789',
};

/** Creates a merchant with a bank account and one sale, which the next payout pays. */
async function createPayee(): Promise<Account> {
  const account = await createAccount(paying.service);
  const { deps } = paying.service;
  await setTerms(deps, 'test', account.merchant.id, wholeTerms);
  await proposeAccount(deps, 'one', account.merchant.id, bankAccount);
  await confirmAccount(deps, 'other', account.merchant.id, { number: 1, ...bankAccount });
  await paid(1, account);
  return account;
}

/** The payout of a merchant that has one draft. */
async function findDraft({ merchant }: Account) {
  const finance = await person('finance');
  const list = `/api/payouts?status=draft&merchant=${merchant.id}`;
  const { body } = await askExactly(console(), finance, 'GET', list);
  const [{ id, merchant_name }] = body.data;
  return { id, url: `/api/payouts/${id}`, merchant_name };
}

async function payoutOf(): Promise<{ id: string; url: string; merchant_name: string }> {
  const account = await createPayee();
  await paying.pass({ days: 5 });
  return await findDraft(account);
}

/** Approves a payout for the account that its page shows. */
async function approvePayout(by: ConsolePerson, url: string) {
  const { body } = await askExactly(console(), by, 'GET', url);
  return await post(by, `${url}/approve`, { account: body.account?.number ?? null });
}

before(async () => {
  // The process of a receiver may pause, so the deadline is long.
  paying = await startPaying();
  app = await openConsole(paying.service);
  tranche = commandLine({ DATABASE_URL: paying.service.databaseUrl });
});
afterEach(() => endWork(paying));
after(async () => {
  await app.close();
  await paying.close();
});

describe('a message to a shopper', () => {
  test('is opened without the shopper’s link, and sent again once while it is true', async () => {
    const [support, viewer] = [await person('support'), await person('viewer')];
    const shopper = await paid(3);
    await paying.work();
    const { body } = await askExactly(console(), support, 'GET', `/api/checkouts/${shopper.id}`);
    const entry = body.timeline.find(({ kind }: { kind: string }) => kind === 'message');
    const url = `/api/checkouts/${shopper.id}/messages/${entry.message_id}`;
    const { body: shown } = await askExactly(console(), viewer, 'GET', url);
    assert.deepEqual([shown.kind, shown.status, shown.refusal], ['receipt', 'sent', null]);
    const mails = async () =>
      (await shopper.rows('mailbox')).filter(({ subject }) => subject === shown.subject);
    const [sent] = await mails();
    assert.doesNotMatch(shown.text, /\/pay\//);
    assert.equal(shown.text, sent.text.replace(/http\S+/, '(the shopper’s own link)'));
    await refused(403, post(viewer, `${url}/send-again`));
    const again = await done(post(support, `${url}/send-again`));
    assert.match(again.refusal, /^It was sent again a moment ago/);
    assert.match(await refused(409, post(support, `${url}/send-again`)), /a moment ago/);
    await paying.work();
    assert.equal((await mails()).length, 2);
    const { body: after } = await askExactly(
      console(),
      support,
      'GET',
      `/api/checkouts/${shopper.id}`,
    );
    const texts = after.timeline.map(({ description }: { description: string }) => description);
    assert.ok(texts.includes('message sent again: receipt with the plan'));
  });

  test('about a payment that a refund cancelled is not shown as one to send', async () => {
    const support = await person('support');
    const shopper = await paid(3);
    const reminders = async () => {
      const url = `/api/checkouts/${shopper.id}`;
      const { body } = await askExactly(console(), support, 'GET', url);
      return body.timeline.filter(
        ({ description }: { description: string }) =>
          description === 'message to send: payment is due soon',
      ).length;
    };
    assert.equal(await reminders(), 2);
    await refundNow(paying, shopper, 150_000);
    assert.equal(await reminders(), 0);
  });

  test('that a server refused is an alert until a later one is sent', async () => {
    const { deps } = paying.service;
    const support = await person('support');
    const shopper = await paid(3);
    await paying.work();
    const [message] = (await shopper.rows('messages')).filter(({ kind }) => kind === 'receipt');
    const become = (status: string) =>
      deps.database.pool.query('update messages set status = $2 where id = $1', [
        ...[message.id, status],
      ]);
    await become('refused');
    const about = { merchant_id: message.merchant_id, subject_id: shopper.id, detail: 'x' };
    const id = await raiseAlert(deps, deps.database.db, { kind: 'message_refused', ...about });
    const isOpen = async () => {
      await closeEndedAlerts(deps);
      const { rows } = await deps.database.pool.query('select * from alerts where id = $1', [id]);
      return rows[0].closed_at === null;
    };
    assert.equal(await isOpen(), true);
    paying.clock.advance({ minutes: 1 });
    const url = `/api/checkouts/${shopper.id}/messages/${message.id}/send-again`;
    await done(post(support, url));
    await paying.work();
    assert.equal(await isOpen(), false);
    await become('sent');
  });
});

test('a payment whose bank does not answer says so, and when it is asked again', async () => {
  const support = await person('support');
  const shopper = await paying.shopper({});
  const path = '/v1/payment_intents';
  await paying.gateway.fault({ fault: 'error_before', method: 'POST', path, times: 1_000 });
  await shopper.pay(3);
  const url = `/api/checkouts/${shopper.id}`;
  const { body } = await askExactly(console(), support, 'GET', url);
  const said =
    /The bank was asked at \d\d:\d\d and has not answered yet\. It will be asked again (in a moment|at \d\d:\d\d)\. You need not do anything\.$/;
  assert.match(body.waiting, said);
  assert.match(body.timeline.at(-1).description, said);
  // The command line shows all times in UTC.
  const history = await readCheckoutHistory(paying.service.deps, 'all merchants', shopper.id);
  assert(history);
  const last = timelineOf(history, 'UTC').at(-1);
  assert.equal(/at (\d\d:\d\d)/.exec(last?.description ?? '')?.[1], last?.at.slice(11, 16));
  await paying.clearFaults();
  await paying.pass({ hours: 1 });
  const { body: after } = await askExactly(console(), await person('support'), 'GET', url);
  assert.equal(after.waiting, null);
});

describe('a conversation with a shopper', () => {
  const request = () => paying.service.deps.random.uuid();

  test('is counted and answered by mail in the merchant’s name, and the shopper reads it', async () => {
    const staff = await addPerson(paying.service, {
      roles: ['support'],
      name: 'Anje Botha',
      merchant_ids: [paying.account.merchant.id],
    });
    const shopper = await paid();
    const acting = await actingOn(paying, shopper);
    const count = async () =>
      (await askExactly(console(), staff, 'GET', '/api/counts')).body.messages_to_answer.count;
    const before = await count();
    await acting.post('report', { text: 'Where is my {order}? <b>' });
    assert.equal(await count(), before + 1);
    const url = `/api/conversations/${shopper.id}`;
    const { body: asked } = await askExactly(console(), staff, 'GET', url);
    assert.deepEqual(
      [asked.status, asked.text, asked.is_asked],
      ['open', 'Where is my {order}? <b>', true],
    );

    const answer = { request_id: request(), seen_at: asked.moved_at, solves: false };
    const text = 'It left on {date}.\n\nKind regards';
    const answered = await done(post(staff, `${url}/answer`, { ...answer, text }));
    assert.equal(answered.status, 'answered');
    await done(post(staff, `${url}/answer`, { ...answer, text }));
    await paying.work();
    const mails = (await shopper.rows('mailbox')).filter(({ subject }) => /answered/.test(subject));
    assert.equal(mails.length, 1, 'a request that is sent again mails once');
    assert.match(mails[0].text, /It left on \{date\}\.\n\nKind regards/);
    assert.match(mails[0].text, /You wrote: “Where is my \{order\}\? <b>”/);
    assert.doesNotMatch(mails[0].html, /<b>|Anje/);
    const page = await acting.state();
    assert.equal(page.conversation?.entries.at(-1)?.text, text);
    assert.equal(page.conversation?.entries.at(-1)?.name, page.merchant_name);
    const { body: details } = await askExactly(
      console(),
      staff,
      'GET',
      `/api/checkouts/${shopper.id}`,
    );
    const told = details.timeline.filter(({ kind }: { kind: string }) => kind === 'conversation');
    assert.deepEqual(
      told.map(({ by }: { by: string }) => by),
      ['the shopper', 'Anje Botha, to the shopper'],
    );
    const { rows } = await paying.service.deps.database.pool.query(
      `select details::text from operator_actions where action = 'conversations answer'`,
    );
    assert.doesNotMatch(JSON.stringify(rows), /It left/, 'the audit has none of its text');

    // A request that repeats the id of another shopper's answer does not show that answer.
    const other = await paid();
    await (await actingOn(paying, other)).post('report', { text: 'And mine?' });
    const otherUrl = `/api/conversations/${other.id}`;
    const { moved_at } = (await askExactly(console(), staff, 'GET', otherUrl)).body;
    const foreign = { ...answer, seen_at: moved_at, text: 'Soon.' };
    await refused(409, post(staff, `${otherUrl}/answer`, foreign));
    await paying.work();
    assert.doesNotMatch(JSON.stringify(await other.rows('mailbox')), /It left/);
  });

  test('does not take another text for an answer that is sent again', async () => {
    const support = await person('support');
    const shopper = await paid();
    await (await actingOn(paying, shopper)).post('report', { text: 'Where is it?' });
    const url = `/api/conversations/${shopper.id}`;
    const { body: asked } = await askExactly(console(), support, 'GET', url);
    paying.clock.advance({ seconds: 1 });
    const answer = { request_id: request(), seen_at: asked.moved_at, text: 'On its way.' };
    await done(post(support, `${url}/answer`, { ...answer, solves: false }));
    // The response to the first request was lost, and the person typed more before repeating it.
    const longer = { ...answer, text: 'On its way. It comes on Monday.', solves: false };
    assert.match(await refused(409, post(support, `${url}/answer`, longer)), /another answer/);
    const solved = await done(post(support, `${url}/answer`, { ...answer, solves: true }));
    assert.equal(solved.status, 'solved', 'the same text may solve it now');
    assert.deepEqual(
      solved.entries.map(({ text }: { text: string }) => text),
      ['Where is it?', 'On its way.'],
    );
  });

  test('is not answered past a newer question, and a new question opens it again', async () => {
    const support = await person('support');
    const shopper = await paid();
    const acting = await actingOn(paying, shopper);
    await acting.post('report', { text: 'One' });
    const url = `/api/conversations/${shopper.id}`;
    const { body: seen } = await askExactly(console(), support, 'GET', url);
    paying.clock.advance({ seconds: 1 });
    await acting.post('report', { text: 'Two' });
    const answer = { request_id: request(), seen_at: seen.moved_at, text: 'Yes', solves: true };
    assert.match(await refused(409, post(support, `${url}/answer`, answer)), /newer messages/);
    assert.match(
      await refused(409, post(support, `${url}/solve`, { seen_at: seen.moved_at })),
      /newer/,
    );
    const { body: now } = await askExactly(console(), support, 'GET', url);
    const solved = await done(post(support, `${url}/solve`, { seen_at: now.moved_at }));
    assert.equal(solved.status, 'solved');
    await acting.post('report', { text: 'Three' });
    const { body: again } = await askExactly(console(), support, 'GET', url);
    assert.equal(again.status, 'open');
    const other = await addPerson(paying.service, {
      roles: ['support'],
      merchant_ids: [(await createAccount(paying.service)).merchant.id],
    });
    await refused(404, askExactly(console(), other, 'GET', url));
    await refused(404, post(other, `${url}/answer`, { ...answer, seen_at: again.moved_at }));
    const viewer = await person('viewer');
    await refused(403, post(viewer, `${url}/answer`, { ...answer, seen_at: again.moved_at }));
  });
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
    const by = { person_id: support.id, name: `Nomsa Dube (${support.email})` };
    assert.deepEqual([refund.status, refund.requested_by], ['complete', by]);
    assert.deepEqual(await partsOf(shopper, refund.id), [
      '3 cancel 50000 done',
      '2 cancel 10000 done',
    ]);
    // The browser lost the response and repeats the request.
    assert.equal((await done(post(support, `${url}/refunds`, body))).id, refund.id);
    assert.match(
      await refused(409, post(support, `${url}/refunds`, { ...body, amount: 1 })),
      /used for another refund/,
    );
    assert.equal((await shopper.rows('refund_requests')).length, 1);
    const tooMuch = await done(post(support, `${url}/refund-preview`, { amount: 90_001 }));
    assert.match(tooMuch.refusal, /remainder of R\s900,00/);
    const again = { amount: 90_001, request_id: paying.service.deps.random.uuid() };
    assert.match(await refused(409, post(support, `${url}/refunds`, again)), /remainder/);
    await assertBalanced(paying, shopper);
  });

  test('needs a recent re-authentication and the permission', async () => {
    const shopper = await paid();
    const id = await askRefund(paying, shopper, 1_000);
    const stale = await addPerson(paying.service, { roles: ['admin'], isFresh: false });
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
      const actions = [
        post(first, `/api/refunds/${id}/approve`),
        post(second, `/api/refunds/${id}/decline`, { reason: 'The goods were kept.' }),
        post(first, `/api/refunds/${id}/approve`),
        post(second, `/api/refunds/${id}/approve`),
      ];
      const answers = await Promise.all(round % 2 === 0 ? actions : actions.reverse());
      const winners = answers.filter(({ status }) => status === 200);
      assert.equal(winners.length, 1, JSON.stringify(answers.map(({ body }) => body)));
      for (const { status, body } of answers.filter((one) => one.status !== 200)) {
        assert.equal(status, 409);
        assert.match(body.error.message, /only a refund that is waiting for review/);
      }
      await paying.work();
      const [row] = await shopper.rows('refund_requests');
      assert.ok(['complete', 'failed'].includes(row.status), row.status);
      assert.equal(row.status === 'failed', winners[0]?.body.reason !== null);
      await assertBalanced(paying, shopper);
    }
  });

  test('can be declined with a reason, and only an approved one that failed can be retried', async () => {
    const shopper = await paid(1);
    await paying.pass({ days: 2 });
    const reviewer = await person('refunds');
    const id = await askRefund(paying, shopper, 30_000);
    const reason = 'The goods were kept.';
    const declined = await done(post(reviewer, `/api/refunds/${id}/decline`, { reason }));
    assert.deepEqual([declined.view, declined.reason], ['failed', reason]);
    for (const one of [reviewer, await person('on-call')]) {
      const retry = post(one, `/api/refunds/${id}/retry`);
      assert.match(await refused(409, retry), /never approved.*request a new refund/);
    }
    assert.deepEqual(await partsOf(shopper, id), []);
    const failing = await askRefund(paying, shopper, 30_000);
    await paying.gateway.fault({ fault: 'decline', method: 'POST', path: '/v1/refunds' });
    const url = `/api/refunds/${failing}`;
    assert.equal((await done(post(reviewer, `${url}/approve`))).status, 'failed');
    assert.equal((await done(post(reviewer, `${url}/retry`))).status, 'complete');
    assert.match(await refused(409, post(reviewer, `${url}/retry`)), /only a failed/);
    await assertBalanced(paying, shopper);
  });

  test('a foreign refund’s id as a request’s id reaches no foreign refund', async () => {
    const accounts = [await createAccount(paying.service), await createAccount(paying.service)];
    const admin = await person();
    for (const [own, foreign] of [accounts, accounts.toReversed()] as [Account, Account][]) {
      const threshold = { four_eyes_above: 1 };
      await askExactly(console(), admin, 'PATCH', `/api/merchants/${own.merchant.id}`, threshold);
      const [mine, theirs] = [await paid(3, own), await paid(3, foreign)];
      const id = await askRefund(paying, theirs, 30_000, foreign);
      const read = async () =>
        (await theirs.rows('refund_requests')).filter((row) => row.id === id);
      const before = await read();
      const merchant_ids = [own.merchant.id];
      const staff = await addPerson(paying.service, { roles: ['refunds'], merchant_ids });
      const other = await addPerson(paying.service, { roles: ['refunds'], merchant_ids });
      const body = { amount: 30_000, request_id: id };
      const refund = await done(post(staff, `/api/checkouts/${mine.id}/refunds`, body));
      assert.notEqual(refund.id, id);
      for (const verb of ['approve', 'retry']) {
        await refused(404, post(other, `/api/refunds/${id}/${verb}`));
      }
      await refused(404, post(other, `/api/refunds/${id}/decline`, { reason: 'No.' }));

      // The key of a refund includes its merchant, so two merchants' refunds could share an id.
      const { deps } = paying.service;
      await transaction(deps, async ({ db }) => {
        const checkout = (await lockCheckout(db, own.merchant.id, mine.id)) as Checkout;
        const merchant = (await findMerchant(db, deps.clock, own.merchant.id)) as Merchant;
        await reserveRefund(deps, db, { merchant, now: merchant.now() }, checkout, {
          id,
          amount: 1_000,
          integration_id: own.id,
          signed: false,
          isApproved: false,
          requester: { person_id: staff.id, name: staff.email },
          reason: null,
        });
      });
      const bulkAction = await done(post(other, '/api/refunds/approve', { ids: [id] }));
      while ((await runBulkActions(deps)) > 0);
      const { body: ended } = await askExactly(
        console(),
        other,
        'GET',
        `/api/bulk-actions/${bulkAction.id}`,
      );
      assert.deepEqual([ended.done, ended.failed], [1, 0]);
      const { body: seen } = await askExactly(console(), other, 'GET', `/api/refunds/${id}`);
      assert.deepEqual([seen.merchant_id, seen.status], [own.merchant.id, 'complete']);
      assert.match(await refused(409, post(other, `/api/refunds/${id}/retry`)), /is complete/);
      const decline = post(other, `/api/refunds/${id}/decline`, { reason: 'No.' });
      assert.match(await refused(409, decline), /is complete/);
      await assert.rejects(approveRefund(deps, 'nomsa', id), /There is no refund/);
      assert.deepEqual(await read(), before);
      assert.equal(
        (await done(post(other, `/api/refunds/${refund.id}/approve`))).status,
        'complete',
      );
      await assertBalanced(paying, mine);
    }
  });

  test('is shown with the split and the remainder that the preview has, also after a lost dispute', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paid(3, account);
    await paying.pass({ days: 35 });
    const admin = await person();
    const dispute = await openDispute(paying, shopper, 2);
    const preview = (amount: number) =>
      done(post(admin, `/api/checkouts/${shopper.id}/refund-preview`, { amount }));
    const read = async (url: string) => (await askExactly(console(), admin, 'GET', url)).body;
    const refundable = async () => (await read(`/api/checkouts/${shopper.id}`)).refundable;
    assert.equal(await refundable(), (await preview(1)).remainder);
    await done(post(admin, `/api/disputes/${dispute}/accept`));
    const { parts, remainder } = await preview(70_000);
    assert.deepEqual(parts, [
      { instalment: 3, kind: 'cancel', amount: 50_000 },
      { instalment: 1, kind: 'card', amount: 20_000 },
    ]);
    assert.deepEqual([await refundable(), remainder], [100_000, 100_000]);
    const id = await askRefund(paying, shopper, 70_000, account);
    assert.deepEqual((await read(`/api/refunds/${id}`)).planned, parts);
    const { data } = await read(`/api/refunds?view=review&merchant=${account.merchant.id}`);
    assert.deepEqual(data[0].planned, parts);
    assert.deepEqual([await refundable(), (await preview(1)).remainder], [30_000, 30_000]);
    await assertSound(paying);
  });

  test('that was done is not answered with “nothing was changed” when its result cannot be read', async () => {
    const reviewer = await person('refunds');
    const shopper = await paid();
    const id = await askRefund(paying, shopper, 10_000);
    const { pool } = paying.service.deps.database;
    // Only the answer to the approval reads this table, after the approval itself is committed.
    await pool.query('alter table merchant_days rename to hidden_days');
    try {
      const { status, body } = await post(reviewer, `/api/refunds/${id}/approve`);
      assert.deepEqual([status, body.error.code], [503, 'outcome_unknown']);
      assert.match(body.error.message, /^This was done/);
      const failed = await ask(console(), reviewer, 'GET', `/api/refunds/${id}`);
      assert.deepEqual([failed.status, failed.body.error.code], [500, 'internal_error']);
    } finally {
      await pool.query('alter table hidden_days rename to merchant_days');
    }
    const [row] = await shopper.rows('refund_requests');
    assert.equal(row.status, 'complete');
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

  test('only an administrator of all merchants lifts the review, and an alert names them', async () => {
    const { account, shopper } = await large();
    const { id } = account.merchant;
    const scoped = await addPerson(paying.service, { roles: ['admin'], merchant_ids: [id] });
    const change = (by: ConsolePerson, four_eyes_above: number | 'none' | null) =>
      askExactly(console(), by, 'PATCH', `/api/merchants/${id}`, { four_eyes_above });
    const setMode = (by: ConsolePerson, refund_mode: string) =>
      post(by, `/api/integrations/${account.id}/refund-mode`, { refund_mode });
    const alerts = async () => {
      const list = `/api/alerts?merchant=${id}`;
      const { body } = await askExactly(console(), await person(), 'GET', list);
      return body.data as { kind: string; detail: string }[];
    };
    for (const answer of [
      change(scoped, 'none'),
      change(scoped, null),
      change(scoped, 20_001),
      setMode(scoped, 'auto'),
      post(scoped, '/api/integrations', { merchant_id: id, refund_mode: 'auto' }),
    ]) {
      assert.match(await refused(403, answer), /^Only an administrator of the payment service/);
    }
    const url = `/api/checkouts/${shopper.id}/refunds`;
    const body = { amount: 20_001, request_id: paying.service.deps.random.uuid() };
    assert.equal((await done(post(scoped, url, body))).view, 'review');
    // A stricter threshold, or the same one, is allowed.
    for (const above of [20_000, 10_000]) {
      assert.equal((await done(change(scoped, above))).four_eyes_above, above);
    }
    await done(setMode(scoped, 'manual'));
    assert.deepEqual(await alerts(), []);

    const admin = await person();
    await done(change(admin, 15_000));
    await done(change(admin, 'none'));
    await done(setMode(admin, 'auto'));
    await done(setMode(admin, 'auto'));
    const raised = await alerts();
    assert.deepEqual(
      raised.map(({ kind }) => kind),
      Array(3).fill('refund_review_lifted'),
    );
    assert.ok(raised.every(({ detail }) => detail.startsWith(`${admin.email} `)));
    for (const did of [
      /ended the review of refunds/,
      /removed .*: it was R\s150,00\./,
      /raised .* and is now R\s150,00\./,
    ]) {
      assert.equal(raised.filter(({ detail }) => did.test(detail)).length, 1, String(did));
    }
  });

  test('a threshold that is equal to the default follows it when it is lowered', async () => {
    const { deps } = paying.service;
    const common = deps.fourEyesAbove as number;
    const { merchant } = await createAccount(paying.service);
    const scoped = await addPerson(paying.service, {
      ...{ roles: ['admin'], merchant_ids: [merchant.id] },
    });
    const url = `/api/merchants/${merchant.id}`;
    const set = async (four_eyes_above: number) =>
      (await done(askExactly(console(), scoped, 'PATCH', url, { four_eyes_above })))
        .four_eyes_above;
    assert.equal(await set(common), null);
    assert.equal(await set(common - 1), common - 1);
    const wanted = { name: 'Equal', rules, four_eyes_above: common };
    const created = await done(post(await person(), '/api/merchants', wanted));
    assert.equal(created.four_eyes_above, null);
  });

  test('a merchant’s refund needs two different reviewers', async () => {
    const { account, shopper } = await large();
    const [first, second] = [await person('refunds'), await person('refunds')];
    const small = await askRefund(paying, shopper, 20_000, account);
    assert.equal((await done(post(first, `/api/refunds/${small}/approve`))).status, 'complete');
    const id = await askRefund(paying, shopper, 20_001, account);
    const isFirst = async () => {
      const { body } = await askExactly(console(), second, 'GET', `/api/refunds/${id}`);
      return body.is_first_of_two;
    };
    assert.equal(await isFirst(), true);
    const once = await done(post(first, `/api/refunds/${id}/approve`));
    // Both reviewers have the same name, so the e-mail address is added.
    const name = `Nomsa Dube (${first.email})`;
    assert.deepEqual(
      [once.view, once.first_approved_by.name, once.may_approve],
      ['review', name, false],
    );
    const { body: seen } = await askExactly(console(), second, 'GET', `/api/refunds/${id}`);
    assert.deepEqual(seen.first_approved_by, { person_id: first.id, name });
    // A shop reads the addresses of its own people only, even if a person has changed sides.
    const merchant_ids = [account.merchant.id];
    const own = await addPerson(paying.service, { roles: ['refunds'], merchant_ids });
    const readsName = async () => {
      const { body } = await askExactly(console(), own, 'GET', `/api/refunds/${id}`);
      return body.first_approved_by.name;
    };
    assert.equal(await readsName(), 'refunds');
    for (const [of, shown] of [
      [merchant_ids, name],
      [[paying.service.deps.random.uuid()], 'Nomsa Dube'],
      [null, 'refunds'],
    ]) {
      const { pool } = paying.service.deps.database;
      await pool.query('update people set merchant_ids = $2 where id = $1', [first.id, of]);
      assert.equal(await readsName(), shown);
    }
    assert.equal(await isFirst(), false);
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

  test('a merchant without its own threshold has the default, and support alone stays below it', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({ amount: 2_000_000 }, account);
    await shopper.pay(1);
    const [support, reviewer] = [await person('support'), await person('refunds')];
    const request = (amount: number) =>
      done(
        post(support, `/api/checkouts/${shopper.id}/refunds`, {
          amount,
          request_id: paying.service.deps.random.uuid(),
        }),
      );
    const large = await request(1_000_001);
    assert.deepEqual([large.view, large.needs_second_person], ['review', true]);
    await refused(403, post(support, `/api/refunds/${large.id}/approve`));
    const { body } = await askExactly(console(), reviewer, 'GET', `/api/refunds/${large.id}`);
    assert.equal(body.may_approve, true);
    assert.equal((await request(900_000)).view, 'complete');
  });

  test('refunds that one person approved alone count together, also those that API credentials requested', async () => {
    const { account, shopper } = await large();
    const { merchant } = account;
    // An administrator of the merchant, who cannot lift the review, makes credentials and requests
    // refunds.
    const scoped = await addPerson(paying.service, {
      roles: ['admin'],
      merchant_ids: [merchant.id],
    });
    const wanted = { merchant_id: merchant.id, refund_mode: 'manual' };
    const issued = { ...(await done(post(scoped, '/api/integrations', wanted))), merchant };
    await liftLimits(paying.service.deps, issued.id);
    const part = () => askRefund(paying, shopper, 20_000, issued);
    const approve = (by: ConsolePerson, id: string) => done(post(by, `/api/refunds/${id}/approve`));
    const parts = [await part(), await part(), await part()];
    assert.equal((await approve(scoped, parts[0] as string)).status, 'complete');
    for (const id of parts.slice(1)) {
      const { body } = await askExactly(console(), scoped, 'GET', `/api/refunds/${id}`);
      assert.deepEqual([body.needs_second_person, body.is_first_of_two], [true, true]);
      const once = await approve(scoped, id);
      assert.deepEqual([once.view, once.may_approve], ['review', false]);
      await refused(409, post(scoped, `/api/refunds/${id}/approve`));
    }
    // A decline with a new request, a request at the console and a retry of what failed do not help
    // either.
    await done(post(scoped, `/api/refunds/${parts[2]}/decline`, { reason: 'Anew.' }));
    assert.equal((await approve(scoped, await part())).view, 'review');
    const request_id = paying.service.deps.random.uuid();
    const url = `/api/checkouts/${shopper.id}/refunds`;
    assert.equal((await done(post(scoped, url, { amount: 1, request_id }))).view, 'review');
    await refused(409, post(scoped, `/api/refunds/${parts[2]}/retry`));
    // A refund that two people agreed to no longer counts.
    assert.equal((await approve(await person('refunds'), parts[1] as string)).status, 'complete');
    await assertBalanced(paying, shopper);
  });

  test('one person alone cannot get credentials of an integration whose refunds are approved at once', async () => {
    const account = await createAccount(paying.service, { refund_mode: 'auto' });
    const shopper = await paid(1, account);
    await paying.pass({ days: 2 });
    const { merchant } = account;
    const scoped = await addPerson(paying.service, {
      roles: ['admin'],
      merchant_ids: [merchant.id],
    });
    const rotation = { credential: 'client_secret', overlap_seconds: 0 };
    const rotate = (by: ConsolePerson) =>
      post(by, `/api/integrations/${account.id}/rotate`, rotation);
    assert.match(
      await refused(403, rotate(scoped)),
      /only an administrator of the payment service/,
    );
    // Other credentials of the merchant get no automatic approval for this integration's checkouts.
    const wanted = { merchant_id: merchant.id, refund_mode: 'manual' };
    const issued = { ...(await done(post(scoped, '/api/integrations', wanted))), merchant };
    await askRefund(paying, shopper, 10_000, issued);
    await askRefund(paying, shopper, 10_000, account);
    const rows = await shopper.rows('refund_requests');
    assert.deepEqual(rows.map(({ approved_at }) => approved_at !== null).sort(), [false, true]);
    await done(rotate(await person()));
  });

  test('refunds are approved at once only when no one below an administrator of all knows the secret', async () => {
    const account = await createAccount(paying.service, { refund_mode: 'auto' });
    const merchant_ids = [account.merchant.id];
    const scoped = await addPerson(paying.service, { roles: ['admin'], merchant_ids });
    const admin = await person();
    const url = `/api/integrations/${account.id}`;
    const setMode = (by: ConsolePerson, refund_mode: string) =>
      post(by, `${url}/refund-mode`, { refund_mode });
    const rotate = (by: ConsolePerson, overlap_seconds: number) =>
      post(by, `${url}/rotate`, { credential: 'client_secret', overlap_seconds });
    await done(setMode(scoped, 'manual'));
    await done(rotate(scoped, 0));
    const refusal = /Rotate the client secret without an overlap/;
    assert.match(await refused(409, setMode(admin, 'auto')), refusal);
    // The secret that the merchant's administrator saw is still in force during the overlap.
    await done(rotate(admin, 60));
    assert.match(await refused(409, setMode(admin, 'auto')), refusal);
    await done(rotate(admin, 0));
    await done(setMode(admin, 'auto'));
    const wanted = { merchant_id: account.merchant.id, refund_mode: 'manual' };
    const { id } = await done(post(scoped, '/api/integrations', wanted));
    const lift = post(admin, `/api/integrations/${id}/refund-mode`, { refund_mode: 'auto' });
    assert.match(await refused(409, lift), refusal);
  });

  test('an alert names each person who gets credentials whose refunds are approved at once', async () => {
    const { account } = await large();
    const merchant_id = account.merchant.id;
    const admin = await person();
    const create = (owner: object) =>
      done(post(admin, '/api/integrations', { refund_mode: 'auto', ...owner }));
    const own = await create({ merchant_id });
    const rotation = { credential: 'client_secret', overlap_seconds: 0 };
    await done(post(admin, `/api/integrations/${own.id}/rotate`, rotation));
    const shared = await create({ managed_merchant_ids: [merchant_id] });
    const other = await createAccount(paying.service);
    const change = { add: [other.merchant.id, merchant_id], remove: [] };
    await done(post(admin, `/api/integrations/${shared.id}/managed-merchants`, change));
    // The intermediary already acts for both, so nothing is lifted.
    await done(post(admin, `/api/integrations/${shared.id}/managed-merchants`, change));
    const { rows } = await paying.service.deps.database.pool.query(
      `select integration_id, merchant_id, caused_person_id, detail from alerts
       where kind = 'refund_review_lifted' and integration_id = any($1) order by at, id`,
      [[own.id, shared.id]],
    );
    const by = { caused_person_id: admin.id };
    assert.partialDeepStrictEqual(rows, [
      { integration_id: own.id, merchant_id, ...by },
      { integration_id: own.id, merchant_id, ...by },
      { integration_id: shared.id, merchant_id: null, ...by },
      { integration_id: shared.id, merchant_id: null, ...by },
    ]);
    assert.equal(rows.length, 4);
    const [added, rotated, addedShared, managed] = rows.map(({ detail }) => detail as string);
    assert.match(added ?? '', / added an integration and saw its credentials: .* undo it/);
    assert.match(rotated ?? '', / rotated and saw the client secret of an integration/);
    assert.ok(addedShared?.includes(merchant_id));
    assert.ok(managed?.includes(`act for merchant ${other.merchant.id}.`));
  });

  test('of reviewers who approve at once, one is the first approver and one the second', async () => {
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

  test('an approval that a person read as the first of two never starts the refund', async () => {
    const { account, shopper } = await large();
    const [first, second] = [await person('refunds', 'First Reader'), await person('refunds')];
    const id = await askRefund(paying, shopper, 60_000, account);
    const url = `/api/refunds/${id}`;
    for (const one of [first, second]) {
      const { body } = await askExactly(console(), one, 'GET', url);
      assert.equal(body.is_first_of_two, true);
    }
    const asRead = { as_first: true };
    assert.equal((await done(post(first, `${url}/approve`, asRead))).view, 'review');
    assert.equal(
      await refused(409, post(second, `${url}/approve`, asRead)),
      'This was changed in the meantime by First Reader. Reload and try again.',
    );
    const ids = [`${id}:first`];
    const bulkAction = await done(post(second, '/api/refunds/approve', { ids }));
    while ((await runBulkActions(paying.service.deps)) > 0);
    const progress = `/api/bulk-actions/${bulkAction.id}`;
    const { body } = await askExactly(console(), second, 'GET', progress);
    assert.deepEqual([body.done, body.failed], [0, 1]);
    assert.match(body.problems[0].problem, /^This was changed in the meantime/);
    assert.equal((await shopper.rows('refund_requests'))[0].status, 'requested');
    assert.equal((await done(post(second, `${url}/approve`))).status, 'complete');
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
    // The requester is the first of the two, so the next approval starts it.
    assert.deepEqual([refund.needs_second_person, refund.is_first_of_two], [true, false]);
    assert.match(
      await refused(409, post(asking, `/api/refunds/${refund.id}/approve`)),
      /You asked for this refund/,
    );
    await paying.work();
    assert.deepEqual(await planOf(shopper), ['1 authorised', '2 scheduled', '3 scheduled']);
    assert.equal((await done(post(other, `/api/refunds/${refund.id}/approve`))).status, 'complete');
    await assertBalanced(paying, shopper);
  });

  test('one person cannot decline their own request and retry it', async () => {
    const { shopper } = await large();
    const alone = await person('refunds');
    const body = { amount: 30_000, request_id: paying.service.deps.random.uuid() };
    const { id } = await done(post(alone, `/api/checkouts/${shopper.id}/refunds`, body));
    await done(post(alone, `/api/refunds/${id}/decline`, { reason: 'No.' }));
    assert.match(await refused(409, post(alone, `/api/refunds/${id}/retry`)), /never approved/);
    await paying.work();
    assert.deepEqual(await partsOf(shopper, id), []);
    await assertBalanced(paying, shopper);
  });

  test('requests that are above it together wait for another person', async () => {
    const { shopper } = await large();
    const [asking, other] = [await person('refunds'), await person('refunds')];
    const url = `/api/checkouts/${shopper.id}`;
    const request = (amount: number) => {
      const request_id = paying.service.deps.random.uuid();
      return done(post(asking, `${url}/refunds`, { amount, request_id }));
    };
    // The requests come at the same moment, so that only the lock of the checkout orders them.
    const both = await Promise.all([request(10_001), request(10_001)]);
    assert.deepEqual(both.map(({ view }) => view).sort(), ['complete', 'review']);
    const waiting = both.find(({ view }) => view === 'review');
    assert.deepEqual([waiting.needs_second_person, waiting.may_approve], [true, false]);
    const preview = (amount: number) =>
      done(post(asking, `${url}/refund-preview`, { amount })).then(
        (one) => one.needs_second_person,
      );
    assert.deepEqual([await preview(9_999), await preview(10_000)], [false, true]);
    const { id } = waiting;
    assert.match(await refused(409, post(asking, `/api/refunds/${id}/approve`)), /You asked/);
    paying.clock.advance({ seconds: 1 });
    assert.equal((await done(post(other, `/api/refunds/${id}/approve`))).status, 'complete');
    // A refund that a second person approved does not count towards the threshold.
    assert.equal((await request(9_999)).view, 'complete');
    await assertBalanced(paying, shopper);
  });
});

describe('a bulk action', () => {
  /** Runs bulk actions as a worker does, until there are none. */
  async function work() {
    while ((await runBulkActions(paying.service.deps)) > 0);
  }

  test('approves many payouts once two people began it, and records them as paid', async () => {
    const payees = [await createPayee(), await createPayee()];
    const bare = await createAccount(paying.service);
    await setTerms(paying.service.deps, 'test', bare.merchant.id, wholeTerms);
    const shopper = await paid(1, bare);
    await paying.pass({ days: 5 });
    await openDispute(paying, shopper);
    const [first, second] = [await person('finance', 'First'), await person('finance', 'Second')];
    const admin = await person();
    const doubtOf = async (account: Account) => {
      const { body } = await askExactly(console(), first, 'GET', (await findDraft(account)).url);
      return [body.account === null, body.is_disputed];
    };
    assert.deepEqual(await doubtOf(bare), [true, true]);
    assert.deepEqual(await doubtOf(payees[0] as Account), [false, false]);
    const ids: string[] = [];
    const problems: string[] = [];
    const begun: string[] = [];
    for (const payee of payees) ids.push((await findDraft(payee)).id);
    const run = async (by: ConsolePerson, url: string, more = {}) => {
      const { id } = await done(post(by, url, { ids, ...more }));
      paying.clock.advance({ seconds: 1 });
      await work();
      const { body } = await askExactly(console(), by, 'GET', `/api/bulk-actions/${id}`);
      begun.push(id);
      problems.push(...body.problems.map(({ problem }: { problem: string }) => problem));
      const { rows } = await paying.service.deps.database.pool.query(
        'select distinct status from payouts where id = any($1)',
        [ids],
      );
      return [body.done, body.failed, ...rows.map(({ status }) => status)];
    };
    const approveAll = (by: ConsolePerson, account: number | 'none') =>
      run(by, '/api/payouts/approve', { ids: ids.map((id) => `${id}:${account}`) });
    assert.deepEqual(await approveAll(first, 'none'), [0, 2, 'draft']);
    assert.match(problems[0] ?? '', /^TR\S+ was not approved: .* Account 1, which ends in 6789/);
    assert.deepEqual(await approveAll(first, 1), [2, 0, 'draft']);
    assert.deepEqual(await approveAll(first, 1), [0, 2, 'draft']);
    assert.deepEqual(await approveAll(second, 1), [2, 0, 'approved']);
    await done(post(first, '/api/payouts/export'));
    const paidBy = { bank_reference: 'FT40' };
    assert.deepEqual(await run(second, '/api/payouts/paid', paidBy), [2, 0, 'paid']);
    // A process that died between an item and its progress repeats the item. What the bulk action
    // did itself is not a failure, and what was refused is refused again.
    const { rows: repeated } = await paying.service.deps.database.pool.query(
      `update bulk_actions set position = '1', done = least(done, 1), failed = least(failed, 1),
         finished_at = null, due_at = created_at
       where id = any($1) returning id`,
      [begun.slice(1)],
    );
    assert.equal(repeated.length, 4);
    await work();
    const { rows: outcomes } = await paying.service.deps.database.pool.query(
      'select done, failed from bulk_actions where id = any($1) order by array_position($1, id)',
      [begun.slice(1)],
    );
    assert.deepEqual(
      outcomes.map((row) => `${row.done} ${row.failed}`),
      ['2 0', '0 2', '2 0', '2 0'],
    );
    await refused(404, post(first, '/api/payouts/approve', { ids: [`${shopper.id}:1`] }));
    for (const bad of [`${ids[0]}`, `${ids[0]}:0`, `${'-'.repeat(36)}:1`]) {
      await refused(422, post(first, '/api/payouts/approve', { ids: [bad] }));
      await refused(422, post(admin, '/api/instalments/retry', { ids: [bad] }));
    }
    await assertSound(paying);
  });

  test('retries many overdue payments, and says which the bank declined', async () => {
    const shopper = await paying.shopper({ client_reference_id: 'RETRIED-1' });
    await shopper.pay(3, { card: cards.laterInsufficientFunds });
    await paying.pass({ days: 45 });
    const support = await person('support');
    const ids = [`${shopper.id}:2`];
    await refused(404, post(support, '/api/instalments/retry', { ids: [`${shopper.id}:9`] }));
    const { id } = await done(post(support, '/api/instalments/retry', { ids }));
    await work();
    const { body } = await askExactly(console(), support, 'GET', `/api/bulk-actions/${id}`);
    assert.deepEqual([body.done, body.failed, body.problems[0].id], [0, 1, ids[0]]);
    assert.equal(body.problems[0].problem, 'RETRIED-1: payment 2 was declined again.');
  });

  test('approves several refunds, says which were refused, and is seen only by the person who began it', async () => {
    const reviewer = await person('refunds');
    const shoppers = [await paid(), await paid(), await paid()];
    const ids: string[] = [];
    for (const shopper of shoppers) ids.push(await askRefund(paying, shopper, 10_000));
    await done(post(reviewer, `/api/refunds/${ids[1]}/decline`, { reason: 'No.' }));
    const bulkAction = await done(post(reviewer, '/api/refunds/approve', { ids }));
    assert.deepEqual([bulkAction.total, bulkAction.done, bulkAction.finished_at], [3, 0, null]);
    await work();
    const { body } = await askExactly(
      console(),
      reviewer,
      'GET',
      `/api/bulk-actions/${bulkAction.id}`,
    );
    assert.deepEqual([body.done, body.failed], [2, 1]);
    assert.equal(body.problems[0].id, ids[1]);
    assert.notEqual(body.finished_at, null);
    const { body: own } = await askExactly(console(), reviewer, 'GET', '/api/bulk-actions');
    assert.equal(own.data[0].id, bulkAction.id);
    const other = await person();
    assert.equal(
      (await ask(console(), other, 'GET', `/api/bulk-actions/${bulkAction.id}`)).status,
      404,
    );
    const { rows } = await paying.service.deps.database.pool.query(
      `select person_id from operator_actions where action = 'refunds approve'
       and subject_id = any($1)`,
      [ids],
    );
    assert.deepEqual(
      rows.map(({ person_id }) => person_id),
      [reviewer.id, reviewer.id],
    );
    await assertBalanced(paying, ...shoppers);
  });

  test('resends what was given up, and continues after a stop', async () => {
    const account = await createAccount(paying.service);
    const onCall = await person('on-call');
    const { deps } = paying.service;
    const made = [await paid(1, account), await paid(1, account), await paid(1, account)];
    await deps.database.pool.query(
      `update callbacks set status = 'exhausted', due_at = null where merchant_id = $1`,
      [account.merchant.id],
    );
    const body = { merchant: account.merchant.id };
    const bulkAction = await done(post(onCall, '/api/callbacks/retry-all', body));
    assert.equal(bulkAction.total, 3);
    const stopping = new AbortController();
    stopping.abort();
    await runBulkActions(deps, stopping.signal);
    const stopped = await askExactly(
      console(),
      onCall,
      'GET',
      `/api/bulk-actions/${bulkAction.id}`,
    );
    assert.deepEqual([stopped.body.done, stopped.body.finished_at], [0, null]);
    await Promise.all([work(), work()]);
    const { body: finished } = await askExactly(
      console(),
      onCall,
      'GET',
      `/api/bulk-actions/${bulkAction.id}`,
    );
    assert.deepEqual([finished.done, finished.failed], [3, 0]);
    for (const shopper of made) {
      const [callback] = await shopper.rows('callbacks');
      assert.equal(callback.status, 'delivered');
    }
    await assertSound(paying);
  });

  test('yields after its turn, so that a short one ends while a long one continues', async (t) => {
    const account = await createAccount(paying.service);
    const { deps } = paying.service;
    for (let made = 0; made < 3; made += 1) await paid(1, account);
    await deps.database.pool.query(
      `update callbacks set status = 'exhausted', due_at = null where merchant_id = $1`,
      [account.merchant.id],
    );
    // A receiver that needs ten seconds for each answer.
    const { answer } = paying.receiver;
    paying.receiver.answer = () => {
      paying.clock.advance({ seconds: 10 });
      return {};
    };
    t.after(() => {
      paying.receiver.answer = answer;
    });
    const onCall = await person('on-call');
    const long = await done(
      post(onCall, '/api/callbacks/retry-all', { merchant: account.merchant.id }),
    );
    const reviewer = await person('refunds');
    const refund = await askRefund(paying, await paid(), 10_000);
    const short = await done(post(reviewer, '/api/refunds/approve', { ids: [refund] }));
    const read = async (who: ConsolePerson, { id }: { id: string }) =>
      (await askExactly(console(), who, 'GET', `/api/bulk-actions/${id}`)).body;
    await runBulkActions(deps);
    await runBulkActions(deps);
    assert.notEqual((await read(reviewer, short)).finished_at, null);
    const { done: resent, finished_at } = await read(onCall, long);
    assert.deepEqual([resent, finished_at], [1, null]);
    await work();
    const finished = await read(onCall, long);
    assert.deepEqual([finished.done, finished.failed], [3, 0]);
    assert.notEqual(finished.finished_at, null);
  });

  test('ends when its person loses the session or a merchant, in whatever way, or stops it', async () => {
    const { deps } = paying.service;
    const again = { roles: ['refunds'], merchant_ids: null };
    const own = [paying.account.merchant.id];
    const both = [...own, (await createAccount(paying.service)).merchant.id].sort();
    const narrow = ({ id }: ConsolePerson) => changeAccess(deps, 'test', id, { merchant_ids: own });
    type End = (who: ConsolePerson, url: string) => Promise<unknown>;
    const ends: [string, End, string[]?][] = [
      // The person can no longer read the bulk action, and so cannot stop it.
      ['has lost a merchant', narrow],
      ['has lost a merchant', narrow, both],
      ['The session that', (who) => ask(console(), who, 'DELETE', '/api/session')],
      ['The session that', ({ email }) => revokePerson(deps, 'test', { email })],
      ['The session that', ({ email }) => invitePerson(deps, 'test', { email, ...again })],
      ['stopped this', (who, url) => done(post(who, `${url}/stop`))],
      // The person may belong to a merchant: no name of the server's operators is shown to them.
      [
        'An operator at the server stopped this.',
        (_, url) => tranche.json('bulk-actions', 'stop', url.split('/')[3] ?? ''),
      ],
    ];
    for (const [why, end, merchant_ids] of ends) {
      const access = { roles: ['refunds' as const], ...(merchant_ids && { merchant_ids }) };
      const reviewer = await addPerson(paying.service, access);
      const shopper = await paid();
      const id = await askRefund(paying, shopper, 10_000);
      const bulkAction = await done(post(reviewer, '/api/refunds/approve', { ids: [id] }));
      await end(reviewer, `/api/bulk-actions/${bulkAction.id}`);
      await work();
      const { rows } = await deps.database.pool.query(
        'select done, failed, stopped, finished_at from bulk_actions where id = $1',
        [bulkAction.id],
      );
      assert.deepEqual([rows[0].done, rows[0].failed], [0, 0]);
      assert.ok(rows[0].stopped.includes(why) && rows[0].finished_at !== null, rows[0].stopped);
      const [row] = await shopper.rows('refund_requests');
      assert.equal(row.approved_at, null);
    }
  });

  test('is stopped only by the person who began it, and once', async () => {
    const [reviewer, other] = [await person('refunds'), await person()];
    const id = await askRefund(paying, await paid(), 10_000);
    const { id: bulkAction } = await done(post(reviewer, '/api/refunds/approve', { ids: [id] }));
    const url = `/api/bulk-actions/${bulkAction}/stop`;
    await refused(404, post(other, url));
    const stopped = await done(post(reviewer, url));
    assert.equal(stopped.stopped, `${reviewer.email} stopped this.`);
    assert.match(await refused(409, post(reviewer, url)), /already ended/);
  });
});

describe('the actions of the command line', () => {
  test('a note is kept beside the checkout, and its text is not in the audit', async () => {
    const support = await person('support');
    const shopper = await paid();
    const text = '<img src=x onerror=alert(1)> called on Monday';
    const note = await done(post(support, `/api/checkouts/${shopper.id}/notes`, { text }));
    assert.deepEqual([note.text, note.by], [text, { person_id: support.id, name: 'Nomsa Dube' }]);
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
    for (const name of [
      'Bean\nThere',
      'Bean\u2028There',
      'Bean \u202ethere',
      'Bean\u061c',
      'Bean\u0007',
    ]) {
      assert.match(
        await refused(409, post(admin, '/api/merchants', { name, rules })),
        /on one line/,
      );
    }
    const patched = await askExactly(console(), admin, 'PATCH', `/api/merchants/${merchant.id}`, {
      preselected_term: 3,
      no_fees: true,
    });
    assert.deepEqual([patched.body.preselected_term, patched.body.no_fees], [3, true]);
    const half = { four_eyes_above: 1, short_name: 'é' };
    const refusedPatch = await askExactly(
      console(),
      admin,
      'PATCH',
      `/api/merchants/${merchant.id}`,
      half,
    );
    assert.deepEqual([refusedPatch.status, refusedPatch.body.error.code], [409, 'refused']);
    const { body: unchanged } = await askExactly(
      console(),
      admin,
      'GET',
      `/api/merchants/${merchant.id}`,
    );
    assert.equal(unchanged.four_eyes_above, null);
    const body = { merchant_id: merchant.id, refund_mode: 'manual' };
    const issued = await done(post(admin, '/api/integrations', body));
    assert.match(issued.client_secret, /^cs_sandbox_/);
    const url = `/api/integrations/${issued.id}`;
    const wanted = { credential: 'signing_key', overlap_seconds: 3600 };
    const rotated = await done(post(admin, `${url}/rotate`, wanted));
    assert.match(rotated.value, /^sig_sandbox_/);
    const limit = { endpoint: 'POST /api/checkouts', max_requests: 7, window_seconds: 1 };
    await done(post(admin, `${url}/limit`, limit));
    const merchant_ids = [merchant.id];
    const own = await addPerson(paying.service, { roles: ['admin'], merchant_ids });
    const higher = { ...limit, max_requests: 1_000_000_000 };
    assert.match(await refused(403, post(own, `${url}/limit`, higher)), /of the payment service/);
    await done(post(own, `${url}/limit`, { ...limit, max_requests: 1 }));
    await done(post(admin, `${url}/limit`, limit));
    await done(post(admin, `${url}/require-signing`));
    const v1 = await done(post(admin, `${url}/enable-v1`));
    assert.match(v1.client_secret, /^v1s_sandbox_/);
    assert.match(await refused(409, post(admin, `${url}/enable-v1`)), /v1 is enabled/);
    await done(post(admin, `${url}/disable-v1`));
    const { body: shown } = await askExactly(console(), admin, 'GET', url);
    const ownLimits = shown.limits.filter(({ is_own }: { is_own: boolean }) => is_own);
    assert.deepEqual(ownLimits, [{ ...limit, is_own: true }]);
    const first = { endpoint: 'GET /api/config', max_requests: 5, window_seconds: 3600 };
    assert.deepEqual(shown.limits[0], { ...first, is_own: false });
    assert.deepEqual([shown.v1.client_id, shown.v1.checkouts], [v1.client_id, 0]);
    assert.notEqual(shown.v1.disabled_at, null);
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
    const page = audit.data.find((one: { action: string }) => one.action === 'merchants page');
    assert.deepEqual(page.details, { no_fees: true, before: { no_fees: false } });
    const file = `/api/audit.csv?subject=${merchant.id}&person=${admin.id}`;
    const { body: csv } = await ask(console(), admin, 'GET', file);
    const [head = '', line = ''] = (csv as unknown as string).split('\r\n');
    const columns = 'Operator,Person,Name,Roles,Address,Session';
    const whose = [admin.email, admin.id, 'Nomsa Dube', 'admin', '127.0.0.1', admin.session_id];
    assert.ok(head.includes(columns), head);
    assert.ok(line.includes(whose.join(',')), line);
    const { body: actions } = await askExactly(
      console(),
      admin,
      'GET',
      `/api/audit?subject=${issued.id}`,
    );
    const limited = actions.data.find(
      (one: { action: string }) => one.action === 'integrations limit',
    );
    assert.deepEqual(limited.details, { ...limit, before: { max_requests: 1, window_seconds: 1 } });
  });

  test('a test callback is signed as a real one, reports no payment, and is answered on the page', async () => {
    const account = await createAccount(paying.service);
    const merchant_ids = [account.merchant.id];
    const own = await addPerson(paying.service, { roles: ['merchant-admin'], merchant_ids });
    const url = `${paying.receiver.url}/new?key=hidden`;
    const send = (by: ConsolePerson, to: string) =>
      post(by, `/api/integrations/${account.id}/test-callback`, { url: to });
    const { answer } = paying.receiver;
    const body = '<b>no such order</b>'.repeat(100);
    paying.receiver.answer = () => ({ status: 404, body });
    const answered = await done(send(own, url));
    paying.receiver.answer = answer;
    const [received] = paying.receiver.at('/new?key=hidden');
    assert.ok(received);
    const now = () => paying.clock.now().epochMilliseconds;
    const { raw, headers } = received;
    const callback = await verifyCallback(raw, headers, account.signing_key, { now });
    assert.deepEqual(callback, JSON.parse(answered.payload));
    assert.deepEqual(
      { ...callback, client_reference_id: '' },
      {
        ...{ status: 'cancelled', amount: 100, currency: 'ZAR', client_reference_id: '' },
        ...{ number_of_payments: 1, test: true },
      },
    );
    assert.match(callback.client_reference_id, /^test-callback-[0-9a-f-]{36}$/);
    const { response_status, response_body, response_body_bytes, delivered, summary } = answered;
    assert.deepEqual([response_status, delivered, response_body.length], [404, false, 1_024]);
    assert.equal(response_body_bytes, 2_000);
    assert.match(summary, /this one does not exist/);

    // The address is guarded like that of every callback, and the refusal says what is wrong.
    assert.match(await refused(409, send(own, 'https://10.0.0.1/')), /must have a public address/);
    assert.match(await refused(409, send(own, 'not an address')), /must be an https URL/);
    const gone = await done(send(own, 'http://127.0.0.1:1/'));
    assert.deepEqual(
      [gone.reason, gone.summary],
      ['connect', 'No server is listening at this address.'],
    );
    const byCommand = await tranche.json('integrations', 'test-callback', account.id, '--url', url);
    assert.equal(byCommand.delivered, true);

    const { rows } = await paying.service.deps.database.pool.query(
      `select details ->> 'address' as address, merchant_id from operator_actions
       where action = 'integrations test-callback' and subject_id = $1 order by number limit 1`,
      [account.id],
    );
    assert.deepEqual(rows, [{ address: url.split('?')[0], merchant_id: merchant_ids[0] }]);
    // Two of the twenty were refused for their address, which counts too.
    for (let sent = 4; sent < 20; sent += 1) await refused(409, send(own, 'no'));
    assert.match(await refused(429, send(own, url)), /Too many test callbacks/);
    await done(send(await person(), url));
  });

  test('a merchant’s administrator does not multiply its limits by integrations, at once or in turn', async () => {
    const { deps } = paying.service;
    const { merchant } = await createAccount(paying.service);
    const wanted = { merchant_id: merchant.id, refund_mode: 'manual' as const };
    const [own, admin] = [
      await addPerson(paying.service, { roles: ['merchant-admin'], merchant_ids: [merchant.id] }),
      await person('admin'),
    ];
    for (let made = 1; made < 19; made += 1) await createIntegration(deps, 'test', wanted);
    const create = (who: ConsolePerson) => post(who, '/api/integrations', wanted);
    const answers = await Promise.all([create(own), create(own), create(own)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409]);
    const id = answers.find(({ status }) => status === 200)?.body.id;
    await done(post(own, `/api/integrations/${id}/revoke`));
    assert.match(await refused(409, create(own)), /ask an administrator of the payment service/);
    await done(create(admin));
    // Revoked integrations no longer count a day after they were created.
    await tamper(
      deps.database.pool,
      `update integrations set created_at = created_at - interval '25 hours',
         revoked_at = case when id = $2 then revoked_at else now() end
       where merchant_id = $1`,
      [merchant.id, id],
    );
    await done(create(own));
  });

  test('a change of a merchant’s rules and page never says that nothing was done if a part was', async () => {
    const { merchant } = await createAccount(paying.service);
    const url = `/api/merchants/${merchant.id}`;
    const admin = await person();
    const { pool } = paying.service.deps.database;
    await pool.query(
      "alter table merchants add constraint of_the_test check (short_name <> 'Refused')",
    );
    for (const [more, expected, threshold] of [
      [{ no_fees: false, was: { no_fees: true } }, [409, 'refused'], null],
      [{ short_name: 'Refused' }, [503, 'outcome_unknown'], 1],
    ] as const) {
      const change = { four_eyes_above: 1, ...more };
      const { status, body } = await askExactly(console(), admin, 'PATCH', url, change);
      assert.deepEqual([status, body.error.code], expected);
      assert.equal(body.error.message.startsWith('The rules were changed.'), threshold !== null);
      const now = await askExactly(console(), admin, 'GET', url);
      assert.equal(now.body.four_eyes_above, threshold);
    }
    await pool.query('alter table merchants drop constraint of_the_test');
  });

  test('a change of what another person has changed meanwhile is refused, and undoes nothing', async () => {
    const [ours, other] = [await person(), await person('admin', 'Sam Naidoo')];
    const { merchant } = await createAccount(paying.service);
    const colleague = await person('viewer');
    const change = (who: ConsolePerson, url: string, body: object) =>
      askExactly(console(), who, 'PATCH', url, body);
    const read = async (url: string) => (await askExactly(console(), ours, 'GET', url)).body;
    const refusal = 'This was changed in the meantime by Sam Naidoo. Reload and try again.';
    const changes: [string, object, object, object][] = [
      [
        `/api/merchants/${merchant.id}`,
        { four_eyes_above: null },
        { four_eyes_above: 100_000 },
        { four_eyes_above: 900_000 },
      ],
      [
        `/api/merchants/${merchant.id}`,
        { rules: (await read(`/api/merchants/${merchant.id}`)).rules },
        { rules: [{ from_amount: 5_000, to_amount: 90_000, terms: [1, 3] }] },
        { rules: [{ from_amount: 5_000, to_amount: 90_000, terms: [1, 2] }] },
      ],
      [
        `/api/merchants/${merchant.id}`,
        { logo: null, contact: null },
        { logo: null, contact: 'help@bean.example' },
        { logo: null, contact: 'shop@bean.example' },
      ],
      [
        `/api/people/${colleague.id}`,
        { roles: ['viewer'] },
        { roles: ['support'] },
        { roles: ['refunds'] },
      ],
      [
        `/api/people/${colleague.id}`,
        { merchant_ids: null },
        { merchant_ids: [merchant.id] },
        { merchant_ids: [paying.account.merchant.id] },
      ],
    ];
    for (const [url, was, theirs, wanted] of changes) {
      await done(change(other, url, { ...theirs, was }));
      const before = await read(url);
      assert.equal(await refused(409, change(ours, url, { ...wanted, was })), refusal);
      assert.deepEqual({ ...(await read(url)), now: null }, { ...before, now: null });
      // A person who has read the new values can change them.
      await done(change(ours, url, { ...wanted, was: theirs }));
    }
    // One of two requests at the same moment succeeds.
    for (const [url, , theirs, wanted] of changes) {
      const both = await Promise.all(
        [ours, other].map((who) => change(who, url, { ...theirs, was: wanted })),
      );
      assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409], url);
    }
    // A merchant's people see only the role of the service's staff.
    const theirs = await addPerson(paying.service, {
      roles: ['admin'],
      merchant_ids: [merchant.id],
    });
    const own = `/api/merchants/${merchant.id}`;
    const stale = { four_eyes_above: 300_000, was: { four_eyes_above: 1 } };
    const shown =
      'This was changed in the meantime by the payment service (admin). Reload and try again.';
    assert.equal(await refused(409, change(theirs, own, stale)), shown);
    // A value that the action does not touch may have changed.
    const url = `/api/people/${colleague.id}`;
    await done(change(ours, url, { name: 'Kim Jacobs', was: {} }));
    assert.equal((await change(ours, url, { name: 'x', was: { email: 'x' } })).status, 422);
    // Once the staff have left and work for the merchant, its people read the name that it gave
    // them.
    const ids = [ours.id, other.id];
    await paying.service.deps.database.pool.query(
      `insert into people (id, email, name, roles, merchant_ids, created_at, registered_at,
         access_since, identity_id)
       select gen_random_uuid(), email, 'Lee', roles, $2, created_at, registered_at, access_since, id
       from people where id = any($1)`,
      [ids, [merchant.id]],
    );
    assert.equal(await refused(409, change(theirs, own, stale)), shown);
    await paying.service.deps.database.pool.query(
      'update people set revoked_at = created_at where id = any($1)',
      [ids],
    );
    const named = 'This was changed in the meantime by Lee. Reload and try again.';
    assert.equal(await refused(409, change(theirs, own, stale)), named);
  });

  test('an integration’s refunds are approved at once, or reviewed again', async () => {
    const account = await createAccount(paying.service);
    const url = `/api/integrations/${account.id}`;
    const set = async (refund_mode: string) =>
      await done(post(await person(), `${url}/refund-mode`, { refund_mode }));
    const isApproved = async () => {
      const shopper = await paid(3, account);
      await paying.pass({ days: 2 });
      const id = await askRefund(paying, shopper, 1_000, account);
      const rows = await shopper.rows('refund_requests');
      return rows.find((row) => row.id === id)?.approved_at !== null;
    };
    assert.equal(await isApproved(), false);
    assert.deepEqual(await set('auto'), { id: account.id, refund_mode: 'auto' });
    assert.equal(await isApproved(), true);
    await set('manual');
    assert.equal(await isApproved(), false);
    const audit = `/api/audit?subject=${account.id}`;
    const { body } = await askExactly(console(), await person(), 'GET', audit);
    const { action, details } = body.data[0];
    assert.deepEqual(
      [action, details],
      ['integrations refunds', { refund_mode: 'manual', before: { refund_mode: 'auto' } }],
    );
    await assertSound(paying);
  });

  test('a person who makes a payment link gives it no address for callbacks', async () => {
    const { merchant } = paying.account;
    const request_id = paying.service.deps.random.uuid();
    const order = { amount: 150_000, client_reference_id: 'link-9' };
    const offer = { request_id, merchant_id: merchant.id, ...order };
    for (const role of ['till', 'admin'] as const) {
      const { status, body } = await post(await person(role), '/api/payment-links', {
        ...offer,
        notify_url: `${paying.receiver.url}/elsewhere`,
      });
      assert.deepEqual([status, body.error?.code], [422, 'invalid'], role);
    }
    await done(post(await person('till'), '/api/payment-links', { ...offer, notify_url: 'none' }));
  });

  test('a request for a payment link that is repeated makes one link and one mail', async () => {
    const { deps } = paying.service;
    const { merchant } = await createAccount(paying.service);
    const by = await person('till');
    const body = {
      ...{ request_id: deps.random.uuid(), merchant_id: merchant.id, amount: 150_000 },
      ...{ client_reference_id: 'link-10', email: 'once@example.com', mail: true, days: 3 },
    };
    const make = (changes: object = {}) => post(by, '/api/payment-links', { ...body, ...changes });
    const [one, other] = await Promise.all([done(make()), done(make())]);
    paying.clock.advance({ minutes: 1 });
    assert.deepEqual([other.id, (await done(make())).id], [one.id, one.id]);
    assert.match(await refused(409, make({ amount: 150_001 })), /used for another link/);
    const { rows } = await deps.database.pool.query(
      `select (select count(*) from payment_links where merchant_id = $1)::int as links,
         (select count(*) from messages where merchant_id = $1)::int as mails`,
      [merchant.id],
    );
    assert.deepEqual(rows, [{ links: 1, mails: 1 }]);
    await done(make({ request_id: deps.random.uuid() }));
  });

  test('an overdue payment of a disputed checkout says so, and that a retry must wait', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    await shopper.pay(3, { card: cards.laterInsufficientFunds });
    await paying.pass({ days: 45 });
    const onCall = await person('on-call');
    const list = `/api/overdue?merchant=${account.merchant.id}`;
    const read = async () => (await askExactly(console(), onCall, 'GET', list)).body.data[0];
    const { is_retry_sensible, paused_by } = await read();
    assert.deepEqual([is_retry_sensible, paused_by], [true, null]);
    await openDispute(paying, shopper);
    const row = await read();
    assert.deepEqual([row.is_retry_sensible, row.paused_by], [false, 'dispute']);
    assert.match(row.advice, /is disputed/);
    const retry = `/api/instalments/${shopper.id}/${row.number}/retry`;
    assert.match(await refused(409, post(onCall, retry)), /a dispute or/);
  });

  test('an alert is taken by one person, and closed with a reason', async () => {
    const { deps } = paying.service;
    await raiseAlert(deps, deps.database.db, { kind: 'card_testing', detail: 'Look at this.' });
    const [one, other] = [await person('on-call'), await person('on-call')];
    const { body } = await askExactly(console(), one, 'GET', '/api/alerts?state=open&limit=1');
    const url = `/api/alerts/${body.data[0].id}`;
    const answers = await Promise.all([post(one, `${url}/take`), post(other, `${url}/take`)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
    const closed = await done(post(other, `${url}/close`, { reason: 'Repaired.' }));
    assert.deepEqual(
      [closed.state, closed.closed_by, closed.closed_by_name],
      ['closed', other.email, 'Nomsa Dube'],
    );
    const { body: list } = await askExactly(console(), one, 'GET', '/api/alerts?state=closed');
    assert.equal(list.data[0].id, closed.id);
  });

  test('an alert that a person caused, or that is about them, is taken and closed by another person', async () => {
    const { deps } = paying.service;
    const account = await createAccount(paying.service);
    await changeRules(deps, 'sipho', { id: account.merchant.id, four_eyes_above: 5 });
    const [causer, other] = [await person(), await person()];
    const url = `/api/merchants/${account.merchant.id}`;
    await done(askExactly(console(), causer, 'PATCH', url, { four_eyes_above: null }));
    const list = `/api/alerts?merchant=${account.merchant.id}`;
    const seen = async (by: ConsolePerson) =>
      (await askExactly(console(), by, 'GET', list)).body.data[0];
    assert.match((await seen(causer)).close_refusal, /^Your own action/);
    assert.equal((await seen(other)).close_refusal, null);
    const close = `/api/alerts/${(await seen(other)).id}/close`;
    const reason = { reason: 'Agreed.' };
    assert.match(await refused(409, post(causer, close, reason)), /^Your own action raised this/);
    const take = close.replace(/close$/, 'take');
    assert.match(await refused(409, post(causer, take)), /^Your own action raised this/);
    await done(post(other, take));
    const stale = await addPerson(paying.service, { roles: ['on-call'], isFresh: false });
    const unproved = await post(stale, close, reason);
    assert.deepEqual([unproved.status, unproved.body.error.code], [403, 'proof_needed']);
    await done(post(other, close, reason));
    // An alert of the service itself needs no passkey.
    const own = await raiseAlert(deps, deps.database.db, { kind: 'card_testing', detail: 'x' });
    await done(post(stale, `/api/alerts/${own}/close`, reason));
    const about = {
      kind: 'card_testing' as const,
      subject_id: other.id,
      caused_by: causer.email,
      detail: 'x',
    };
    const id = await raiseAlert(deps, deps.database.db, about);
    assert.match(
      await refused(409, post(other, `/api/alerts/${id}/close`, reason)),
      /^This alert is about you/,
    );
    assert.match(
      await refused(409, post(other, `/api/alerts/${id}/take`)),
      /^This alert is about you/,
    );
    await assert.rejects(takeAlert(deps, causer.email, id), /^Error: Your own action/);
    await assert.rejects(closeAlert(deps, causer.email, id, 'Agreed.'), /^Error: Your own action/);
    await closeAlert(deps, 'sipho', id, 'Agreed.');
  });

  test('an address that the command line states is not shown as the person', async () => {
    const { deps } = paying.service;
    const [one, other] = [await person('on-call'), await person('on-call')];
    const { merchant } = await createAccount(paying.service);
    const about = {
      kind: 'card_testing' as const,
      merchant_id: merchant.id,
      detail: 'Look at this.',
    };
    const id = await raiseAlert(deps, deps.database.db, about);
    // At the command line these addresses are values of TRANCHE_OPERATOR, which prove no identity.
    await takeAlert(deps, one.email, id);
    await closeAlert(deps, other.email, id, 'Repaired.');
    const { body: alert } = await askExactly(console(), one, 'GET', `/api/alerts/${id}`);
    assert.deepEqual([alert.taken_by, alert.taken_by_name], [one.email, one.email]);
    assert.deepEqual([alert.closed_by, alert.closed_by_name], [other.email, other.email]);

    await proposeAccount(deps, one.email, merchant.id, bankAccount);
    await confirmAccount(deps, other.email, merchant.id, { number: 1, ...bankAccount });
    await closeEndedAlerts(deps);
    const { rows: ended } = await deps.database.pool.query(
      `select closed_by, due_at is not null as is_to_be_posted from alerts
       where merchant_id = $1 and kind = 'bank_account_proposed'`,
      [merchant.id],
    );
    assert.deepEqual(ended, [{ closed_by: 'the service', is_to_be_posted: true }]);
    const url = `/api/merchants/${merchant.id}`;
    const { body } = await askExactly(console(), await person(), 'GET', url);
    const { proposed_by, confirmed_by } = body.payee.account;
    assert.deepEqual([proposed_by, confirmed_by], [one.email, other.email]);

    await changeRules(deps, one.email, { id: merchant.id, four_eyes_above: 5 });
    const stale = { four_eyes_above: 1, was: { four_eyes_above: null } };
    const answer = askExactly(console(), await person(), 'PATCH', url, stale);
    const stated = `^This was changed in the meantime by ${one.email}\\.`;
    assert.match(await refused(409, answer), new RegExp(stated));
  });
});

describe('the money of merchants', () => {
  test('a payout is approved by two people, exported once, and paid with the bank’s reference', async () => {
    const { id, url, merchant_name } = await payoutOf();
    const first = await person('finance', 'First Approver');
    const second = await person('finance', 'Second Approver');
    const draft = await done(approvePayout(first, url));
    assert.deepEqual([draft.status, draft.approvals, draft.may_approve], ['draft', 1, false]);
    assert.match(await refused(409, approvePayout(first, url)), /Another operator/);
    const { body: seen } = await askExactly(console(), second, 'GET', url);
    assert.deepEqual([seen.may_approve, seen.audit.at(-1).name], [true, 'First Approver']);
    const { gross, fee, vat, net } = seen.totals;
    assert.deepEqual([gross, fee, vat, net], [150_000, 7_500, 1_125, 141_375]);
    assert.equal(net, seen.amount);
    assert.deepEqual([seen.lines.length, seen.lines[0].name], [1, 'Sale']);
    const approved = await done(approvePayout(second, url));
    assert.deepEqual([approved.status, approved.approvals], ['approved', 2]);
    const [one, other] = await Promise.all([
      done(post(first, '/api/payouts/export')),
      done(post(second, '/api/payouts/export')),
    ]);
    const made = [one, other].filter(({ export_id }) => export_id !== null);
    assert.deepEqual([made.length, made[0].payouts], [1, 1]);
    const again = await done(post(first, `/api/payout-exports/${made[0].export_id}/file`));
    assert.equal(again.file, made[0].file);
    const lines = made[0].file.trim().split(/\r?\n/);
    assert.equal(lines.length, 2);
    assert.ok(lines[1].includes(id) && lines[1].includes(merchant_name));
    assert.ok(lines[1].includes(',1413.75,ZAR,') && lines[1].includes('0123456789'));
    const message = await done(
      post(second, `/api/payout-exports/${made[0].export_id}/file?format=pain.001`),
    );
    assert.match(message.file, /<InstdAmt Ccy="ZAR">1413\.75<\/InstdAmt>/);
    assert.match(message.file, /<Othr><Id>0123456789<\/Id><\/Othr>/);
    const reason = { reason: 'account closed' };
    // The operator meant another line of the bank's statement.
    const mistaken = await done(post(second, `${url}/returned`, { reason: 'a mistake' }));
    assert.deepEqual([mistaken.status, mistaken.return_noted_by], ['exported', second.email]);
    const paidOut = await done(post(first, `${url}/paid`, { bank_reference: 'FT26320X1' }));
    assert.deepEqual([paidOut.status, paidOut.bank_reference], ['paid', 'FT26320X1']);
    assert.deepEqual([paidOut.return_noted_by, paidOut.return_reason], [null, null]);
    const noted = await done(post(first, `${url}/returned`, reason));
    assert.deepEqual([noted.status, noted.return_noted_by], ['paid', first.email]);
    assert.match(await refused(409, post(first, `${url}/returned`, reason)), /Another operator/);
    // The second operator read the page before the first one recorded the return.
    assert.equal(
      await refused(409, post(second, `${url}/returned`, { ...reason, as_first: true })),
      `${first.email} recorded this return in the meantime. Reload and try again.`,
    );
    const back = await done(post(second, `${url}/returned`, reason));
    assert.deepEqual([back.status, back.return_reason], ['returned', 'account closed']);
    await refused(409, post(first, `${url}/paid`, { bank_reference: 'again' }));
    const statement = await ask(console(), first, 'GET', `${url}/statement.csv`);
    assert.match(String(statement.headers['content-disposition']), /^attachment; filename="TR/);
    assert.match(String(statement.body), /^\ufeff[\s\S]*,1413\.75,ZAR/);
    await assertSound(paying);
  });

  test('an administrator of all merchants sets the fees that the merchant’s page shows', async () => {
    const { merchant } = await createAccount(paying.service);
    const url = `/api/merchants/${merchant.id}`;
    const admin = await person('admin', 'An Administrator');
    const fees = { basis_points: 535, fixed: 480, vat_basis_points: 1_500 };
    const read = async () => (await askExactly(console(), admin, 'GET', url)).body.terms;
    assert.deepEqual(await read(), []);
    await refused(403, post(await person('finance', 'Finance'), `${url}/terms`, fees));
    for (const bad of [{ from: '2026-02-30' }, { basis_points: 10_001 }, { fixed: -1 }]) {
      await refused(422, post(admin, `${url}/terms`, { ...fees, ...bad }));
    }
    assert.match(
      await refused(409, post(admin, `${url}/terms`, { ...fees, reserve_basis_points: 100 })),
      /A reserve needs/,
    );
    await done(post(admin, `${url}/terms`, fees));
    const later = { ...fees, basis_points: 300, funding: 'as_collected', from: '2099-01-01' };
    await done(post(admin, `${url}/terms`, later));
    const byDefault = { refund_fee: 'kept', reserve_basis_points: 0, reserve_days: 0 };
    const [next, first] = (await read()).map(
      ({ created_at: _, ...terms }: object & { created_at: string }) => terms,
    );
    assert.deepEqual(next, { ...later, ...byDefault });
    assert.deepEqual({ ...first, from: '' }, { ...fees, ...byDefault, funding: 'whole', from: '' });
  });

  test('a bank account is in use once another person has confirmed it', async () => {
    const { merchant } = await createAccount(paying.service);
    const url = `/api/merchants/${merchant.id}`;
    const first = await person('finance', 'First Person');
    const second = await person('admin', 'Second Person');
    const wanted = {
      holder: 'Bean There (Pty) Ltd',
      bank: 'A Bank',
      branch_code: '051001',
      account_number: '0123456789',
    };
    const bad = { ...wanted, branch_code: '12' };
    assert.match(
      await refused(409, post(first, `${url}/bank-accounts`, bad)),
      /^The branch code must have six digits/,
    );
    const payee = await done(post(first, `${url}/bank-accounts`, wanted));
    assert.deepEqual(
      [payee.account, payee.proposed.last4, payee.proposed.proposed_by, payee.is_own_proposal],
      [null, '6789', `First Person (${first.email})`, true],
    );
    const newer = { ...wanted, account_number: '9876543210' };
    const confirm = (one: ConsolePerson, number: number) =>
      post(one, `${url}/bank-accounts/${number}/confirm`, {
        account_number: (number === 2 ? newer : wanted).account_number,
      });
    assert.match(await refused(409, confirm(first, 1)), /Another operator must confirm/);
    const both = await Promise.all([
      post(first, `${url}/bank-accounts`, { ...newer, replaces: 1 }),
      post(first, `${url}/bank-accounts`, { ...newer, replaces: 1 }),
    ]);
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409]);
    assert.match(await refused(409, confirm(second, 1)), /not the newest proposal/);
    const { body: seen } = await askExactly(console(), second, 'GET', url);
    assert.deepEqual([seen.payee.account, seen.payee.is_own_proposal], [null, false]);
    const answers = await Promise.all([confirm(second, 2), confirm(await person(), 2)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
    const { body } = await askExactly(console(), first, 'GET', url);
    const { account, proposed } = body.payee;
    assert.deepEqual([account.number, account.last4, proposed], [2, '3210', null]);
    assert.equal(account.proposed_by, `First Person (${first.email})`);
    assert.match(account.confirmed_by, /^(Second Person|Nomsa Dube) \(\S+@\S+\)$/);
    const to = { email: 'books@bean.example' };
    const twice = [second, second].map((by) => done(post(by, `${url}/statements-to`, to)));
    await Promise.all(twice);
    assert.match(
      await refused(409, post(second, `${url}/statements-to`, { email: 'nothing' })),
      /one e-mail address/,
    );
    const { body: audit } = await askExactly(
      console(),
      second,
      'GET',
      `/api/audit?subject=${merchant.id}`,
    );
    const before = (action: string) =>
      audit.data
        .filter((one: { action: string }) => one.action === action)
        .map((one: { details: { before: unknown } }) => one.details.before);
    assert.deepEqual(before('merchants bank'), [null, null]);
    assert.deepEqual(before('merchants bank confirm'), [null]);
    assert.deepEqual(before('merchants bank statements').at(-1), { has_address: false });
    await done(post(first, `${url}/bank-accounts`, wanted));
    await done(confirm(second, 3));
    const terms = { ...wholeTerms, from_on: '2026-12-01' };
    await setTerms(paying.service.deps, 'test', merchant.id, terms);
    await setTerms(paying.service.deps, 'test', merchant.id, { ...terms, fixed: 100 });
    const { body: newest } = await askExactly(
      console(),
      second,
      'GET',
      `/api/audit?subject=${merchant.id}&limit=4`,
    );
    const inUse = { number: 2, last4: '3210' };
    assert.deepEqual(
      newest.data.map((one: { details: { before: unknown } }) => one.details.before),
      [terms, null, inUse, inUse],
    );
    // No answer, and no row of the audit or of the alerts, has the whole account number.
    for (const path of [url, `/api/audit?subject=${merchant.id}`, '/api/alerts']) {
      const { body: shown } = await askExactly(console(), second, 'GET', path);
      assert.ok(!/0123456789|9876543210/.test(JSON.stringify(shown)), path);
    }
    const { body: seenBySupport } = await askExactly(
      console(),
      await person('support'),
      'GET',
      url,
    );
    assert.equal(seenBySupport.payee, null);
    const staff = await addPerson(paying.service, {
      roles: ['finance', 'admin'],
      merchant_ids: [merchant.id],
    });
    await done(post(staff, `${url}/bank-accounts`, wanted));
    await refused(403, confirm(staff, 4));
    await assertSound(paying);
  });

  test('a wrong account number at the confirmation is in the audit, and ends the proposal after five', async () => {
    const { merchant } = await createAccount(paying.service);
    const url = `/api/merchants/${merchant.id}/bank-accounts`;
    const [first, second, third] = [await person(), await person(), await person()];
    await done(post(first, url, bankAccount));
    const confirm = (by: ConsolePerson, number: number, account_number: string) =>
      post(by, `${url}/${number}/confirm`, { account_number });
    const wrong = (by: ConsolePerson) => confirm(by, 1, '0123456780');
    for (const by of [second, third, second]) {
      assert.match(await refused(409, wrong(by)), /^This is not the account number/);
    }
    // Simultaneous requests are counted one by one.
    const answers = await Promise.all([1, 2, 3, 4].map(() => wrong(second)));
    const texts = answers.map(({ body }) => body.error.message);
    assert.equal(texts.filter((text) => text.startsWith('This is not the account')).length, 2);
    const { account_number } = bankAccount;
    assert.match(
      await refused(409, confirm(second, 1, account_number)),
      /^Five wrong numbers were typed for this proposal. Propose the account again/,
    );
    const audit = `/api/audit?subject=${merchant.id}`;
    const { body } = await askExactly(console(), first, 'GET', audit);
    const typed = body.data.filter((one: { action: string }) => /mismatch/.test(one.action));
    assert.deepEqual(
      typed
        .map((one: { details: { wrong_numbers: number } }) => one.details)
        .sort(
          (one: { wrong_numbers: number }, other: { wrong_numbers: number }) =>
            other.wrong_numbers - one.wrong_numbers,
        ),
      [5, 4, 3, 2, 1].map((wrong_numbers) => ({ number: 1, last4: '6789', wrong_numbers })),
    );
    assert.ok(typed.some((one: { person_id: string }) => one.person_id === third.id));
    assert.doesNotMatch(JSON.stringify(body), /0123456780/);
    await done(post(first, url, { ...bankAccount, replaces: 1 }));
    await done(confirm(second, 2, account_number));
  });

  test('of people who approve a payout at once, one is the first approver and one the second', async () => {
    const { url } = await payoutOf();
    const people = await Promise.all([1, 2, 3].map(() => person('finance')));
    const answers = await Promise.all(people.map((one) => approvePayout(one, url)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 409]);
    const { body } = await askExactly(console(), people[0] as ConsolePerson, 'GET', url);
    assert.deepEqual([body.status, body.approvals], ['approved', 2]);
  });

  test('a payout whose bank account changed is approved again by two people', async () => {
    const payee = await createPayee();
    // Five days are longer than any weekend, so a payout is made.
    await paying.pass({ days: 5 });
    const { url } = await findDraft(payee);
    const [one, other] = [await person('finance'), await person('finance')];
    for (const approver of [one, other]) await done(approvePayout(approver, url));
    const owed = `/api/merchants/${payee.merchant.id}/balance`;
    const stateOf = async (by: ConsolePerson) => {
      const { body } = await askExactly(console(), by, 'GET', url);
      const { approvals, may_approve, approved_account, account } = body;
      const { body: balance } = await askExactly(console(), by, 'GET', owed);
      const [row] = balance.payouts;
      assert.deepEqual([row.approvals, row.approved_account], [approvals, approved_account]);
      return { approvals, may_approve, account: account.last4, for: approved_account?.last4 };
    };
    assert.deepEqual(await stateOf(one), {
      ...{ approvals: 2, may_approve: false, account: '6789', for: '6789' },
    });
    const { deps } = paying.service;
    const moved = { ...bankAccount, account_number: '9876543210' };
    await proposeAccount(deps, 'one', payee.merchant.id, moved);
    await confirmAccount(deps, 'other', payee.merchant.id, { number: 2, ...moved });
    assert.deepEqual(await stateOf(one), {
      ...{ approvals: 0, may_approve: true, account: '3210', for: '6789' },
    });
    // Both still look at the page from before.
    for (const approver of [one, other]) {
      const stale = post(approver, `${url}/approve`, { account: 1 });
      assert.match(await refused(409, stale), /not the one that you saw\. Account 2, .* 3210/);
    }
    await refused(422, post(one, `${url}/approve`, {}));
    assert.equal((await stateOf(one)).approvals, 0);
    const again = await done(approvePayout(one, url));
    assert.deepEqual([again.status, again.approvals, again.may_approve], ['draft', 1, false]);
    await refused(409, post(other, `${url}/approve`, { account: 1 }));
    assert.deepEqual(await stateOf(other), {
      ...{ approvals: 1, may_approve: true, account: '3210', for: '3210' },
    });
    const approved = await done(approvePayout(other, url));
    assert.deepEqual([approved.status, approved.approvals], ['approved', 2]);
    assert.deepEqual(
      approved.audit.map(({ details }: { details: { account: string } }) => details.account),
      ['6789', '6789', '3210', '3210'],
    );
  });

  test('a payout that must be compared with the bank is exported once a person has confirmed it and two have approved it again', async () => {
    const { id, url } = await payoutOf();
    const [one, other] = [await person('finance'), await person('finance')];
    for (const approver of [one, other]) await done(approvePayout(approver, url));
    // Change the row as a restore would.
    await paying.service.deps.database.pool.query(
      'update payouts set compare_since = created_at where id = $1',
      [id],
    );
    const held = await done(post(one, '/api/payouts/export'));
    assert.ok(!held.file.includes(id));
    assert.deepEqual(
      held.to_compare.map((payout: { id: string }) => payout.id),
      [id],
    );
    const reason = 'not on the statement of today';
    await refused(403, post(await person('support'), `${url}/confirm`, { reason }));
    const confirmed = await done(post(one, `${url}/confirm`, { reason }));
    assert.deepEqual(
      [confirmed.compare_since, confirmed.status, confirmed.approvals],
      [null, 'draft', 0],
    );
    assert.equal(confirmed.audit.at(-1).action, 'payouts confirm');
    assert.match(await refused(409, post(one, `${url}/confirm`, { reason })), /need not/);
    assert.ok(!(await done(post(one, '/api/payouts/export'))).file.includes(id));
    for (const approver of [one, other]) await done(approvePayout(approver, url));
    assert.ok((await done(post(one, '/api/payouts/export'))).file.includes(id));
  });

  test('a merchant’s own staff read its payouts and decide nothing', async () => {
    const { url, id } = await payoutOf();
    const admin = await person();
    const { body } = await askExactly(console(), admin, 'GET', url);
    const staff = await addPerson(paying.service, {
      roles: ['finance', 'admin'],
      merchant_ids: [body.merchant_id],
    });
    const { body: list } = await askExactly(console(), staff, 'GET', '/api/payouts');
    assert.deepEqual(
      list.data.map((row: { id: string }) => row.id),
      [id],
    );
    for (const path of [`${url}/approve`, '/api/payouts/export']) {
      await refused(403, post(staff, path));
    }
    // How far the approval has progressed, and what is compared, is for the service's staff.
    await done(approvePayout(await person('finance'), url));
    await paying.service.deps.database.pool.query(
      'update payouts set compare_since = created_at where id = $1',
      [id],
    );
    const owed = `/api/merchants/${body.merchant_id}/balance`;
    const approvalsFor = async (by: ConsolePerson) => {
      const read = async (path: string) => (await askExactly(console(), by, 'GET', path)).body;
      const { data } = await read(`/api/payouts?merchant=${body.merchant_id}`);
      const details = await read(url);
      const rows = [data[0], details, (await read(owed)).payouts[0]];
      const { body: csv } = await ask(console(), by, 'GET', '/api/payouts.csv');
      const [heads = '', ...lines] = csv.trim().split('\r\n');
      const line = lines.find((one: string) => one.includes(details.reference));
      const approvals = line.split(',')[heads.split(',').indexOf('Approvals')];
      const seen = rows.map((row) => [row.approvals, row.approved_account, row.compare_since]);
      return { seen, approvals, actions: details.audit.length };
    };
    const nothing = [null, null, null];
    assert.deepEqual(await approvalsFor(staff), {
      ...{ seen: [nothing, nothing, nothing], approvals: '', actions: 0 },
    });
    const all = await approvalsFor(admin);
    assert.deepEqual([all.seen[0]?.[0], all.approvals, all.actions], [1, '1', 1]);
  });

  test('evidence is read, staged and submitted once, and a lost dispute is accepted', async () => {
    const [shopper, other, third] = [await paid(), await paid(), await paid()];
    await paying.pass({ days: 2 });
    const merchant = paying.account.merchant.id;
    const finance = await addPerson(paying.service, {
      ...{ roles: ['finance', 'on-call'], name: 'Fikile Finance' },
      merchant_ids: [merchant, (await createAccount(paying.service)).merchant.id],
    });
    const id = await openDispute(paying, shopper);
    const url = `/api/disputes/${id}`;
    const { body: open } = await askExactly(console(), finance, 'GET', url);
    assert.deepEqual(
      [open.status, open.is_answerable, open.amount],
      ['needs_response', true, 50_000],
    );
    const history = open.evidence.find(({ name }: { name: string }) => name === 'History');
    assert.match(history.text, /The disputed payment is number 1/);
    const submit = (evidence_hash: string) => post(finance, `${url}/submit`, { evidence_hash });
    assert.match(await refused(409, submit(open.evidence_hash)), /not been staged yet/);
    assert.equal(open.is_staged, false);
    const staged = await done(post(finance, `${url}/stage`));
    assert.deepEqual([staged.status, staged.staged_at !== null], ['needs_response', true]);
    assert.deepEqual([staged.is_staged, staged.is_outdated], [true, false]);
    assert.equal(staged.evidence_hash, open.evidence_hash);
    assert.match(await refused(409, submit('0'.repeat(64))), /staged again since you looked/);
    const submitted = await done(submit(staged.evidence_hash));
    assert.equal(submitted.status, 'under_review');
    assert.deepEqual(
      submitted.audit.map((one: { action: string; name: string }) => [one.action, one.name]),
      [
        ['disputes stage', 'Fikile Finance'],
        ['disputes submit', 'Fikile Finance'],
      ],
    );
    await refused(409, submit(staged.evidence_hash));
    const { body: checkout } = await askExactly(
      console(),
      finance,
      'GET',
      `/api/checkouts/${shopper.id}`,
    );
    assert.deepEqual(
      checkout.disputes.map((one: { id: string }) => one.id),
      [id],
    );
    assert.ok(checkout.timeline.some(({ kind }: { kind: string }) => kind === 'dispute'));
    assert.notEqual(checkout.callback, null);
    // At a till a person sells and refunds. Other parts of the order need rights of their own.
    const till = await person('till');
    const { body: seen } = await askExactly(console(), till, 'GET', `/api/checkouts/${shopper.id}`);
    const kinds = new Set(seen.timeline.map(({ kind }: { kind: string }) => kind));
    assert.deepEqual(
      ['attempt', 'message', 'dispute', 'callback', 'conversation'].filter((one) => kinds.has(one)),
      ['attempt', 'message'],
    );
    assert.deepEqual([seen.disputes, seen.callback, seen.audit], [[], null, []]);
    const second = `/api/disputes/${await openDispute(paying, other)}`;
    const stop = async (reason: string | null) => {
      await paying.service.deps.database.pool.query(
        'update gateway_heartbeat set stopped_reason = $1, stopped_at = $2',
        [reason, reason && '2026-01-01'],
      );
      // The money guard caches this row for a second.
      paying.clock.advance({ seconds: 2 });
    };
    await stop('The gateway is ahead.');
    const stopped = await post(finance, `${second}/accept`);
    await stop(null);
    assert.deepEqual([stopped.status, stopped.body.error.message], [409, 'The gateway is ahead.']);
    const lost = await done(post(finance, `${second}/accept`));
    assert.deepEqual([lost.status, lost.is_pausing], ['lost', true]);
    const resumed = await done(post(finance, `${second}/resume`));
    assert.equal(resumed.is_pausing, false);
    const { deps } = paying.service;
    await changePage(deps, 'test', { id: merchant, contact: 'help@bean.example' });
    await done(post(finance, `/api/disputes/${await openDispute(paying, third)}/ask`));
    await done(post(finance, `/api/merchants/${merchant}/clock`, { by_seconds: 60 }));
    const { rows } = await deps.database.pool.query(
      'select action, merchant_id from operator_actions where person_id = $1 order by number',
      [finance.id],
    );
    const verbs = ['stage', 'submit', 'accept', 'accept', 'rest', 'ask'];
    assert.deepEqual(
      rows,
      [...verbs.map((verb) => `disputes ${verb}`), 'clock advance'].map((action) => ({
        ...{ action, merchant_id: merchant },
      })),
      'each is in the audit of the merchant, although the person has another one too',
    );
    await assertSound(paying);
  });

  test('an inquiry that became a dispute is not closed, whether or not our row shows it yet', async () => {
    const cases: [isKnown: boolean, body: object, shopper: Shopper][] = [
      [true, { was: { status: 'inquiry' } }, await paid()],
      [false, { was: { status: 'inquiry' } }, await paid()],
      // A command does not say what its person read.
      [false, {}, await paid()],
    ];
    const still = await paid();
    await paying.pass({ days: 2 });
    const finance = await person('finance');
    for (const [isKnown, body, shopper] of cases) {
      const url = `/api/disputes/${await openDispute(paying, shopper, 1, 'inquiry')}`;
      const { body: read } = await askExactly(console(), finance, 'GET', url);
      const escalate = `/_test/disputes/${read.dispute_ref}/resolve`;
      await paying.gateway.call('POST', escalate, { outcome: 'escalated' });
      if (isKnown) await findNewDisputes(paying.service.deps);
      const { body: before } = await askExactly(console(), finance, 'GET', url);
      assert.equal(before.status, isKnown ? 'needs_response' : 'inquiry');

      const accept = (body: object) => post(finance, `${url}/accept`, body);
      assert.match(await refused(409, accept(body)), /changed in the meantime/);
      const there = await paying.gateway.call('GET', `/v1/disputes/${read.dispute_ref}`);
      assert.equal(there.body.status, 'needs_response');
      const { body: after } = await askExactly(console(), finance, 'GET', url);
      assert.deepEqual([after.status, after.audit], ['needs_response', []]);
      const lost = await done(accept({ was: { status: 'needs_response' } }));
      assert.equal(lost.status, 'lost');
    }
    const inquiry = `/api/disputes/${await openDispute(paying, still, 1, 'inquiry')}`;
    const closed = await done(post(finance, `${inquiry}/accept`, { was: { status: 'inquiry' } }));
    assert.deepEqual([closed.status, closed.withdrawn], ['closed', 0]);
    await assertSound(paying);
  });

  test('a merchant’s own people add facts and files to its disputes, which the bank gets as they are', async () => {
    const account = await createAccount(paying.service);
    const { merchant } = account;
    const contact = { contact: 'help@bean.example' };
    const { deps } = paying.service;
    await changePage(deps, 'test', { id: merchant.id, ...contact });
    const shopper = await paid(3, account);
    await paying.pass({ days: 2 });
    const url = `/api/disputes/${await openDispute(paying, shopper)}`;
    const finance = await person('finance');
    const asked = await done(post(finance, `${url}/ask`));
    assert.ok(asked.asked_until < asked.due_by && asked.asked_until > asked.asked_at);

    const merchant_ids = [merchant.id];
    const staff = await addPerson(paying.service, { roles: ['support'], merchant_ids });
    const { body: seen } = await askExactly(console(), staff, 'GET', url);
    const facts = { carrier: 'Aramex', statement: 'He signed.', seen_at: seen.supplied_at };
    await done(post(staff, `${url}/supply`, facts));
    assert.match(
      await refused(409, post(finance, `${url}/supply`, { seen_at: null })),
      /Another person/,
    );
    const content = pdfFile('signed').toString('base64');
    const file = { kind: 'delivery', name: 'slip "1".pdf', content };
    const added = await done(post(staff, `${url}/add-file`, file));
    assert.deepEqual(
      [added.files.length, added.supplied, added.is_answerable],
      [1, { carrier: 'Aramex', statement: 'He signed.' }, true],
    );
    await refused(403, post(staff, `${url}/stage`));
    await refused(403, post(await person('viewer'), `${url}/add-file`, file));
    const elsewhere = [(await createAccount(paying.service)).merchant.id];
    const stranger = await addPerson(paying.service, { roles: ['admin'], merchant_ids: elsewhere });
    const saved = `${url}/files/${added.files[0].id}`;
    await refused(404, post(stranger, `${url}/add-file`, file));
    await refused(404, askExactly(console(), stranger, 'GET', saved));
    await refused(404, askExactly(console(), finance, 'GET', `${url}/files/${merchant.id}`));

    const download = await ask(console(), finance, 'GET', saved);
    assert.deepEqual([download.status, download.body], [200, pdfFile('signed').toString()]);
    const headers = ['content-type', 'content-disposition', 'x-content-type-options'];
    assert.deepEqual(
      headers.map((name) => download.headers[name]),
      ['application/pdf', 'attachment; filename="slip__1_.pdf"', 'nosniff'],
    );
    const staged = await done(post(finance, `${url}/stage`));
    assert.deepEqual([staged.evidence_files.length, staged.is_outdated], [1, false]);
    const actions = ['ask', 'supply', 'add file', 'stage'].map((verb) => `disputes ${verb}`);
    actions.splice(3, 0, 'files read', 'files sent');
    assert.deepEqual(
      staged.audit.map(({ action }: { action: string }) => action),
      actions,
    );
    assert.doesNotMatch(JSON.stringify(staged.audit), /signed|slip/, 'the audit has none of it');
    const { body: checkout } = await askExactly(
      console(),
      staff,
      'GET',
      `/api/checkouts/${shopper.id}`,
    );
    const told = checkout.timeline.map(({ description }: { description: string }) => description);
    assert.ok(
      told.some((text: string) => /sent to the merchant, evidence due by \d+ \w+ 20/.test(text)),
    );
    assert.ok(told.some((text: string) => /has evidence from the merchant/.test(text)));
    await done(post(finance, `${url}/accept`));
    assert.match(await refused(409, post(staff, `${url}/add-file`, file)), /no longer be answered/);
  });

  test('a file that is too large, in another encoding or not a document is refused with a reason', async () => {
    const shopper = await paid();
    await paying.pass({ days: 2 });
    const url = `/api/disputes/${await openDispute(paying, shopper)}`;
    const admin = await person();
    const add = (content: string, more: object = {}) =>
      post(admin, `${url}/add-file`, { kind: 'other', name: 'a.pdf', content, ...more });
    const large = pdfFile('x'.repeat(2_000_000)).toString('base64');
    assert.match(await refused(422, add(large)), /content/);
    assert.match(await refused(400, add(large + large)), /larger than/);
    assert.match(await refused(422, add('%PDF')), /content/);
    assert.match(await refused(409, add('PGh0bWw+')), /complete PDF, PNG or JPEG/);
    assert.match(await refused(422, add('AAAA', { kind: 'video' })), /kind/);
    assert.match(await refused(409, add('AAAA', { name: 'a\nb' })), /name of a file/);
    await done(post(admin, `${url}/accept`));
  });

  test('a difference from the gateway is closed with a reason, and no other alert is', async () => {
    const { deps } = paying.service;
    const about = { kind: 'gateway_other_amount' as const, detail: 'Compare both amounts.' };
    const id = await raiseAlert(deps, deps.database.db, about);
    const foreign = await raiseAlert(deps, deps.database.db, { ...about, kind: 'gateway_trouble' });
    const finance = await person('finance');
    const { body } = await askExactly(console(), finance, 'GET', '/api/differences');
    const ids = body.data.map((row: { id: string }) => row.id);
    assert.ok(ids.includes(id) && !ids.includes(foreign));
    const reason = { reason: 'Refunded the difference.' };
    await refused(404, post(finance, `/api/differences/${foreign}/close`, reason));
    const closed = await done(post(finance, `/api/differences/${id}/close`, reason));
    assert.deepEqual([closed.state, closed.close_reason], ['closed', reason.reason]);
    await refused(409, post(finance, `/api/differences/${id}/close`, reason));
  });
});

describe('every action', () => {
  /**
   * Actions that take several transactions. After the first one they have begun but are not done. A
   * refund is requested, approved or retried in one transaction, and the service continues it.
   */
  const steps = new Set([
    'POST /api/instalments/:checkout/:number/retry',
    'POST /api/callbacks/:id/retry',
    'POST /api/disputes/:id/stage',
    'POST /api/disputes/:id/submit',
    'POST /api/disputes/:id/accept',
    'POST /api/payouts/export',
    'POST /api/merchants/:id/clock',
  ]);

  /**
   * Routes that need an authenticator, a sandbox's link, or a sandbox without orders. They read
   * nothing for their answers.
   */
  const ceremonies = [
    'POST /api/sandbox/story',
    'POST /api/proof/options',
    'POST /api/proof',
    'POST /api/proof/sandbox',
    'POST /api/passkeys/options',
    'POST /api/passkeys',
    'DELETE /api/passkeys/:id',
    'POST /api/issuer/tie',
    'POST /api/session/access',
    'POST /api/session/invitation',
  ];

  /**
   * Makes the database unreachable for the request that has committed something, and for no other.
   */
  async function withoutDatabaseAfterCommit<T>(work: () => Promise<T>): Promise<T> {
    const { pool } = paying.service.deps.database;
    const connect = pool.connect.bind(pool) as (...all: unknown[]) => unknown;
    pool.connect = ((...all: unknown[]) => {
      if (!hasCommitted()) return connect(...all);
      const error = new Error('the database is away');
      const [callback] = all;
      return typeof callback === 'function' ? callback(error) : Promise.reject(error);
    }) as typeof pool.connect;
    try {
      return await work();
    } finally {
      // This restores the class's own method.
      Reflect.deleteProperty(pool, 'connect');
    }
  }

  type Wanted = { url: string; body?: object; by?: ConsolePerson };

  test('that committed something is never reported as refused, and an action of one transaction is reported as done', async () => {
    const { deps } = paying.service;
    const payee = await createPayee();
    const overdue = await paying.shopper();
    await overdue.pay(3, { card: cards.laterInsufficientFunds });
    const [refunded, disputed, accepted] = [await paid(1), await paid(1), await paid(1)];
    await paying.pass({ days: 50 });
    const failed = await askRefund(paying, refunded, 1_000);
    await paying.gateway.fault({ fault: 'decline', method: 'POST', path: '/v1/refunds' });
    await approveRefund(deps, 'nomsa', failed);

    const admin = await person();
    const [first, second] = [await person('finance'), await person('finance')];
    const colleague = await person('viewer');
    const leaver = await person('viewer');
    const held = { email: (await person('viewer')).email, roles: ['viewer'], merchant_ids: null };
    const { person: invited } = await done(post(await person(), '/api/people', held));
    const merchant = await done(post(admin, '/api/merchants', { name: 'Bean There', rules }));
    const issue = async (wanted: object) =>
      `/api/integrations/${(await done(post(admin, '/api/integrations', { refund_mode: 'manual', ...wanted }))).id}`;
    const integration = await issue({ merchant_id: merchant.id });
    const merchant_ids = [merchant.id];
    const intermediary = await issue({ managed_merchant_ids: merchant_ids });
    const payout = await findDraft(payee);
    const dispute = `/api/disputes/${await openDispute(paying, disputed)}`;
    const lost = `/api/disputes/${await openDispute(paying, accepted)}`;
    const [callback] = await overdue.rows('callbacks');
    const alert = await raiseAlert(deps, deps.database.db, { kind: 'books_differ', detail: 'x' });
    const difference = await raiseAlert(deps, deps.database.db, {
      kind: 'gateway_other_amount',
      detail: 'x',
    });
    const conversation = `/api/conversations/${refunded.id}`;
    const asked = () => askRefund(paying, refunded, 1_000);
    const refund = async (verb: string, body?: object): Promise<Wanted> => ({
      url: `/api/refunds/${await asked()}/${verb}`,
      ...(body && { body }),
    });
    const amount = { amount: 1_000, request_id: deps.random.uuid() };
    const notify_url = paying.receiver.url;
    const reason = { reason: 'The test says so.' };

    // The order matters: many actions prepare the next one, although their answers are lost.
    const actions: Record<string, () => Wanted | Promise<Wanted>> = {
      'POST /api/checkouts/:id/refunds': () => ({
        url: `/api/checkouts/${refunded.id}/refunds`,
        body: amount,
      }),
      'POST /api/checkouts/:id/notes': () => ({
        url: `/api/checkouts/${refunded.id}/notes`,
        body: { text: 'A note.' },
      }),
      'POST /api/checkouts/:id/messages/:message/send-again': async () => {
        const messages = await refunded.rows('messages');
        const message = messages.find(({ status }) => status === 'sent');
        return { url: `/api/checkouts/${refunded.id}/messages/${message.id}/send-again` };
      },
      'POST /api/conversations/:id/answer': async () => {
        await (await actingOn(paying, refunded)).post('report', { text: 'Why?' });
        const { body } = await askExactly(console(), admin, 'GET', conversation);
        const answer = { request_id: deps.random.uuid(), text: 'Because.', solves: false };
        return { url: `${conversation}/answer`, body: { ...answer, seen_at: body.moved_at } };
      },
      'POST /api/conversations/:id/solve': async () => {
        const { body } = await askExactly(console(), admin, 'GET', conversation);
        return { url: `${conversation}/solve`, body: { seen_at: body.moved_at } };
      },
      'POST /api/refunds/:id/approve': () => refund('approve', {}),
      'POST /api/refunds/:id/retry': () => ({ url: `/api/refunds/${failed}/retry` }),
      'POST /api/refunds/:id/decline': () => refund('decline', reason),
      'POST /api/refunds/approve': async () => ({
        url: '/api/refunds/approve',
        body: { ids: [await asked()] },
      }),
      'POST /api/instalments/retry': () => ({
        url: '/api/instalments/retry',
        body: { ids: [`${overdue.id}:2`] },
      }),
      'POST /api/payouts/approve': () => ({
        url: '/api/payouts/approve',
        body: { ids: [`${payout.id}:1`] },
      }),
      'POST /api/payouts/paid': () => ({
        url: '/api/payouts/paid',
        body: { ids: [payout.id], bank_reference: 'FT26320X1' },
      }),
      'POST /api/instalments/:checkout/:number/retry': () => ({
        url: `/api/instalments/${overdue.id}/2/retry`,
      }),
      'POST /api/callbacks/:id/retry': () => ({ url: `/api/callbacks/${callback.id}/retry` }),
      'POST /api/callbacks/retry-all': () => ({ url: '/api/callbacks/retry-all', body: {} }),
      'POST /api/disputes/:id/supply': () => ({
        url: `${dispute}/supply`,
        body: { carrier: 'Aramex', seen_at: null },
      }),
      'POST /api/disputes/:id/add-file': () => ({
        url: `${dispute}/add-file`,
        body: { kind: 'other', name: 'a.pdf', content: pdfFile('a').toString('base64') },
      }),
      'POST /api/disputes/:id/remove-file': () => ({
        url: `${dispute}/remove-file`,
        body: { kind: 'other' },
      }),
      'POST /api/disputes/:id/ask': async () => {
        await deps.database.pool.query(`update merchants set contact = 'help@bean.example'`);
        return { url: `${dispute}/ask` };
      },
      'POST /api/disputes/:id/stage': () => ({ url: `${dispute}/stage` }),
      'POST /api/disputes/:id/submit': async () => {
        const { body } = await askExactly(console(), admin, 'GET', dispute);
        return { url: `${dispute}/submit`, body: { evidence_hash: body.evidence_hash } };
      },
      'POST /api/disputes/:id/accept': () => ({ url: `${lost}/accept`, body: {} }),
      'POST /api/disputes/:id/resume': async () => {
        await done(post(admin, `${lost}/accept`));
        return { url: `${lost}/resume` };
      },
      'POST /api/payouts/:id/approve': () => ({
        url: `${payout.url}/approve`,
        body: { account: 1 },
        by: first,
      }),
      'POST /api/payouts/:id/confirm': async () => {
        const update = 'update payouts set compare_since = created_at where id = $1';
        await deps.database.pool.query(update, [payout.id]);
        return { url: `${payout.url}/confirm`, body: reason };
      },
      'POST /api/payouts/export': async () => {
        for (const one of [first, second]) await done(approvePayout(one, payout.url));
        return { url: '/api/payouts/export' };
      },
      'POST /api/payouts/:id/paid': () => ({
        url: `${payout.url}/paid`,
        body: { bank_reference: 'FT26320X1' },
      }),
      'POST /api/payouts/:id/returned': () => ({ url: `${payout.url}/returned`, body: reason }),
      'POST /api/merchants': () => ({
        url: '/api/merchants',
        body: { name: 'Bean Elsewhere', rules },
      }),
      'PATCH /api/merchants/:id': () => ({
        url: `/api/merchants/${merchant.id}`,
        body: { no_fees: true },
      }),
      'POST /api/merchants/:id/clock': () => ({
        url: `/api/merchants/${merchant.id}/clock`,
        body: { by_seconds: 60 },
      }),
      'POST /api/merchants/:id/bank-accounts': () => ({
        url: `/api/merchants/${merchant.id}/bank-accounts`,
        body: bankAccount,
      }),
      'POST /api/merchants/:id/bank-accounts/:number/confirm': () => ({
        url: `/api/merchants/${merchant.id}/bank-accounts/1/confirm`,
        body: { account_number: bankAccount.account_number },
        by: first,
      }),
      'POST /api/merchants/:id/statements-to': () => ({
        url: `/api/merchants/${merchant.id}/statements-to`,
        body: { email: 'books@bean.example' },
      }),
      'POST /api/merchants/:id/terms': () => ({
        url: `/api/merchants/${merchant.id}/terms`,
        body: { basis_points: 495, fixed: 250, vat_basis_points: 1_500 },
      }),
      'POST /api/integrations': () => ({
        url: '/api/integrations',
        body: { merchant_id: merchant.id, refund_mode: 'manual' },
      }),
      'POST /api/integrations/:id/rotate': () => ({
        url: `${integration}/rotate`,
        body: { credential: 'signing_key', overlap_seconds: 0 },
      }),
      'POST /api/integrations/:id/limit': () => ({
        url: `${integration}/limit`,
        body: { endpoint: 'POST /api/checkouts', max_requests: 7, window_seconds: 1 },
      }),
      'POST /api/integrations/:id/events': () => ({
        url: `${integration}/events`,
        body: { enable: ['refunds'] },
      }),
      'POST /api/integrations/:id/test-callback': () => ({
        url: `${integration}/test-callback`,
        body: { url: notify_url },
      }),
      'POST /api/integrations/:id/refund-mode': () => ({
        url: `${integration}/refund-mode`,
        body: { refund_mode: 'auto' },
      }),
      'POST /api/integrations/:id/require-signing': () => ({
        url: `${integration}/require-signing`,
      }),
      'POST /api/integrations/:id/enable-v1': () => ({ url: `${integration}/enable-v1` }),
      'POST /api/integrations/:id/disable-v1': () => ({ url: `${integration}/disable-v1` }),
      'POST /api/integrations/:id/revoke': () => ({ url: `${integration}/revoke` }),
      'POST /api/integrations/:id/managed-merchants': () => ({
        url: `${intermediary}/managed-merchants`,
        body: { add: [payee.merchant.id], remove: [] },
      }),
      'POST /api/payment-links': () => ({
        url: '/api/payment-links',
        body: {
          request_id: paying.service.deps.random.uuid(),
          merchant_id: merchant.id,
          amount: 150_000,
          client_reference_id: 'link-1',
        },
      }),
      'POST /api/payment-links/:id/cancel': async () => {
        const offer = { amount: 150_000, client_reference_id: 'link-2', notify_url };
        const id = await offerPaymentLink(paying.service.deps, 'test', merchant.id, offer);
        return { url: `/api/payment-links/${id}/cancel` };
      },
      'POST /api/payment-links/:id/mail': async () => {
        const customer = { email: 'thandi@example.com' };
        const offer = { amount: 150_000, client_reference_id: 'link-3', customer, notify_url };
        const id = await offerPaymentLink(paying.service.deps, 'test', merchant.id, offer);
        return { url: `/api/payment-links/${id}/mail` };
      },
      'POST /api/statements/:id/correct': async () => {
        const { id } = payee.merchant;
        await changePage(deps, 'test', { id, address: '12 Long Street' });
        const [statement] = (
          await deps.database.pool.query(
            'select id from monthly_statements where merchant_id = $1',
            [id],
          )
        ).rows;
        return { url: `/api/statements/${statement.id}/correct` };
      },
      'POST /api/alerts/:id/take': () => ({ url: `/api/alerts/${alert}/take` }),
      'POST /api/alerts/:id/close': () => ({ url: `/api/alerts/${alert}/close`, body: reason }),
      'POST /api/differences/:id/close': () => ({
        url: `/api/differences/${difference}/close`,
        body: reason,
      }),
      'POST /api/people': () => ({
        url: '/api/people',
        body: { email: 'new@example.com', roles: ['viewer'], merchant_ids: null },
      }),
      'PATCH /api/people/:id': () => ({
        url: `/api/people/${colleague.id}`,
        body: { roles: ['support'] },
      }),
      'POST /api/people/:id/alert-mails': async () => {
        const merchant_id = paying.account.merchant.id;
        const own = { roles: ['merchant-admin' as const], merchant_ids: [merchant_id] };
        const { id } = await addPerson(paying.service, own);
        return { url: `/api/people/${id}/alert-mails`, body: { merchant_id, kinds: [] } };
      },
      'DELETE /api/people/:id/sessions/:session': () => ({
        url: `/api/people/${colleague.id}/sessions/${colleague.session_id}`,
      }),
      'POST /api/bulk-actions/:id/stop': async () => {
        const ids = [await askRefund(paying, await paid(1), 1_000)];
        const { id } = await done(post(admin, '/api/refunds/approve', { ids }));
        return { url: `/api/bulk-actions/${id}/stop` };
      },
      'POST /api/people/:id/release': () => ({
        url: `/api/people/${invited.id}/release`,
        body: { was: { roles: held.roles, merchant_ids: held.merchant_ids } },
      }),
      'POST /api/people/:id/confirm': async () => {
        const { id } = await addPerson(paying.service, { roles: ['viewer'] });
        await deps.database.pool.query(
          `update people set unconfirmed_since = created_at, unconfirmed_by = id,
             oidc_subject = 'a test' where id = $1`,
          [id],
        );
        return {
          url: `/api/people/${id}/confirm`,
          body: { was: { roles: ['viewer'], merchant_ids: null } },
        };
      },
      'POST /api/people/:id/revoke': () => ({ url: `/api/people/${colleague.id}/revoke` }),
      'DELETE /api/sessions/:id': () => ({
        url: `/api/sessions/${leaver.session_id}`,
        by: leaver,
      }),
      'POST /api/sessions/end-others': () => ({ url: '/api/sessions/end-others' }),
      'DELETE /api/session': () => ({ url: '/api/session' }),
    };
    const named = consoleRoutes.filter(({ isAction }) => isAction);
    assert.deepEqual(
      named.map(({ method, url }) => `${method} ${url}`).sort(),
      [...Object.keys(actions), ...ceremonies].sort(),
      'every route that acts is in this table',
    );

    for (const [name, prepare] of Object.entries(actions)) {
      // The money guard remembers for a second that the database did not answer.
      paying.clock.advance({ seconds: 2 });
      const { url, body, by = admin } = await prepare();
      const method = name.split(' ')[0] as 'POST' | 'PATCH' | 'DELETE';
      const answer = await withoutDatabaseAfterCommit(() =>
        ask(console(), by, method, url, body && { body }),
      );
      const what = `${name}: ${answer.status} ${JSON.stringify(answer.body)}`;
      const isStep = steps.has(name);
      // This action reads nothing for its answer, so it does not notice the failure.
      if (answer.status === 200 && !isStep) continue;
      assert.equal(answer.body.error?.code, 'outcome_unknown', what);
      assert.equal(answer.headers['retry-after'], undefined, what);
      assert.match(
        answer.body.error.message,
        isStep ? /before you repeat it\.$/ : /^This was done, but its result could not be read/,
        what,
      );
    }
    await paying.pass({ hours: 1 });
    await assertSound(paying);
  });
});

test('no story is offered where there are orders, and one is played at a time', async (t) => {
  const { deps } = paying.service;
  const played: string[] = [];
  let isPlaying = false;
  deps.console.story = { isPlaying: () => isPlaying, play: (operator) => played.push(operator) };
  t.after(() => delete deps.console.story);
  const admin = await person();
  const viewer = await person('viewer');
  const offered = async (who: ConsolePerson) =>
    (await askExactly(console(), who, 'GET', '/api/overview')).body.story;

  assert.equal(await offered(admin), null, 'there are orders');
  assert.match(await refused(409, post(admin, '/api/sandbox/story')), /no orders yet/);
  isPlaying = true;
  assert.deepEqual(await offered(admin), { is_playing: true });
  assert.equal(await offered(viewer), null, 'a viewer moves no clock');
  await done(post(admin, '/api/sandbox/story'));
  assert.deepEqual(played, [], 'one story at a time');
});

test('a story has no deadline, although the request that begins it has one', async (t) => {
  const service = await startService();
  const empty = await openConsole(service);
  t.after(async () => {
    await empty.close();
    await service.close();
  });
  const { deps } = service;
  const deadlines: Deadline[] = [];
  deps.console.story = {
    isPlaying: () => false,
    play: () => deadlines.push(currentDeadline(deps.clock)),
  };
  const admin = await addPerson(service, { roles: ['admin'] });
  await done(askExactly({ app: empty, deps }, admin, 'POST', '/api/sandbox/story'));
  const [deadline] = deadlines;
  // Only the deadline of work without a request has a time of its own for locks.
  assert.ok(deadlines.length === 1 && deadline?.lockEndsAt !== undefined);
});
