import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { viewerOf } from '#cli/connect.ts';
import { amountRefused } from '#gateway/amount-refused.ts';
import type { Gateway } from '#gateway/gateway.ts';
import { alertList } from '#operating/operations/alerts.ts';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import type { Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import {
  collectDueInstalments,
  collectMerchantInstalments,
} from '#purchases/instalments/collect-instalments.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { lockOpenAlert } from '#record/alerts/alert.sql.ts';
import { answerChallenge, gatewayFaults, gatewayOf, onlyGateway } from '../support/gateway.ts';
import {
  accountsOf,
  alertsOf,
  assertBalanced,
  atGateway,
  cards,
  closeBooks,
  planOf,
} from '../support/money.ts';
import { endPlans, type Paying, type Shopper, startPaying } from '../support/payments.ts';
import { type Account, createAccount, isLong } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

// Captures and collections on the merchant's clock, against the real test gateway. Each test
// continues at the time of the one before.

let paying: Paying;
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z', givesUp: true });
});
afterEach(() => endPlans(paying));
after(() => closeBooks(paying));
beforeEach(() => paying.clearFaults());

async function bought(term: number, options: { card?: string; amount?: number } = {}) {
  const shopper = await paying.shopper({ amount: options.amount ?? 100_000 });
  await shopper.pay(term, options.card === undefined ? {} : { card: options.card });
  return shopper;
}

/** Finds the only open alert about a checkout, as the console shows it. */
async function openAlert(shopper: Shopper) {
  const viewer = viewerOf({ ...paying.service.deps, operator: 'nomsa', fourEyesAbove: null });
  const { data } = await alertList.read(viewer, {}, { after: null, limit: 100 });
  const own = data.filter(({ checkout_id }) => checkout_id === shopper.id);
  assert.ok(own.length <= 1);
  return own[0];
}

/** When each payment was collected, in Johannesburg. */
async function collectedAt(shopper: Shopper): Promise<(string | null)[]> {
  const rows = await shopper.rows('instalments');
  return rows
    .sort((one, other) => one.number - other.number)
    .map(({ collected_at }) =>
      collected_at === null
        ? null
        : Temporal.Instant.from(collected_at)
            .toZonedDateTimeISO('Africa/Johannesburg')
            .toPlainDateTime()
            .toString({ smallestUnit: 'minute' }),
    );
}

test('the hold is captured at 02:00 of the next day, the others are collected at 08:00 of their dates', async () => {
  await paying.pass('2026-01-31T10:00:00Z');
  const shopper = await bought(3);
  assert.deepEqual(await accountsOf(shopper), { outstanding: 100_000, held: 33_334 });
  await paying.pass('2026-01-31T23:59:59Z');
  assert.deepEqual(await planOf(shopper), ['1 authorised', '2 scheduled', '3 scheduled']);
  assert.deepEqual(await atGateway(shopper), { taken: [], held: [33_334], returned: 0 });
  await paying.pass('2026-02-01T00:00:00Z');
  await paying.work();
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
  assert.deepEqual(await accountsOf(shopper), { outstanding: 66_666, collected: 33_334 });
  await paying.pass('2026-04-01T00:00:00Z');
  // The plan returns to the 31st after the shorter month.
  const expected = ['2026-02-01T02:00', '2026-02-28T08:00', '2026-03-31T08:00'];
  assert.deepEqual(await collectedAt(shopper), expected);
  assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_333, 33_334]);
  await assertBalanced(paying, shopper);
});

test('a purchase shortly before local midnight is captured in the same night, one after it in the next', async () => {
  await paying.pass('2026-04-10T21:59:00Z');
  const before = await bought(1);
  await paying.pass('2026-04-10T22:01:00Z');
  const afterwards = await bought(1);
  await paying.pass('2026-04-13T00:00:00Z');
  assert.deepEqual(await collectedAt(before), ['2026-04-11T02:00']);
  assert.deepEqual(await collectedAt(afterwards), ['2026-04-12T02:00']);
});

