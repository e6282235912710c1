import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { blockCheckout, unblockCheckout } from '#purchases/instalments/block-checkout.ts';
import { collectMerchantInstalments } from '#purchases/instalments/collect-instalments.ts';
import { previewRefund } from '#purchases/refunds/preview-refund.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import { type PartAnswer, recordParts } from '#purchases/refunds/record-refund.ts';
import { findRefund, listParts } from '#purchases/refunds/refund.sql.ts';
import { requestRefund } from '#purchases/refunds/request-refund.ts';
import { approveRefund, declineRefund, retryRefund } from '#purchases/refunds/review-refund.ts';
import { gatewayFaults } from '../support/gateway.ts';
import {
  accountsOf,
  alertsOf,
  askRefund,
  assertBalanced,
  atGateway,
  cards,
  closeBooks,
  partsOf,
  planOf,
  refundNow,
  statusOf,
} from '../support/money.ts';
import { endPlans, type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { createAccount, isLong, send } from '../support/service.ts';
import { statementsOf } from '../support/statements.ts';

// Refunds from request to end, against the real test gateway. Each test continues at the time of
// the one before.

let paying: Paying;
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z', givesUp: true });
});
afterEach(() => endPlans(paying));
after(() => closeBooks(paying));
beforeEach(() => paying.clearFaults());

const deps = () => paying.service.deps;

async function bought(term: number, card?: string): Promise<Shopper> {
  const shopper = await paying.shopper({ amount: 100_000 });
  await shopper.pay(term, card === undefined ? {} : { card });
  return shopper;
}

/** Three payments, of which the given number is collected. */
async function collected(count: 0 | 1 | 2 | 3, card?: string): Promise<Shopper> {
  const shopper = await bought(3, card);
  await paying.pass([{ hours: 1 }, { days: 2 }, { days: 33 }, { days: 64 }][count] ?? {});
  return shopper;
}

async function refusal(shopper: Shopper, amount: number): Promise<string> {
  const body = { checkout_id: shopper.id, amount };
  const answer = await send(paying.service, paying.account, 'POST', '/api/refunds', { body });
  assert.equal(answer.status, 422);
  return answer.body.errors[0].detail;
}

