import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, type TestContext, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { reconcile } from '#checks/reconciliation/reconcile.ts';
import { type DisputeState, OutcomeUnknown } from '#gateway/gateway.ts';
import { mainGateway } from '#gateway/gateway-name.ts';
import { stripeEvidence } from '#gateway/stripe/disputes.ts';
import { advanceClock } from '#operating/clock/advance-clock.ts';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  acceptDispute,
  stageEvidence,
  submitEvidence,
} from '#purchases/disputes/answer-dispute.ts';
import { findNewDisputes, readAgain } from '#purchases/disputes/check-disputes.ts';
import { findReached } from '#purchases/disputes/dispute.sql.ts';
import { recordDispute } from '#purchases/disputes/record-dispute.ts';
import { addFile, supplyEvidence } from '#purchases/disputes/supply-evidence.ts';
import { blockCheckout } from '#purchases/instalments/block-checkout.ts';
import {
  collectDueInstalments,
  collectMerchantInstalments,
} from '#purchases/instalments/collect-instalments.ts';
import { requestRefund } from '#purchases/refunds/request-refund.ts';
import { listDisputedAmounts } from '#record/ledger/posting.sql.ts';
import { signatureOf } from '../../test-gateway/webhooks.ts';
import type { Tranche } from '../support/cli.ts';
import { addPerson } from '../support/console.ts';
import { countLockWaits } from '../support/database-server.ts';
import { pdfFile, pngFile } from '../support/files.ts';
import { gatewayOf, onlyGateway } from '../support/gateway.ts';
import { accountsOf, alertsOf, askRefund, planOf, refundNow, statusOf } from '../support/money.ts';
import {
  assertSound,
  challengeCard,
  commandsOf,
  endPayouts,
  endPlans,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { createAccount, send } from '../support/service.ts';
import { until } from '../support/until.ts';

// Disputes on the merchant's clock, against the real test gateway. Each test continues at the time
// of the one before.

const webhookSecret = 'whsec_of_the_tests';
let paying: Paying;
let tranche: Tranche;
before(async () => {
  paying = await startPaying({
    start: '2026-01-05T08:00:00Z',
    env: { STRIPE_WEBHOOK_SECRET: webhookSecret },
  });
  tranche = commandsOf(paying);
  const fee = ['--basis-points', '500', '--fixed', '0', '--vat-basis-points', '1500'];
  await tranche.json('merchants', 'fee', paying.account.merchant.id, ...fee);
});
afterEach(async () => {
  await endPayouts(paying);
  await endPlans(paying);
});
after(async () => {
  try {
    await paying.work();
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

/** Makes a plan whose first payment is collected. */
async function collected(term = 3, changes: object = {}): Promise<Shopper> {
  const shopper = await paying.shopper({ amount: 90_000, ...changes });
  await shopper.pay(term);
  await paying.pass({ days: 2 });
  return shopper;
}

const dispute = (shopper: Shopper, number = 1) =>
  tranche.json('sandbox', 'gateway', 'dispute', `${shopper.id}:${number}`);
const resolve = (id: string, outcome: '--won' | '--lost') =>
  tranche.json('sandbox', 'gateway', 'resolve', id, outcome);

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tranche-evidence-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

async function assertBooks(): Promise<void> {
  const now = timestamp(paying.clock.now());
  const names = ['M1', 'M5', 'M6', 'M7', 'M8', 'P1', 'P2', 'P3', 'P4'];
  assert.deepEqual(await findViolations(paying.service.deps.database, now, names), []);
}

async function entriesOf(shopper: Shopper): Promise<string[]> {
  const rows = await shopper.rows('settlement_entries');
  return rows
    .filter(({ kind }) => kind.startsWith('dispute'))
    .map(({ kind, net }) => `${kind} ${net}`)
    .sort();
}

test('a dispute is listed with its deadline, withdraws the money and pauses the plan', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  const { data } = await tranche.json('disputes', 'list', '--status', 'needs_response');
  const [listed] = data;
  for (const [name, count] of [
    ['main', data.length],
    ['other', 0],
  ] as const) {
    const there = await tranche.json('disputes', 'list', '--gateway', name);
    assert.equal(there.data.length, count, name);
  }
  assert.deepEqual(
    [listed.id, listed.checkout_id, listed.instalment, listed.amount, listed.status],
    [id, shopper.id, 1, 30_000, 'needs_response'],
  );
  assert.match(listed.due_by, /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual(await accountsOf(shopper), { outstanding: 60_000, disputed: 30_000 });
  // The merchant bears the payment and the gateway's fee of R 250,00 plus VAT.
  assert.deepEqual(await entriesOf(shopper), ['dispute -30000', 'dispute_fee -28750']);
  assert.deepEqual(await alertsOf(paying, { ...shopper, id }), ['dispute_opened']);
  await assertBooks();
  await paying.pass({ days: 5 });
  await tranche.json('disputes', 'accept', id);
});

test('nothing of a disputed plan is collected, and a won dispute resumes it', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  await tranche.json('disputes', 'evidence', id, '--stage');
  await tranche.json('disputes', 'evidence', id, '--submit');
  await paying.pass({ days: 35 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
  await resolve(id, '--won');
  await paying.work();
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
  assert.deepEqual(await accountsOf(shopper), { outstanding: 30_000, collected: 60_000 });
  assert.deepEqual(await entriesOf(shopper), [
    'dispute -30000',
    'dispute_fee -28750',
    'dispute_reversed 30000',
  ]);
  await assertBooks();
});

/** Later charges of this card are declined. */
const declining = { card: '4000000000777005' };

async function chargesOf(shopper: Shopper): Promise<string[]> {
  const collections = await shopper.rows('collections');
  return collections.filter(({ kind }) => kind === 'charge').map(({ status }) => status);
}

test('a charge that is in flight when a dispute comes is not repeated during it', async () => {
  const [open, lost] = [
    await paying.shopper({ amount: 90_000 }),
    await paying.shopper({ amount: 90_000 }),
  ];
  for (const shopper of [open, lost]) await shopper.pay(3, declining);
  await paying.pass({ days: 2 });
  const [, second] = await open.rows('instalments');
  const after = (given: Temporal.DurationLike) =>
    Temporal.Instant.from(second.due_at).add(given).toString();
  await paying.pass(after({ minutes: -1 }));
  const path = '/v1/payment_intents';
  await paying.gateway.fault({ fault: 'error_before', method: 'POST', path, times: 1_000 });
  await paying.pass(after({ minutes: 1 }));
  await paying.clearFaults();
  const charges = async () => [await chargesOf(open), await chargesOf(lost)];
  assert.deepEqual(await charges(), [['open'], ['open']]);
  const { id } = await dispute(open);
  const { id: lostId } = await dispute(lost);
  await tranche.json('disputes', 'accept', lostId);
  // A retry is due at the same time on the next day, just before the dispute is read again.
  await paying.pass(after({ hours: 24, seconds: 30 }));
  assert.deepEqual(await charges(), [['declined'], ['declined']]);
  await paying.pass({ hours: 50 });
  assert.deepEqual(await charges(), [['declined'], ['declined']]);
  await assertBooks();
  await resolve(id, '--won');
  await tranche.json('disputes', 'rest', lostId, '--due');
  await paying.work();
  assert.deepEqual(await charges(), [Array(2).fill('declined'), Array(2).fill('declined')]);
});

test('a charge that is in flight when its checkout is blocked is settled after the release, also during a dispute', async () => {
  const { deps } = paying.service;
  const shopper = await collected();
  const [, second] = await shopper.rows('instalments');
  await paying.pass(Temporal.Instant.from(second.due_at).subtract({ minutes: 1 }).toString());
  const path = '/v1/payment_intents';
  await paying.gateway.fault({ fault: 'drop_before', method: 'POST', path, times: 1_000 });
  await paying.pass({ minutes: 2 });
  await paying.clearFaults();
  assert.deepEqual(await chargesOf(shopper), ['open']);
  const key = { merchant_id: paying.account.merchant.id, checkout_id: shopper.id };
  const created_at = timestamp(paying.clock.now());
  const block = { reference: 'pi_unknown', alert_id: deps.random.uuid(), created_at };
  await transaction(deps, ({ db }) => blockCheckout(db, key, block));
  const { id } = await dispute(shopper);
  await tranche.json('gateway', 'release', shopper.id, '--reason', 'seen');
  await paying.pass({ hours: 25 });
  assert.deepEqual(await chargesOf(shopper), ['collected']);
  assert.ok((await shopper.rows('instalments')).every(({ paused }) => paused));
  await resolve(id, '--lost');
  await tranche.json('disputes', 'rest', id, '--cancel');
  assert.deepEqual(await accountsOf(shopper), {
    ...{ collected: 30_000, cancelled: 30_000, disputed: 30_000 },
  });
  await assertBooks();
});

test('an outcome that is recorded at the same time as a dispute leaves its payment paused', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({ amount: 90_000 }, account);
  await shopper.pay(3, declining);
  await paying.pass({ days: 2 });
  const [first, second] = await shopper.rows('instalments');
  await paying.pass(Temporal.Instant.from(second.due_at).subtract({ minutes: 1 }).toString());
  paying.clock.set(second.due_at);
  // This lock stops the recording of the outcome before its COMMIT, where it queues a message.
  const holding = await pool.connect();
  await holding.query('begin; lock table messages in share mode');
  const collecting = collectMerchantInstalments(deps, account.merchant);
  await until('the outcome waits', async () => (await countLockWaits(pool)) > 0);
  const form = { payment_intent: first.payment_ref };
  await paying.gateway.call('POST', '/_test/disputes', form);
  let isFound = false;
  const polling = findNewDisputes(deps).then(() => {
    isFound = true;
  });
  await until('the dispute waits', async () => isFound || (await countLockWaits(pool)) > 1);
  await holding.query('rollback');
  holding.release();
  await Promise.all([collecting, polling]);
  assert.deepEqual(await chargesOf(shopper), ['declined']);
  await assertBooks();
  const [{ id }] = await shopper.rows('disputes');
  await resolve(id, '--won');
});

/** The gateway's bank decides, and the service is not told. */
const decide = (shopper: Shopper, form: Record<string, string>) =>
  shopper
    .rows('disputes')
    .then(([{ dispute_ref }]) =>
      paying.gateway.call('POST', `/_test/disputes/${dispute_ref}/resolve`, form),
    );

test('the money of a won dispute is booked however late it comes, and a person is told that it is missing', async () => {
  const { deps } = paying.service;
  const shopper = await collected(1);
  const { id } = await dispute(shopper);
  await decide(shopper, { outcome: 'won', withheld: 'true' });
  await paying.pass({ hours: 25 });
  const booked = async () => {
    const [{ status, withdrawn }] = await shopper.rows('disputes');
    return [status, withdrawn, await accountsOf(shopper)];
  };
  assert.deepEqual(await booked(), ['won', 90_000, { disputed: 90_000 }]);
  const alerts = async () => {
    await closeEndedAlerts(deps);
    const { rows } = await deps.database.pool.query(
      `select closed_at is null as open from alerts
       where kind = 'dispute_unbooked' and subject_id = $1`,
      [id],
    );
    return rows.map(({ open }) => open);
  };
  await paying.pass({ days: 13 });
  assert.deepEqual(await alerts(), []);
  await paying.pass({ days: 30 });
  assert.deepEqual(await alerts(), [true]);
  await decide(shopper, { outcome: 'reinstated' });
  await paying.pass({ days: 7, hours: 1 });
  assert.deepEqual(await booked(), ['won', 0, { collected: 90_000 }]);
  assert.deepEqual(await alerts(), [false]);
  const [row] = await shopper.rows('disputes');
  assert.equal(row.due_at, null);
  await assertBooks();
});

test('an answer that is older than the recorded one is not recorded', async () => {
  const { deps } = paying.service;
  const { merchant } = paying.account;
  const gateway = gatewayOf(deps);
  const shopper = await collected(1);
  await dispute(shopper);
  const [{ dispute_ref, payment_ref }] = await shopper.rows('disputes');
  // A poll read the dispute before its money was withdrawn.
  const state = await gateway.dispute(merchant.forGateway(), dispute_ref);
  const owner = { checkout_id: shopper.id, gateway: mainGateway };
  const polled = { ...state, payment_ref, withdrawn: 0, fee: 0 };
  assert.equal((await recordDispute(deps, merchant, owner, polled)).withdrawn, 90_000);
  await decide(shopper, { outcome: 'won', withheld: 'true' });
  const [row] = await shopper.rows('disputes');
  let isFirst = true;
  const stalled: typeof gateway.dispute = async (...of) => {
    const read = await gateway.dispute(...of);
    if (!isFirst) return read;
    isFirst = false;
    // Another process reads and records a later answer before this one is recorded.
    await decide(shopper, { outcome: 'reinstated' });
    await readAgain(deps, merchant, row);
    return read;
  };
  const gateways = onlyGateway({ ...gateway, dispute: stalled });
  const won = await readAgain({ ...deps, gateways }, merchant, row);
  assert.deepEqual([won.status, won.withdrawn], ['won', 0]);
  const kinds = (await shopper.rows('postings')).map(({ kind }) => kind);
  assert.deepEqual(
    kinds.filter((kind) => /withdrawn|reinstated/.test(kind)),
    ['withdrawn', 'reinstated'],
  );
  await assertBooks();
});

test('an ended dispute that the bank reopens withdraws the money and pauses the plan again', async () => {
  const { deps } = paying.service;
  const { merchant } = paying.account;
  const gateway = gatewayOf(deps);
  const reader = await addPerson(paying.service, {
    roles: ['merchant-admin'],
    merchant_ids: [merchant.id],
  });
  const shopper = await collected();
  await dispute(shopper);
  await decide(shopper, { outcome: 'won' });
  const [row] = await shopper.rows('disputes');
  const won = await readAgain(deps, merchant, row);
  assert.deepEqual([won.status, won.is_pausing], ['won', false]);
  const about = { ...shopper, id: row.id };
  const alerts = await alertsOf(paying, about);
  /** A gateway that answers with a later stage of the same dispute. */
  const inStage = (status: 'needs_response' | 'lost', withdrawn: number) => {
    const read: typeof gateway.dispute = async (...of) => ({
      ...(await gateway.dispute(...of)),
      ...{ status, withdrawn, has_answer: false },
    });
    return { ...deps, gateways: onlyGateway({ ...gateway, dispute: read }) };
  };
  // An answer from before the decision is not another stage.
  const stale = await readAgain(inStage('needs_response', 0), merchant, won);
  assert.equal(stale.status, 'won');
  const open = await readAgain(inStage('needs_response', 30_000), merchant, stale);
  assert.deepEqual(
    [open.status, open.is_pausing, open.closed_at, open.withdrawn],
    ['needs_response', true, null, 30_000],
  );
  assert.notEqual(open.due_at, null);
  assert.ok((await shopper.rows('instalments')).slice(1).every(({ paused }) => paused));
  assert.deepEqual(await alertsOf(paying, about), [...alerts, 'dispute_opened']);
  const lost = await readAgain(inStage('lost', 30_000), merchant, open);
  assert.deepEqual([lost.status, lost.is_pausing], ['lost', true]);
  const again = await readAgain(deps, merchant, lost);
  assert.deepEqual([again.status, again.withdrawn, again.is_pausing], ['won', 0, false]);
  const second = await readAgain(inStage('needs_response', 30_000), merchant, again);
  assert.deepEqual([second.status, second.is_pausing], ['needs_response', true]);
  const direct = await readAgain(deps, merchant, second);
  const directly = await readAgain(inStage('lost', 30_000), merchant, direct);
  assert.deepEqual([directly.status, directly.is_pausing], ['lost', true]);
  const { rows: mails } = await deps.database.pool.query(
    'select event from person_mails where person_id = $1 and event like $2',
    [reader.id, `%${row.id}%`],
  );
  assert.equal(mails.length, 3, 'a mail about the dispute, and one about each time it reopened');
  const end = await readAgain(deps, merchant, directly);
  assert.deepEqual([end.status, end.withdrawn, end.is_pausing], ['won', 0, false]);
  await assertBooks();
});

test('a poll records what became of an ended dispute that it lists again, also without an event', async () => {
  const { deps } = paying.service;
  const gateway = gatewayOf(deps);
  const shopper = await collected(1);
  await dispute(shopper);
  await decide(shopper, { outcome: 'won' });
  let reads = 0;
  /** Polls a gateway that lists the dispute and answers about it in another stage. */
  const poll = async (stage: Partial<DisputeState>) => {
    const [{ dispute_ref }] = await shopper.rows('disputes');
    const inStage = (state: DisputeState) =>
      state.dispute_ref === dispute_ref ? { ...state, ...stage } : state;
    const listDisputes: typeof gateway.listDisputes = async (after) => {
      const page = await gateway.listDisputes(after);
      return { ...page, disputes: page.disputes.map(inStage) };
    };
    const read: typeof gateway.dispute = async (...of) => {
      reads += 1;
      return inStage(await gateway.dispute(...of));
    };
    const changed = { ...gateway, listDisputes, dispute: read };
    await findNewDisputes({ ...deps, gateways: onlyGateway(changed) });
    const [row] = await shopper.rows('disputes');
    const kinds = (await shopper.rows('postings')).map(({ kind }) => kind);
    const moved = kinds.filter((kind) => /withdrawn|reinstated/.test(kind));
    return [row.status, row.is_pausing, moved.sort().join(' '), reads];
  };
  const asked = { status: 'needs_response', has_answer: false } as const;
  const unread = ['won', false, 'reinstated withdrawn'];
  assert.deepEqual(await poll({}), [...unread, 1], 'the decision');
  assert.deepEqual(await poll({ ...asked, withdrawn: 0 }), [...unread, 1], 'an older answer');
  const unknown = { ...asked, withdrawn: 90_000, unknown_status: 'lost_in_space' };
  assert.deepEqual(await poll(unknown), [...unread, 1], 'a status that we do not know');
  const reopened = ['needs_response', true, 'reinstated withdrawn withdrawn', 2];
  assert.deepEqual(await poll({ ...asked, withdrawn: 90_000 }), reopened);
  assert.deepEqual(await poll({ ...asked, withdrawn: 90_000 }), reopened, 'read once');
  const ended = 'reinstated reinstated withdrawn withdrawn';
  assert.deepEqual(await poll({}), ['won', false, ended, 3]);
  await assertBooks();
});

test('operators are warned once before the deadline, and a dispute without evidence is lost after it', async () => {
  const shopper = await collected();
  const { id, due_by } = await dispute(shopper);
  const before = (hours: number) => Temporal.Instant.from(due_by).subtract({ hours }).toString();
  await paying.pass(before(3 * 24 + 1));
  assert.deepEqual(await alertsOf(paying, { ...shopper, id }), ['dispute_opened']);
  await paying.pass(before(2 * 24));
  assert.deepEqual(await alertsOf(paying, { ...shopper, id }), [
    'dispute_opened',
    'dispute_deadline',
  ]);
  await paying.pass(Temporal.Instant.from(due_by).add({ hours: 25 }).toString());
  assert.equal((await tranche.json('disputes', 'show', id)).status, 'lost');
  const { stdout } = await tranche.run('checkouts', 'show', shopper.id);
  assert.match(stdout, /^Disputed +R\s300,00$/m);
  assert.deepEqual(await alertsOf(paying, { ...shopper, id }), [
    'dispute_opened',
    'dispute_deadline',
    'dispute_closed',
  ]);
});

test('after a loss nothing is paused and nothing is to decide if the plan has nothing left', async () => {
  const shopper = await collected(1);
  const { id } = await dispute(shopper);
  const page = async () => {
    const { body } = await paying.service.app.inject({ url: shopper.url });
    return /<div class="standing">.*?<\/div>/s.exec(body)?.[0] ?? '';
  };
  const open = await page();
  assert.match(open, /Everything is paid/);
  assert.doesNotMatch(open, /Nothing more will be charged/, 'the notice says what is charged');
  await resolve(id, '--lost');
  assert.equal((await tranche.json('disputes', 'show', id)).is_pausing, false);
  const { rows } = await paying.service.deps.database.pool.query(
    "select detail, closed_at is null as is_open from alerts where subject_id = $1 and kind = 'dispute_closed'",
    [id],
  );
  assert.deepEqual(rows, [
    { detail: 'The dispute of payment 1 was lost. Nothing is left on its plan.', is_open: false },
  ]);
  assert.ok((await shopper.rows('instalments')).every(({ paused }) => !paused));
  const lost = await page();
  assert.match(lost, /A payment was returned to you/);
  assert.doesNotMatch(lost, /Everything is paid|ask the shop what happens next/);
  await assertBooks();
});

test('after a loss the plan stays paused if a refund fails that had cancelled the rest of it', async () => {
  const shopper = await collected();
  const path = '/v1/refunds';
  await paying.gateway.fault({ fault: 'drop_before', method: 'POST', path, times: 1_000 });
  const refund = await refundNow(paying, shopper, 90_000);
  await paying.clearFaults();
  const { id } = await dispute(shopper);
  const cancelled = ['1 collected', '2 cancelled -30000', '3 cancelled -30000'];
  assert.deepEqual(await planOf(shopper), cancelled);
  await resolve(id, '--lost');
  assert.equal((await tranche.json('disputes', 'show', id)).is_pausing, true);
  await paying.pass({ days: 35 });
  assert.equal(await statusOf(paying, refund.id), 'failed');
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
  await tranche.json('disputes', 'rest', id, '--cancel');
  assert.deepEqual(await planOf(shopper), cancelled);
  await assertBooks();
});

test('after a loss the plan stays paused until an operator resumes it', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  await tranche.refused(1, /decide once it has ended/, 'disputes', 'rest', id, '--due');
  await resolve(id, '--lost');
  await paying.pass({ days: 35 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
  await tranche.json('disputes', 'rest', id, '--due');
  await paying.work();
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
  assert.deepEqual(await accountsOf(shopper), {
    outstanding: 30_000,
    collected: 30_000,
    disputed: 30_000,
  });
  await assertBooks();
});

test('after a loss an operator cancels the rest of the plan, and nothing more is collected', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  await tranche.refused(1, /only after a loss/, 'disputes', 'rest', id, '--cancel');
  const page = async () => (await shopper.state()).plan?.dispute;
  assert.equal(await page(), 'open');
  await resolve(id, '--lost');
  assert.equal(await page(), 'lost');
  const rest = await tranche.json('disputes', 'rest', id, '--cancel');
  assert.equal(rest.is_pausing, false);
  assert.equal(await page(), null);
  assert.deepEqual(await planOf(shopper), [
    '1 collected',
    '2 cancelled -30000',
    '3 cancelled -30000',
  ]);
  assert.deepEqual(await accountsOf(shopper), { cancelled: 60_000, disputed: 30_000 });
  const { refunds } = await shopper.books();
  assert.deepEqual(refunds, [], 'nothing is refunded to the card');
  // A repetition changes nothing.
  await tranche.json('disputes', 'rest', id, '--cancel');
  await paying.pass({ days: 35 });
  assert.deepEqual(await planOf(shopper), [
    '1 collected',
    '2 cancelled -30000',
    '3 cancelled -30000',
  ]);
  await assertBooks();
});

test('after a loss a refund of all that is left ends the pause, and one of a part does not', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  await resolve(id, '--lost');
  const isPausing = async () => (await tranche.json('disputes', 'show', id)).is_pausing;
  await refundNow(paying, shopper, 40_000);
  assert.equal(await isPausing(), true);
  await refundNow(paying, shopper, 20_000);
  assert.equal(await isPausing(), false);
  assert.equal((await shopper.state()).plan?.dispute, null);
  const { deps } = paying.service;
  await closeEndedAlerts(deps);
  const { rows } = await deps.database.pool.query(
    'select kind from alerts where subject_id = $1 and closed_at is null',
    [id],
  );
  assert.deepEqual(rows, []);
  await assertBooks();
});

test('after a loss a refund that voids the hold, the last that is left, ends the pause', async () => {
  const shopper = await paying.shopper({ amount: 90_000 });
  await shopper.pay(3);
  const acting = await actingOn(paying, shopper);
  assert.equal((await acting.pay('next')).attempt?.status, 'done');
  const { id } = await dispute(shopper, 2);
  await resolve(id, '--lost');
  await refundNow(paying, shopper, 60_000);
  assert.deepEqual(await planOf(shopper), [
    '1 cancelled -30000',
    '2 collected',
    '3 cancelled -30000',
  ]);
  assert.equal((await tranche.json('disputes', 'show', id)).is_pausing, false);
  await assertBooks();
});

test('a plan that needs two people for its cancellation stays paused until the second approves', async () => {
  const account = await createAccount(paying.service);
  const rules = ['merchants', 'rules', account.merchant.id];
  await tranche.json(...rules, '--four-eyes-above', '50000');
  const shopper = await paying.shopper({ amount: 90_000 }, account);
  await shopper.pay(3);
  await paying.pass({ days: 2 });
  const { id } = await dispute(shopper);
  await resolve(id, '--lost');
  assert.equal((await tranche.json('disputes', 'rest', id, '--cancel')).is_pausing, true);
  const [declined] = await shopper.rows('refund_requests');
  assert.equal(declined.status, 'requested');
  await paying.pass({ days: 35 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
  const sipho = commandsOf(paying, { TRANCHE_OPERATOR: 'sipho' });
  await sipho.json('refunds', 'decline', declined.id, '--reason', 'Not yet.');
  assert.equal((await tranche.json('disputes', 'rest', id, '--cancel')).is_pausing, true);
  const refund = (await shopper.rows('refund_requests')).find(({ status }) => status !== 'failed');
  await sipho.json('refunds', 'approve', refund.id);
  assert.equal((await tranche.json('disputes', 'show', id)).is_pausing, false);
  assert.equal((await tranche.json('disputes', 'rest', id, '--cancel')).is_pausing, false);
  assert.deepEqual(await planOf(shopper), [
    '1 collected',
    '2 cancelled -30000',
    '3 cancelled -30000',
  ]);
  await assertBooks();
});

test('cancelling the rest of a plan returns nothing to the card, whatever is refunded meanwhile', async () => {
  const account = await createAccount(paying.service);
  const rules = ['merchants', 'rules', account.merchant.id];
  await tranche.json(...rules, '--four-eyes-above', '20000');
  const shopper = await paying.shopper({ amount: 90_000 }, account);
  await shopper.pay(3);
  await paying.pass({ days: 33 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
  const { id } = await dispute(shopper);
  await resolve(id, '--lost');
  await tranche.json('disputes', 'rest', id, '--cancel');
  const [rest] = await shopper.rows('refund_requests');
  const own = await askRefund(paying, shopper, 20_000, account);
  const sipho = commandsOf(paying, { TRANCHE_OPERATOR: 'sipho' });
  assert.equal((await sipho.json('refunds', 'approve', own)).status, 'complete');
  await sipho.json('refunds', 'approve', rest.id);
  await paying.work();
  assert.deepEqual(await shopper.books().then(({ refunds }) => refunds), []);
  const [failed] = (await shopper.rows('refund_requests')).filter((one) => one.id === rest.id);
  assert.deepEqual(
    [failed.status, failed.reason],
    ['failed', 'Another refund took a part of what was not collected.'],
  );
  await tranche.refused(1, /no longer hold enough/, 'refunds', 'retry', rest.id);
  await tranche.json('disputes', 'rest', id, '--cancel');
  const less = (await shopper.rows('refund_requests')).find(({ amount }) => amount === 10_000);
  await sipho.json('refunds', 'approve', less.id);
  assert.equal((await tranche.json('disputes', 'rest', id, '--cancel')).is_pausing, false);
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 cancelled -30000']);
  await assertBooks();
});

test('an operator cannot refund what the shopper disputes either, nor retry a refund of it', async () => {
  const shopper = await collected(1);
  await paying.gateway.fault({ fault: 'decline', method: 'POST', path: '/v1/refunds' });
  const { id: refund, status } = await refundNow(paying, shopper, 90_000);
  assert.equal(status, 'failed');
  const { id } = await dispute(shopper);
  const { deps } = paying.service;
  const request_id = deps.random.uuid();
  const wanted = { request_id, checkout_id: shopper.id, amount: 1, reason: null };
  await assert.rejects(requestRefund(deps, 'nomsa', wanted), /remainder of R\s0,00/);
  await tranche.refused(
    1,
    /only R\s0,00 of the checkout can still be refunded/,
    'refunds',
    'retry',
    refund,
  );
  await resolve(id, '--lost');
  await tranche.refused(
    1,
    /only R\s0,00 of the checkout can still be refunded/,
    'refunds',
    'retry',
    refund,
  );
  await assertBooks();
});

test('money day counts disputes of a merchant without terms too', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({ amount: 90_000 }, account);
  await shopper.pay(1);
  await paying.pass({ days: 2 });
  const { id } = await dispute(shopper);
  const disputed = async () => {
    const date = paying.clock.now().toZonedDateTimeISO('Africa/Johannesburg').toPlainDate();
    const { data } = await tranche.json('money', 'day', '--date', date.toString());
    const own = data.filter(
      (row: { merchant_id: string }) => row.merchant_id === account.merchant.id,
    );
    return own.map((row: { disputed: number }) => row.disputed);
  };
  assert.deepEqual(await disputed(), [90_000]);
  await resolve(id, '--won');
  assert.deepEqual(await disputed(), []);
});

test('the page says what a dispute stops, and takes no payment meanwhile', async () => {
  const shopper = await collected();
  const acting = await actingOn(paying, shopper);
  const { id } = await dispute(shopper);
  const look = async (language: string) => {
    const headers = { 'accept-language': language };
    const { body } = await paying.service.app.inject({ url: shopper.url, headers });
    const { plan } = await shopper.state();
    // Leave out the script, whose data contains every text.
    return { plan, text: body.replaceAll(/<script.*?<\/script>/gs, '') };
  };
  const open = await look('en');
  assert.deepEqual([open.plan?.dispute, open.plan?.payments[0]?.dispute], ['open', 'open']);
  assert.match(
    open.text,
    /disputed a payment of this order with your bank\. Nothing is charged until the bank has decided/,
  );
  assert.doesNotMatch(open.text, /refund is in progress/);
  assert.match((await look('af')).text, /by u bank betwis/);
  assert.match((await look('zu')).text, /Uphikise inkokhelo yale oda ebhange lakho/);
  assert.equal((await acting.pay('rest')).attempt?.refusal, 'disputed');

  await resolve(id, '--lost');
  const lost = await look('en');
  assert.deepEqual([lost.plan?.dispute, lost.plan?.payments[0]?.dispute], ['lost', 'lost']);
  assert.match(
    lost.text,
    /bank returned a payment of this order to you\. Nothing is charged for now/,
  );
  assert.equal((await acting.pay('next')).attempt?.refusal, 'disputed');

  await tranche.json('disputes', 'rest', id, '--due');
  assert.equal((await look('en')).plan?.dispute, null);
  assert.equal((await acting.pay('next')).attempt?.status, 'done');
  await assertBooks();
});

test('a refund of the disputed part is refused, also after a loss, and the rest can be refunded', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  const ask = (amount: number) =>
    send(paying.service, paying.account, 'POST', '/api/refunds', {
      body: { checkout_id: shopper.id, amount },
    });
  const refused = await ask(60_001);
  assert.equal(refused.status, 422);
  assert.equal(
    refused.body.errors[0].detail,
    'The shopper disputes 30000 cents of this checkout with the bank. Until that is decided, at most 60000 cents can be refunded.',
  );
  await resolve(id, '--lost');
  assert.equal((await ask(60_001)).status, 422);
  const refund = await refundNow(paying, shopper, 60_000);
  assert.equal(refund.status, 'complete');
  assert.deepEqual(await accountsOf(shopper), { cancelled: 60_000, disputed: 30_000 });
  assert.equal((await ask(1)).status, 422);
  await assertBooks();
});

test('what a lost dispute will withdraw is not refunded before that is booked, and the rest can be', async () => {
  const { deps } = paying.service;
  const { merchant } = paying.account;
  const shopper = await collected();
  await paying.pass({ days: 31 });
  const [, { payment_ref }] = await shopper.rows('instalments');
  const form = { payment_intent: payment_ref };
  const { body } = await paying.gateway.call('POST', '/_test/disputes', form);
  const state = await gatewayOf(deps).dispute(merchant.forGateway(), body.id);
  const owner = { checkout_id: shopper.id, gateway: mainGateway };
  const unbooked = { ...state, payment_ref, status: 'lost' as const, withdrawn: 0, fee: 0 };
  const lost = await recordDispute(deps, merchant, owner, unbooked);
  assert.deepEqual([lost.status, lost.withdrawn, lost.due_at !== null], ['lost', 0, true]);
  const ask = async (amount: number) => {
    const asked = { body: { checkout_id: shopper.id, amount } };
    return (await send(paying.service, paying.account, 'POST', '/api/refunds', asked)).status;
  };
  assert.equal(await ask(60_001), 422);
  const refund = await refundNow(paying, shopper, 60_000);
  assert.equal(refund.status, 'complete');
  assert.equal(await ask(1), 422);
  await decide(shopper, { outcome: 'lost' });
  assert.equal((await readAgain(deps, merchant, lost)).withdrawn, 30_000);
  assert.equal(await ask(1), 422);
  assert.deepEqual(await accountsOf(shopper), {
    ...{ refunded: 30_000, cancelled: 30_000, disputed: 30_000 },
  });
  await assertBooks();
});

test('a refund that was requested before the dispute waits for it, and fails if the money is gone', async () => {
  const [won, lost] = [await collected(), await collected()];
  const refunds = [await askRefund(paying, won, 90_000), await askRefund(paying, lost, 90_000)];
  const ids = [(await dispute(won)).id, (await dispute(lost)).id];
  for (const id of refunds) await tranche.json('refunds', 'approve', id);
  await paying.pass({ days: 3 });
  assert.deepEqual(await Promise.all(refunds.map((id) => statusOf(paying, id))), [
    'requested',
    'requested',
  ]);
  const { refunds: made } = await won.books();
  assert.deepEqual(made, []);
  await resolve(ids[0] as string, '--won');
  await resolve(ids[1] as string, '--lost');
  await paying.pass({ hours: 7 });
  assert.deepEqual(await Promise.all(refunds.map((id) => statusOf(paying, id))), [
    'complete',
    'failed',
  ]);
  await assertBooks();
});

test('a refund that was begun before the dispute is not sent during it, and continues after it', async () => {
  const { gateway, service } = paying;
  const [dropped, answered] = [await collected(), await collected()];
  const path = '/v1/refunds';
  const begin = async (shopper: Shopper, fault: 'drop_before' | 'error_after') => {
    await gateway.fault({ fault, method: 'POST', path, times: 1_000 });
    const { id } = await refundNow(paying, shopper, 90_000);
    assert.equal(await statusOf(paying, id), 'pending');
    await paying.clearFaults();
    return id;
  };
  const refunds = [await begin(dropped, 'drop_before'), await begin(answered, 'error_after')];
  for (const shopper of [dropped, answered]) {
    const [{ payment_ref }] = (await shopper.rows('instalments')).filter((one) => one.payment_ref);
    const asked = { payment_intent: payment_ref, reason: 'inquiry' };
    await gateway.call('POST', '/_test/disputes', asked);
  }
  await findNewDisputes(service.deps);
  const statuses = () => Promise.all(refunds.map((id) => statusOf(paying, id)));
  // The gateway forgets the idempotency key meanwhile.
  await paying.pass({ days: 3 });
  assert.deepEqual((await dropped.books()).refunds, [], 'no refund leaves during a dispute');
  assert.deepEqual(await statuses(), ['pending', 'complete'], 'one had left before the dispute');
  const [row] = await dropped.rows('disputes');
  await resolve(row.id, '--won');
  await paying.pass({ hours: 7 });
  assert.deepEqual(await statuses(), ['complete', 'complete']);
  for (const shopper of [dropped, answered]) {
    const { refunds: made } = await shopper.books();
    assert.deepEqual(
      made.map(({ amount }) => amount),
      [30_000],
    );
  }
  const [other] = await answered.rows('disputes');
  await resolve(other.id, '--won');
  await assertBooks();
});

/** The evidence of a dispute that the gateway has, without empty members. */
async function evidenceThere(shopper: Shopper): Promise<[object, number]> {
  const [{ dispute_ref }] = await shopper.rows('disputes');
  const { body } = await paying.gateway.call('GET', `/v1/disputes/${dispute_ref}`);
  const { enhanced_evidence: _, ...texts } = body.evidence;
  const given = Object.entries(texts).filter(([, text]) => text !== null);
  return [Object.fromEntries(given), body.evidence_details.submission_count];
}

test('evidence is made from what we hold, staged first, and submitted once', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  const { evidence } = await tranche.json('disputes', 'evidence', id);
  assert.equal(evidence.customer_email, 'thandi@example.com');
  for (const said of [
    /number 1\. The cardholder made it themselves, on the payment page, with the order/,
    /3-D Secure for the disputed payment: flow frictionless, result attempt acknowledged, ECI 0/,
    /The card network's transaction id ntx_\w+\./,
    /agreed to these charges \(consent version /,
    /“By paying you agree that this card is also charged R\s300,00 on .* and R\s300,00 on /,
    /payment 1: R\s300,00, due on \d+ \w+ 20\d\d, collected on \d+ \w+ 20\d\d at \d\d:\d\d, receipt .*:1/,
    /All times are local times in Africa\/Johannesburg\./,
  ]) {
    assert.match(evidence.history, said);
  }
  assert.doesNotMatch(JSON.stringify(evidence), /\d{4}-\d\d-\d\d/, 'dates as a clerk reads them');
  const page = await tranche.run('disputes', 'evidence', id, '--format', 'html');
  assert.match(page.stdout, /<title>Evidence for dispute du_/);
  assert.match(page.stdout, /<dt>Disputed amount<\/dt><dd>R\s300,00</);
  const { reason, network_reason_code } = await tranche.json('disputes', 'show', id);
  assert.deepEqual([reason, network_reason_code], ['fraudulent', '10.4']);
  assert.match(page.stdout, /<dt>Reason<\/dt><dd>fraudulent, 10\.4</);
  await tranche.refused(1, /has not been staged yet/, 'disputes', 'evidence', id, '--submit');
  assert.equal(
    (await tranche.json('disputes', 'evidence', id, '--stage')).status,
    'needs_response',
  );
  const submitted = await tranche.json('disputes', 'evidence', id, '--submit');
  assert.equal(submitted.status, 'under_review');
  await tranche.refused(1, /its evidence was submitted/, 'disputes', 'evidence', id, '--submit');
  await tranche.refused(1, /its evidence was submitted/, 'disputes', 'accept', id);
  await resolve(id, '--won');
});

test('the evidence of an order with hundreds of items is short enough for the gateway', async () => {
  const item = { name: `${'x'.repeat(40)} boots`, amount: 180, quantity: 1 };
  const shopper = await collected(3, { line_items: Array(500).fill(item) });
  const { id } = await dispute(shopper);
  await tranche.json('disputes', 'evidence', id, '--stage');
  const { evidence } = await tranche.json('disputes', 'evidence', id);
  assert.match(evidence.order, /^Order .*; 1 × x+ boots; and \d+ more$/);
  await tranche.json('disputes', 'evidence', id, '--submit');
  await resolve(id, '--won');
});

test('what an operator looked at is what is submitted, also if something changes meanwhile', async () => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  await tranche.json('disputes', 'evidence', id, '--stage');
  const looked = await tranche.json('disputes', 'evidence', id);
  assert.deepEqual([looked.is_staged, looked.is_outdated], [true, false]);
  assert.deepEqual(await evidenceThere(shopper), [stripeEvidence({ ...looked, files: {} }), 0]);

  // A refund is requested, and the shopper's name is changed.
  await askRefund(paying, shopper, 30_000);
  await paying.service.deps.database.pool.query(
    `update checkouts set customer = customer || '{"first_name": "Another"}' where id = $1`,
    [shopper.id],
  );
  const later = await tranche.json('disputes', 'evidence', id);
  assert.deepEqual([later.evidence, later.hash], [looked.evidence, looked.hash]);
  assert.equal(later.is_outdated, true);

  // Another operator stages the evidence again. The first operator has not seen that.
  await tranche.json('disputes', 'evidence', id, '--stage');
  const submit = ['disputes', 'evidence', id, '--submit'];
  await tranche.refused(1, /staged again since you looked/, ...submit, '--hash', looked.hash);
  const anew = await tranche.json('disputes', 'evidence', id);
  assert.deepEqual([anew.is_staged, anew.is_outdated], [true, false]);
  assert.match(anew.evidence.customer_name, /^Another/);
  assert.match(anew.evidence.history, /R\s300,00 requested .*, requested/);
  assert.deepEqual(await evidenceThere(shopper), [stripeEvidence({ ...anew, files: {} }), 0]);

  await paying.service.deps.database.pool.query(
    `update checkouts set customer = customer || '{"first_name": "Third"}' where id = $1`,
    [shopper.id],
  );
  await tranche.json(...submit, '--hash', anew.hash);
  assert.deepEqual(await evidenceThere(shopper), [stripeEvidence({ ...anew, files: {} }), 1]);
  const after = await tranche.json('disputes', 'evidence', id);
  assert.deepEqual([after.evidence, after.is_staged], [anew.evidence, true]);
  await resolve(id, '--won');
});

test('the merchant’s facts and files are staged with the rest, and what was removed is gone at the gateway', async (t) => {
  const shopper = await collected();
  const { id } = await dispute(shopper);
  const folder = await folderFor(t);
  const [slip, photo] = [join(folder, 'slip.pdf'), join(folder, 'photo.png')];
  await writeFile(slip, pdfFile('delivered'));
  await writeFile(photo, pngFile(20, 10));
  const change = (...given: string[]) => tranche.json('disputes', 'evidence', id, ...given);
  const first = await change(
    ...['--field', 'carrier=Aramex', '--field', 'tracking_number=AR 1'],
    ...['--field', 'delivered_on=2026-01-20', '--field', 'statement=He signed for it.'],
    ...['--file', `delivery=${slip}`, '--file', `other=${photo}`],
  );
  assert.equal(first.supplied.carrier, 'Aramex');
  const held = await tranche.json('disputes', 'evidence', id);
  assert.deepEqual(
    [held.evidence.delivered_on, held.evidence.carrier, held.is_staged],
    ['20 January 2026', 'Aramex', false],
  );
  assert.deepEqual(
    held.files.map(({ kind, media_type }: { kind: string; media_type: string }) => [
      kind,
      media_type,
    ]),
    [
      ['delivery', 'application/pdf'],
      ['other', 'image/png'],
    ],
  );
  await change('--stage');
  const [there] = (await evidenceThere(shopper)) as [Record<string, string>, number];
  assert.equal(there.shipping_tracking_number, 'AR 1');
  assert.match(there.uncategorized_text ?? '', /delivered on 20 January 2026.*signed for it/s);
  const sent = await paying.gateway.call('GET', `/v1/files/${there.shipping_documentation}`);
  assert.deepEqual([sent.body.filename, sent.body.type], ['slip.pdf', 'pdf']);

  // The staged evidence stays as it is until it is staged again, including the file that was
  // removed.
  await change('--field', 'carrier=', '--file', 'other=');
  const looked = await tranche.json('disputes', 'evidence', id);
  assert.deepEqual([looked.evidence.carrier, looked.files.length], ['Aramex', 2]);
  assert.equal(looked.is_outdated, true);
  assert.equal((await shopper.rows('dispute_files')).length, 2);
  await change('--stage');
  const anew = await tranche.json('disputes', 'evidence', id);
  assert.deepEqual([anew.evidence.carrier, anew.files.length], [undefined, 1]);
  assert.equal((await shopper.rows('dispute_files')).length, 1);
  const files = { delivery: there.shipping_documentation as string };
  assert.deepEqual(await evidenceThere(shopper), [stripeEvidence({ ...anew, files }), 0]);

  await change('--submit', '--hash', anew.hash);
  assert.deepEqual(await evidenceThere(shopper), [stripeEvidence({ ...anew, files }), 1]);
  for (const given of [
    ['--field', 'carrier=DHL'],
    ['--file', `other=${photo}`],
  ]) {
    await tranche.refused(1, /its evidence was submitted/, 'disputes', 'evidence', id, ...given);
  }
  await resolve(id, '--won');
});

test('a file whose upload has no answer is uploaded again, and evidence is not staged without it', async () => {
  const { deps } = paying.service;
  const shopper = await collected();
  const { id } = await dispute(shopper);
  const content = pngFile(2, 2);
  await addFile(deps, 'nomsa', id, { kind: 'receipt', name: 'receipt.png', content });
  await paying.gateway.fault({ fault: 'drop_after', method: 'POST', path: '/v1/files', times: 2 });
  await assert.rejects(stageEvidence(deps, 'nomsa', id), OutcomeUnknown);
  assert.deepEqual(await evidenceThere(shopper), [{}, 0]);
  await paying.clearFaults();
  await stageEvidence(deps, 'nomsa', id);
  const [{ file_ref }] = await shopper.rows('dispute_files');
  const [there] = (await evidenceThere(shopper)) as [Record<string, string>, number];
  assert.equal(there.receipt, file_ref);
  await acceptDispute(deps, 'nomsa', id);
});

test('what a merchant supplies is checked, and files by their content', async (t) => {
  const { deps } = paying.service;
  const shopper = await collected();
  const { id } = await dispute(shopper);
  const folder = await folderFor(t);
  const page = join(folder, 'page.pdf');
  await writeFile(page, '<html>%PDF-1.7');
  const evidence = ['disputes', 'evidence', id];
  for (const [code, why, ...given] of [
    [1, /must be a day/, '--field', 'delivered_on=2026-02-30'],
    [1, /a line break or another invisible character/, '--field', 'carrier=a\nb'],
    [
      1,
      /before it is shipped/,
      '--field',
      'shipped_on=2026-02-02',
      '--field',
      'delivered_on=2026-02-01',
    ],
    [1, /complete PDF, PNG or JPEG/, '--file', `delivery=${page}`],
    [1, /cannot be read/, '--file', `delivery=${join(folder, 'no.pdf')}`],
    [1, /has no file of kind/, '--file', 'receipt='],
    [2, /--file is "invoice" and must be/, '--file', 'invoice=x.pdf'],
    [2, /--field is "carrier" and must be/, '--field', 'carrier'],
    [2, /or one of --ask/, '--ask', '--stage'],
  ] as [1 | 2, RegExp, ...string[]][]) {
    await tranche.refused(code, why, ...evidence, ...given);
  }
  const add = (kind: 'delivery' | 'receipt' | 'other', size: number) =>
    addFile(deps, 'nomsa', id, { kind, name: 'a.pdf', content: pdfFile('x'.repeat(size)) });
  await assert.rejects(add('delivery', 2_000_001), /larger than 2 MB/);
  // A PDF can be a program under another name, and a colleague would open it.
  for (const [name, content, ending] of [
    ['slip.hta', pdfFile('<script>'), '.pdf'],
    ['slip.pdf', pngFile(2, 2), '.png'],
    ['slip', pngFile(2, 2), '.png'],
  ] as const) {
    const added = addFile(deps, 'nomsa', id, { kind: 'other', name, content });
    await assert.rejects(added, new RegExp(`must end in \\${ending}`));
  }
  await add('delivery', 1_900_000);
  await add('receipt', 1_900_000);
  await assert.rejects(add('other', 1_900_000), /may have at most 4.5 MB/);
  // A file replaces the earlier one of its kind.
  await add('receipt', 10);
  await add('other', 1_900_000);
  assert.equal((await shopper.rows('dispute_files')).length, 3);
  await assert.rejects(
    supplyEvidence(deps, 'nomsa', id, { carrier: 'DHL' }, null),
    /Another person changed/,
  );
  await acceptDispute(deps, 'nomsa', id);
});

test('a merchant is asked by mail at its contact, once a day, with a deadline before the bank’s', async () => {
  const { deps } = paying.service;
  const shopper = await collected();
  const { id, due_by } = await dispute(shopper);
  const merchant = ['merchants', 'page', paying.account.merchant.id];
  const ask = ['disputes', 'evidence', id, '--ask'];
  await tranche.refused(1, /is not an e-mail address/, ...ask);
  await tranche.json(...merchant, '--contact', 'help@karoo.example');
  const asked = await tranche.json(...ask);
  const hoursLeft = Temporal.Instant.from(asked.asked_until).until(due_by).total('hours');
  assert.ok(hoursLeft >= 48, asked.asked_until);
  await tranche.refused(1, /less than a day ago/, ...ask);
  await paying.work();
  const [mail, ...more] = (await shopper.rows('mailbox')).filter(
    ({ recipient }) => recipient === 'help@karoo.example',
  );
  assert.equal(more.length, 0);
  assert.match(mail.text, new RegExp(`${deps.console.merchantUrl}/disputes/${id}`));
  assert.match(mail.text, /disputing R 300,00 of order .*: fraudulent\./);
  assert.doesNotMatch(mail.text + mail.html, /thandi|Thandi/, 'it does not name the shopper');
  const { evidence } = await tranche.json('disputes', 'evidence', id);
  assert.doesNotMatch(evidence.history, /evidence asked/, 'it is not a message to the shopper');
  await paying.pass({ days: 1 });
  await tranche.json(...ask);
  await paying.work();
  await acceptDispute(deps, 'nomsa', id);
});

test('two operators who submit at once submit once', async () => {
  const { deps } = paying.service;
  const shopper = await collected();
  const { id } = await dispute(shopper);
  await stageEvidence(deps, 'nomsa', id);
  const answers = await Promise.allSettled([
    submitEvidence(deps, 'nomsa', id),
    submitEvidence(deps, 'thabo', id),
    submitEvidence(deps, 'sipho', id),
  ]);
  assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const answer of answers) {
    if (answer.status === 'rejected') {
      assert.match(String(answer.reason), /is being submitted|was submitted/);
    }
  }
  const [texts, count] = await evidenceThere(shopper);
  const [row] = await shopper.rows('disputes');
  const staged = stripeEvidence({ evidence: row.staged_evidence, files: {} });
  assert.deepEqual([texts, count], [staged, 1]);
  const { rows } = await deps.database.pool.query(
    `select details ->> 'evidence_sha256' as hash from operator_actions
     where subject_id = $1 and action = 'disputes submit'`,
    [id],
  );
  assert.deepEqual(rows, [{ hash: row.staged_hash }]);
  await resolve(id, '--won');
});

test('evidence whose submission has no answer stays as it is, and is submitted again', async () => {
  const { deps } = paying.service;
  const shopper = await collected();
  const { id } = await dispute(shopper);
  await stageEvidence(deps, 'nomsa', id);
  const [{ dispute_ref, staged_evidence }] = await shopper.rows('disputes');
  const path = `/v1/disputes/${dispute_ref}`;
  // The SDK repeats a request once.
  await paying.gateway.fault({ fault: 'error_before', method: 'POST', path, times: 2 });
  await assert.rejects(submitEvidence(deps, 'nomsa', id), OutcomeUnknown);
  await paying.clearFaults();
  await assert.rejects(stageEvidence(deps, 'thabo', id), /is being submitted/);
  await assert.rejects(acceptDispute(deps, 'thabo', id), /is being submitted/);
  assert.equal((await submitEvidence(deps, 'thabo', id)).status, 'under_review');
  const staged = stripeEvidence({ evidence: staged_evidence, files: {} });
  assert.deepEqual(await evidenceThere(shopper), [staged, 1]);
  await resolve(id, '--won');
});

test('the evidence shows how the bank authenticated the disputed payment, or the card that was charged', async () => {
  const historyOf = async (shopper: Shopper, number: number) => {
    const { id } = await dispute(shopper, number);
    const { evidence } = await tranche.json('disputes', 'evidence', id);
    await resolve(id, '--won');
    return evidence.history;
  };
  const bought = async (card: string) => {
    const shopper = await paying.shopper({ amount: 90_000 });
    if ((await shopper.pay(3, { card })).status === 'challenge') {
      await shopper.decide('approve');
      await shopper.comeBack();
    }
    return shopper;
  };
  const [challenged, replaced, inPerson] = [
    await bought(challengeCard),
    await bought(challengeCard),
    await bought(challengeCard),
  ];
  const replacing = await actingOn(paying, replaced);
  assert.equal((await replacing.replaceCard('5555555555554444')).attempt?.status, 'done');
  const paid = await (await actingOn(paying, inPerson)).pay('next', { card: '378282246310005' });
  assert.equal(paid.attempt?.status, 'done');
  await paying.pass({ days: 32 });

  const stored = await historyOf(challenged, 2);
  assert.match(
    stored,
    /charged on .* to the stored card \(Visa ending 3155\), initiated by the merchant/,
  );
  assert.match(stored, /The card was stored with the first payment on /);
  assert.match(stored, /3-D Secure when the card was stored: flow challenge, result authenticated/);

  const verified = await historyOf(replaced, 2);
  assert.match(verified, /to the stored card \(Mastercard ending 4444\)/);
  assert.match(
    verified,
    /The card network's transaction id ntx_\w+, transaction link id tlid_\w+\./,
  );
  assert.match(verified, /The card was stored when the cardholder had the bank verify it on /);
  assert.match(verified, /when the card was stored: flow frictionless, result attempt acknow/);
  assert.match(verified, /agreed again, for the card that was charged \(consent version /);
  assert.match(verified, /“By saving this card you agree that it is charged …/);

  const present = await historyOf(inPerson, 2);
  assert.match(
    present,
    /number 2\. The cardholder made it themselves, on the payment page, on .* with American Express ending 0005/,
  );
  assert.match(present, /3-D Secure for the disputed payment: result not supported\./);
  assert.match(
    await historyOf(inPerson, 1),
    /3-D Secure for the disputed payment: flow challenge, result authenticated/,
  );
});

test('each payment of a plan can be disputed separately, and each is recorded once', async () => {
  const shopper = await collected();
  await paying.pass({ days: 31 });
  await dispute(shopper, 1);
  await dispute(shopper, 2);
  const { deps } = paying.service;
  await Promise.all([findNewDisputes(deps), findNewDisputes(deps), findNewDisputes(deps)]);
  const rows = await shopper.rows('disputes');
  assert.deepEqual(rows.map(({ instalment }) => instalment).sort(), [1, 2]);
  assert.deepEqual(await accountsOf(shopper), { outstanding: 30_000, disputed: 60_000 });
  const [one, other] = rows;
  await resolve(one.id, '--won');
  assert.equal((await shopper.rows('instalments'))[0].paused, true);
  await resolve(other.id, '--won');
  assert.equal((await shopper.rows('instalments'))[0].paused, false);
  await assertBooks();
});

test('disputes of one payment of several instalments take from what is left of each, and return what they took', async () => {
  const shopper = await collected();
  await (await actingOn(paying, shopper)).pay('rest');
  const disputed = async () => {
    const amounts = await listDisputedAmounts(paying.service.deps.database.db, [
      { merchant_id: paying.account.merchant.id, checkout_id: shopper.id },
    ]);
    return amounts
      .map(({ instalment, amount }) => [instalment, amount])
      .filter(([, amount]) => amount !== 0)
      .sort();
  };
  const gatewayPayment = (await shopper.rows('instalments'))[1].payment_ref;
  const open = async () => {
    const form = { payment_intent: gatewayPayment, amount: '20000' };
    const { body } = await paying.gateway.call('POST', '/_test/disputes', form);
    await findNewDisputes(paying.service.deps);
    const row = (await shopper.rows('disputes')).find((one) => one.dispute_ref === body.id);
    return row as { dispute_ref: string };
  };
  const end = async ({ dispute_ref }: { dispute_ref: string }, form: Record<string, string>) => {
    await paying.gateway.call('POST', `/_test/disputes/${dispute_ref}/resolve`, form);
    await findNewDisputes(paying.service.deps);
  };
  const one = await open();
  await end(one, { outcome: 'won', withheld: 'true' });
  assert.deepEqual(await disputed(), [[2, 20_000]]);
  const other = await open();
  assert.deepEqual(await disputed(), [
    [2, 30_000],
    [3, 10_000],
  ]);
  await end(one, { outcome: 'reinstated' });
  assert.deepEqual(await disputed(), [
    [2, 10_000],
    [3, 10_000],
  ]);
  await end(other, { outcome: 'won' });
  assert.deepEqual(await disputed(), []);
  await assertBooks();
});

test('a dispute of a payment whose record waits is recorded once the payment is known, however late', async () => {
  const { deps } = paying.service;
  const shopper = await paying.shopper({ amount: 90_000 });
  await shopper.pay(3, { card: '4000000000002685' });
  // The gateway captures the payment and the cardholder disputes it; its answer is lost.
  const path = '/v1/payment_intents/:id/capture';
  await paying.gateway.fault({ fault: 'error_after', method: 'POST', path, times: 1_000 });
  paying.clock.advance({ days: 1 });
  await collectDueInstalments(deps);
  const unknown = async () =>
    (await deps.database.pool.query("select 1 from alerts where kind = 'dispute_unknown'"))
      .rowCount;
  const before = await unknown();
  await findNewDisputes(deps);
  assert.deepEqual(await shopper.rows('disputes'), []);
  assert.equal(await unknown(), before);
  // After a day an alert tells people about it, and polls do not go past it.
  const reached = await findReached(deps.database.db, mainGateway);
  paying.clock.advance({ hours: 25 });
  await findNewDisputes(deps);
  assert.equal(await unknown(), Number(before) + 1);
  assert.equal(await findReached(deps.database.db, mainGateway), reached);
  await paying.clearFaults();
  await paying.pass({ hours: 6 });
  await findNewDisputes(deps);
  const [row] = await shopper.rows('disputes');
  assert.equal(row.reason, 'product_not_received');
  await resolve(row.id, '--won');
});

test('the alert about a status that this version does not know stays open until the gateway decides', async () => {
  const { deps } = paying.service;
  const shopper = await collected();
  const payment_intent = (await shopper.rows('instalments'))[0].payment_ref;
  await paying.gateway.call('POST', '/_test/disputes', { payment_intent });
  const listDisputes = async () => {
    const { disputes, next } = await gatewayOf(deps).listDisputes(null);
    const unknown = (one: (typeof disputes)[number]) =>
      one.payment_ref === payment_intent ? { ...one, unknown_status: 'a_new_one' } : one;
    return { disputes: disputes.map(unknown), next };
  };
  await findNewDisputes({ ...deps, gateways: onlyGateway({ ...gatewayOf(deps), listDisputes }) });
  const [{ id }] = await shopper.rows('disputes');
  const isOpen = async () => {
    await closeEndedAlerts(deps);
    const { rows } = await deps.database.pool.query(
      `select closed_at from alerts where subject_id = $1 and kind = 'gateway_trouble'`,
      [id],
    );
    return rows.map(({ closed_at }) => closed_at === null);
  };
  assert.deepEqual(await isOpen(), [true]);
  await tranche.json('disputes', 'evidence', id, '--stage');
  assert.deepEqual(await isOpen(), [false], 'the gateway has answered');
  await resolve(id, '--won');
});

test('disputes come on the merchant’s clock when it is moved', async () => {
  const { deps } = paying.service;
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({ amount: 90_000 }, account);
  await shopper.pay(3, { card: '4000000000002685' });
  const by = Temporal.Duration.from({ hours: 5 * 24 });
  await advanceClock(deps, 'nomsa', account.merchant.id, { by });
  const [row] = await shopper.rows('disputes');
  assert.equal(row.status, 'needs_response');
  const opened = Temporal.Instant.from(row.created_at);
  assert.ok(paying.clock.now().until(opened).total('hours') < 48, 'at the capture, not days after');
});

test('an inquiry pauses the plan and withdraws nothing', async () => {
  const shopper = await paying.shopper({ amount: 90_000 });
  await shopper.pay(3, { card: '4000000000001976' });
  await paying.pass({ days: 2 });
  await findNewDisputes(paying.service.deps);
  const [row] = await shopper.rows('disputes');
  assert.deepEqual([row.status, row.withdrawn], ['inquiry', 0]);
  assert.equal((await accountsOf(shopper)).disputed, undefined);
  await resolve(row.id, '--won');
  await assertBooks();
});

test('an inquiry that was answered and becomes a dispute takes evidence again, and its deadline warns', async () => {
  const shopper = await paying.shopper({ amount: 90_000 });
  await shopper.pay(3, { card: '4000000000001976' });
  await paying.pass({ days: 2 });
  await findNewDisputes(paying.service.deps);
  const [{ id, dispute_ref, due_by }] = await shopper.rows('disputes');
  const before = (time: string) => Temporal.Instant.from(time).subtract({ hours: 48 }).toString();
  const alerts = () => alertsOf(paying, { ...shopper, id });
  await paying.pass(before(due_by));
  const { merchant } = paying.account;
  await tranche.json('merchants', 'page', merchant.id, '--contact', 'help@karoo.example');
  const asked = await tranche.json('disputes', 'evidence', id, '--ask');
  assert.notEqual(asked.asked_until, null);
  await tranche.json('disputes', 'evidence', id, '--stage');
  await tranche.json('disputes', 'evidence', id, '--submit');
  await tranche.refused(1, /its evidence was submitted/, 'disputes', 'accept', id);
  assert.deepEqual(await alerts(), ['dispute_opened', 'dispute_deadline']);

  const path = `/_test/disputes/${dispute_ref}/resolve`;
  await paying.gateway.call('POST', path, { outcome: 'escalated' });
  await paying.pass({ days: 1 });
  const [escalated] = await shopper.rows('disputes');
  assert.deepEqual(
    [escalated.status, escalated.withdrawn, escalated.submitted_at, escalated.warned_at],
    ['needs_response', 30_000, null, null],
  );
  // The merchant was asked about the inquiry.
  assert.deepEqual([escalated.asked_at, escalated.asked_until], [null, null]);
  await paying.pass(before(escalated.due_by));
  assert.deepEqual(await alerts(), [
    'dispute_opened',
    'dispute_deadline',
    'dispute_opened',
    'dispute_deadline',
  ]);
  await tranche.json('disputes', 'evidence', id, '--stage');
  const submitted = await tranche.json('disputes', 'evidence', id, '--submit');
  assert.equal(submitted.status, 'under_review');
  await resolve(id, '--won');
  await assertBooks();
});

test('a poll that fails on a later page, or on one dispute, leaves none out', async () => {
  const { deps } = paying.service;
  const { pool } = deps.database;
  const shoppers = [await collected(1), await collected(1), await collected(1)] as const;
  const openAll = async () => {
    for (const shopper of shoppers) {
      const [{ payment_ref }] = await shopper.rows('instalments');
      await paying.gateway.call('POST', '/_test/disputes', { payment_intent: payment_ref });
    }
  };
  // The pages of the real gateway, cut into pages of one dispute.
  const poll = async (pagesMax = Number.POSITIVE_INFINITY) => {
    let pages = 0;
    const listDisputes = async (after: string | null) => {
      pages += 1;
      if (pages > pagesMax) throw new OutcomeUnknown('a failure of the test');
      const { disputes } = await gatewayOf(deps).listDisputes(null);
      const index = after === null ? 0 : 1 + disputes.findIndex((one) => one.dispute_ref === after);
      const next = disputes[index + 1] ? (disputes[index]?.dispute_ref ?? null) : null;
      return { disputes: disputes.slice(index, index + 1), next };
    };
    await findNewDisputes({ ...deps, gateways: onlyGateway({ ...gatewayOf(deps), listDisputes }) });
    return pages;
  };
  const counts = () =>
    Promise.all(shoppers.map(async (shopper) => (await shopper.rows('disputes')).length));
  await poll();
  assert.equal(await poll(), 1, 'everything is known');

  await openAll();
  await assert.rejects(poll(1), OutcomeUnknown);
  assert.deepEqual(await counts(), [0, 0, 1]);
  await poll();
  assert.deepEqual(await counts(), [1, 1, 1]);
  for (const shopper of shoppers) await resolve((await shopper.rows('disputes'))[0].id, '--won');

  await openAll();
  await pool.query(
    `alter table disputes add constraint refused_by_the_test
     check (checkout_id <> '${shoppers[1].id}') not valid`,
  );
  await poll();
  await poll();
  await pool.query('alter table disputes drop constraint refused_by_the_test');
  assert.deepEqual(await counts(), [2, 1, 2]);
  const open = async () => {
    await closeEndedAlerts(paying.service.deps);
    const { rows } = await pool.query(
      `select closed_at is null as open from alerts where kind = 'dispute_unrecorded'`,
    );
    assert.equal(rows.length, 1);
    return rows[0].open;
  };
  assert.equal(await open(), true);
  await poll();
  assert.deepEqual(await counts(), [2, 2, 2]);
  assert.equal(await open(), false);
  assert.equal(await poll(), 1);
  for (const shopper of shoppers) {
    const open = (await shopper.rows('disputes')).filter(({ closed_at }) => closed_at === null);
    await resolve(open[0].id, '--won');
  }
  await assertBooks();
});

test('a gateway that settles in another currency: the payment is booked in its own, the fee is not, and an alert says so', async () => {
  const { gateway, service } = paying;
  const settle = (form: Record<string, string>) => gateway.call('POST', '/_test/settlement', form);
  await settle({ currency: 'usd', basis_points: '550' });
  try {
    const shopper = await collected();
    const { id } = await dispute(shopper);
    assert.deepEqual(await accountsOf(shopper), { outstanding: 60_000, disputed: 30_000 });
    assert.deepEqual(await entriesOf(shopper), ['dispute -30000']);
    const alerts = async () => (await alertsOf(paying, { ...shopper, id })).sort();
    assert.deepEqual(await alerts(), ['dispute_opened', 'gateway_currency']);
    // The reversal brings more of that currency than the withdrawal took.
    await settle({ currency: 'usd', basis_points: '600' });
    await resolve(id, '--won');
    const [row] = await shopper.rows('disputes');
    assert.deepEqual([row.status, row.withdrawn, row.fee], ['won', 0, 0]);
    assert.deepEqual(await alerts(), ['dispute_closed', 'dispute_opened', 'gateway_currency']);

    const { deps } = service;
    await reconcile(deps, { from: null, to: null });
    const { rows } = await deps.database.pool.query(
      `select (select count(*)::int from gateway_fees where checkout_id = $1) as fees,
         (select count(*)::int from alerts where kind = 'gateway_currency'
           and detail like '%fees in USD for payments in ZAR%') as alerts`,
      [shopper.id],
    );
    assert.deepEqual(rows, [{ fees: 0, alerts: 1 }]);
  } finally {
    await settle({});
  }
  await assertBooks();
});

test('an event is a hint: a signed one causes the dispute to be read, and its body is not believed', async () => {
  const shopper = await collected();
  const [{ payment_ref }] = (await shopper.rows('instalments')).filter(
    ({ number }) => number === 1,
  );
  const { body } = await paying.gateway.call('POST', '/_test/disputes', {
    payment_intent: payment_ref,
  });
  const post = (secret: string, id = 'evt_1') => {
    const object = { id: body.id, object: 'dispute', status: 'lost', amount: 1 };
    const payload = JSON.stringify({
      id,
      object: 'event',
      type: 'charge.dispute.created',
      data: { object },
    });
    const seconds = Math.floor(Date.now() / 1000);
    return paying.service.app.inject({
      method: 'POST',
      url: '/gateway/events',
      headers: {
        'content-type': 'application/json',
        'stripe-signature': `t=${seconds},v1=${signatureOf(secret, seconds, payload)}`,
      },
      payload,
    });
  };
  assert.equal((await post('whsec_of_another')).statusCode, 400);
  assert.deepEqual(await shopper.rows('disputes'), []);
  for (let times = 0; times < 2; times += 1) {
    const answer = await post(webhookSecret);
    assert.deepEqual([answer.statusCode, answer.json()], [200, { received: true }]);
    const [row, ...others] = await shopper.rows('disputes');
    assert.deepEqual([row.status, row.amount, others.length], ['needs_response', 30_000, 0]);
  }
  await paying.gateway.call('POST', `/_test/disputes/${body.id}/resolve`, { outcome: 'won' });
  await post(webhookSecret);
  assert.equal((await shopper.rows('disputes'))[0].status, 'needs_response', 'read once');
  await post(webhookSecret, 'evt_2');
  assert.equal((await shopper.rows('disputes'))[0].status, 'won');
  const answers = new Set<number>();
  for (let forged = 0; forged < 300 && !answers.has(429); forged += 1) {
    answers.add((await post('whsec_of_another')).statusCode);
  }
  assert.deepEqual([...answers], [400, 429], 'failures are counted per address');
  assert.equal((await post(webhookSecret)).statusCode, 200);
  await assertBooks();
});
