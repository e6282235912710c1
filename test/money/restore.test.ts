import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { KyselyPlugin } from 'kysely';
import { buildApp } from '#app.ts';
import { moveAccessServer } from '#checks/reconciliation/access-server.sql.ts';
import { createMoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { reconcile, runDailyReconciliation } from '#checks/reconciliation/reconcile.ts';
import { OutcomeUnknown } from '#gateway/gateway.ts';
import { paymentId } from '#gateway/hyperswitch/ids.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { collectionId } from '#purchases/instalments/instalment.ts';
import { openPaymentLink } from '#purchases/payment-links/open-payment-link.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import { confirmAccount, proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import { signatureOf } from '../../test-gateway/webhooks.ts';
import { commandLine, type Tranche } from '../support/cli.ts';
import { answerChallenge, onlyGateway } from '../support/gateway.ts';
import {
  askRefund,
  assertBalanced,
  atGateway,
  cards,
  openDispute,
  planOf,
  refundNow,
  statusOf,
  wholeTerms,
} from '../support/money.ts';
import {
  assertSound,
  challengeCard,
  continueOn,
  endPlans,
  gatewayEnv,
  type Paying,
  type Shopper,
  startPaying,
  visa,
} from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { backUp, type Restorable, startRestorable } from '../support/restore.ts';
import {
  type Account,
  createAccount,
  createCheckout,
  isLong,
  type Service,
  send,
  startService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

// A database is restored from a backup while the gateway remembers everything. The restored service
// does again what the lost one did, and no money may move twice.

const webhookSecret = 'whsec_of_the_tests';
const checkouts = isLong ? 20 : 3;
const declined = '4000000000000002';
/** How long after the lost work the database is restored. Stripe forgets keys after a day. */
const delays = [
  ...(isLong ? ([['within an hour', { minutes: 10 }, 'stripe']] as const) : []),
  ['within an hour', { minutes: 10 }, 'hyperswitch'],
  ['after three days', { days: 3 }, 'stripe'],
] as const;

let paying: Paying;
let first: Paying;
before(async () => {
  first = await startPaying();
  paying = first;
});
afterEach(() => endPlans(paying));
after(() => first.close());

/** Runs a test on a service that continues from a backup, at the present time. */
async function restored(
  backup: { url: string; drop(): Promise<void> },
  work: (paying: Paying) => Promise<void>,
): Promise<void> {
  const service = await startService({
    databaseUrl: backup.url,
    clock: paying.clock,
    env: gatewayEnv(paying.gateway),
  });
  try {
    await work(continueOn(paying, service));
  } finally {
    await service.close();
    await backup.drop();
  }
}

async function bought(amount = 100_000): Promise<Shopper> {
  const shopper = await paying.shopper({ amount });
  assert.equal((await shopper.pay(3)).status, 'successful');
  return shopper;
}

/** Collects the second payment, or tries to. */
async function passDueDate(shopper: Shopper): Promise<void> {
  const second = (await shopper.rows('instalments')).find(({ number }) => number === 2);
  await paying.pass(Temporal.Instant.from(second.due_at).add({ minutes: 1 }).toString());
}

/** Makes the gateway decline the next charge of the second payment. */
async function declineNext({ id }: Shopper): Promise<void> {
  const request =
    paying.gateway.protocol === 'hyperswitch'
      ? { path: '/payments', key_contains: paymentId(collectionId(id, 2, 1)) }
      : { path: '/v1/payment_intents', key_contains: id };
  await paying.gateway.fault({ fault: 'decline', method: 'POST', ...request });
}

/** How the gateway's records of a checkout differ from its rows. */
async function differencesOf({ service, clock }: Paying, { id }: Shopper): Promise<string[]> {
  const from = timestamp(clock.now().subtract({ hours: 24 * 30 }));
  const { differences } = await reconcile(service.deps, { from, to: null });
  return differences.filter(({ checkout_id }) => checkout_id === id).map(({ kind }) => kind);
}

/** The network's ids and the authentication of each payment, as our rows have them. */
async function keptOf(shopper: Shopper): Promise<unknown[]> {
  const rows = [...(await shopper.attempts()), ...(await shopper.rows('collections'))];
  return rows
    .filter(({ scheme }) => scheme !== null)
    .map(({ payment_ref, scheme, authentication }) => ({ payment_ref, scheme, authentication }));
}

for (const [name, delay, protocol] of delays) {
  describe(`a service at ${protocol} that is restored ${name}`, () => {
    before(async () => {
      if (protocol !== 'stripe') paying = await startPaying({ protocol });
    });
    after(async () => {
      if (paying !== first) await paying.close();
      paying = first;
    });

    test('charges no instalment twice', async () => {
      const shoppers: Shopper[] = [];
      for (let number = 0; number < checkouts; number += 1) shoppers.push(await bought());
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      await passDueDate(shoppers.at(-1) as Shopper);
      for (const shopper of shoppers) {
        assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
      }
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await again.work();
        const restoredShoppers = shoppers.map(({ id }) => again.open(id));
        for (const shopper of restoredShoppers) {
          assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
          assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
        }
        await assertBalanced(again, ...restoredShoppers);
      });
    });

    test('charges no instalment twice that was declined first', async () => {
      const shopper = await bought();
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      await declineNext(shopper);
      await passDueDate(shopper);
      await paying.pass({ days: 1 });
      assert.deepEqual((await atGateway(shopper)).taken, [33_333, 33_334]);
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await again.pass({ days: 5 });
        const one = again.open(shopper.id);
        assert.deepEqual(await planOf(one), ['1 collected', '2 collected', '3 scheduled']);
        assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
        await assertBalanced(again, one);
        assert.deepEqual(await differencesOf(again, one), []);
      });
    });

    test('records a decline that was lost, and carries out no request twice', async () => {
      const shopper = await bought();
      await paying.pass({ days: 20 });
      const backup = await backUp(paying.service.databaseUrl);
      await declineNext(shopper);
      await passDueDate(shopper);
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        const one = again.open(shopper.id);
        const requests = async () =>
          (await one.books()).payment_intents.map(({ metadata }) => metadata.attempt_id);
        const sent = await requests();
        await again.work();
        assert.deepEqual(await requests(), sent, 'the request is looked up and not sent');
        assert.deepEqual(await planOf(one), ['1 collected', '2 scheduled', '3 scheduled']);
        await again.pass({ days: 8 });
        assert.deepEqual(await planOf(one), ['1 collected', '2 collected', '3 scheduled']);
        assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
        assert.equal(new Set(await requests()).size, sent.length + 1);
        assert.equal((await requests()).length, sent.length + 1);
        await assertBalanced(again, one);
        assert.deepEqual(await differencesOf(again, one), []);
      });
    });

    test("records a shopper's decline that was lost, and carries out no request twice", async () => {
      const shopper = await bought();
      await paying.pass({ days: 3 });
      const backup = await backUp(paying.service.databaseUrl);
      const lost = await actingOn(paying, shopper);
      assert.equal((await lost.pay('next', { card: declined })).attempt?.status, 'declined');
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        const one = again.open(shopper.id);
        const acting = await actingOn(again, one);
        await acting.pay('next');
        assert.deepEqual(await acting.attempts(), ['declined 2 33333']);
        await acting.pay('next');
        assert.deepEqual(await acting.attempts(), ['declined 2 33333', 'charged 2 33333']);
        const requests = (await one.books()).payment_intents.map(
          ({ metadata }) => metadata.attempt_id,
        );
        assert.equal(new Set(requests).size, requests.length);
        await again.work();
        assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
        await assertBalanced(again, one);
        assert.deepEqual(await differencesOf(again, one), []);
      });
    });

    test('charges no payment twice that a shopper can still approve at their bank', async () => {
      const [shopper, overdue] = [await bought(), await bought()];
      await paying.pass({ days: 3 });
      const backup = await backUp(paying.service.databaseUrl);
      const challenges: string[] = [];
      for (const one of [shopper, overdue]) {
        const { attempt } = await (await actingOn(paying, one)).pay('next', {
          card: challengeCard,
        });
        challenges.push(attempt?.challenge_url ?? assert.fail('there is a challenge'));
      }
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        const acting = await actingOn(again, again.open(shopper.id));
        await acting.pay('next');
        // The collector retries a declined payment of the other plan.
        await declineNext(overdue);
        // Hyperswitch cannot end a challenge, so it captures a payment whose challenge is approved.
        const [inTime] = challenges;
        if (protocol === 'hyperswitch' && inTime) await answerChallenge(inTime, 'approve');
        await again.pass({ days: 40 });
        for (const url of challenges) await answerChallenge(url, 'approve');
        await again.pass({ days: 10 });
        const both = [shopper, overdue].map(({ id }) => again.open(id));
        for (const one of both) {
          assert.deepEqual(await planOf(one), ['1 collected', '2 collected', '3 scheduled']);
          assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
        }
        await assertBalanced(again, ...both);
      });
    });

    test('captures and voids no hold twice', async () => {
      const [captured, voided] = [await bought(), await bought()];
      const backup = await backUp(paying.service.databaseUrl);
      const refund = await askRefund(paying, voided, 100_000);
      await approveRefund(paying.service.deps, 'nomsa', refund);
      await paying.pass({ hours: 20 });
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        const [one, other] = [again.open(captured.id), again.open(voided.id)];
        await again.work();
        assert.deepEqual(await planOf(one), ['1 collected', '2 scheduled', '3 scheduled']);
        assert.deepEqual(await atGateway(one), { taken: [33_334], held: [], returned: 0 });
        // The refund is lost with the database, but its hold stays voided. The card will be charged
        // instead.
        assert.deepEqual(await planOf(other), ['1 scheduled', '2 scheduled', '3 scheduled']);
        assert.deepEqual(await atGateway(other), { taken: [], held: [], returned: 0 });
        await assertBalanced(again, one, other);
      });
    });

    test('refunds nothing twice', async () => {
      const shoppers: Shopper[] = [];
      for (let number = 0; number < 2; number += 1) shoppers.push(await bought());
      await paying.pass({ days: 35 });
      const refunds: string[] = [];
      for (const shopper of shoppers) refunds.push(await askRefund(paying, shopper, 60_000));
      const backup = await backUp(paying.service.databaseUrl);
      const approve = async (service: Paying) => {
        for (const id of refunds) await approveRefund(service.service.deps, 'nomsa', id);
        await service.work();
      };
      await approve(paying);
      for (const shopper of shoppers) {
        assert.equal((await atGateway(shopper)).returned, 26_667);
      }
      paying.clock.advance(delay);
      await restored(backup, async (again) => {
        await approve(again);
        const restoredShoppers = shoppers.map(({ id }) => again.open(id));
        for (const shopper of restoredShoppers) {
          assert.equal((await atGateway(shopper)).returned, 26_667);
        }
        await assertBalanced(again, ...restoredShoppers);
      });
    });
  });
}