describe('what a refund is taken from', () => {
  for (const [name, count, amount, parts, plan, gateway] of [
    [
      'before capture, part of the later payments',
      0,
      50_000,
      ['3 cancel 33333 done', '2 cancel 16667 done'],
      ['1 authorised', '2 scheduled -16667', '3 cancelled -33333'],
      { taken: [], held: [33_334], returned: 0 },
    ],
    [
      'before capture, part of the hold: less is captured',
      0,
      80_000,
      ['3 cancel 33333 done', '2 cancel 33333 done', '1 hold 13334 done'],
      ['1 authorised -13334', '2 cancelled -33333', '3 cancelled -33333'],
      { taken: [], held: [33_334], returned: 0 },
    ],
    [
      'before capture, everything: the hold is voided',
      0,
      100_000,
      ['3 cancel 33333 done', '2 cancel 33333 done', '1 hold 33334 done'],
      ['1 cancelled -33334', '2 cancelled -33333', '3 cancelled -33333'],
      { taken: [], held: [], returned: 0 },
    ],
    [
      'after capture',
      1,
      70_000,
      ['3 cancel 33333 done', '2 cancel 33333 done', '1 card 3334 done'],
      ['1 collected', '2 cancelled -33333', '3 cancelled -33333'],
      { taken: [33_334], held: [], returned: 3_334 },
    ],
    [
      'if a payment would be left with less than the gateway takes, the next one gives the rest',
      0,
      33_000,
      ['3 cancel 32333 done', '2 cancel 667 done'],
      ['1 authorised', '2 scheduled -667', '3 scheduled -32333'],
      { taken: [], held: [33_334], returned: 0 },
    ],
    [
      'after two of three, the card gives what the last payment must keep',
      2,
      33_000,
      ['3 cancel 32333 done', '2 card 667 done'],
      ['1 collected', '2 collected', '3 scheduled -32333'],
      { taken: [33_333, 33_334], held: [], returned: 667 },
    ],
    [
      'after two of three collections',
      2,
      60_000,
      ['3 cancel 33333 done', '2 card 26667 done'],
      ['1 collected', '2 collected', '3 cancelled -33333'],
      { taken: [33_333, 33_334], held: [], returned: 26_667 },
    ],
    [
      'after all of them, everything',
      3,
      100_000,
      ['3 card 33333 done', '2 card 33333 done', '1 card 33334 done'],
      ['1 collected', '2 collected', '3 collected'],
      { taken: [33_333, 33_333, 33_334], held: [], returned: 100_000 },
    ],
  ] as const) {
    test(name, async () => {
      const shopper = await collected(count);
      const refund = await refundNow(paying, shopper, amount);
      assert.equal(refund.status, 'complete');
      assert.equal(await statusOf(paying, refund.id), 'complete');
      assert.deepEqual(await partsOf(shopper, refund.id), parts);
      assert.deepEqual(await planOf(shopper), plan);
      assert.deepEqual(await atGateway(shopper), gateway);
      await assertBalanced(paying, shopper);
      // The rest is collected as planned, and no more.
      await paying.pass({ days: 100 });
      const { outstanding = 0, cancelled = 0, refunded = 0, ...rest } = await accountsOf(shopper);
      assert.deepEqual([outstanding, cancelled + refunded], [0, amount]);
      assert.equal(rest.collected ?? 0, 100_000 - amount);
      await assertBalanced(paying, shopper);
    });
  }

  test('a refund that would leave a hold with too little waits for its capture', async () => {
    const shopper = await bought(1);
    const refund = await refundNow(paying, shopper, 99_500);
    assert.equal(await statusOf(paying, refund.id), 'requested');
    assert.deepEqual(await planOf(shopper), ['1 authorised']);
    const preview = await previewRefund(deps(), shopper.id, 500);
    assert.equal(preview.remainder, 500);
    await paying.pass({ days: 2 });
    assert.equal(await statusOf(paying, refund.id), 'complete');
    assert.deepEqual(await partsOf(shopper, refund.id), ['1 card 99500 done']);
    const { taken, returned } = await atGateway(shopper);
    assert.deepEqual([taken, returned], [[100_000], 99_500]);
    await assertBalanced(paying, shopper);
  });

  test('an operator sees in the preview that such a refund would wait', async () => {
    const shopper = await bought(1);
    const { parts, warnings, refusal } = await previewRefund(deps(), shopper.id, 99_500);
    assert.deepEqual([parts, refusal], [[], null]);
    assert.match(warnings.join(), /will wait until the first payment is captured/);
    assert.deepEqual((await previewRefund(deps(), shopper.id, 99_000)).parts, [
      { instalment: 1, kind: 'hold', amount: 99_000 },
    ]);
  });

  test('several partial refunds follow each other, up to the remainder', async () => {
    const shopper = await collected(2);
    const refunds: string[][] = [];
    for (const amount of [20_000, 20_000, 20_000, 40_000]) {
      const { id, status } = await refundNow(paying, shopper, amount);
      assert.equal(status, 'complete');
      refunds.push(await partsOf(shopper, id));
    }
    assert.deepEqual(refunds, [
      ['3 cancel 20000 done'],
      ['3 cancel 13333 done', '2 card 6667 done'],
      ['2 card 20000 done'],
      ['2 card 6666 done', '1 card 33334 done'],
    ]);
    assert.match(await refusal(shopper, 1), /remainder of 0 cents/);
    assert.deepEqual(await accountsOf(shopper), { refunded: 66_667, cancelled: 33_333 });
    await assertBalanced(paying, shopper);
  });

  test('of two refunds that take a hold, the second voids it', async () => {
    const shopper = await bought(1);
    assert.equal((await refundNow(paying, shopper, 40_000)).status, 'complete');
    assert.deepEqual((await atGateway(shopper)).held, [100_000]);
    assert.equal((await refundNow(paying, shopper, 60_000)).status, 'complete');
    assert.deepEqual(await planOf(shopper), ['1 cancelled -100000']);
    assert.deepEqual(await atGateway(shopper), { taken: [], held: [], returned: 0 });
    await paying.pass({ days: 3 });
    await assertBalanced(paying, shopper);
  });

  test('the rest of a reduced hold is captured', async () => {
    const shopper = await bought(1);
    await refundNow(paying, shopper, 40_000);
    await paying.pass({ days: 3 });
    assert.deepEqual(await atGateway(shopper), { taken: [60_000], held: [], returned: 0 });
    assert.equal((await refundNow(paying, shopper, 60_000)).status, 'complete');
    assert.equal((await atGateway(shopper)).returned, 60_000);
    await assertBalanced(paying, shopper);
  });

  test('a refunded overdue payment is not collected any more', async () => {
    const shopper = await collected(2, cards.laterLost);
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 scheduled']);
    assert.equal((await refundNow(paying, shopper, 50_000)).status, 'complete');
    assert.deepEqual(await planOf(shopper), [
      '1 collected',
      '2 overdue -16667',
      '3 cancelled -33333',
    ]);
    await assertBalanced(paying, shopper);
  });
});

