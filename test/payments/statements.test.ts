import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createMoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { startWorker } from '#worker.ts';
import { askRefund, wholeTerms } from '../support/money.ts';
import { type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { movableClock } from '../support/service.ts';
import { recordStatements } from '../support/statements.ts';
import { until } from '../support/until.ts';

// The statements of each step of a sale, exactly. A read that is not needed costs every sale, and
// shows here. Each test continues the sale of the one before.

let paying: Paying;
let shopper: Shopper;
let recorder: ReturnType<typeof recordStatements>;
before(async () => {
  paying = await startPaying({ clock: standingClock() });
  recorder = recordStatements(paying.service.deps.database.pool);
  // After this payment the process knows the merchant, and whether money may move, like a process
  // that has run for a while.
  const earlier = await paying.shopper();
  await earlier.pay(3);
});
after(() => paying.close());
// In each test the process reads again what it remembers for a second or less.
beforeEach(() => paying.clock.advance({ seconds: 2 }));

/** A process checks with these, at most once a second, whether money may move. */
const guard = ['select pg_control_system', 'select gateway_heartbeat'];

async function during(work: () => Promise<unknown>): Promise<string[]> {
  return (await recorder.during(work)).filter((one) => !guard.includes(one));
}

test('a create', async () => {
  const statements = await during(async () => {
    shopper = await paying.shopper();
  });
  assert.deepEqual(statements, [
    'select signing_keys',
    'select merchants',
    ...['begin', 'insert list_totals', 'insert checkouts', 'commit'],
  ]);
});

test('the page, and its state when it polls', async () => {
  assert.deepEqual(await during(() => shopper.send('GET', '')), [
    'select checkouts',
    'insert checkout_opens',
  ]);
  assert.deepEqual(await during(() => shopper.state()), ['select checkouts']);
});

test('a payment with its callback', async () => {
  const body = await shopper.payBody(3);
  const statements = await during(async () => {
    const paid = await shopper.send('POST', 'pay', body);
    assert.equal(paid.body.status, 'successful');
  });
  assert.deepEqual(statements, [
    'select checkouts',
    // The attempt.
    ...['begin', 'select checkouts locked', 'select payment_attempts'],
    ...['insert payment_attempts', 'commit'],
    // The gateway is called after this.
    'update payment_attempts',
    // The outcome.
    ...['begin', 'select checkouts locked', 'select payment_attempts locked'],
    'write payment_attempts checkouts checkout_moves callbacks ' +
      'instalments stored_cards postings messages',
    'commit',
    // The attempt to deliver the callback is opened and closed.
    ...['begin', 'select signing_keys', 'insert callback_attempts', 'commit'],
    ...['begin', 'write callback_attempts callbacks destinations', 'commit'],
    // The answer.
    'select checkouts',
  ]);
});

// A commit before the attempt would also turn the refusal of an overloaded process into an unknown
// outcome (decision 0013).
test('a payment in another language, which is written with the attempt', async () => {
  const other = await paying.shopper();
  const body = { ...(await other.payBody(1)), language: 'zu' };
  const statements = await during(async () => {
    const paid = await other.send('POST', 'pay', body);
    assert.deepEqual([paid.body.status, paid.body.language], ['successful', 'zu']);
  });
  assert.deepEqual(statements.slice(0, statements.indexOf('commit') + 1), [
    'select checkouts',
    ...['begin', 'select checkouts locked', 'select payment_attempts'],
    ...['update checkouts', 'insert payment_attempts', 'commit'],
  ]);
});

test('the page of the plan', async () => {
  assert.deepEqual(await during(() => shopper.send('GET', '')), [
    'select checkouts',
    'select instalments',
  ]);
});

test('the collections of a day, and the mails about them', async () => {
  const { deps } = paying.service;
  await setTerms(deps, 'nomsa', paying.account.merchant.id, wholeTerms);
  await paying.pass({ days: 2 });
  const [due] = (await shopper.rows('instalments')).filter(({ number }) => number === 2);
  paying.clock.set(due?.due_at);
  // The reminders of this day are sent first.
  await sendDueMessages(deps);
  assert.deepEqual(await during(() => collectDueInstalments(deps)), [
    // The claim.
    ...['select instalments', 'select merchants', 'update instalments locked'],
    // The request is written before it is sent.
    ...['begin', 'select checkouts locked', 'select instalments locked', 'select collections'],
    ...['insert collections', 'commit'],
    // The outcome.
    ...['begin', 'select instalments locked', 'update collections', 'update instalments'],
    // The books, and whether the plan has ended.
    ...['insert postings', 'select settlement_terms', 'select instalments'],
    ...['insert messages', 'commit'],
  ]);
  assert.deepEqual(await during(() => sendDueMessages(deps)), [
    ...['select messages', 'select merchants', 'update messages locked', 'select checkouts'],
    // The sandbox's mailbox takes a mail to each of the two shoppers.
    ...['insert mailbox', 'insert mailbox'],
    ...['begin', 'update messages', 'insert message_attempts', 'commit'],
  ]);
});

test('a refund: requested, approved and completed', async () => {
  const { deps } = paying.service;
  let id = '';
  const requested = await during(async () => {
    id = await askRefund(paying, shopper, 60_000);
  });
  assert.deepEqual(requested, [
    ...['select signing_keys', 'select merchants'],
    ...['begin', 'select checkouts locked', 'select integrations'],
    ...['select refund_requests', 'select disputes'],
    ...['insert list_totals', 'write refund_requests postings', 'commit'],
  ]);
  const merchant_id = paying.account.merchant.id;
  const statements = await during(() => approveRefund(deps, 'nomsa', { merchant_id, id }));
  assert.deepEqual(statements, [
    'select merchants',
    ...['begin', 'select', 'select checkouts locked', 'select instalments'],
    'write refund_requests refund_parts instalments postings settlement_entries',
    // The action in its chain.
    ...['select operator_chain locked', 'insert operator_actions'],
    ...['update operator_chain', 'commit'],
    // The outcome.
    ...['begin', 'select checkouts locked', 'select refund_parts'],
    'write refund_parts postings settlement_entries refund_requests messages instalments',
    'commit',
  ]);
});

/** No real time passes, so a process remembers what it read until the test lets time pass. */
function standingClock(): Paying['clock'] {
  const clock = movableClock();
  const monotonic = () => clock.now().epochMilliseconds;
  return { ...clock, monotonic, after: () => () => {} };
}

/** A clock whose sleepers wake when the test says so, one after the other. */
function steppedClock(clock: Clock) {
  const sleepers = new Set<{ at: number; wake(): void }>();
  let milliseconds = 0;
  return {
    ...clock,
    now: () => clock.now().add({ milliseconds }),
    monotonic: () => milliseconds,
    sleep: (duration: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        const wake = () => {
          sleepers.delete(sleeper);
          resolve();
        };
        const sleeper = { at: milliseconds + duration, wake };
        sleepers.add(sleeper);
        if (signal?.aborted) wake();
        signal?.addEventListener('abort', wake, { once: true });
      }),
    sleepers,
    /** Lets this much time pass. Everything that sleeps now sleeps again between steps. */
    async pass(duration: number): Promise<void> {
      const end = milliseconds + duration;
      const all = sleepers.size;
      for (;;) {
        const next = Math.min(...[...sleepers].map(({ at }) => at));
        if (next > end) break;
        milliseconds = next;
        for (const sleeper of sleepers) if (sleeper.at <= milliseconds) sleeper.wake();
        while (sleepers.size < all) await new Promise(setImmediate);
      }
      milliseconds = end;
    },
  };
}