describe('a shopper who pays again after a restore', () => {
  for (const [name, term, live] of [
    ['in the same term pays with the first hold', 3, [33_334]],
    ['in another term holds the new amount alone', 1, [100_000]],
  ] as const) {
    test(name, async () => {
      const shopper = await paying.shopper({ amount: 100_000 });
      const backup = await backUp(paying.service.databaseUrl);
      assert.equal((await shopper.pay(3)).status, 'successful');
      await restored(backup, async (again) => {
        const one = again.open(shopper.id);
        let page = await one.pay(term);
        if (page.status === 'open') page = await one.pay(term);
        assert.equal(page.status, 'successful');
        await again.pass({ minutes: 15 });
        assert.deepEqual(await one.live(), live);
        await assertBalanced(again, one);
      });
    });
  }
});

test('a charge that differs from what the gateway did under its key is not sent again', async () => {
  const shopper = await bought();
  await paying.pass({ days: 20 });
  const backup = await backUp(paying.service.databaseUrl);
  await paying.pass({ days: 15 });
  await restored(backup, async (again) => {
    const one = again.open(shopper.id);
    // In the restored history a refund comes first, so the second payment is smaller.
    const id = await askRefund(again, one, 50_000);
    await approveRefund(again.service.deps, 'nomsa', id);
    await again.pass({ minutes: 30 });
    assert.deepEqual((await atGateway(one)).taken, [33_333, 33_334]);
    assert.deepEqual((await planOf(one))[1], '2 scheduled -16667');
    const { rows } = await again.service.deps.database.pool.query(
      `select kind from alerts where subject_id = $1`,
      [shopper.id],
    );
    assert.deepEqual(rows, [{ kind: 'gateway_trouble' }]);
  });
});