/** Why a refund failed, as the merchant's API says it. */
async function reasonOf(id: string): Promise<string | undefined> {
  const answer = await send(paying.service, paying.account, 'GET', `/api/refunds/${id}`);
  return answer.body.data.attributes.reason;
}

describe('review', () => {
  test('a manual request waits for an operator, whose name is kept', async () => {
    const shopper = await collected(1);
    const id = await askRefund(paying, shopper, 10_000);
    await paying.pass({ days: 3 });
    assert.equal(await statusOf(paying, id), 'requested');
    assert.deepEqual((await accountsOf(shopper)).reserved, 10_000);
    await approveRefund(deps(), 'nomsa', id);
    const { rows } = await deps().database.pool.query(
      'select operator, action from operator_actions where subject_id = $1',
      [id],
    );
    assert.deepEqual(rows, [{ operator: 'nomsa', action: 'refunds approve' }]);
    await assertBalanced(paying, shopper);
  });

  test('a threshold that is lowered before the lock is taken holds for both ways to refund', async () => {
    const { id: merchant_id } = paying.account.merchant;
    const { pool } = deps().database;
    const set = (above: string) =>
      pool.query('update merchants set four_eyes_above = $2 where id = $1', [merchant_id, above]);
    const actions = [
      async (shopper: Shopper) => {
        const id = await askRefund(paying, shopper, 20_000);
        return (acting: ReturnType<typeof deps>) => approveRefund(acting, 'nomsa', id);
      },
      async (shopper: Shopper) => (acting: ReturnType<typeof deps>) =>
        requestRefund(acting, 'nomsa', {
          request_id: deps().random.uuid(),
          checkout_id: shopper.id,
          amount: 20_000,
          reason: null,
        }),
    ];
    try {
      for (const prepare of actions) {
        await set('50000');
        const run = await prepare(await collected(3));
        // The threshold is lowered just before the transaction takes its connection, after
        // everything that is read without the lock.
        const { database } = deps();
        let isLowered = false;
        const lowering = new Proxy(pool, {
          get(target, name) {
            if (name !== 'connect') {
              const value = Reflect.get(target, name);
              return typeof value === 'function' ? value.bind(target) : value;
            }
            return async () => {
              if (!isLowered) await set('10000');
              isLowered = true;
              return await target.connect();
            };
          },
        });
        const refund = await run({ ...deps(), database: { ...database, pool: lowering } });
        assert.equal(isLowered, true);
        assert.equal(refund.approved_at, null);
      }
    } finally {
      await pool.query('update merchants set four_eyes_above = null where id = $1', [merchant_id]);
    }
  });

  test('an approval reads the threshold under the lock, and the refund once under each lock', async () => {
    const shopper = await collected(3);
    const id = await askRefund(paying, shopper, 10_000);
    const merchant_id = paying.account.merchant.id;
    const statements = await statementsOf(paying.service.databaseUrl, (database) =>
      approveRefund({ ...deps(), database }, 'nomsa', { merchant_id, id }),
    );
    assert.deepEqual(statements, [
      'select merchants',
      'begin',
      'select',
      'select checkouts locked',
      // One statement also reads the threshold, and the sum that fewer than two people approved.
      'select instalments',
      'write refund_requests refund_parts instalments',
      'select operator_chain locked',
      'insert operator_actions',
      'update operator_chain',
      'commit',
      // Here the gateway is asked. Its outcome counts only if the refund is still claimed.
      'begin',
      'select checkouts locked',
      'select refund_parts',
      'write refund_parts postings refund_requests messages instalments',
      'commit',
    ]);
    await assertBalanced(paying, shopper);
  });

  test('an auto-approval integration needs no operator', async () => {
    const account = await createAccount(paying.service, { refund_mode: 'auto' });
    const shopper = await paying.shopper({ amount: 100_000 }, account);
    await shopper.pay(3);
    await paying.pass({ days: 2 });
    const id = await askRefund(paying, shopper, 100_000, account);
    await paying.work();
    const { body } = await send(paying.service, account, 'GET', `/api/refunds/${id}`);
    assert.equal(body.data.attributes.status, 'complete');
    assert.equal((await atGateway(shopper)).returned, 33_334);
    await assertBalanced(paying, shopper);
  });

  test('two operators who approve at once, and a double click, refund once', async () => {
    const shopper = await collected(1);
    const id = await askRefund(paying, shopper, 100_000);
    const approve = (name: string) =>
      approveRefund(deps(), name, id).then(
        ({ status }) => status,
        (error: Error) => error.message,
      );
    const answers = await Promise.all([approve('nomsa'), approve('pieter'), approve('nomsa')]);
    assert.equal(answers.filter((answer) => answer === 'complete').length, 1, `${answers}`);
    for (const answer of answers.filter((one) => one !== 'complete')) {
      assert.match(answer, /only a refund that is waiting for review can be approved/);
    }
    assert.equal((await atGateway(shopper)).returned, 33_334);
    await assertBalanced(paying, shopper);
  });

  test('a declined request frees its amount, has a reason, and is not processed', async () => {
    const shopper = await collected(1);
    const id = await askRefund(paying, shopper, 100_000);
    assert.match(await refusal(shopper, 1), /remainder of 0 cents/);
    const declined = await declineRefund(deps(), 'nomsa', id, 'The goods were not sent back.');
    assert.deepEqual(
      [declined.status, declined.reason],
      ['failed', 'The goods were not sent back.'],
    );
    assert.equal(await reasonOf(id), 'The goods were not sent back.');
    await assert.rejects(approveRefund(deps(), 'nomsa', id), /is failed/);
    await assert.rejects(declineRefund(deps(), 'nomsa', id, 'Again.'), /is failed/);
    await paying.pass({ days: 2 });
    assert.deepEqual((await atGateway(shopper)).returned, 0);
    await assertBalanced(paying, shopper);
    // No operator approved it, and a retry does not approve it. The whole remainder can be refunded
    // again.
    await assert.rejects(retryRefund(deps(), 'pieter', id), /declined and never approved/);
    assert.equal((await refundNow(paying, shopper, 100_000)).status, 'complete');
    assert.match(await refusal(shopper, 1), /remainder of 0 cents/);
    await assertBalanced(paying, shopper);
  });

  test('an unknown refund cannot be reviewed', async () => {
    for (const id of ['', 'x', '00000000-0000-7000-8000-000000000000']) {
      await assert.rejects(approveRefund(deps(), 'nomsa', id), /There is no refund/);
      await assert.rejects(retryRefund(deps(), 'nomsa', id), /There is no refund/);
      await assert.rejects(declineRefund(deps(), 'nomsa', id, 'No.'), /There is no refund/);
    }
  });
});

