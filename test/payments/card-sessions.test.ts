import assert from 'node:assert/strict';
import { after, afterEach, before, describe, type TestContext, test } from 'node:test';
import type { Gateway } from '#gateway/gateway.ts';
import { mainGateway } from '#gateway/gateway-name.ts';
import { customerId, paymentId } from '#gateway/hyperswitch/ids.ts';
import { leaseSeconds } from '#gateway/retry-times.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import { claimBatch } from '#merchants/run-due-work.ts';
import { readCheckoutHistory } from '#operating/operations/checkout-history.ts';
import { timelineOf } from '#operating/operations/checkout-timeline.ts';
import { presentOverdue } from '#operating/operations/instalments.ts';
import { reading } from '#platform/database/transaction.ts';
import { findFacts } from '#purchases/disputes/evidence.sql.ts';
import { detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import { dueReplacedCards, listInstalments } from '#purchases/instalments/instalment.sql.ts';
import { collectionId } from '#purchases/instalments/instalment.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { previewRefund } from '#purchases/refunds/preview-refund.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import { commandLine } from '../support/cli.ts';
import { answerChallenge } from '../support/gateway.ts';
import { confirmInSession } from '../support/hyperswitch.ts';
import { alertsOf, partsOf, planOf, refundNow, statusOf } from '../support/money.ts';
import {
  assertSound,
  challengeCard,
  gatewayEnv,
  type Paying,
  type Shopper,
  startPaying,
  visa,
} from '../support/payments.ts';
import { type Acting, actingOn } from '../support/plan-attempts.ts';
import { createAccount } from '../support/service.ts';
import { until } from '../support/until.ts';

// A gateway whose card form confirms a payment in the browser: the payment begins first, and the
// shopper enters the card in its session.

let paying: Paying;
before(async () => {
  paying = await startPaying({ protocol: 'hyperswitch' });
});
after(() => paying.close());
afterEach(async () => {
  await paying.clearFaults();
  await paying.pass({ minutes: 50 });
  await assertSound(paying);
});

const mastercard = '5555555555554444';
const create = { method: 'POST', path: '/payments' };
const lookUp = { method: 'GET', path: '/payments/:id' };
const cancel = { method: 'POST', path: '/payments/:id/cancel' };

const begin = async (shopper: Shopper, term = 3): Promise<PayPage> => {
  const { status, body } = await shopper.send('POST', 'pay', await shopper.payBody(term));
  assert.equal(status, 200);
  return body;
};

const enter = (page: PayPage, card = visa, more = {}) =>
  confirmInSession(paying.gateway.url, page.card_session?.client_secret ?? '', card, more);

const refsOf = async (shopper: Shopper) =>
  (await shopper.rows('instalments')).map(({ payment_ref }) => payment_ref).filter(Boolean);

const statuses = async (shopper: Shopper) =>
  (await shopper.attempts()).map(({ status }) => status).join();

test('a payment begins without a card, and is held once the form has confirmed it', async () => {
  const shopper = await paying.shopper();
  const begun = await begin(shopper);
  assert.deepEqual([begun.status, begun.number_of_payments], ['begun', 3]);
  assert.deepEqual(await shopper.live(), []);
  // A page that is loaded again continues in the same session.
  assert.deepEqual((await shopper.state()).card_session, begun.card_session);
  const paid = await shopper.confirm(begun, visa);
  assert.deepEqual([paid.status, paid.card_session], ['successful', null]);
  assert.equal((await shopper.live()).length, 1);
  const [attempt] = await shopper.attempts();
  assert.deepEqual(
    [attempt?.status, attempt?.card_last4, attempt?.sealed_card_token],
    ['authorised', '4242', null],
  );
});

test('the secret of a session is sealed in the database', async () => {
  const shopper = await paying.shopper();
  const { card_session } = await begin(shopper);
  const [attempt] = await shopper.attempts();
  assert.ok(attempt?.sealed_card_token && card_session);
  assert.ok(!attempt.sealed_card_token.includes(card_session.client_secret));
});

test('a token is refused, and so is a missing one where the gateway needs it', async () => {
  const shopper = await paying.shopper();
  const body = await shopper.payBody(3);
  assert.equal((await shopper.send('POST', 'pay', { ...body, card_token: 'x' })).status, 422);
  assert.deepEqual(await shopper.attempts(), []);
});

test('a declined card holds nothing, and another attempt begins', async () => {
  const shopper = await paying.shopper();
  const page = await shopper.pay(3, { card: '4000000000009995' });
  assert.deepEqual([page.status, page.decline?.reason], ['open', 'insufficient_funds']);
  assert.equal((await shopper.pay(3)).status, 'successful');
  assert.equal(await statuses(shopper), 'declined,authorised');
  assert.equal((await shopper.live()).length, 1);
});

test('a card that cannot be charged later pays no plan, and its hold is voided', async (t) => {
  const gateway = paying.service.deps.gateways.of(mainGateway);
  const payment = gateway.payment.bind(gateway);
  t.mock.method(gateway, 'payment', async (...args: Parameters<typeof payment>) => {
    const state = await payment(...args);
    if (state.outcome !== 'authorised') return state;
    return { ...state, card: { ...state.card, card_ref: null } };
  });
  const shopper = await paying.shopper();
  const page = await shopper.pay(3);
  assert.deepEqual([page.status, page.decline?.reason], ['open', 'generic']);
  assert.deepEqual(await shopper.live(), []);
  assert.equal((await shopper.pay(1)).status, 'successful');
});

test('a challenge follows the card, and the bank’s answer decides', async () => {
  const shopper = await paying.shopper();
  const asked = await shopper.pay(3, { card: challengeCard });
  assert.deepEqual([asked.status, asked.card_session], ['challenge', null]);
  await shopper.decide('approve');
  assert.equal((await shopper.comeBack()).status, 'successful');
});

test('a browser that confirms and never comes back does no harm: the payment is found', async () => {
  const shopper = await paying.shopper();
  await enter(await begin(shopper));
  await paying.pass({ seconds: 25 });
  assert.equal((await shopper.state()).status, 'successful');
});

describe('a declined card counts as card testing, though the page never asks for the outcome', () => {
  for (const [left, leave] of [
    ['leaves the page', () => paying.pass({ seconds: 25 })],
    ['begins again', (shopper: Shopper) => begin(shopper, 6)],
    ['cancels', (shopper: Shopper) => shopper.cancel(3)],
  ] as const) {
    test(`and the shopper ${left}`, async () => {
      const account = await createAccount(paying.service);
      const shopper = await paying.shopper({}, account);
      const network = `198.51.100.${left.length}`;
      shopper.moveTo(network);
      await enter(await begin(shopper), '4000000000009995');
      await leave(shopper);
      await paying.work();
      const [attempt] = await shopper.attempts();
      assert.deepEqual(
        [attempt?.status, attempt?.decline_reason, attempt?.sealed_network],
        ['declined', 'insufficient_funds', null],
      );
      const { rateLimits } = paying.service.deps;
      const { ofNetwork, ofMerchant } = await rateLimits.declines(network, account.merchant.id, 0);
      assert.deepEqual([ofNetwork.count, ofMerchant.count], [1, 1]);
    });
  }
});

test('a declined card that the shopper leaves on the plan page counts as card testing, too', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3);
  const acting = await actingOn(paying, shopper);
  const begin = async () => await acting.post('plan/card', await acting.cardBody(visa));
  const { body } = await begin();
  const { client_secret } = body.attempt.card_session;
  await confirmInSession(paying.gateway.url, client_secret, '4000000000009995');
  await begin();
  await paying.work();
  assert.deepEqual((await acting.attempts())[0], 'card declined');
  const { ofMerchant } = await paying.service.deps.rateLimits.declines(
    null,
    account.merchant.id,
    0,
  );
  assert.equal(ofMerchant.count, 1);
});