describe('a service whose data folder is restored after it raised the heartbeat at the gateway', () => {
  let server: Restorable;
  let own: Paying;
  before(async () => {
    server = await startRestorable();
    const env = { STRIPE_WEBHOOK_SECRET: webhookSecret };
    own = await startPaying({ databaseUrl: server.url, env });
  });
  after(async () => {
    await own.close();
    await server.stop();
  });

  const raiseHeartbeat = async () => {
    own.clock.advance({ minutes: 2 });
    await own.service.deps.money.raiseHeartbeat();
  };
  const problemOf = (one: Paying) => one.service.deps.money.problem();
  const readiness = async (one: Paying) => {
    const { statusCode, body } = await one.service.app.inject('/readyz');
    return { statusCode, ...JSON.parse(body) };
  };

  test('moves no money until what the gateway did is recorded, and then nothing twice', async () => {
    const env = { ...gatewayEnv(own.gateway), DATABASE_URL: server.url };
    const buy = async () => {
      const shopper = await own.shopper({ amount: 100_000 });
      assert.equal((await shopper.pay(3)).status, 'successful');
      return shopper;
    };
    const [early, charged, refunded] = [await buy(), await buy(), await buy()];
    // Two payments of its plan are one payment at the gateway, with one refund of both.
    const atOnce = await buy();
    // A dispute that ends after the backup, and two that come after it.
    const [ending, disputed, disputedLater] = [await buy(), await buy(), await buy()];
    await own.pass({ days: 20 });
    assert.equal((await (await actingOn(own, atOnce)).pay('rest')).attempt?.status, 'done');
    const captured = await buy();
    const late = await own.shopper({ amount: 100_000 });
    const voided = await buy();
    const ended = await openDispute(own, ending);
    const approving = await buy();
    // Two first payments and a payment of a shopper at their bank are in flight at the backup.
    const atBank = await buy();
    const acting = await actingOn(own, atBank);
    assert.equal((await acting.pay('next', { card: challengeCard })).attempt?.status, 'challenge');
    const challenged = await own.shopper({ amount: 100_000 });
    assert.equal((await challenged.pay(3, { card: challengeCard })).status, 'challenge');
    const unanswered = await own.shopper({ amount: 100_000 });
    const fault = { fault: 'drop_after', method: 'POST', path: '/v1/payment_intents' } as const;
    await own.gateway.fault({ ...fault, key_contains: unanswered.id, times: 2 });
    assert.equal((await unanswered.pay(3)).status, 'paying');
    await own.clearFaults();
    await raiseHeartbeat();
    await server.save();

    // Events after the backup.
    await openDispute(own, disputed);
    await commandLine(env, { clock: own.clock }).json(
      ...['sandbox', 'gateway', 'resolve', ended, '--won'],
    );
    assert.equal((await acting.decide('approve')).attempt?.status, 'done');
    await challenged.decide('approve');
    assert.equal((await challenged.comeBack()).status, 'successful');
    await own.pass({ minutes: 1 });
    assert.equal((await unanswered.state()).status, 'successful');
    assert.equal((await late.pay(3)).status, 'successful');
    const lost = await buy();
    const shopper = await actingOn(own, early);
    await shopper.pay('next');
    assert.deepEqual(await shopper.attempts(), ['charged 2 33333']);
    await approveRefund(own.service.deps, 'nomsa', await askRefund(own, voided, 100_000));
    await own.pass({ days: 13 });
    await openDispute(own, disputedLater);
    const refund = await askRefund(own, refunded, 60_000);
    await approveRefund(own.service.deps, 'nomsa', refund);
    await refundNow(own, atOnce, 60_000);
    await own.work();
    // A shopper is at their bank when the database is lost.
    const bank = await (await actingOn(own, approving)).pay('next', { card: challengeCard });
    assert.equal(bank.attempt?.status, 'challenge');
    const contested = [ending, disputed, disputedLater];
    const plain = [early, charged, refunded, atOnce, captured, late];
    const known = [...plain, atBank, challenged, unanswered];
    const there = () => Promise.all([...known, ...contested, voided, lost].map(atGateway));
    const plans = () => Promise.all([...known, ...contested].map(planOf));
    const kept = () => Promise.all(known.map(keptOf));
    const done = { there: await there(), plans: await plans(), kept: await kept() };
    await raiseHeartbeat();
    own.clock.advance({ days: 2 });
    await server.restore();

    // The process that kept running notices that the heartbeat fell.
    assert.match((await problemOf(own)) ?? '', /The heartbeat of the database fell from 2 to 1/);
    await own.service.deps.database.pool.query(
      'update gateway_heartbeat set stopped_at = null, stopped_reason = null',
    );
    const service = await startService({ databaseUrl: server.url, clock: own.clock, env });
    const again = continueOn(own, service);
    try {
      // The first work of a process neither begins before it has noticed the restore nor gives up
      // what was in flight.
      await recoverAttempts(service.deps);
      assert.equal(await service.deps.money.mayClaim(), false);
      assert.match((await problemOf(again)) ?? '', /The gateway is ahead .* reconcile --record/);
      const ready = await readiness(again);
      assert.deepEqual([ready.statusCode, ready.status], [200, 'degraded']);
      assert.match(ready.reason, /The gateway is ahead/);
      const alerts = await service.deps.database.pool.query(
        `select from alerts where kind = 'gateway_ahead' and detail like '%is ahead%'`,
      );
      assert.equal(alerts.rowCount, 1);
      // Creates and reads continue. A shopper who pays now is told that nothing was charged.
      const open = again.open(await createCheckout(service, own.account));
      const { status, paused } = await open.pay(1);
      assert.deepEqual([status, paused, await open.live()], ['open', true, []]);
      assert.deepEqual(await open.attempts(), []);
      const words = (await service.app.inject(open.url)).body;
      assert.match(words, /Payments are paused at the moment\. Nothing was charged\./);
      const refused = await (await actingOn(again, again.open(early.id))).pay('next');
      assert.equal(refused.attempt?.refusal, 'payments_paused');
      const other = await actingOn(again, again.open(charged.id));
      assert.equal((await other.replaceCard(challengeCard)).attempt?.refusal, 'payments_paused');
      assert.deepEqual(await shopper.attempts(), []);
      const tranche = commandLine(env, { clock: own.clock });
      await tranche.refused(1, /The gateway is ahead/, 'instalments', 'retry', `${early.id}:2`);

      const { code, stdout } = await tranche.run('gateway', 'reconcile', '--record', '--json');
      const { differences, recorded } = JSON.parse(stdout);
      // The gateway cannot say which refund voided a hold, nor what a lost checkout was for.
      assert.deepEqual(
        differences
          .map((one: { kind: string; checkout_id: string }) => `${one.kind} ${one.checkout_id}`)
          .sort(),
        [
          `other_state ${voided.id}`,
          `unknown_to_us ${lost.id}`,
          `unknown_to_us ${approving.id}`,
        ].sort(),
      );
      // Thirteen are found by comparison, and two were in flight. The first work recorded what the
      // shopper paid on the plan.
      assert.deepEqual([code, recorded], [1, 15]);
      // A process checks at most once a second whether money may move.
      own.clock.advance({ seconds: 2 });
      assert.equal(await problemOf(again), null);
      assert.equal((await readiness(again)).status, 'ok');
      const paid = await open.pay(1);
      assert.deepEqual([paid.status, paid.paused], ['successful', false]);

      await again.work();
      const recordedNow = { there: await there(), plans: await plans(), kept: await kept() };
      assert.deepEqual(recordedNow, done);
      assert.equal(await statusOf(again, refund), 'complete');
      await assertBalanced(again, ...known);
      const blocked = ['1 authorised', '2 scheduled', '3 scheduled'];
      assert.deepEqual(await planOf(voided), blocked);

      await again.pass({ days: 31 });
      await assertBalanced(again, ...known);
      assert.deepEqual((await atGateway(early)).taken, [33_333, 33_333, 33_334]);
      assert.deepEqual((await atGateway(voided)).taken, []);
      // The shopper approves after the recording. Had it missed the attempt, the collector would
      // have charged the payment again.
      await answerChallenge(bank.attempt?.challenge_url ?? '', 'approve');
      await again.pass({ days: 2 });
      assert.deepEqual((await atGateway(approving)).taken, [33_333, 33_334]);
      const { returned } = await atGateway(refunded);
      assert.equal(returned, 26_667);

      // The operator has settled the lost refund with the merchant.
      const release = ['gateway', 'release', voided.id, '--reason', 'the shopper pays after all'];
      await tranche.json(...release);
      await tranche.refused(1, /Nothing blocks/, ...release);
      assert.equal((await again.open(voided.id).rows('instalments'))[0].paused, false);
    } finally {
      await service.close();
    }
  });

  describe('and is then restored once more', () => {
    let service: Service;
    let again: Paying;
    let tranche: Tranche;
    let second: Tranche;
    let payee: Account;
    const shoppers = {} as Record<
      'refunded' | 'reduced' | 'unsent' | 'charged' | 'linked',
      Shopper
    >;
    let payouts: { approved: string; lost: string };
    let disputed: string;
    let link: { merchant_id: string; id: string };

    const env = () => ({
      ...gatewayEnv(own.gateway),
      DATABASE_URL: server.url,
      STRIPE_WEBHOOK_SECRET: webhookSecret,
    });
    const payoutsOf = async (): Promise<{ id: string; status: string; reference: string }[]> =>
      (await tranche.json('payouts', 'list', '--merchant', payee.merchant.id)).data;
    const exported = async () => (await tranche.run('payouts', 'export')).stdout;
    const settle = async (id: string) => {
      await tranche.json('payouts', 'approve', id);
      await second.json('payouts', 'approve', id);
      assert.ok((await exported()).includes(id));
      await tranche.json('payouts', 'paid', id, '--bank-reference', 'FT1');
    };
    const rowsOf = async (text: string, values: unknown[] = []) =>
      (await own.service.deps.database.pool.query(text, values)).rows;

    before(async () => {
      tranche = commandLine(env(), { clock: own.clock });
      second = commandLine({ ...env(), TRANCHE_OPERATOR: 'sipho' }, { clock: own.clock });
      const { deps } = own.service;
      payee = await createAccount(own.service);
      const { id: merchant_id } = payee.merchant;
      await setTerms(deps, 'nomsa', merchant_id, wholeTerms);
      const account = { holder: 'Karoo', bank: 'A Bank', branch_code: '051001' };
      await proposeAccount(deps, 'nomsa', merchant_id, { ...account, account_number: '062987123' });
      await confirmAccount(deps, 'sipho', merchant_id, { number: 1, account_number: '062987123' });
      const buy = async (term: number, card = visa) => {
        const shopper = await own.shopper({ amount: 100_000 }, payee);
        assert.equal((await shopper.pay(term, { card })).status, 'successful');
        return shopper;
      };
      // One payment of the plan is collected, and the refund of more than the rest goes to the
      // card.
      shoppers.refunded = await buy(3, cards.refundPending);
      shoppers.charged = await buy(3);
      await own.pass({ days: 7 });
      await buy(1);
      await own.pass({ days: 7 });
      const [newest] = await payoutsOf();
      assert.ok(newest?.status === 'draft');
      await tranche.json('payouts', 'approve', newest.id);
      await second.json('payouts', 'approve', newest.id);
      // Sold before the backup, and paid out after it.
      await buy(1);

      shoppers.reduced = await own.shopper({ amount: 100_000 }, payee);
      assert.equal((await shoppers.reduced.pay(1, { card: challengeCard })).status, 'challenge');
      const { status, body } = await send(own.service, payee, 'POST', '/api/payment-links', {
        body: {
          amount: 100_000,
          currency: 'ZAR',
          client_reference_id: 'order-7001',
          customer: { email: 'thandi@example.com' },
          notify_url: own.receiver.url,
          success_url: 'https://shop.example/paid',
        },
      });
      assert.equal(status, 200, JSON.stringify(body));
      link = { merchant_id, id: body.data.id };
      shoppers.linked = own.open(await openLink(deps), payee);
      // The gateway's answer about the shopper comes after the backup.
      const unsent = await own.shopper({ amount: 100_000 }, payee);
      shoppers.unsent = unsent;
      const path = '/v1/customers';
      await own.gateway.fault({ fault: 'latency', method: 'POST', path, ms: 60_000, times: 9 });
      await raiseHeartbeat();
      const paid = unsent.pay(3).catch(() => {});
      await until('the attempt to be written', async () => (await unsent.attempts()).length === 1);
      await server.save();
      await own.clearFaults();
      await paid;

      // Events after the backup.
      await own.pass({ minutes: 2 });
      assert.equal((await unsent.state()).status, 'successful');
      assert.equal((await shoppers.linked.pay(1)).status, 'successful');
      await shoppers.reduced.decide('approve');
      assert.equal((await shoppers.reduced.comeBack()).status, 'successful');
      const less = await askRefund(own, shoppers.reduced, 10_000, payee);
      await approveRefund(deps, 'nomsa', less);
      assert.ok((await exported()).includes(newest.id));
      await tranche.json('payouts', 'paid', newest.id, '--bank-reference', 'FT1');
      await own.pass({ days: 7 });
      const made = (await payoutsOf()).filter(({ status }) => status === 'draft');
      for (const { id } of made) await settle(id);
      assert.deepEqual((await atGateway(shoppers.reduced)).taken, [90_000]);
      await passDueDateOf(shoppers.charged);
      payouts = { approved: newest.id, lost: (made[0] as { reference: string }).reference };
      const refund = await askRefund(own, shoppers.refunded, 60_000, payee);
      await approveRefund(deps, 'nomsa', refund);
      await own.work();
      const { refunds } = await shoppers.refunded.books();
      assert.deepEqual(
        refunds.map(({ status }) => status),
        ['pending'],
      );
      const [first] = await shoppers.charged.rows('instalments');
      const dispute = { payment_intent: first.payment_ref };
      disputed = (await own.gateway.call('POST', '/_test/disputes', dispute)).body.id;
      await raiseHeartbeat();
      await server.restore();
      service = await startService({ databaseUrl: server.url, clock: own.clock, env: env() });
      again = continueOn(own, service);
      own.clock.advance({ seconds: 2 });
      assert.match((await problemOf(again)) ?? '', /reconcile --record/);
    });
    after(() => service?.close());

    /** Opens the payment link, and returns its checkout. */
    async function openLink(deps: Service['deps']): Promise<string> {
      const merchant = await findMerchant(deps.database.db, deps.clock, link.merchant_id);
      assert.ok(merchant);
      const opened = await openPaymentLink(deps, merchant, link, { email: null, amount: null });
      assert.ok(opened !== null && typeof opened !== 'string', String(opened));
      return opened.id;
    }

    /** Collects the second payment of a plan. */
    async function passDueDateOf(shopper: Shopper): Promise<void> {
      const later = (await shopper.rows('instalments')).find(({ number }) => number === 2);
      await own.pass(Temporal.Instant.from(later.due_at).add({ minutes: 1 }).toString());
    }

    test('refuses every action on a payout while money is stopped', async () => {
      for (const action of [
        ['export'],
        ['approve', payouts.approved],
        ['paid', payouts.approved, '--bank-reference', 'FT1'],
        ['returned', payouts.approved, '--reason', 'closed'],
        ['confirm', payouts.approved, '--reason', 'the bank has not paid it'],
      ]) {
        await tranche.refused(1, /reconcile --record/, 'payouts', ...action);
      }
    });

    test('handles no event of the gateway and makes no daily comparison meanwhile', async () => {
      const object = { id: disputed, object: 'dispute' };
      const type = 'charge.dispute.created';
      const payload = JSON.stringify({ id: 'evt_1', object: 'event', type, data: { object } });
      const seconds = Math.floor(Date.now() / 1000);
      const signature = signatureOf(webhookSecret, seconds, payload);
      const answer = await service.app.inject({
        method: 'POST',
        url: '/gateway/events',
        headers: {
          'content-type': 'application/json',
          'stripe-signature': `t=${seconds},v1=${signature}`,
        },
        payload,
      });
      assert.equal(answer.statusCode, 503);
      assert.deepEqual(await rowsOf('select from disputes where dispute_ref = $1', [disputed]), []);
      await rowsOf('update reconciliation set due_at = $1', [own.clock.now().toString()]);
      await runDailyReconciliation(service.deps);
      assert.deepEqual(await rowsOf(`select from alerts where detail like '%${disputed}%'`), []);
    });

    test('records each payment once, also if it is killed between the record and its note', async () => {
      const blocks = () =>
        rowsOf('select checkout_id from gateway_blocks where cleared_at is null');
      const before = await blocks();
      const newer = again.open(await openLink(service.deps), payee);
      assert.notEqual(newer.id, shoppers.linked.id);
      const recorded = async () =>
        (await rowsOf(`select from operator_actions where action = 'gateway record'`)).length;
      const recordedBefore = await recorded();
      await rowsOf(`create function refuse() returns trigger language plpgsql
        as $$ begin raise exception 'killed'; end $$`);
      await rowsOf(`create trigger killed before update of outcome on reconciliation_differences
        for each row execute function refuse()`);
      const killed = await tranche.run('gateway', 'reconcile', '--record');
      assert.match(killed.stderr, /killed/);
      assert.ok((await recorded()) > recordedBefore);
      await rowsOf('drop trigger killed on reconciliation_differences');
      await rowsOf('drop function refuse');
      // Two operators start the recording again. One process records at a time.
      const runs = await Promise.all([
        tranche.run('gateway', 'reconcile', '--record', '--json'),
        second.run('gateway', 'reconcile', '--record', '--json'),
      ]);
      const refusals = runs.filter(({ stderr }) => /Another process is recording/.test(stderr));
      assert.ok(refusals.length <= 1, 'one of them ends');
      own.clock.advance({ seconds: 2 });
      assert.equal(await problemOf(again), null);
      const [{ checkout_id }] = await rowsOf(
        'select checkout_id from payment_links where id = $1',
        [link.id],
      );
      assert.equal(checkout_id, shoppers.linked.id, 'the link is paid');
      assert.equal((await newer.state()).status, 'expired');
      const blocked = (await blocks()).filter(
        ({ checkout_id }) => !before.some((one) => one.checkout_id === checkout_id),
      );
      assert.deepEqual(blocked, [{ checkout_id: shoppers.reduced.id }]);
      const open = await rowsOf(
        `select subject_id from alerts
         where kind = 'gateway_unknown_to_us' and closed_at is null and subject_id = any ($1)`,
        [Object.values(shoppers).map(({ id }) => id)],
      );
      assert.deepEqual(open, [{ subject_id: shoppers.reduced.id }]);
    });

    test('raises no second alert for a checkout that is still blocked', async () => {
      const { id } = shoppers.reduced;
      const alerts = () => rowsOf('select id from alerts where subject_id = $1', [id]);
      const [block] = await rowsOf('select alert_id from gateway_blocks where checkout_id = $1', [
        id,
      ]);
      const raised = await alerts();
      const [first] = await shoppers.reduced.attempts();
      const from = first?.created_at ?? null;
      const recorder = { ...service.deps, operator: 'nomsa', isStopped: false };
      for (const records of [true, false, true]) {
        const range = { from, to: null, ...(records && { recorder }) };
        const { differences } = await reconcile(service.deps, range);
        assert.deepEqual(
          differences.filter(({ checkout_id }) => checkout_id === id).map((one) => one.id),
          [block.alert_id],
        );
        assert.deepEqual(await alerts(), raised);
        // An operator may close the alert before the checkout is released.
        await tranche.run('alerts', 'close', block.alert_id, '--reason', 'the merchant is asked');
      }
    });

    test('has a purchase whose attempt was written and not sent', async () => {
      const unsent = again.open(shoppers.unsent.id, payee);
      await again.work();
      assert.equal((await unsent.state()).status, 'successful');
      assert.equal((await unsent.attempts()).length, 1);
      assert.equal((await planOf(unsent))[0], '1 collected');
    });

    test('owes a merchant no sale whose capture was for less', async () => {
      assert.deepEqual(await shoppers.reduced.rows('settlement_entries'), []);
      assert.deepEqual(await planOf(shoppers.reduced), ['1 authorised']);
    });

    test('asks for no refund again that is pending at the gateway', async () => {
      const requests = await shoppers.refunded.rows('refund_requests');
      assert.deepEqual(
        requests.map(({ status, amount }) => `${status} ${amount}`),
        ['pending 60000'],
      );
      await again.pass({ days: 1 });
      const { refunds } = await shoppers.refunded.books();
      assert.equal(refunds.length, 1);
      const [{ status }] = await shoppers.refunded.rows('refund_requests');
      assert.equal(status, 'complete');
      await assertBalanced(again, again.open(shoppers.refunded.id, payee));
    });

    test('exports no payout that the bank may have paid until an operator has compared it', async () => {
      const { approved, lost } = payouts;
      await again.pass({ days: 3 });
      const made = (await payoutsOf()).find(({ status }) => status === 'draft');
      assert.ok(made, `${lost} is made again`);
      await tranche.json('payouts', 'approve', made.id);
      await second.json('payouts', 'approve', made.id);
      const answer = await tranche.json('payouts', 'export');
      assert.deepEqual(answer.data, []);
      assert.deepEqual(
        answer.to_compare.map(({ id }: { id: string }) => id).sort(),
        [approved, made.id].sort(),
      );
      // The bank has paid the first, and not the second.
      const reason = ['--reason', 'not on the statement of the bank'];
      const paid = ['payouts', 'paid', approved, '--bank-reference', 'FT1'];
      assert.equal((await tranche.json(...paid)).status, 'paid');
      await tranche.refused(1, /need not be compared/, 'payouts', 'confirm', approved, ...reason);
      const { export_id } = await tranche.json('payouts', 'show', approved);
      await tranche.refused(1, /has no file here/, 'payouts', 'export', '--export', export_id);
      const confirmed = await tranche.json('payouts', 'confirm', made.id, ...reason);
      assert.equal(confirmed.status, 'draft');
      // A confirmation by one person does not export the payout. Two people have to approve it
      // first.
      assert.deepEqual((await tranche.json('payouts', 'export')).data, []);
      await tranche.json('payouts', 'approve', made.id);
      await second.json('payouts', 'approve', made.id);
      const file = await exported();
      assert.ok(file.includes(made.id) && !file.includes(approved));
      await assertSound(again);
    });
  });
});