describe('a collection that is declined', () => {
  test('is retried after 1, 3 and 7 days, then the payment is overdue and one alert is raised', async () => {
    await paying.pass('2026-05-01T08:00:00Z');
    const shopper = await bought(3, { card: cards.laterInsufficientFunds });
    await paying.pass('2026-06-08T05:59:00Z');
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
    assert.deepEqual(await alertsOf(paying, shopper), []);
    await paying.pass('2026-06-08T06:01:00Z');
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 scheduled']);
    assert.deepEqual(await alertsOf(paying, shopper), ['payment_overdue']);
    const attempts = (await shopper.rows('collections')).filter(
      ({ instalment }) => instalment === 2,
    );
    assert.deepEqual(
      attempts.map(({ created_at, status }) => `${created_at.slice(0, 16)} ${status}`).sort(),
      ['01', '02', '04', '08'].map((day) => `2026-06-${day}T06:00 declined`),
    );
    // The bank was asked each time. An earlier answer was not repeated.
    const asked = (await shopper.books()).payment_intents.filter(
      ({ status }) => status === 'requires_payment_method',
    );
    assert.equal(asked.length, 4);
    const metrics = await paying.service.deps.metrics.registry.metrics();
    assert.match(metrics, /^tranche_collections_total\{kind="charge",outcome="declined"\} 4$/m);
    assert.match(metrics, /^tranche_collections_total\{kind="capture",outcome="collected"\} \d+$/m);
    for (const { decline_code, network_decline_code } of attempts) {
      assert.deepEqual([decline_code, network_decline_code], ['insufficient_funds', '51']);
    }
    assert.equal((await shopper.state()).status, 'successful');
    await assertBalanced(paying, shopper);
  });

  for (const [name, card] of [
    ['of a lost card', cards.laterLost],
    ['that needs the shopper', cards.laterNeedsShopper],
  ] as const) {
    test(`${name} is not retried`, async () => {
      const shopper = await paying.shopper({ amount: 100_000 });
      const page = await shopper.pay(3, { card });
      if (page.challenge_url) {
        await answerChallenge(page.challenge_url, 'approve');
        await shopper.comeBack();
      }
      await paying.pass({ days: 32 });
      assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 scheduled']);
      const attempts = await shopper.rows('collections');
      assert.equal(attempts.filter(({ instalment }) => instalment === 2).length, 1);
      assert.deepEqual(await alertsOf(paying, shopper), ['payment_overdue']);
      // The console offers no retry that would be refused.
      assert.equal((await openAlert(shopper))?.late, null);
      await assertBalanced(paying, shopper);
    });
  }

  test('is in an open alert, even if its cause seemed to have ended at that moment', async () => {
    const { deps } = paying.service;
    const shopper = await bought(3, { card: cards.laterInsufficientFunds });
    await paying.pass({ days: 45 });
    const about = { merchant_id: paying.account.merchant.id, subject_id: shopper.id };
    const set = (db: Handle, status: 'scheduled' | 'overdue') =>
      db
        .updateTable('instalments')
        .set({ status, due_at: status === 'overdue' ? null : '2100-01-01T00:00:00.000Z' })
        .where('merchant_id', '=', about.merchant_id)
        .where('checkout_id', '=', shopper.id)
        .where('number', '=', 2)
        .execute();
    // The payment was paid, and the next one becomes overdue: its record relies on the open alert.
    await set(deps.database.db, 'scheduled');
    await transaction(deps, async ({ db }) => {
      assert.equal(await lockOpenAlert(db, 'payment_overdue', about), true);
      await set(db, 'overdue');
      assert.equal(await closeEndedAlerts(deps), 0);
    });
    assert.ok(await openAlert(shopper));
  });

  test('can be retried by an operator: a decline leaves it overdue, success collects it and closes the alert', async () => {
    const shopper = await bought(3, { card: cards.laterInsufficientFunds });
    await paying.pass({ days: 45 });
    const id = `${shopper.id}:2`;
    const retry = () => retryInstalment(paying.service.deps, 'nomsa', id);
    assert.equal((await retry()).status, 'overdue');
    assert.equal(await closeEndedAlerts(paying.service.deps), 0);
    assert.match(
      (await openAlert(shopper))?.text ?? '',
      /^\S+: R.333,33 from .* is \d+ days late\.$/,
    );
    // The bank would now accept the card.
    const other = await bought(3);
    await paying.service.deps.database.pool.query(
      `with other as materialized (select * from stored_cards where checkout_id = $2)
       update stored_cards s set card_ref = other.card_ref, customer_ref = other.customer_ref
       from other where s.checkout_id = $1`,
      [shopper.id, other.id],
    );
    assert.equal((await retry()).status, 'collected');
    await closeEndedAlerts(paying.service.deps);
    assert.equal(await openAlert(shopper), undefined);
    await assert.rejects(retry, /is collected: only an overdue payment can be retried/);
    const actions = await paying.service.deps.database.pool.query(
      "select operator from operator_actions where action = 'instalments retry' and subject_id = $1",
      [shopper.id],
    );
    assert.deepEqual(actions.rows, [{ operator: 'nomsa' }, { operator: 'nomsa' }]);
    await assertBalanced(paying, shopper);
  });

  test('of a card that the bank forbids is the last one: neither an operator nor the collector asks again', async () => {
    const shopper = await bought(3, { card: cards.laterLost });
    await paying.pass({ days: 32 });
    const retry = retryInstalment(paying.service.deps, 'nomsa', `${shopper.id}:2`);
    await assert.rejects(retry, /declined this card \(lost_card\) and forbids charging it again/);
    await paying.pass({ days: 40 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 overdue']);
    const rows = await shopper.rows('collections');
    assert.deepEqual(
      rows
        .filter(({ kind }) => kind === 'charge')
        .map(({ instalment, decline_reason, decline_code }) => [
          instalment,
          decline_reason,
          decline_code,
        ])
        .sort(),
      [
        [2, 'lost_card', 'lost_card'],
        [3, 'lost_card', 'not_asked'],
      ],
    );
    assert.deepEqual(await alertsOf(paying, shopper), ['payment_overdue', 'payment_overdue']);
    // Both payments are in one alert.
    assert.match((await openAlert(shopper))?.text ?? '', /: R.666,66 from/);
    // The gateway knows the first payment and one charge that was declined.
    assert.equal((await shopper.books()).payment_intents.length, 2);
    await assertBalanced(paying, shopper);
  });

  test('that the gateway refused for its amount forbids neither a retry nor the payments after it', async (t) => {
    const shopper = await bought(3);
    await paying.pass({ days: 2 });
    const gateway = gatewayOf(paying.service.deps);
    const charge = gateway.charge.bind(gateway);
    const refusing = t.mock.method(
      gateway,
      'charge',
      async (given: Parameters<typeof charge>[0]) =>
        given.instalment === 2
          ? { outcome: 'declined' as const, payment_ref: null, decline: amountRefused }
          : await charge(given),
    );
    await paying.pass({ days: 70 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 collected']);
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query('select detail from alerts where subject_id = $1', [
      shopper.id,
    ]);
    assert.match(rows[0].detail, /does not accept the amount, and the bank was not asked/);
    refusing.mock.restore();
    const retry = retryInstalment(paying.service.deps, 'nomsa', `${shopper.id}:2`);
    assert.equal((await retry).status, 'collected');
    await assertBalanced(paying, shopper);
  });

  test('is retried at most four times a day, however many people ask', async () => {
    const shopper = await bought(3, { card: cards.laterInsufficientFunds });
    await paying.pass({ days: 45 });
    const retry = (name: string) =>
      retryInstalment(paying.service.deps, name, `${shopper.id}:2`).then(({ status }) => status);
    for (const name of ['nomsa', 'pieter', 'nomsa', 'pieter']) {
      assert.equal(await retry(name), 'overdue');
    }
    await assert.rejects(retry('sipho'), /declined 4 times within a day/);
    paying.clock.advance({ hours: 24 });
    assert.equal(await retry('sipho'), 'overdue');
    await assertBalanced(paying, shopper);
  });

  test('two operators who retry at once make one attempt', async () => {
    const shopper = await bought(3, { card: cards.laterInsufficientFunds });
    await paying.pass({ days: 45 });
    const retry = (name: string) =>
      retryInstalment(paying.service.deps, name, `${shopper.id}:2`).then(
        ({ status }) => status,
        (error: Error) => error.message,
      );
    const answers = await Promise.all([retry('nomsa'), retry('pieter')]);
    const attempts = (await shopper.rows('collections')).filter(
      ({ instalment }) => instalment === 2,
    );
    // The second operator found the payment claimed, or retried after the first had ended.
    assert.ok(
      attempts.length === 5 || answers.every((answer) => answer === 'overdue'),
      `${answers}`,
    );
    await assertBalanced(paying, shopper);
  });

  test('an operator cannot retry an unknown payment', async () => {
    const missing = '00000000-0000-7000-8000-000000000000';
    for (const id of ['', 'x', `${missing}:1`, missing, `${missing}:0`]) {
      await assert.rejects(
        retryInstalment(paying.service.deps, 'nomsa', id),
        /There is no payment/,
      );
    }
  });
});

describe('a hold that lapsed', () => {
  /** The service is down for longer than a hold lasts. */
  async function beAway(): Promise<void> {
    paying.clock.advance({ days: 8 });
    await paying.work();
  }

  test('is charged to the stored card instead, at the next 08:00', async () => {
    const shopper = await bought(3);
    await beAway();
    assert.deepEqual(await planOf(shopper), ['1 scheduled', '2 scheduled', '3 scheduled']);
    assert.deepEqual(await accountsOf(shopper), { outstanding: 100_000 });
    await paying.pass({ days: 1 });
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
    assert.deepEqual((await atGateway(shopper)).taken, [33_334]);
    await assertBalanced(paying, shopper);
  });

  test('of a once-off payment cannot be charged: it is overdue, with an alert', async () => {
    const shopper = await bought(1);
    await beAway();
    assert.deepEqual(await planOf(shopper), ['1 overdue']);
    assert.deepEqual(await alertsOf(paying, shopper), ['payment_overdue']);
    const retry = retryInstalment(paying.service.deps, 'nomsa', `${shopper.id}:1`);
    await assert.rejects(retry, /No card is stored/);
    assert.deepEqual((await atGateway(shopper)).taken, []);
    await assertBalanced(paying, shopper);
  });
});

describe('whatever the gateway does, a payment is collected once', () => {
  for (const [index, fault] of gatewayFaults.entries()) {
    for (const [call, path, number] of [
      ['capture', '/v1/payment_intents/:id/capture', 1],
      ['charge', '/v1/payment_intents', 2],
    ] as const) {
      // Each fault strikes one of the two calls here, and both in `test:long`.
      if (!isLong && (call === 'capture') !== (index % 2 === 0)) continue;
      // A slow fault strikes once, because a second time would reach the same states.
      const times = fault.startsWith('latency') ? 1 : 2;
      test(`${call}, ${fault} × ${times}`, async () => {
        const shopper = await bought(3);
        const payment = (await shopper.rows('instalments')).find((one) => one.number === number);
        await paying.pass(
          Temporal.Instant.from(payment.due_at).subtract({ seconds: 1 }).toString(),
        );
        const strike = { method: 'POST', path, key_contains: shopper.id, times, ms: 600_000 };
        await paying.gateway.fault({ fault, ...strike });
        await paying.pass({ seconds: 1 });
        await paying.gateway.struck(fault);
        assert.notEqual((await planOf(shopper))[number - 1]?.slice(2), 'collected');
        // The gateway ends the call that we gave up on.
        if (fault.startsWith('latency')) await paying.clearFaults();
        await paying.pass({ days: 2 });
        assert.equal((await planOf(shopper))[number - 1]?.slice(2), 'collected');
        await assertBalanced(paying, shopper);
      });
    }
  }

  test('a request whose key the gateway has forgotten is looked up, never sent again', async () => {
    for (const effect of ['after', 'before'] as const) {
      const shopper = await bought(3);
      await paying.pass({ days: 2 });
      const path = '/v1/payment_intents';
      const second = (await shopper.rows('instalments')).find(({ number }) => number === 2);
      const due = Temporal.Instant.from(second.due_at);
      // Every request of the day fails, with or without its effect.
      await paying.pass(due.subtract({ seconds: 1 }).toString());
      await paying.gateway.fault({ fault: `error_${effect}`, method: 'POST', path, times: 1 });
      await paying.gateway.fault({ fault: 'drop_before', method: 'POST', path, times: 1_000 });
      paying.clock.set(due.toString());
      await paying.work();
      assert.equal((await planOf(shopper))[1], '2 scheduled');
      paying.clock.advance({ hours: 25 });
      await paying.clearFaults();
      if (effect === 'after') {
        // A charge of another amount is not recorded as this payment.
        const changeBy = (cents: number) =>
          tamper(
            paying.service.deps.database.pool,
            'update collections set amount = amount + $2 where checkout_id = $1 and instalment = 2',
            [shopper.id, cents],
          );
        await changeBy(-1);
        await paying.work();
        assert.equal((await planOf(shopper))[1], '2 scheduled');
        await changeBy(1);
        paying.clock.advance({ hours: 2 });
      }
      await paying.work();
      assert.equal((await planOf(shopper))[1], '2 collected');
      const attempts = (await shopper.rows('collections')).filter((one) => one.instalment === 2);
      const statuses = attempts.map(({ status }) => status).sort();
      assert.deepEqual(statuses, effect === 'after' ? ['collected'] : ['collected', 'lost']);
      await assertBalanced(paying, shopper);
    }
  });

  test('a request that was sent a moment ago is not taken for lost, however far the merchant’s clock has moved', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({ amount: 100_000 }, account);
    await shopper.pay(3);
    await paying.pass({ days: 2 });
    const { pool } = paying.service.deps.database;
    const ahead = (days: number) =>
      pool.query('update merchants set clock_ahead_ms = $2 where id = $1', [
        account.merchant.id,
        days * 86_400_000,
      ]);
    const path = '/v1/payment_intents';
    await paying.gateway.fault({ fault: 'drop_before', method: 'POST', path, times: 1_000 });
    await ahead(31);
    await paying.work();
    await paying.clearFaults();
    // On the merchant's clock the gateway has forgotten the idempotency key. The real clock has not
    // moved.
    await ahead(33);
    await paying.work();
    const attempts = async () =>
      (await shopper.rows('collections')).filter(({ instalment }) => instalment === 2);
    assert.deepEqual(
      (await attempts()).map(({ status }) => status),
      ['open'],
    );
    await paying.pass({ minutes: 25 });
    await paying.work();
    assert.deepEqual((await attempts()).map(({ status }) => status).sort(), ['collected', 'lost']);
    await assertBalanced(paying, shopper);
  });

  test('a capture that was sent a moment ago is not taken for lost either', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({ amount: 100_000 }, account);
    await shopper.pay(3);
    const [first] = await shopper.rows('instalments');
    const path = '/v1/payment_intents/:id/capture';
    await paying.pass(Temporal.Instant.from(first.due_at).subtract({ seconds: 1 }).toString());
    await paying.gateway.fault({ fault: 'drop_before', method: 'POST', path, times: 1_000 });
    paying.clock.advance({ seconds: 1 });
    await paying.work();
    await paying.clearFaults();
    const begunEarlier = (hours: number) =>
      tamper(
        paying.service.deps.database.pool,
        `update collections set created_at = created_at - $2 * interval '1 hour'
         where checkout_id = $1 and instalment = 1 and number = 1`,
        [shopper.id, hours],
      );
    // The gateway has forgotten the key, but the last request was sent just now.
    await begunEarlier(24);
    const statuses = async () =>
      (await shopper.rows('collections'))
        .filter(({ instalment }) => instalment === 1)
        .map(({ status }) => status)
        .sort();
    paying.clock.advance({ minutes: 5 });
    await paying.work();
    assert.deepEqual(await statuses(), ['open']);
    await paying.pass({ minutes: 25 });
    assert.deepEqual(await statuses(), ['collected', 'lost']);
    await begunEarlier(-24);
    await assertBalanced(paying, shopper);
  });

  test('several workers at once collect each payment once', async () => {
    const shoppers = await Promise.all(Array.from({ length: 12 }, () => bought(3)));
    const { deps } = paying.service;
    const { merchant } = paying.account;
    await paying.pass({ days: 27 });
    paying.clock.advance({ days: 6 });
    await Promise.all([1, 2, 3, 4].map(() => collectMerchantInstalments(deps, merchant)));
    await paying.work();
    for (const shopper of shoppers) {
      assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
      const attempts = await shopper.rows('collections');
      assert.equal(attempts.length, 2);
      assert.equal((await atGateway(shopper)).taken.length, 2);
    }
    await assertBalanced(paying, shoppers[0] as Shopper);
  });
});

test('money that does not move for long raises one alert a day and merchant, until it moves', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({ amount: 100_000 }, account);
  const other = await paying.shopper({ amount: 100_000 }, account);
  await shopper.pay(3);
  await other.pay(3);
  const path = '/v1/payment_intents/:id/capture';
  await paying.gateway.fault({ fault: 'error_before', method: 'POST', path, times: 1_000 });
  const [{ due_at }] = await shopper.rows('instalments');
  await paying.pass(Temporal.Instant.from(due_at).add({ hours: 12 }).toString());
  const alerts = async () => {
    await closeEndedAlerts(paying.service.deps);
    const { rows } = await paying.service.deps.database.pool.query(
      "select closed_at from alerts where merchant_id = $1 and kind = 'gateway_trouble'",
      [account.merchant.id],
    );
    assert.ok(rows.length === 1 || rows.length === 2, `${rows.length} alerts in two days`);
    return rows.map(({ closed_at }) => closed_at !== null);
  };
  assert.ok(!(await alerts()).includes(true));
  // The payment was retried often within two hours. Another day needs only one attempt.
  paying.clock.advance({ hours: 28 });
  await paying.work();
  await paying.clearFaults();
  await paying.pass({ hours: 1 });
  assert.ok(!(await alerts()).includes(false));
  assert.equal((await planOf(shopper))[0], '1 collected');
  await assertBalanced(paying, shopper);
});

test('a merchant with many due payments does not delay the others', async () => {
  const [large, small] = [await createAccount(paying.service), await createAccount(paying.service)];
  const buy = async (account: Account) => {
    const shopper = await paying.shopper({ amount: 100_000 }, account);
    await shopper.pay(3);
    return shopper;
  };
  const many = new Set<string>();
  for (let count = 0; count < 70; count += 1) many.add((await buy(large)).id);
  const last = await buy(small);
  await paying.pass({ days: 2 });
  paying.clock.advance({ days: 31 });
  const { deps } = paying.service;
  const charged: string[] = [];
  const gateway: Gateway = {
    ...gatewayOf(deps),
    charge: (payment) => {
      charged.push(payment.checkout_id);
      return gatewayOf(deps).charge(payment);
    },
  };
  await collectDueInstalments({ ...deps, gateways: onlyGateway(gateway) });
  const place = charged.indexOf(last.id);
  const before = charged.slice(0, place).filter((id) => many.has(id)).length;
  // Two loops may each have a batch of 32 of the large merchant in progress. The third batch waits.
  assert.ok(place >= 0 && before <= 64, `${before} payments of the large merchant came first`);
  // On a slow machine an answer may come too late. The service then asks again after some minutes.
  await paying.pass({ hours: 1 });
  await assertBalanced(paying, last);
});