describe('no one is held twice', () => {
  test('the session of one tab ends when another tab begins again', async () => {
    const shopper = await paying.shopper();
    const first = await begin(shopper);
    const second = await begin(shopper, 6);
    assert.notEqual(first.card_session?.client_secret, second.card_session?.client_secret);
    assert.equal(await statuses(shopper), 'voiding,begun');
    await paying.work();
    assert.equal(await statuses(shopper), 'voided,begun');
    assert.equal((await enter(first)).status, 400, 'it cannot be confirmed any more');
    assert.equal((await shopper.confirm(second, visa)).status, 'successful');
    assert.equal((await shopper.live()).length, 1);
  });

  test('a session that is confirmed before it is ended is voided', async () => {
    const shopper = await paying.shopper();
    const first = await begin(shopper);
    const second = await begin(shopper);
    assert.equal((await enter(first)).status, 200);
    assert.equal((await shopper.confirm(second, mastercard)).status, 'successful');
    await paying.work();
    assert.equal(await statuses(shopper), 'voided,authorised');
    assert.equal((await shopper.live()).length, 1);
  });

  test('while a session cannot be ended, what it holds is voided later', async () => {
    const shopper = await paying.shopper();
    const first = await begin(shopper);
    await paying.gateway.fault({ ...cancel, fault: 'error_before', times: 2 });
    const second = await begin(shopper);
    await paying.work();
    await enter(first);
    assert.equal((await shopper.confirm(second, visa)).status, 'successful');
    await paying.pass({ minutes: 5 });
    assert.equal(await statuses(shopper), 'voided,authorised');
    assert.equal((await shopper.live()).length, 1);
  });

  test('the form confirms twice', async () => {
    const shopper = await paying.shopper();
    const begun = await begin(shopper);
    const answers = await Promise.all([enter(begun), enter(begun)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
    assert.equal((await shopper.confirm(begun, visa)).status, 'successful');
    assert.equal((await shopper.live()).length, 1);
  });

  test('a cancelled checkout takes no card', async () => {
    const shopper = await paying.shopper();
    const begun = await begin(shopper);
    assert.equal((await shopper.cancel(3)).status, 'cancelled');
    await paying.work();
    assert.equal((await enter(begun)).status, 400);
    assert.deepEqual(await shopper.live(), []);
  });

  for (const [left, leave] of [
    ['cancelled', (shopper: Shopper) => shopper.cancel(3)],
    ['paid with another card', (shopper: Shopper) => shopper.pay(3, { card: mastercard })],
    ['let the time pass', () => paying.pass({ minutes: 46 })],
  ] as const) {
    test(`a challenge that the bank approves after the shopper ${left} holds nothing`, async () => {
      const shopper = await paying.shopper();
      const { challenge_url } = await shopper.pay(3, { card: challengeCard });
      assert.ok(challenge_url);
      await leave(shopper);
      await paying.pass({ minutes: 1 });
      const { status } = await shopper.state();
      await answerChallenge(challenge_url, 'approve');
      await paying.pass({ minutes: 10 });
      assert.equal((await statuses(shopper)).split(',')[0], 'voided');
      assert.equal((await shopper.state()).status, status);
      assert.equal((await shopper.live()).length, status === 'successful' ? 1 : 0);
    });
  }

  test('a challenge that no one answers is voided when it can no longer be approved', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3, { card: challengeCard });
    await shopper.cancel(3);
    await paying.pass({ minutes: 74 });
    assert.equal(await statuses(shopper), 'voiding');
    await paying.pass({ minutes: 12 });
    assert.equal(await statuses(shopper), 'voided');
    assert.deepEqual(await alertsOf(paying, shopper), []);
  });

  test('a session that is left open ends with the time of the payment', async () => {
    const shopper = await paying.shopper();
    const begun = await begin(shopper);
    await paying.pass({ minutes: 46 });
    assert.deepEqual(
      [(await shopper.state()).status, await statuses(shopper)],
      ['expired', 'voided'],
    );
    assert.equal((await enter(begun)).status, 400);
    assert.deepEqual(await shopper.live(), []);
  });
});