describe('a copy of the database on another server', () => {
  const raiseHeartbeat = async () => {
    paying.clock.advance({ minutes: 2 });
    await paying.service.deps.money.raiseHeartbeat();
  };

  test('resumes by itself if it has lost nothing', async () => {
    await raiseHeartbeat();
    await bought();
    const backup = await backUp(paying.service.databaseUrl);
    await restored(backup, async (again) => {
      assert.equal(await again.service.deps.money.problem(), null);
    });
  });

  test('moves no money if it lacks what came after the last heartbeat', async () => {
    await raiseHeartbeat();
    const backup = await backUp(paying.service.databaseUrl);
    await bought();
    await restored(backup, async (again) => {
      const problem = await again.service.deps.money.problem();
      assert.match(problem ?? '', /does not know pi_\w+, which the gateway has/);
    });
  });
});

type Gate = ReturnType<typeof createGate>;
/** Makes a gate. `pass` waits at it until the test opens it. */
function createGate() {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const pass = () => {
    reached.resolve();
    return opened.promise;
  };
  /** Waits until the work is held. */
  const holds = (work: Promise<unknown>) =>
    Promise.race([reached.promise, work.then(() => assert.fail('it ended without being held'))]);
  return { holds, open: opened.resolve, pass };
}

describe('whether money may move', () => {
  const guard = (changes: Partial<Parameters<typeof createMoneyGuard>[0]> = {}) =>
    createMoneyGuard({
      ...paying.service.deps,
      gateways: onlyGateway(paying.gateway.gateway),
      environment: 'sandbox',
      endAccess: endAllAccess,
      ...changes,
    });

  test('is not known before the gateway has answered', async () => {
    const money = guard();
    // The SDK repeats a request once if its connection was closed.
    const fault = { fault: 'drop_before', method: 'GET', path: '/v1/customers', times: 2 } as const;
    await paying.gateway.fault(fault);
    await assert.rejects(money.problem(), OutcomeUnknown);
    assert.equal(await money.stopReason(), null);
    paying.clock.advance({ seconds: 2 });
    assert.equal(await money.problem(), null);
  });

  test('is asked before a session of a plan opens in a database that may be a backup', async (t) => {
    const { deps } = paying.service;
    const shopper = await paying.shopper();
    await shopper.pay(3);
    const at = timestamp(paying.clock.now());
    await moveAccessServer(deps.database.db, { server: 'another/1/1', at });
    const app = buildApp({ ...deps, money: guard() });
    t.after(() => app.close());
    const acting = await actingOn(paying, shopper, paying.open(shopper.id, paying.account, app));
    const fault = { fault: 'drop_before', method: 'GET', path: '/v1/customers', times: 2 } as const;
    await paying.gateway.fault(fault);
    const closed = await acting.state();
    assert.deepEqual([closed.session, closed.plan?.payments.length], [null, 3]);
    paying.clock.advance({ seconds: 2 });
    assert.notEqual((await acting.state()).session, null);
  });

  test('is read from the row for the load balancer, without waiting for the gateway', async () => {
    const money = guard();
    const path = '/v1/customers';
    await paying.gateway.fault({ fault: 'latency', method: 'GET', path, ms: 30_000, times: 1 });
    const asked = money.problem().then(() => 'the gateway answered');
    assert.equal(await Promise.race([money.stopReason(), asked]), null);
    await paying.clearFaults();
    assert.equal(await asked, 'the gateway answered');
  });

  test('stays known while many processes raise the heartbeat at once', async () => {
    const guards = Array.from({ length: 8 }, () => guard());
    for (let round = 0; round < 5; round += 1) {
      paying.clock.advance({ minutes: 2 });
      await Promise.all(guards.flatMap((one) => [one.raiseHeartbeat(), one.problem()]));
    }
    assert.deepEqual(
      await Promise.all(guards.map((one) => one.problem())),
      guards.map(() => null),
    );
    const heartbeats = await paying.gateway.gateway.listHeartbeats();
    const { rows } = await paying.service.deps.database.pool.query(
      'select * from gateway_heartbeat, gateway_heartbeats',
    );
    const own = heartbeats.filter(({ database }) => database === rows[0].id);
    assert.deepEqual(
      own.map(({ count }) => count),
      [rows[0].heartbeat],
    );
  });

  /** A guard of a process that is slow where the test wants it to be. */
  function slowGuard() {
    const slow: { row?: Gate; heartbeats?: Gate; write?: Gate } = {};
    const pass = async (place: keyof typeof slow) => {
      const gate = slow[place];
      delete slow[place];
      await gate?.pass();
    };
    const readings = new WeakSet<object>();
    const rowReader: KyselyPlugin = {
      transformQuery({ node, queryId }) {
        if (node.kind === 'SelectQueryNode') readings.add(queryId);
        return node;
      },
      async transformResult({ result, queryId }) {
        if (readings.has(queryId)) await pass('row');
        return result;
      },
    };
    const { database } = paying.service.deps;
    const { gateway } = paying.gateway;
    const money = guard({
      database: { ...database, db: database.db.withPlugin(rowReader) },
      gateways: onlyGateway({
        ...gateway,
        async listHeartbeats() {
          const heartbeats = await gateway.listHeartbeats();
          await pass('heartbeats');
          return heartbeats;
        },
        async writeHeartbeat(heartbeat) {
          await pass('write');
          await gateway.writeHeartbeat(heartbeat);
        },
      }),
    });
    return {
      money,
      /** The next answer at this place waits until the gate is opened. */
      hold(place: keyof typeof slow): Gate {
        const gate = createGate();
        slow[place] = gate;
        return gate;
      },
    };
  }

  async function readHeartbeats() {
    const { rows } = await paying.service.deps.database.pool.query(
      'select * from gateway_heartbeat, gateway_heartbeats',
    );
    const heartbeats = await paying.gateway.gateway.listHeartbeats();
    return { row: rows[0], there: heartbeats.find(({ database }) => database === rows[0].id) };
  }

  /**
   * The process raises the heartbeat, while another of its readings still has the row from before.
   */
  async function readDuringHeartbeat({ money, hold }: ReturnType<typeof slowGuard>) {
    paying.clock.advance({ minutes: 2 });
    assert.equal(await money.problem(), null);
    const heartbeats = hold('heartbeats');
    const heartbeat = money.raiseHeartbeat();
    await heartbeats.holds(heartbeat);
    paying.clock.advance({ seconds: 2 });
    const row = hold('row');
    const reading = money.stopReason();
    await row.holds(reading);
    heartbeats.open();
    await heartbeat;
    row.open();
    await reading;
  }

  test('is not lost by a reading that began before the process raised the heartbeat', async () => {
    const process = slowGuard();
    const before = (await readHeartbeats()).row.heartbeat;
    await readDuringHeartbeat(process);
    const { row } = await readHeartbeats();
    assert.deepEqual([row.heartbeat, row.stopped_reason], [before + 1, null]);
    assert.equal(await process.money.problem(), null);
  });

  test('is not changed by a process that writes its heartbeat after the next one', async () => {
    const [late, quick] = [slowGuard(), slowGuard()];
    paying.clock.advance({ minutes: 2 });
    const write = late.hold('write');
    const heartbeat = late.money.raiseHeartbeat();
    await write.holds(heartbeat);
    paying.clock.advance({ minutes: 2 });
    await quick.money.raiseHeartbeat();
    const { row, there } = await readHeartbeats();
    assert.equal(there?.count, row.heartbeat);
    write.open();
    await heartbeat;
    assert.equal((await readHeartbeats()).there?.count, row.heartbeat);
    for (const { money } of [late, quick, slowGuard()]) {
      paying.clock.advance({ minutes: 2 });
      await money.raiseHeartbeat();
      assert.equal(await money.problem(), null);
    }
    assert.deepEqual((await readHeartbeats()).there?.count, row.heartbeat + 3);
  });

  test('stays refused if a reading from before the stop ends after it', async () => {
    const process = slowGuard();
    const { row, there } = await readHeartbeats();
    assert.ok(there);
    const heartbeat = { heartbeat_ref: there.heartbeat_ref, database: row.id };
    await process.money.problem();
    await paying.gateway.gateway.writeHeartbeat({ ...heartbeat, count: row.heartbeat + 5 });
    try {
      await readDuringHeartbeat(process);
      assert.match((await process.money.problem()) ?? '', /The gateway is ahead/);
    } finally {
      const { pool } = paying.service.deps.database;
      await pool.query('update gateway_heartbeats set heartbeat = $1', [row.heartbeat + 5]);
      await pool.query('update gateway_heartbeat set stopped_at = null, stopped_reason = null');
    }
  });

  test('is refused to a production database that is new to an account with a history', async () => {
    paying.clock.advance({ minutes: 2 });
    await guard().raiseHeartbeat();
    const { clock } = paying;
    const fresh = await startService({ clock, env: gatewayEnv(paying.gateway) });
    try {
      const money = guard({ ...fresh.deps, gateways: onlyGateway(paying.gateway.gateway) });
      assert.equal(await money.problem(), null);
      const gateways = onlyGateway(paying.gateway.gateway);
      const strict = guard({ ...fresh.deps, gateways, environment: 'production' });
      assert.match((await strict.problem()) ?? '', /Another database has used this account/);
    } finally {
      await fresh.close();
    }
  });
});