test('an idle node sends at most three statements a second, and begins due work at the next search', async () => {
  const { deps } = paying.service;
  await paying.work();
  const clock = steppedClock(deps.clock);
  const { receiver } = paying;
  const stepped = {
    ...{ ...deps, clock, environment: 'sandbox' as const, endAccess: endAllAccess },
    alertWebhookUrl: `${receiver.url}/alerts`,
  };
  const worker = startWorker({ ...stepped, money: createMoneyGuard(stepped) });
  try {
    // Waits until all work and the search for due rows sleep.
    let still = 0;
    for (let before = 0; still < 500; still += 1) {
      await new Promise(setImmediate);
      const { totalCount, idleCount } = deps.database.pool;
      if (clock.sleepers.size !== before || totalCount !== idleCount) still = 0;
      before = clock.sleepers.size;
    }
    // A first run that found nothing due must not delay an alert that is raised just after the
    // start.
    await raiseAlert(stepped, deps.database.db, { kind: 'card_testing', detail: 'Look.' });
    await clock.pass(500);
    await until('the alert', () => receiver.at('/alerts').length > 0);
    const seconds = 300;
    const statements = await recorder.during(() => clock.pass(seconds * 1000));
    const rate = statements.length / seconds;
    assert.ok(rate <= 3, `${rate} a second: ${JSON.stringify(countOf(statements))}`);
    // A callback falls due now.
    const moved = "update callbacks set due_at = $1, status = 'pending'";
    const { rowCount } = await deps.database.pool.query(moved, [deps.clock.now().toString()]);
    assert.ok(rowCount);
    const received = receiver.received.length;
    await clock.pass(500);
    await until('the callback', () => receiver.received.length > received);
  } finally {
    await worker.stop();
  }
});

function countOf(statements: string[]): Record<string, number> {
  const groups = Object.groupBy(statements, (one) => one);
  return Object.fromEntries(Object.entries(groups).map(([one, all]) => [one, all?.length ?? 0]));
}