describe('a shopper whose browser says that the first payment pays the whole plan', () => {
  /** Pays the first payment of a plan and lets it be captured. */
  async function forged() {
    const shopper = await paying.shopper();
    const metadata = { checkout_id: shopper.id, instalments: '1,2,3' };
    const description = 'Payment 1-3 of 3 to Bean There';
    const begun = await begin(shopper);
    assert.equal((await enter(begun, visa, { metadata, description })).status, 200);
    await paying.pass({ days: 2 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
    return shopper;
  }

  test('pays each of the others on the plan page', async () => {
    const shopper = await forged();
    const acting = await actingOn(paying, shopper);
    assert.equal((await acting.pay('next')).attempt?.status, 'done');
    assert.equal((await acting.pay('next', { card: mastercard })).attempt?.status, 'done');
    assert.equal(new Set(await refsOf(shopper)).size, 3);
    assert.equal((await shopper.live()).length, 3);
  });

  test('is charged again after a declined charge', async () => {
    const shopper = await forged();
    const key_contains = paymentId(collectionId(shopper.id, 2, 1));
    await paying.gateway.fault({
      ...{ ...create, fault: 'decline', decline_code: 'insufficient_funds', key_contains },
    });
    await paying.pass({ months: 3 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 collected']);
    assert.equal((await shopper.rows('collections')).length, 4);
    assert.equal(new Set(await refsOf(shopper)).size, 3);
    assert.equal((await shopper.live()).length, 3);
  });

  test('pays each of the others, even if the gateway believes it', async (t) => {
    const shopper = await forged();
    const [first = ''] = await refsOf(shopper);
    const gateway = paying.service.deps.gateways.of(mainGateway);
    const list = gateway.listInstalmentPayments.bind(gateway);
    t.mock.method(gateway, 'listInstalmentPayments', async (...args: Parameters<typeof list>) => [
      ...(await list(...args)),
      { ...(await gateway.payment(args[0], first)), attempt_id: null },
    ]);
    const acting = await actingOn(paying, shopper);
    assert.equal((await acting.pay('next')).attempt?.status, 'done');
    const key_contains = paymentId(collectionId(shopper.id, 3, 1));
    await paying.gateway.fault({
      ...{ ...create, fault: 'decline', decline_code: 'insufficient_funds', key_contains },
    });
    await paying.pass({ months: 3 });
    assert.equal(new Set(await refsOf(shopper)).size, 3);
    assert.equal((await shopper.live()).length, 3);
  });
});

describe('a hold that was captured although it counted as lapsed', () => {
  /** Lets the hold of a first payment lapse here. Then the gateway says that it was captured. */
  async function lapsed(t: TestContext, term: number) {
    const shopper = await paying.shopper();
    assert.equal((await shopper.pay(term)).status, 'successful');
    const payment_ref = (await shopper.attempts())[0]?.payment_ref ?? '';
    const gateway = paying.service.deps.gateways.of(mainGateway);
    const held = await gateway.payment(paying.account.merchant.forGateway(), payment_ref);
    assert.equal(held.outcome, 'authorised');
    paying.clock.advance({ days: 8 });
    await paying.work();
    const { amount } = (await shopper.rows('instalments')).find(({ number }) => number === 1);
    t.mock.method(gateway, 'listInstalmentPayments', async () => [
      { ...held, outcome: 'captured', amount, attempt_id: '' },
    ]);
    return { shopper, payment_ref };
  }

  test('is recorded by the collector, which charges nothing', async (t) => {
    const { shopper, payment_ref } = await lapsed(t, 3);
    await paying.pass({ days: 1 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
    assert.deepEqual(await refsOf(shopper), [payment_ref]);
  });

  test('is recorded when the shopper wants to pay, who pays nothing', async (t) => {
    const { shopper, payment_ref } = await lapsed(t, 1);
    assert.deepEqual(await planOf(shopper), ['1 overdue']);
    const acting = await actingOn(paying, shopper);
    assert.equal((await acting.pay('late', { card: mastercard })).attempt?.status, 'done');
    assert.deepEqual(await refsOf(shopper), [payment_ref]);
  });
});

describe('an unknown outcome stays in flight until it is known', () => {
  for (const fault of ['error_before', 'error_after', 'drop_before', 'drop_after'] as const) {
    test(`${fault} when the payment begins`, async () => {
      const shopper = await paying.shopper();
      await paying.gateway.fault({ ...create, fault });
      assert.equal((await begin(shopper)).status, 'paying');
      assert.equal((await begin(shopper)).status, 'paying', 'no other begins');
      await paying.pass({ seconds: 6 });
      const begun = await shopper.state();
      assert.equal(begun.status, 'begun');
      assert.equal((await shopper.confirm(begun, visa)).status, 'successful');
      assert.equal((await shopper.attempts()).length, 1);
      assert.equal((await shopper.live()).length, 1);
    });
  }

  test('the page does not say that a payment is unpaid while the gateway says nothing about it', async () => {
    const shopper = await paying.shopper();
    const begun = await begin(shopper);
    await paying.gateway.fault({ ...lookUp, fault: 'error_before' });
    assert.equal((await shopper.confirm(begun, visa)).status, 'paying');
    paying.clock.advance({ seconds: 2 });
    const answer = await shopper.send('POST', 'confirm', {});
    assert.equal(answer.body.status, 'successful');
  });

  test('a form that confirmed nothing leaves the session open', async () => {
    const shopper = await paying.shopper();
    const begun = await begin(shopper);
    const answer = await shopper.send('POST', 'confirm', {});
    assert.deepEqual([answer.body.status, answer.body.card_session], ['begun', begun.card_session]);
  });
});

describe('a status that this version does not know', () => {
  const unknown_status = 'a_new_one';
  /** Replaces methods of the gateway while the work runs. */
  async function answering(calls: Partial<Gateway>, work: () => Promise<void>): Promise<void> {
    const port = paying.service.deps.gateways.of(mainGateway);
    const real = { ...port };
    Object.assign(port, calls);
    try {
      await work();
    } finally {
      Object.assign(port, real);
    }
  }
  /**
   * Asserts that an alert names the status. There is one such alert a day for each merchant and
   * status, so this lets two days pass.
   */
  const assertAlert = async (shopper: Shopper) => {
    assert.deepEqual(await alertsOf(paying, shopper), ['gateway_trouble']);
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(`select detail from alerts where subject_id = $1`, [
      shopper.id,
    ]);
    assert.match(rows[0].detail, /has the status a_new_one, which this version does not know/);
    await paying.pass({ days: 2 });
  };

  test('of a payment is in flight, and an alert is raised at once', async () => {
    const shopper = await paying.shopper();
    await enter(await begin(shopper));
    const payment_ref = (await shopper.attempts())[0]?.payment_ref ?? '';
    const state = { outcome: 'processing', payment_ref, unknown_status } as const;
    await answering({ payment: async () => state }, async () => {
      // The page does not ask for the card again, even when it is loaded again.
      assert.equal((await shopper.send('POST', 'confirm', {})).body.status, 'paying');
      assert.equal((await shopper.state()).status, 'paying');
    });
    await paying.pass({ minutes: 1 });
    assert.equal((await shopper.state()).status, 'successful');
    await assertAlert(shopper);
  });

  test('of a charge is in flight, and an alert is raised at once', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(3);
    const second = (await shopper.rows('instalments')).find(({ number }) => number === 2);
    const { charge: real } = paying.service.deps.gateways.of(mainGateway);
    const charge: Gateway['charge'] = async (payment) => {
      if (payment.checkout_id !== shopper.id) return await real(payment);
      // Another alert of the same merchant does not suppress the alert about this charge.
      const { deps } = paying.service;
      await raiseGatewayAlert(deps, paying.account.merchant, {
        ...{ what: 'A refund', subject_id: deps.random.uuid(), error: new Error('closed') },
        ...{ isOutcomeUnknown: false, retries: 9 },
      });
      throw new StatusUnknown('a charge', unknown_status);
    };
    await answering({ charge }, () => paying.pass(second.due_at));
    const open = (await shopper.rows('collections')).filter(({ status }) => status === 'open');
    assert.equal(open.length, 1);
    await assertAlert(shopper);
    assert.equal((await planOf(shopper))[1], '2 collected');
  });
});

describe('a charge that the gateway saved, and for which it found no acquirer', () => {
  for (const [when, away] of [
    ['soon', null],
    ['after its workers were away for a day', { hours: 25 }],
  ] as const) {
    test(`is asked about ${when}, ended once it cannot be in flight, and made once`, async () => {
      const shopper = await paying.shopper();
      await shopper.pay(3);
      const { due_at } = (await shopper.rows('instalments')).find(({ number }) => number === 2);
      await paying.pass(Temporal.Instant.from(due_at).subtract({ seconds: 1 }).toString());
      const path = { ...create, key_contains: customerId(shopper.id) };
      await paying.gateway.fault({ ...path, fault: 'no_acquirer', times: 1_000 });
      const charges = async () => {
        const { payment_intents } = await paying.gateway.books({ checkout: shopper.id });
        return payment_intents.slice(0, -1).map(({ status }) => status);
      };
      const asked = async () =>
        (await shopper.rows('collections'))
          .filter(({ instalment }) => instalment === 2)
          .map(({ number, status, decline_reason }) => [number, status, decline_reason])
          .sort();
      paying.clock.advance({ seconds: 1 });
      await paying.work();
      // The first request may still be between the insert and the acquirer.
      if (away === null) await paying.pass({ minutes: 5 });
      assert.deepEqual(await charges(), ['requires_payment_method']);
      assert.deepEqual(await asked(), [[1, 'open', null]]);
      await paying.clearFaults();
      if (away) paying.clock.advance(away);
      await paying.pass({ minutes: 30 });
      assert.deepEqual(await charges(), ['canceled']);
      assert.deepEqual(await asked(), [[1, 'declined', 'processing_error']]);
      await paying.pass({ days: 2 });
      assert.deepEqual(await charges(), ['succeeded', 'canceled']);
      assert.deepEqual(await asked(), [
        [1, 'declined', 'processing_error'],
        [2, 'collected', null],
      ]);
    });
  }
});

test('a charge for which the bank asks the shopper at no address is voided, and made again', async (t) => {
  const shopper = await paying.shopper();
  await shopper.pay(3);
  const { due_at } = (await shopper.rows('instalments')).find(({ number }) => number === 2);
  await paying.pass(Temporal.Instant.from(due_at).subtract({ seconds: 1 }).toString());
  const key_contains = paymentId(collectionId(shopper.id, 2, 1));
  await paying.gateway.fault({ ...create, fault: 'drop_before', key_contains });
  await paying.pass({ seconds: 1 });
  await paying.clearFaults();
  const gateway = paying.service.deps.gateways.of(mainGateway);
  const waiting = { outcome: 'processing', payment_ref: key_contains, asks_shopper: true } as const;
  const find = t.mock.method(gateway, 'findPayment', async () => waiting);
  const end = t.mock.method(gateway, 'void', async () => ({ outcome: 'voided' }) as const);
  paying.clock.advance({ hours: 25 });
  await paying.pass({ minutes: 30 });
  assert.deepEqual([find.mock.callCount() > 0, end.mock.callCount()], [true, 1]);
  t.mock.restoreAll();
  await paying.pass({ days: 2 });
  assert.equal((await planOf(shopper))[1], '2 collected');
});

test('a retry waits as long as the card network asks, and the history says why', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(3);
  const [, second] = (await shopper.rows('instalments')).sort((a, b) => a.number - b.number);
  const key_contains = paymentId(collectionId(shopper.id, 2, 1));
  const declined = { fault: 'decline', decline_code: 'card_velocity_exceeded' } as const;
  await paying.gateway.fault({ ...create, ...declined, key_contains });
  await paying.pass(second.due_at);
  await paying.work();
  const waiting = (await shopper.rows('instalments')).find(({ number }) => number === 2);
  const wait = Temporal.Instant.from(waiting.due_at).since(Temporal.Instant.from(second.due_at));
  assert.equal(wait.total('hours'), 96);
  // An operator who retries after the last attempt has to wait as well.
  const { deps } = paying.service;
  const put =
    'update instalments set status = $2, due_at = $3 where checkout_id = $1 and number = 2';
  await deps.database.pool.query(put, [shopper.id, 'overdue', null]);
  await assert.rejects(
    retryInstalment(deps, 'nomsa', `${shopper.id}:2`),
    /asks us to wait until .* at 08:00 before it is asked again/,
  );
  const [row] = await reading(deps, async (db) => {
    const rows = await listInstalments(db, waiting);
    const late = rows.filter(({ number }) => number === 2);
    return await presentOverdue(deps.clock, db, 'all merchants', late);
  });
  assert.equal(row?.is_retry_sensible, false);
  assert.match(row.advice, /asks us to wait until .* at 08:00/);
  await deps.database.pool.query(put, [shopper.id, waiting.status, waiting.due_at]);
  const history = await readCheckoutHistory(paying.service.deps, 'all merchants', shopper.id);
  assert(history);
  const texts = timelineOf(history).map(({ description }) => description);
  assert.ok(
    texts.some((text) => text.includes('asks us to wait 4 days')),
    texts.join('\n'),
  );
});

test('a card waits, too, if its network asked for a pause when the shopper tried to pay', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(3);
  const second = async () => (await shopper.rows('instalments')).find(({ number }) => number === 2);
  const requests = async () =>
    (await shopper.rows('collections')).filter(({ instalment }) => instalment === 2);
  const due = Temporal.Instant.from((await second()).due_at);
  await paying.pass(due.subtract({ hours: 1 }).toString());
  await paying.gateway.fault({
    ...create,
    ...{ fault: 'decline', decline_code: 'card_velocity_exceeded' },
  });
  const { attempt } = await (await actingOn(paying, shopper)).pay('next');
  assert.equal(attempt?.status, 'declined');
  const [asked] = await requests();
  await paying.pass(due.toString());
  await paying.work();
  const waiting = await second();
  const wait = Temporal.Instant.from(waiting.due_at).since(Temporal.Instant.from(asked.settled_at));
  assert.deepEqual(
    [wait.total('hours'), waiting.status, waiting.declines, (await requests()).length],
    [96, 'scheduled', 0, 1],
  );
  // A refund cancels the payment and fails, which returns the payment to the next collection time.
  // That is still within the wait.
  await paying.gateway.fault({ method: 'POST', path: '/refunds', fault: 'decline' });
  const { amount } = await shopper.state();
  const { id } = await refundNow(paying, shopper, amount);
  await paying.work();
  assert.equal(await statusOf(paying, id), 'failed');
  const returned = await second();
  const isWithin = Date.parse(returned.due_at) < Date.parse(waiting.due_at);
  assert.deepEqual([returned.status, isWithin], ['scheduled', true]);
  await paying.pass(returned.due_at);
  await paying.work();
  assert.deepEqual([(await second()).due_at, (await requests()).length], [waiting.due_at, 1]);
  await paying.pass(waiting.due_at);
  await paying.work();
  assert.equal((await second()).status, 'collected');
});

test('a long plan that was paid at once is refunded, although the gateway takes ten refunds of a payment', async () => {
  const shopper = await paying.shopper({ amount: 120_000 });
  assert.equal((await shopper.pay(12)).status, 'successful');
  await paying.pass({ days: 2 });
  assert.equal((await (await actingOn(paying, shopper)).pay('rest')).attempt?.status, 'done');
  for (const amount of [50_050, 69_950]) {
    assert.equal((await previewRefund(paying.service.deps, shopper.id, amount)).refusal, null);
    assert.equal((await refundNow(paying, shopper, amount)).status, 'complete');
  }
  const { refunds } = await shopper.books();
  assert.deepEqual(refunds.map(({ amount }) => amount).toSorted(), [10_000, 50_050, 59_950]);
  await paying.pass({ days: 31 });
});

test('a refund is split so that the gateway takes each part, if that is possible', async () => {
  const shopper = await paying.shopper({ amount: 150_000 });
  await shopper.pay(3);
  await paying.pass({ months: 3 });
  for (const [amount, parts] of [
    [50_050, ['3 card 49900 done', '2 card 150 done']],
    [99_950, ['3 card 100 done', '2 card 49850 done', '1 card 50000 done']],
  ] as const) {
    const { id, status } = await refundNow(paying, shopper, amount);
    assert.equal(status, 'complete');
    assert.deepEqual(await partsOf(shopper, id), parts);
  }
});

describe('a refund that the gateway cannot take is refused in the preview', () => {
  const preview = (shopper: Shopper, amount: number) =>
    previewRefund(paying.service.deps, shopper.id, amount);

  test('below its minimum, after too many refunds, and after its time', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(1);
    await paying.pass({ days: 1 });
    assert.equal((await preview(shopper, 100)).refusal, null);
    assert.match((await preview(shopper, 99)).refusal ?? '', /refunds at least R\s1,00/);
    const { pool } = paying.service.deps.database;
    // These are ten refunds, as ten requests would have made them.
    await pool.query(
      `with made as (
         insert into refund_requests (merchant_id, id, number, checkout_id, integration_id, status,
           amount, currency, signed, created_at, approved_at, completed_at, attempts, kept)
         select merchant_id, gen_random_uuid(), 1000 + n, id, integration_id, 'complete', 100,
           currency, false, created_at, created_at, created_at, 0, 0
         from checkouts, generate_series(1, 10) n where id = $1 returning *)
       insert into refund_parts (merchant_id, id, checkout_id, refund_id, round, number, instalment,
         kind, status, amount, from_status, payment_ref, keyed_at, settled_at)
       select made.merchant_id, gen_random_uuid(), made.checkout_id, made.id, 1, 1, 1, 'card',
         'done', 100, 'collected', i.payment_ref, made.created_at, made.created_at
       from made join instalments i using (checkout_id)`,
      [shopper.id],
    );
    assert.match((await preview(shopper, 100)).refusal ?? '', /accepts no more than 10/);
    await pool.query('delete from refund_parts where checkout_id = $1', [shopper.id]);
    await pool.query('delete from refund_requests where checkout_id = $1', [shopper.id]);
    paying.clock.advance({ hours: 366 * 24 });
    assert.match((await preview(shopper, 100)).refusal ?? '', /no longer refunds it/);
  });
});

test('the fees of a settlement report are posted once, and its mistakes are named', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(1);
  await paying.pass({ days: 1 });
  const [{ payment_ref }] = await shopper.rows('instalments');
  const env = { DATABASE_URL: paying.service.databaseUrl, ...gatewayEnv(paying.gateway) };
  const report = (...rows: string[]) =>
    ['\uFEFFtransaction_id,"type",amount,currency,created_at,payment_id,note', ...rows].join(
      '\r\n',
    );
  const read = async (text: string) =>
    await commandLine(env, { clock: paying.clock, stdin: text }).run(
      'gateway',
      'fees',
      '-',
      '--json',
    );
  const at = '2026-11-20T08:00:00Z';
  const text = report(
    `tx_1,card,"1234",ZAR,${at},${payment_ref},"a, b"`,
    `tx_2,monthly,9900,ZAR,${at},,`,
    `tx_3,card,10,ZAR,${at},pay_of_another,`,
    '',
  );
  const none = { unknown: 0, unknown_payments: [], conflicting: 0, conflicting_transactions: [] };
  const sums = { ...none, rows: 3, unknown: 1, unknown_payments: ['pay_of_another'] };
  assert.deepEqual(JSON.parse((await read(text)).stdout), { ...sums, posted: 2 });
  assert.deepEqual(JSON.parse((await read(text)).stdout), { ...sums, posted: 0 });
  // Two fees of one payment must not have one id, in one file or in two.
  const same = await read(
    report(
      `tx_1,card,1234,ZAR,${at},${payment_ref},the same again`,
      `tx_1,scheme,1234,ZAR,${at},${payment_ref},`,
      `tx_2,monthly,9901,ZAR,${at},,`,
      `tx_5,card,7,ZAR,${at},${payment_ref},`,
      `tx_5,card,7,ZAR,${at},${payment_ref},`,
      `tx_5,card,8,ZAR,${at},${payment_ref},`,
    ),
  );
  assert.equal(same.code, 1);
  const conflicting = { conflicting: 3, conflicting_transactions: ['tx_1', 'tx_2', 'tx_5'] };
  assert.deepEqual(JSON.parse(same.stdout), { ...none, ...conflicting, rows: 6, posted: 1 });
  const { rows } = await paying.service.deps.database.pool.query(
    "select fee from gateway_fees where transaction_ref = 'tx_1'",
  );
  assert.deepEqual(rows, [{ fee: 1234 }]);
  for (const [bad, problem] of [
    ['', /is empty/],
    ['a,b', /It has no transaction_id/],
    [report(`tx_4,card,1.5,ZAR,${at},,`), /Line 2: amount/],
    [report('tx_4,card,15,ZAR,yesterday,,'), /Line 2: created_at/],
    [report('"tx_4,card'), /Line 2 is not CSV/],
  ] as const) {
    const { code, stderr } = await read(bad);
    assert.equal(code, 1);
    assert.match(stderr, problem);
  }
  const half = await read(
    report(`tx_6,card,5,ZAR,${at},${payment_ref},`, `tx_7,card,5,ZAR,${at}`, 'bad'),
  );
  assert.match(half.stderr, /Line 4: .*The lines before it were read/s);
  const posted = await paying.service.deps.database.pool.query(
    'select transaction_ref, fee from gateway_fees union all select transaction_ref, fee from gateway_account_fees order by 1',
  );
  assert.deepEqual(
    posted.rows.map(({ transaction_ref, fee }) => `${transaction_ref} ${fee}`),
    ['tx_1 1234', 'tx_2 9900', 'tx_5 7', 'tx_6 5', 'tx_7 5'],
  );
});

describe('on the plan', () => {
  async function bought(card = visa) {
    const shopper = await paying.shopper();
    assert.equal((await shopper.pay(3, { card })).status, 'successful');
    return { shopper, acting: await actingOn(paying, shopper) };
  }

  test('the stored card pays at once, and another one in a session', async () => {
    const { shopper, acting } = await bought();
    assert.equal((await acting.pay('next')).attempt?.status, 'done');
    assert.equal((await acting.pay('next', { card: mastercard })).attempt?.status, 'done');
    assert.deepEqual(await acting.attempts(), ['charged 2 50000', 'charged 3 50000']);
    assert.equal((await shopper.live()).length, 3);
  });

  test('a new card is verified in a session, and pays from then on', async () => {
    const { shopper, acting } = await bought();
    const changed = await acting.replaceCard(mastercard);
    assert.deepEqual(
      [changed.attempt?.status, changed.plan?.card],
      ['done', { brand: 'mastercard', last4: '4444' }],
    );
    await paying.pass({ months: 3 });
    assert.deepEqual(
      (await shopper.rows('instalments')).map(({ status }) => status),
      ['collected', 'collected', 'collected'],
    );
  });

  test('a card that the gateway cannot keep pays, and the mail does not say that the stored one did', async (t) => {
    const { shopper, acting } = await bought();
    const gateway = paying.service.deps.gateways.of(mainGateway);
    const payment = gateway.payment.bind(gateway);
    t.mock.method(gateway, 'payment', async (...args: Parameters<typeof payment>) => {
      const state = await payment(...args);
      if (state.outcome !== 'captured') return state;
      return { ...state, card: { ...state.card, card_ref: null } };
    });
    const paid = await acting.pay('next', { card: mastercard, keep: true });
    assert.equal(paid.attempt?.status, 'done');
    assert.deepEqual(paid.plan?.card, { brand: 'visa', last4: '4242' });
    const messages = await shopper.rows('messages');
    const charged = messages.find(({ kind }) => kind === 'charged');
    assert.deepEqual(charged?.facts, { instalment: 2, amount: 50_000, other_card: true });
    assert.ok(!messages.some(({ kind }) => kind === 'card_replaced'));
  });

  test('a session that the shopper left is ended before another attempt begins', async () => {
    const { shopper, acting } = await bought();
    const body = await acting.payBody('next', { card: mastercard });
    const { body: begun } = await acting.post('plan/pay', body);
    assert.equal(begun.attempt.status, 'begun');
    const { client_secret } = begun.attempt.card_session;
    assert.equal((await shopper.state()).attempt?.status, 'working', 'without a session');
    assert.equal((await acting.pay('next')).attempt?.status, 'done');
    assert.equal((await confirmInSession(paying.gateway.url, client_secret, visa)).status, 400);
    assert.deepEqual(await acting.attempts(), ['voided 2 50000', 'charged 2 50000']);
  });

  test('a challenge that the shopper left can be resumed, and nothing is charged twice', async () => {
    const { shopper, acting } = await bought();
    const asked = await acting.pay('next', { card: challengeCard });
    const again = await acting.pay('next', { card: mastercard, shown: asked });
    assert.deepEqual(again.attempt, asked.attempt);
    await acting.decide('approve');
    assert.deepEqual(await acting.attempts(), ['charged 2 50000']);
    assert.equal((await shopper.live()).length, 2);
  });

  test('a challenge that the shopper declines at the bank lets another card pay', async () => {
    const { acting } = await bought();
    const shown = await acting.pay('next', { card: challengeCard });
    await acting.decide('decline', false);
    assert.equal((await acting.pay('next', { card: mastercard, shown })).attempt?.status, 'done');
    assert.deepEqual(await acting.attempts(), ['declined 2 50000', 'charged 2 50000']);
  });

  for (const [decision, status] of [
    ['approve', 'charged'],
    ['close', 'voided'],
  ] as const) {
    test(`a challenge that ran out of time is ${status} if the shopper then chooses ${decision}, and nothing is charged twice`, async () => {
      const { shopper, acting } = await bought();
      const { attempt } = await acting.pay('next', { card: challengeCard });
      await paying.pass({ minutes: 16 });
      assert.deepEqual(await acting.attempts(), ['voiding 2 50000']);
      assert.equal((await acting.pay('next')).attempt?.status, 'working', 'no other begins');
      await answerChallenge(attempt?.challenge_url ?? '', decision);
      await paying.pass({ minutes: 20 });
      assert.deepEqual(await acting.attempts(), [`${status} 2 50000`]);
      assert.equal((await shopper.live()).length, status === 'charged' ? 2 : 1);
    });
  }

  test('a session that was confirmed and left is found, and nothing is charged twice', async () => {
    const { shopper, acting } = await bought();
    const body = await acting.payBody('next', { card: mastercard });
    const { body: begun } = await acting.post('plan/pay', body);
    await confirmInSession(paying.gateway.url, begun.attempt.card_session.client_secret, visa);
    await acting.pay('next', { shown: begun });
    assert.deepEqual(await acting.attempts(), ['charged 2 50000']);
    assert.equal((await shopper.live()).length, 2);
  });
});

describe('a card that is entered again, which the gateway stores under the reference that it already has', () => {
  const detach = { method: 'DELETE', path: '/payment_methods/:id' };
  const allCollected = ['1 collected', '2 collected', '3 collected'];

  async function cardsOf(shopper: Shopper) {
    const [stored] = await shopper.rows('stored_cards');
    const replaced = await shopper.rows('replaced_cards');
    return { stored: stored.card_ref, replaced: replaced.map(({ card_ref }) => card_ref) };
  }

  async function bought(term = 3) {
    const shopper = await paying.shopper();
    assert.equal((await shopper.pay(term)).status, 'successful');
    const { stored } = await cardsOf(shopper);
    return { shopper, acting: await actingOn(paying, shopper), first: stored };
  }

  /** Begins a session in which the shopper can enter another card. */
  async function beginCard(acting: Acting): Promise<string> {
    const { body } = await acting.post('plan/card', await acting.cardBody(visa));
    return body.attempt.card_session.client_secret;
  }

  test('stays stored, and the card after it is recorded', async () => {
    const { shopper, acting, first } = await bought();
    await paying.pass({ months: 1, hours: 1 });
    const renewed = await acting.replaceCard(`${visa}-2035-01`);
    assert.equal(renewed.attempt?.status, 'done');
    await paying.work();
    assert.deepEqual(await cardsOf(shopper), { stored: first, replaced: [] });
    const [card] = await shopper.rows('stored_cards');
    const consented = card.consent.payments.map(({ number }: { number: number }) => number);
    assert.deepEqual([card.expires, consented], ['2035-01', [3]]);
    // The charge before it was not made under the new consent.
    const second = (await shopper.rows('instalments')).find(({ number }) => number === 2);
    const facts = await findFacts(paying.service.deps.database.db, second);
    assert.deepEqual([facts.disputed?.kind, facts.setup], ['charge', null]);

    assert.equal((await acting.replaceCard(mastercard)).attempt?.status, 'done');
    assert.deepEqual((await cardsOf(shopper)).replaced, [first]);
    await paying.pass({ months: 1 });
    assert.deepEqual(await planOf(shopper), allCollected);
    const messages = await shopper.rows('messages');
    assert.equal(messages.filter(({ kind }) => kind === 'card_replaced').length, 2);
  });

  test('is not detached if it comes back after another one, and pays the rest', async () => {
    const { shopper, acting, first } = await bought();
    await paying.gateway.fault({ ...detach, fault: 'error_before', times: 100 });
    await acting.replaceCard(mastercard);
    const { stored: other } = await cardsOf(shopper);
    await paying.work();
    const secret = await beginCard(acting);
    await paying.clearFaults();
    // The removal is due, and waits for the session.
    await paying.pass({ minutes: 2 });
    assert.equal((await shopper.rows('replaced_cards'))[0].detached_at, null);
    await confirmInSession(paying.gateway.url, secret, visa);
    const back = await acting.post('confirm', {});
    assert.equal(back.body.attempt.status, 'done');
    assert.deepEqual(await cardsOf(shopper), { stored: first, replaced: [other] });
    await paying.pass({ months: 3 });
    assert.deepEqual(await planOf(shopper), allCollected);
    const [removed] = await shopper.rows('replaced_cards');
    assert.ok(removed.detached_at);
  });

  test('is left alone by a removal that was claimed before it came back', async () => {
    const { shopper, acting, first } = await bought();
    const { deps } = paying.service;
    const { pool } = deps.database;
    await paying.gateway.fault({ ...detach, fault: 'error_before' });
    await acting.replaceCard(mastercard);
    await paying.work();
    paying.clock.advance({ seconds: 10 });
    const secret = await beginCard(acting);
    await confirmInSession(paying.gateway.url, secret, visa);
    const client = await pool.connect();
    const waiting = (count: number) =>
      until(`${count} to wait for the checkout`, async () => {
        const { rows } = await pool.query(
          `select from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows.length === count;
      });
    try {
      await client.query('begin');
      await client.query('select from checkouts where id = $1 for no key update', [shopper.id]);
      const recording = acting.post('confirm', {});
      await waiting(1);
      const removing = detachReplacedCards(deps);
      await waiting(2);
      await client.query('commit');
      assert.equal((await recording).body.attempt.status, 'done');
      assert.equal(await removing, 1);
    } finally {
      client.release(true);
    }
    assert.equal((await cardsOf(shopper)).stored, first);
    await paying.pass({ months: 3 });
    assert.deepEqual(await planOf(shopper), allCollected);
  });

  test('cannot be stored while the gateway may be removing it', async () => {
    const { shopper, acting } = await bought();
    await acting.replaceCard(mastercard);
    const claim = { leaseSeconds, batchSize: 10 };
    const { merchant } = paying.account;
    const claimed = await claimBatch(paying.service.deps, dueReplacedCards, merchant, claim);
    assert.equal(claimed.length, 1);
    assert.equal((await acting.replaceCard(visa)).attempt?.refusal, 'plan_changed');
    const keeping = await acting.pay('next', { card: visa, keep: true });
    assert.equal(keeping.attempt?.refusal, 'plan_changed');
    assert.equal((await acting.pay('next', { card: visa })).attempt?.status, 'done');
    paying.clock.advance({ seconds: leaseSeconds + 1 });
    await paying.work();
    assert.equal((await acting.replaceCard(visa)).attempt?.status, 'done');
    assert.equal((await cardsOf(shopper)).replaced.length, 2, 'it has another reference now');
  });

  test('is charged again after the gateway lost its reference', async () => {
    const { shopper, acting, first } = await bought(6);
    await paying.pass({ days: 2 });
    const time = paying.account.merchant.forGateway();
    const { gateways } = paying.service.deps;
    await gateways.of(mainGateway).detachCard({ key: 'lost', merchant: time, card_ref: first });
    await paying.pass({ months: 2 });
    const late = ['1 collected', '2 overdue', '3 overdue', '4 scheduled'];
    assert.deepEqual((await planOf(shopper)).slice(0, 4), late);
    const { attempt } = await acting.pay('late', { card: visa, keep: true });
    assert.equal(attempt?.status, 'done');
    assert.notEqual((await cardsOf(shopper)).stored, first);
    await paying.pass({ months: 1 });
    assert.deepEqual((await planOf(shopper)).slice(0, 4), [...allCollected, '4 collected']);
  });
});