describe('at the gateway', () => {
  test('an answer counts only under the current lease of the refund', async () => {
    const shopper = await collected(1, cards.refundPending);
    const { id } = await refundNow(paying, shopper, 70_000);
    const { db } = deps().database;
    const refund = await findRefund(db, paying.account.merchant.id, id);
    assert.ok(refund);
    const part = (await listParts(db, refund)).find(({ status }) => status === 'open');
    assert.ok(part);
    // A slow process reports an answer from before another one claimed the refund.
    const slow = { ...refund, lease: deps().random.uuid() };
    const answer = { outcome: 'failed', refund_ref: part.refund_ref } as PartAnswer;
    await recordParts(deps(), paying.account.merchant, slow, [{ part, answer }]);
    assert.deepEqual(await findRefund(db, paying.account.merchant.id, id), refund);
    await paying.pass({ hours: 3 });
    assert.equal(await statusOf(paying, id), 'complete');
  });

  test('a refund that stays pending is complete when the gateway says so', async () => {
    const shopper = await collected(1, cards.refundPending);
    // The day before the second payment: its date comes while the refund is in progress.
    const [, second] = (await shopper.rows('instalments')).sort((a, b) => a.number - b.number);
    await paying.pass(Temporal.Instant.from(second.due_at).subtract({ minutes: 30 }).toString());
    const refund = await refundNow(paying, shopper, 70_000);
    assert.equal(refund.status, 'pending');
    const other = await refundNow(paying, shopper, 20_000);
    assert.equal(other.status, 'pending');
    await paying.pass({ minutes: 20 });
    assert.equal(await statusOf(paying, refund.id), 'pending');
    await paying.pass({ hours: 3 });
    assert.equal(await statusOf(paying, refund.id), 'complete');
    assert.equal(await statusOf(paying, other.id), 'complete');
    await assertBalanced(paying, shopper);
  });

  test('a refused refund fails, reduced payments are restored, and an alert is raised', async () => {
    const shopper = await collected(2);
    // The payment is refunded at the gateway without us: nothing is left to refund.
    const [second] = (await shopper.rows('instalments')).filter(({ number }) => number === 2);
    const done = await paying.gateway.call('POST', '/v1/refunds', {
      payment_intent: second.payment_ref,
    });
    assert.equal(done.status, 200);
    const refund = await refundNow(paying, shopper, 60_000);
    assert.equal(refund.status, 'failed');
    assert.equal(await statusOf(paying, refund.id), 'failed');
    assert.deepEqual(await partsOf(shopper, refund.id), [
      '3 cancel 33333 put_back',
      '2 card 26667 failed',
    ]);
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
    assert.deepEqual(await alertsOf(paying, shopper), ['refund_failed']);
    assert.match((await reasonOf(refund.id)) ?? '', /gateway refused/);
    assert.deepEqual(await accountsOf(shopper), { outstanding: 33_333, collected: 66_667 });
    // The whole amount may be refunded again.
    assert.match(await refusal(shopper, 100_001), /remainder of 100000 cents/);
    await paying.pass({ days: 40 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 collected']);
  });

  test('a refund that fails leaves the retry of a declined payment as it was announced', async () => {
    const shopper = await collected(1, cards.laterInsufficientFunds);
    const payment = async (wanted: number) =>
      (await shopper.rows('instalments')).find(({ number }) => number === wanted);
    const { payment_ref: payment_intent } = await payment(1);
    const done = await paying.gateway.call('POST', '/v1/refunds', { payment_intent });
    assert.equal(done.status, 200);
    const due = Temporal.Instant.from((await payment(2)).due_at);
    await paying.pass(due.add({ hours: 25 }).toString());
    const { declines, due_at } = await payment(2);
    assert.deepEqual([declines, due_at], [2, timestamp(due.add({ hours: 72 }))]);
    const refund = await refundNow(paying, shopper, 80_000);
    assert.equal(refund.status, 'failed');
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
    assert.equal((await payment(2)).due_at, due_at);
  });

  test('a refund that fails in part keeps what reached the card, and a retry refunds the rest only', async () => {
    const shopper = await collected(3);
    const [second] = (await shopper.rows('instalments')).filter(({ number }) => number === 2);
    const behind = await paying.gateway.call('POST', '/v1/refunds', {
      payment_intent: second.payment_ref,
    });
    assert.equal(behind.status, 200);
    const refund = await refundNow(paying, shopper, 100_000);
    assert.deepEqual([refund.status, refund.kept], ['failed', 66_667]);
    assert.deepEqual(await partsOf(shopper, refund.id), [
      '3 card 33333 done',
      '2 card 33333 failed',
      '1 card 33334 done',
    ]);
    assert.match(await refusal(shopper, 33_334), /remainder of 33333 cents/);
    // The retry fails again, and nothing is refunded twice.
    const retried = await retryRefund(deps(), 'nomsa', refund.id);
    assert.deepEqual([retried.status, retried.kept], ['failed', 66_667]);
    assert.equal((await accountsOf(shopper)).refunded, 66_667);
    assert.equal((await atGateway(shopper)).returned, 66_667 + 33_333);
  });

  test('who previews or retries a refund of a blocked checkout learns who has to release it', async () => {
    const shopper = await collected(1);
    const { payment_ref: payment_intent } = (await shopper.rows('instalments'))[0];
    await paying.gateway.call('POST', '/v1/refunds', { payment_intent });
    const refund = await refundNow(paying, shopper, 80_000);
    assert.equal(refund.status, 'failed');
    const key = { merchant_id: paying.account.merchant.id, checkout_id: shopper.id };
    const at = timestamp(paying.clock.now());
    const block = { reference: 'pi_1', alert_id: deps().random.uuid(), created_at: at };
    await transaction(deps(), ({ db }) => blockCheckout(db, key, block));
    const released = /blocked.*an operator of the payment service has released it\.$/;
    const { warnings } = await previewRefund(deps(), shopper.id, 500);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', released);
    await assert.rejects(retryRefund(deps(), 'nomsa', refund.id), released);
    await transaction(deps(), ({ db }) => unblockCheckout(db, key, at));
  });

  test('a refund that the card network returns days later fails then, with an alert', async () => {
    const shopper = await collected(2, cards.refundFails);
    const refund = await refundNow(paying, shopper, 60_000);
    assert.equal(refund.status, 'complete');
    await paying.pass({ days: 2 });
    assert.equal(await statusOf(paying, refund.id), 'complete');
    await paying.pass({ days: 3 });
    assert.equal(await statusOf(paying, refund.id), 'failed');
    assert.deepEqual(await alertsOf(paying, shopper), ['refund_failed']);
    // Cancelled payments stay cancelled. What was returned may be refunded again.
    assert.deepEqual(await partsOf(shopper, refund.id), [
      '3 cancel 33333 done',
      '2 card 26667 failed',
    ]);
    assert.match(await refusal(shopper, 100_000), /remainder of 66667 cents/);
    await assertBalanced(paying, shopper);
    // An operator may retry past day 100.
    await paying.pass({ days: 100 });
    assert.match(await refusal(shopper, 1), /within 100 days/);
    const retried = await retryRefund(deps(), 'nomsa', refund.id);
    assert.equal(retried.status, 'complete');
    assert.deepEqual((await partsOf(shopper, refund.id)).slice(2), ['2 card 26667 done']);
  });

  test('a failed refund is retried only if the remainder allows it', async () => {
    const shopper = await collected(3);
    const path = '/v1/refunds';
    await paying.gateway.fault({ fault: 'decline', method: 'POST', path, times: 2 });
    const { id, status } = await refundNow(paying, shopper, 60_000);
    assert.equal(status, 'failed');
    assert.equal((await refundNow(paying, shopper, 50_000)).status, 'complete');
    await assert.rejects(retryRefund(deps(), 'nomsa', id), /only R\s500,00 of the checkout/);
    const complete = await refundNow(paying, shopper, 50_000);
    await assert.rejects(retryRefund(deps(), 'nomsa', complete.id), /is complete: only a failed/);
    await assertBalanced(paying, shopper);
  });
});

describe('whatever the gateway does, a refund is made once', () => {
  for (const [index, fault] of gatewayFaults.entries()) {
    for (const [call, path, count] of [
      ['card', '/v1/refunds', 1],
      ['hold', '/v1/payment_intents/:id/cancel', 0],
    ] as const) {
      // Each fault strikes one of the two calls here, and both in `test:long`.
      if (!isLong && (call === 'card') !== (index % 2 === 0)) continue;
      const times = fault.startsWith('latency') ? 1 : 2;
      test(`${call}, ${fault} × ${times}`, async () => {
        const shopper = await collected(count);
        await paying.gateway.fault({ fault, method: 'POST', path, times, ms: 600_000 });
        const { id } = await refundNow(paying, shopper, 100_000);
        await paying.gateway.struck(fault);
        // The gateway ends the call that we gave up on.
        if (fault.startsWith('latency')) await paying.clearFaults();
        await paying.pass({ hours: 2 });
        assert.equal(await statusOf(paying, id), 'complete');
        await assertBalanced(paying, shopper);
      });
    }
  }

  test('a refund whose key the gateway has forgotten is looked up', async () => {
    for (const effect of ['after', 'before'] as const) {
      const shopper = await collected(1);
      const path = '/v1/refunds';
      await paying.gateway.fault({ fault: `error_${effect}`, method: 'POST', path, times: 1 });
      await paying.gateway.fault({ fault: 'drop_before', method: 'POST', path, times: 1_000 });
      const { id } = await refundNow(paying, shopper, 100_000);
      assert.equal(await statusOf(paying, id), 'pending');
      paying.clock.advance({ hours: 25 });
      await paying.clearFaults();
      await paying.work();
      assert.equal(await statusOf(paying, id), 'complete');
      assert.equal((await shopper.books()).refunds.length, 1);
      await assertBalanced(paying, shopper);
    }
  });
});

describe('a refund and', () => {
  test('a capture at the same moment: one of them is first, and the sum is right', async () => {
    for (let round = 0; round < (isLong ? 6 : 2); round += 1) {
      const shopper = await bought(3);
      const [first] = (await shopper.rows('instalments')).filter(({ number }) => number === 1);
      await paying.pass(Temporal.Instant.from(first.due_at).subtract({ seconds: 1 }).toString());
      const id = await askRefund(paying, shopper, 90_000);
      paying.clock.advance({ seconds: 1 });
      await Promise.all([
        collectMerchantInstalments(deps(), paying.account.merchant),
        approveRefund(deps(), 'nomsa', id),
      ]);
      await paying.pass({ minutes: 10 });
      assert.equal(await statusOf(paying, id), 'complete');
      await assertBalanced(paying, shopper);
      const { taken, returned } = await atGateway(shopper);
      assert.equal((taken[0] ?? 0) - returned, 10_000);
    }
  });

  test('a collection in flight: the refund waits for its outcome', async () => {
    const shopper = await bought(3);
    const path = '/v1/payment_intents/:id/capture';
    await paying.gateway.fault({ fault: 'error_after', method: 'POST', path });
    paying.clock.advance({ days: 1 });
    await collectMerchantInstalments(deps(), paying.account.merchant);
    const refund = await refundNow(paying, shopper, 100_000);
    // The refund is approved, but waits: the open collection decides from which payments it is
    // taken.
    assert.deepEqual([refund.status, refund.approved_at !== null], ['requested', true]);
    await assert.rejects(approveRefund(deps(), 'pieter', refund.id), /is already approved/);
    await assert.rejects(declineRefund(deps(), 'pieter', refund.id, 'No.'), /is already approved/);
    await paying.pass({ minutes: 1 });
    assert.equal(await statusOf(paying, refund.id), 'complete');
    assert.deepEqual(await atGateway(shopper), { taken: [33_334], held: [], returned: 33_334 });
    await assertBalanced(paying, shopper);
  });

  test('another refund at the same moment: together they take no more than the remainder', async () => {
    const shopper = await collected(2);
    const ids = await Promise.all(
      [40_000, 40_000, 20_000].map((sum) => askRefund(paying, shopper, sum)),
    );
    await Promise.all(ids.map((id) => approveRefund(deps(), 'nomsa', id)));
    await paying.pass({ minutes: 10 });
    for (const id of ids) assert.equal(await statusOf(paying, id), 'complete');
    assert.equal((await atGateway(shopper)).returned, 66_667);
    await assertBalanced(paying, shopper);
  });
});

test('any number of workers process a refund once', async () => {
  const account = await createAccount(paying.service, { refund_mode: 'auto' });
  const shopper = await paying.shopper({ amount: 100_000 }, account);
  await shopper.pay(3);
  await paying.pass({ days: 2 });
  const ids = await Promise.all(
    [1, 2, 3, 4].map(() => askRefund(paying, shopper, 20_000, account)),
  );
  await Promise.all(Array.from({ length: 5 }, () => processDueRefunds(deps())));
  await paying.pass({ minutes: 10 });
  assert.equal(ids.length, 4);
  const requests = await shopper.rows('refund_requests');
  assert.deepEqual([...new Set(requests.map(({ status }) => status))], ['complete']);
  assert.equal((await atGateway(shopper)).returned, 13_334);
  await assertBalanced(paying, shopper);
});
