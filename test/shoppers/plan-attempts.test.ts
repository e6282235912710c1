import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { cardKeyOf } from '#gateway/gateway.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { claimBatch } from '#merchants/run-due-work.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { blockCheckout, unblockCheckout } from '#purchases/instalments/block-checkout.ts';
import {
  collectDueInstalments,
  collectInstalments,
} from '#purchases/instalments/collect-instalments.ts';
import { dueInstalments } from '#purchases/instalments/instalment.sql.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import {
  accountsOf,
  assertBalanced,
  atGateway,
  cards,
  closeBooks,
  partsOf,
  planOf,
  refundNow,
} from '../support/money.ts';
import {
  challengeCard,
  endPlans,
  type Paying,
  type Shopper,
  startPaying,
  visa,
} from '../support/payments.ts';
import { type Acting, actingOn } from '../support/plan-attempts.ts';
import { until } from '../support/until.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
afterEach(() => endPlans(paying));
after(() => closeBooks(paying));

const mastercard = '5555555555554444';
const declinedCard = '4000000000009995';
const stolenCard = '4000000000009979';

/** A shopper whose payment 2 of 3 the bank declined until it became overdue. */
async function lateShopper(card = cards.laterLost): Promise<[Shopper, Acting]> {
  const [shopper, acting] = await paidShopper(card);
  await paying.pass({ months: 1, hours: 1 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 scheduled']);
  return [shopper, acting];
}

async function paidShopper(card = visa, term = 3): Promise<[Shopper, Acting]> {
  const shopper = await paying.shopper();
  const { challenge_url } = await shopper.pay(term, { card });
  if (challenge_url) {
    await shopper.decide('approve');
    await shopper.comeBack();
  }
  return [shopper, await actingOn(paying, shopper)];
}

async function cardOf(shopper: Shopper): Promise<string> {
  const [card] = await shopper.rows('stored_cards');
  return `${card.brand} ${card.last4}`;
}

async function mailsOf(shopper: Shopper): Promise<string[]> {
  await paying.work();
  const { rows } = await paying.service.deps.database.pool.query(
    'select text from mailbox where checkout_id = $1 order by sent_at, id',
    [shopper.id],
  );
  return rows.map(({ text }) => text.replaceAll('\u00a0', ' '));
}

test('a shopper pays what is late with another card through a challenge, and the collector continues with that card', async () => {
  const [shopper, acting] = await lateShopper();
  const asked = await acting.pay('late', { card: challengeCard, keep: true });
  assert.equal(asked.attempt?.status, 'challenge');
  assert.deepEqual(asked.attempt?.payments, [2]);
  assert.equal(
    (await shopper.state()).attempt?.challenge_url,
    null,
    'only the session sees the bank',
  );

  const { attempt, plan } = await acting.decide('approve');
  assert.equal(attempt?.status, 'done');
  assert.deepEqual(
    plan?.payments.map(({ status }) => status),
    ['paid', 'paid', 'next'],
  );
  assert.deepEqual(plan?.card, { brand: 'visa', last4: '3155' });
  assert.deepEqual(await acting.attempts(), ['charged 2 50000']);
  const [row] = await shopper.planAttempts();
  const { flow, result } = row?.authentication ?? {};
  assert.deepEqual([flow, result], ['challenge', 'authenticated']);
  const mails = await mailsOf(shopper);
  assert.ok(
    mails.some((text) => /From now on, we will charge .* to your Visa card ending 3155/.test(text)),
  );
  assert.ok(mails.some((text) => /charged R 500,00 .* This was payment 2 of 3/s.test(text)));

  await paying.pass({ months: 1 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 collected']);
  const last = (await shopper.rows('collections')).find(({ instalment }) => instalment === 3);
  const [stored] = await shopper.rows('stored_cards');
  assert.equal(last.card_ref, stored.card_ref);
  const [replaced] = await shopper.rows('replaced_cards');
  assert.ok(replaced.detached_at, 'the lost card is removed at the gateway');
  await assertBalanced(paying, shopper);
});

test('a shopper pays what is late with the stored card, which the bank declines without them', async () => {
  const [shopper, acting] = await lateShopper(cards.laterNeedsShopper);
  const { attempt } = await acting.pay('late');
  assert.equal(attempt?.status, 'challenge');
  await acting.decide('approve');
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
  assert.equal(await cardOf(shopper), 'visa 3184');
  assert.deepEqual(await shopper.rows('replaced_cards'), []);
  await assertBalanced(paying, shopper);
});

test('a stored card that the bank forbids is not charged for the shopper, and another one is', async () => {
  const [shopper, acting] = await lateShopper(cards.laterLost);
  const requests = async () => (await shopper.books()).payment_intents.length;
  const asked = await requests();
  for (const part of ['late', 'rest'] as const) {
    const { attempt } = await acting.pay(part);
    assert.deepEqual([attempt?.status, attempt?.refusal], ['refused', 'card_refused']);
  }
  assert.equal(await requests(), asked);
  assert.equal((await acting.pay('late', { card: mastercard })).attempt?.status, 'done');
  await assertBalanced(paying, shopper);
});

test('a card that the bank forbids is recognised when it is entered again, and is not charged', async () => {
  const [shopper, acting] = await lateShopper(cards.laterLost);
  const requests = async () => (await shopper.books()).payment_intents.length;
  const refusalOf = async (page: Promise<PayPage>) => {
    const { attempt } = await page;
    return attempt?.refusal ?? attempt?.status;
  };
  const asked = await requests();
  assert.equal(await refusalOf(acting.pay('late', { card: cards.laterLost })), 'card_refused');
  assert.equal(await refusalOf(acting.replaceCard(cards.laterLost)), 'card_refused');
  assert.equal(await requests(), asked);
  assert.equal(await refusalOf(acting.pay('late', { card: stolenCard })), 'declined');
  const silent = { method: 'GET', path: '/v1/confirmation_tokens/:id', times: 10 };
  await paying.gateway.fault({ ...silent, fault: 'error_before' });
  assert.equal(await refusalOf(acting.pay('late', { card: stolenCard })), 'payments_paused');
  await paying.clearFaults();
  assert.equal(await refusalOf(acting.pay('late', { card: stolenCard })), 'card_refused');
  assert.equal(await requests(), asked + 1);
  // The stored card now has another id, as if it had been stored again before it was declined.
  const { deps } = paying.service;
  const stored = "update stored_cards set card_ref = 'pm_again' where checkout_id = $1";
  await deps.database.pool.query(stored, [shopper.id]);
  await assert.rejects(
    retryInstalment(deps, 'nomsa', `${shopper.id}:2`),
    /forbids charging it again/,
  );
  assert.equal(await refusalOf(acting.pay('late')), 'card_refused');
  assert.equal(await requests(), asked + 1);
  const shown = { brand: 'visa', last4: '4242', expires: '2027-03' };
  assert.equal(cardKeyOf(shown), 'visa 4242 2027-03', 'a gateway without fingerprints');
  assert.equal(await refusalOf(acting.pay('late', { card: mastercard })), 'done');
});

test('a card that was declined for good while it was verified is recognised, and is not charged', async () => {
  const [shopper, acting] = await paidShopper();
  const requests = async () => (await shopper.books()).payment_intents.length;
  assert.equal((await acting.replaceCard(stolenCard)).attempt?.status, 'declined');
  const asked = await requests();
  assert.equal((await acting.replaceCard(stolenCard)).attempt?.refusal, 'card_refused');
  const paid = await acting.pay('next', { card: stolenCard });
  assert.equal(paid.attempt?.refusal, 'card_refused');
  assert.equal(await requests(), asked);
  assert.equal((await acting.pay('next', { card: mastercard })).attempt?.status, 'done');
});

test('a payment that is late because the stored card expired is paid with another one', async () => {
  const [shopper, acting] = await paidShopper();
  const path = '/v1/payment_intents';
  const key_contains = `${shopper.id}:i2`;
  const decline = { fault: 'decline', decline_code: 'expired_card', method: 'POST', path } as const;
  await paying.gateway.fault({ ...decline, key_contains });
  await paying.pass({ months: 1, hours: 1 });
  const { plan } = await acting.state();
  assert.equal(plan?.payments[1]?.late?.reason, 'expired_card');
  assert.equal(
    (await acting.pay('late', { card: mastercard, keep: true })).attempt?.status,
    'done',
  );
  await paying.pass({ months: 1 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 collected']);
  assert.equal(await cardOf(shopper), 'mastercard 4444');
  await assertBalanced(paying, shopper);
});

test('the next payment is paid early, and its date then charges nothing', async () => {
  const [shopper, acting] = await paidShopper();
  const { attempt, plan } = await acting.pay('next', { card: mastercard });
  assert.equal(attempt?.status, 'done');
  assert.equal(plan?.payments[1]?.status, 'paid');
  assert.equal(await cardOf(shopper), 'visa 4242', 'a card that is not kept pays once');
  const mails = await mailsOf(shopper);
  assert.ok(
    mails.some((text) => /charged R 500,00 to your card\. This was payment 2 of 3/.test(text)),
  );
  await paying.pass({ months: 1, days: 2 });
  assert.deepEqual((await atGateway(shopper)).taken, [50_000, 50_000]);
  await assertBalanced(paying, shopper);
});

test('everything that is not paid is paid by one charge, and the gateway refunds that charge once', async () => {
  const [shopper, acting] = await paidShopper();
  await paying.pass({ days: 2 });
  const { attempt, plan } = await acting.pay('rest');
  assert.deepEqual(
    [attempt?.status, attempt?.payments, attempt?.amount],
    ['done', [2, 3], 100_000],
  );
  assert.equal(plan?.outstanding, 0);
  assert.deepEqual((await atGateway(shopper)).taken.toSorted(), [100_000, 50_000]);
  const mails = await mailsOf(shopper);
  assert.ok(mails.some((text) => /charged R 1 000,00 .* These were payments 2–3 of 3/s.test(text)));
  assert.ok(mails.some((text) => /Nothing more will be charged/.test(text)));
  const { id } = await refundNow(paying, shopper, 120_000);
  await paying.pass({ hours: 2 });
  const parts = ['3 card 50000 done', '2 card 50000 done', '1 card 20000 done'];
  assert.deepEqual(await partsOf(shopper, id), parts);
  const { refunds } = await shopper.books();
  assert.deepEqual(refunds.map(({ amount }) => amount).toSorted(), [100_000, 20_000]);
  assert.deepEqual(await accountsOf(shopper), { collected: 30_000, refunded: 120_000 });
  await paying.pass({ months: 3 });
  await assertBalanced(paying, shopper);
});

test('a declined card leaves the plan as it was, and the shopper pays with another one', async () => {
  const [shopper, acting] = await lateShopper();
  const declined = await acting.pay('late', { card: declinedCard });
  assert.equal(declined.attempt?.status, 'declined');
  assert.deepEqual(declined.attempt?.decline, { reason: 'insufficient_funds', may_retry: true });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 scheduled']);
  assert.equal((await shopper.state()).attempt, null, 'only the session sees a decline');
  const paid = await acting.pay('late', { card: mastercard });
  assert.equal(paid.attempt?.status, 'done');
  assert.deepEqual(await acting.attempts(), ['declined 2 50000', 'charged 2 50000']);
  await assertBalanced(paying, shopper);
});

test('what a shopper tries in a session does not change what the link shows without it', async () => {
  const [shopper, acting] = await lateShopper();
  const { plan: before } = await shopper.state();
  assert.deepEqual(before?.payments[1]?.late, { reason: null, retries_at: null });
  await acting.pay('late', { card: declinedCard });
  assert.deepEqual((await shopper.state()).plan, before);
  await acting.pay('late', { card: challengeCard });
  await acting.decide('decline');
  assert.deepEqual((await shopper.state()).plan, before);
  const { plan } = await acting.state();
  assert.equal(plan?.payments[1]?.late?.reason, 'lost_card', 'why the stored card was declined');
  await assertBalanced(paying, shopper);
});

test('a shopper who changes the card is told that a late payment still has to be paid', async () => {
  const [shopper, acting] = await lateShopper();
  const main = async () => {
    const { body } = await shopper.send('GET', '', undefined, acting.headers);
    return (/<main[\s\S]*<\/main>/.exec(body)?.[0] ?? '').replaceAll('\u00a0', ' ');
  };
  assert.equal((await acting.replaceCard(mastercard)).attempt?.status, 'done');
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 scheduled']);
  assert.match(await main(), /to Mastercard ending 4444, but not the R 500,00 that is late/);
  const inMail = /We will not try again to charge the R 500,00 that is late\./;
  assert.equal((await mailsOf(shopper)).filter((text) => inMail.test(text)).length, 1);

  await acting.pay('late');
  await acting.replaceCard(visa);
  assert.match(await main(), /Your remaining payments will be charged to Visa ending 4242/);
  const mails = (await mailsOf(shopper)).filter((text) => /From now on/.test(text));
  assert.deepEqual(
    mails.map((text) => inMail.test(text)),
    [true, false],
  );
});

test('a declined early payment is collected on its date, with the stored card', async () => {
  const [shopper, acting] = await paidShopper();
  assert.equal((await acting.pay('next', { card: declinedCard })).attempt?.status, 'declined');
  await paying.pass({ months: 1, hours: 1 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
  await assertBalanced(paying, shopper);
});

test('the card is replaced through a challenge without a charge, with the consent recorded anew', async () => {
  const [shopper, acting] = await paidShopper();
  const [before] = await shopper.rows('stored_cards');
  assert.equal((await acting.replaceCard(challengeCard)).attempt?.status, 'challenge');
  assert.equal(await cardOf(shopper), 'visa 4242');
  const { attempt, plan } = await acting.decide('approve');
  assert.equal(attempt?.status, 'done');
  assert.deepEqual(plan?.card, { brand: 'visa', last4: '3155' });
  const [after] = await shopper.rows('stored_cards');
  assert.deepEqual(
    after.consent.payments.map(({ number }: { number: number }) => number),
    [2, 3],
  );
  assert.deepEqual((await shopper.rows('replaced_cards'))[0].consent, before.consent);
  await paying.pass({ months: 3 });
  assert.deepEqual((await atGateway(shopper)).taken, [50_000, 50_000, 50_000]);
  const { body } = await paying.gateway.call('GET', `/v1/payment_methods/${before.card_ref}`);
  assert.equal(body.customer, null, 'the earlier card is detached');
  await assertBalanced(paying, shopper);
});

test('a card that the bank does not approve replaces nothing', async () => {
  const [shopper, acting] = await paidShopper();
  await acting.replaceCard(challengeCard);
  const refused = await acting.decide('decline');
  assert.equal(refused.attempt?.decline?.reason, 'authentication_failed');
  assert.equal((await acting.replaceCard(declinedCard)).attempt?.status, 'declined');
  assert.equal(await cardOf(shopper), 'visa 4242');
  assert.deepEqual(await acting.attempts(), ['card declined', 'card declined']);
  await assertBalanced(paying, shopper);
});

test('a charge in flight keeps the card that it was opened with when the shopper replaces it', async () => {
  const [shopper, acting] = await paidShopper();
  const [old] = await shopper.rows('stored_cards');
  await paying.pass({ days: 2 });
  const due = (await shopper.rows('instalments')).find(({ number }) => number === 2).due_at;
  paying.clock.set(due);
  await paying.gateway.fault({ fault: 'error_before', key_contains: `${shopper.id}:i2` });
  await collectDueInstalments(paying.service.deps);
  assert.equal((await acting.replaceCard(mastercard)).attempt?.status, 'done');
  assert.equal((await acting.pay('next')).attempt?.refusal, 'being_charged');
  await paying.work();
  const [replaced] = await shopper.rows('replaced_cards');
  assert.equal(replaced.detached_at, null, 'a request may still charge it');

  await paying.clearFaults();
  await paying.pass({ minutes: 30 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
  const charge = (await shopper.rows('collections')).find(({ instalment }) => instalment === 2);
  assert.equal(charge.card_ref, old.card_ref);
  assert.ok((await shopper.rows('replaced_cards'))[0].detached_at);
  await paying.pass({ months: 1 });
  assert.deepEqual((await atGateway(shopper)).taken, [50_000, 50_000, 50_000]);
  const charges = (await mailsOf(shopper)).flatMap(
    (text) =>
      /card ending (\d+)\.\s+This was payment (\d)/.exec(text)?.slice(1).join(' for ') ?? [],
  );
  assert.deepEqual(charges, ['4242 for 2', '4444 for 3'], 'a mail names the card that was charged');
  await assertBalanced(paying, shopper);
});

test('a collector that claimed a payment and sent nothing loses it to the shopper', async () => {
  const [shopper, acting] = await paidShopper();
  await paying.pass({ days: 2 });
  const due = (await shopper.rows('instalments')).find(({ number }) => number === 2).due_at;
  await paying.pass(Temporal.Instant.from(due).subtract({ minutes: 1 }).toString());
  paying.clock.set(due);
  const { deps } = paying.service;
  const merchant = await findMerchant(deps.database.db, deps.clock, paying.account.merchant.id);
  assert(merchant);
  const lease = { leaseSeconds: 40, batchSize: 32 };
  const claimed = await claimBatch(deps, dueInstalments, merchant, lease);
  assert.ok(claimed.some(({ checkout_id }) => checkout_id === shopper.id));
  assert.equal((await acting.pay('next', { card: mastercard })).attempt?.status, 'done');
  await collectInstalments(deps, merchant, claimed);
  assert.deepEqual((await atGateway(shopper)).taken, [50_000, 50_000]);
  await assertBalanced(paying, shopper);
});

test('an operator cannot retry a payment that the shopper is paying', async () => {
  const [shopper, acting] = await lateShopper();
  await acting.pay('late', { card: challengeCard });
  await assert.rejects(
    retryInstalment(paying.service.deps, 'nomsa', `${shopper.id}:2`),
    /The shopper is paying it now\. Look again when it has ended\./,
  );
  await acting.decide('approve');
  await assertBalanced(paying, shopper);
});

test('what a lost database had charged is recorded and not charged again', async () => {
  const { gateway } = paying.gateway;
  /** Charges payments as a service would whose database has been lost since. */
  const payBefore = async (shopper: Shopper, instalments: number[]) => {
    const [card] = await shopper.rows('stored_cards');
    const { customer_ref, card_ref } = card;
    const now = paying.clock.now().toString({ fractionalSecondDigits: 3 });
    const paid = await gateway.pay({
      key: `${shopper.id}:lost:${instalments}`,
      merchant: { id: paying.account.merchant.id, now },
      checkout_id: shopper.id,
      instalments,
      attempt_id: `lost ${instalments}`,
      customer_ref,
      card: { card_ref },
      amount: 50_000 * instalments.length,
      currency: 'ZAR',
      statement: { merchant_name: 'Bean There', instalments, number_of_payments: 3 },
      return_url: 'https://pay.example.com/return',
    });
    assert.equal(paid.outcome, 'captured');
  };
  const [shopper, acting] = await paidShopper();
  await payBefore(shopper, [2, 3]);
  assert.equal((await acting.pay('rest', { card: mastercard })).attempt?.status, 'done');
  assert.deepEqual((await atGateway(shopper)).taken, [100_000]);
  assert.deepEqual(await planOf(shopper), ['1 authorised', '2 collected', '3 collected']);
  await paying.pass({ days: 2 });
  await assertBalanced(paying, shopper);

  const [other, otherActing] = await paidShopper();
  await payBefore(other, [2]);
  const { attempt } = await otherActing.pay('rest');
  assert.equal(attempt?.status, 'working', 'the amounts differ: an operator has to look');
  await paying.pass({ minutes: 30 });
  assert.deepEqual(await otherActing.attempts(), ['voided 2+3 100000']);
  assert.deepEqual((await atGateway(other)).taken, [50_000]);
  assert.equal((await otherActing.pay('next')).attempt?.status, 'done');
  assert.deepEqual((await atGateway(other)).taken, [50_000], 'payment 2 was paid before');
  await paying.pass({ days: 2 });
  await assertBalanced(paying, other);
});

for (const [card, flow, result] of [
  [mastercard, 'frictionless', 'attempt_acknowledged'],
  [challengeCard, 'challenge', 'authenticated'],
  ['378282246310005', null, 'not_supported'],
] as const) {
  test(`the bank's answer about a new card is kept with it: ${result}`, async () => {
    const [shopper, acting] = await paidShopper();
    const { attempt } = await acting.replaceCard(card);
    if (attempt?.status === 'challenge') await acting.decide('approve');
    const [row] = await shopper.planAttempts();
    const [stored] = await shopper.rows('stored_cards');
    assert.deepEqual([row?.status, row?.card_ref], ['verified', stored.card_ref]);
    const kept = row?.authentication;
    assert.deepEqual([kept?.flow, kept?.result], [flow, result]);
    assert.equal(kept?.transaction_id === null, flow === null);
  });
}

test('two tabs pay once', async () => {
  const [shopper, acting] = await paidShopper();
  const body = await acting.payBody('next');
  const answers = await Promise.all([
    acting.post('plan/pay', body),
    acting.post('plan/pay', body),
    acting.post('plan/pay', body),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  const again = await acting.post('plan/pay', body);
  assert.equal(
    again.body.attempt.refusal,
    'plan_changed',
    'the page showed payment 2, which is paid',
  );
  assert.deepEqual((await atGateway(shopper)).taken, [50_000]);
  await paying.pass({ days: 2 });
  await assertBalanced(paying, shopper);
});

test('a shopper who leaves the challenge pays with another card, and the first attempt is voided', async () => {
  const [shopper, acting] = await lateShopper();
  await acting.pay('late', { card: challengeCard });
  const { attempt } = await acting.pay('late', { card: mastercard });
  assert.equal(attempt?.status, 'done');
  assert.deepEqual(await acting.attempts(), ['voided 2 50000', 'charged 2 50000']);
  await assertBalanced(paying, shopper);
});

test('a shopper who approved the challenge and begins again in another tab pays once', async () => {
  const [shopper, acting] = await lateShopper();
  const shown = await acting.state();
  await acting.pay('late', { card: challengeCard });
  await acting.decide('approve', false);
  const { attempt } = await acting.pay('late', { card: mastercard, shown });
  assert.equal(attempt?.refusal, 'plan_changed');
  assert.deepEqual(await acting.attempts(), ['charged 2 50000']);
  await assertBalanced(paying, shopper);
});

test('a challenge that is not answered in fifteen minutes is voided, and the collector continues', async () => {
  const [shopper, acting] = await paidShopper();
  await paying.pass({ days: 2 });
  const due = (await shopper.rows('instalments')).find(({ number }) => number === 2).due_at;
  paying.clock.set(Temporal.Instant.from(due).subtract({ minutes: 5 }).toString());
  await acting.pay('next', { card: challengeCard });
  await paying.pass({ minutes: 10 });
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 scheduled', '3 scheduled']);
  assert.deepEqual((await atGateway(shopper)).taken, [50_000], 'the collector waits');
  await paying.pass({ minutes: 6 });
  assert.deepEqual(await acting.attempts(), ['voided 2 50000']);
  const { attempt } = await acting.state();
  assert.equal(attempt?.decline?.reason, 'authentication_failed');
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
  await assertBalanced(paying, shopper);
});

test('a challenge that was approved without a return is found by the worker', async () => {
  const [shopper, acting] = await lateShopper();
  await acting.pay('late', { card: challengeCard });
  await acting.decide('approve', false);
  await paying.pass({ minutes: 2 });
  assert.deepEqual(await acting.attempts(), ['charged 2 50000']);
  await assertBalanced(paying, shopper);
});

test('a page that is read while a payment is recorded shows the attempt and the plan of one moment', async () => {
  const [shopper, acting] = await lateShopper();
  await acting.pay('late', { card: challengeCard });
  await acting.decide('approve', false);
  const { deps } = paying.service;
  // The page reads the plan, then the session, then the attempt. The lock stops it in the middle.
  const client = await deps.database.pool.connect();
  await client.query('begin');
  await client.query('lock table plan_sessions in access exclusive mode');
  const reading = acting.state();
  await until('the page to wait for the session', async () => {
    const { rows } = await deps.database.pool.query(
      "select 1 from pg_locks where relation = 'plan_sessions'::regclass and not granted",
    );
    return rows.length === 1;
  });
  paying.clock.advance({ minutes: 2 });
  await recoverAttempts(deps);
  assert.deepEqual(await acting.attempts(), ['charged 2 50000']);
  await client.query('commit');
  client.release();

  const { attempt, plan } = await reading;
  assert.equal(attempt?.status, 'challenge');
  assert.equal(plan?.payments[1]?.status, 'late');
  const later = await acting.state();
  assert.equal(later.attempt?.status, 'done');
  assert.equal(later.plan?.payments[1]?.status, 'paid');
  await assertBalanced(paying, shopper);
});

test('a refund in progress and the shopper exclude each other', async () => {
  const [shopper, acting] = await paidShopper(cards.refundPending);
  await paying.pass({ days: 2 });
  const shown = await acting.state();
  await refundNow(paying, shopper, 120_000);
  await paying.work();
  const refused = await acting.pay('next', { shown });
  assert.equal(refused.attempt?.refusal, 'refund_in_progress');
  await paying.pass({ days: 1 });

  const [other, otherActing] = await paidShopper();
  await paying.pass({ days: 2 });
  await otherActing.pay('rest', { card: challengeCard });
  const refund = await refundNow(paying, other, 120_000);
  await paying.work();
  assert.equal((await other.rows('refund_requests'))[0].status, 'requested', 'it waits');
  await otherActing.decide('approve');
  await paying.pass({ minutes: 20 });
  assert.deepEqual(await accountsOf(other), { collected: 30_000, refunded: 120_000 });
  assert.ok(refund.id);
  await assertBalanced(paying, shopper, other);
});

test('a hold is voided only when no refund in progress may return a part to it', async () => {
  const [shopper, acting] = await paidShopper();
  assert.equal((await acting.pay('next')).attempt?.status, 'done');
  const fault = await paying.gateway.fault({
    ...{ fault: 'error_before', method: 'POST', path: '/v1/refunds' },
  });
  // This refund would leave 500 cents of the hold, which is less than the gateway's minimum. So it
  // takes 500 cents less from the hold, and returns them to the card from the collected payment.
  const first = await refundNow(paying, shopper, 99_500);
  assert.equal(first.status, 'pending');
  const second = await refundNow(paying, shopper, 1_000);
  assert.equal(second.status, 'requested');
  const [, paid] = (await shopper.rows('instalments')).toSorted((a, b) => a.number - b.number);
  await paying.gateway.call('DELETE', `/_test/faults/${fault}`);
  await paying.gateway.call('POST', '/v1/refunds', { payment_intent: paid.payment_ref });
  await paying.pass({ hours: 2 });
  assert.deepEqual(await planOf(shopper), ['1 authorised', '2 collected', '3 scheduled -1000']);
  const refunds = await shopper.rows('refund_requests');
  assert.deepEqual(refunds.map(({ status }) => status).toSorted(), ['complete', 'failed']);
});

test('what the page did not show is not charged', async () => {
  const [shopper, acting] = await paidShopper();
  await paying.pass({ days: 2 });
  const shown = await acting.state();
  await refundNow(paying, shopper, 60_000);
  await paying.work();
  for (const changes of [{}, { amount: 50_000 }, { payments: [2] }, { payments: [1, 2, 3] }]) {
    const { attempt } = await acting.pay('rest', { shown, changes });
    assert.equal(attempt?.refusal, 'plan_changed');
  }
  assert.equal(
    (await acting.pay('late', { shown, changes: { payments: [2], amount: 50_000 } })).attempt
      ?.refusal,
    'plan_changed',
  );
  assert.equal((await acting.pay('rest')).attempt?.status, 'done');
  assert.deepEqual((await atGateway(shopper)).taken.toSorted(), [40_000, 50_000]);
  await assertBalanced(paying, shopper);
});

for (const [fault, method, path] of [
  ['error_before', 'POST', '/v1/payment_intents'],
  ['error_after', 'POST', '/v1/payment_intents'],
  ['drop_after', 'POST', '/v1/payment_intents'],
  ['error_before', 'GET', '/v1/payment_intents'],
] as const) {
  test(`a gateway that fails (${fault} at ${method}) charges once, and the page says so when it knows`, async () => {
    const [shopper, acting] = await lateShopper();
    await paying.gateway.fault({ fault, method, path, times: 3 });
    const { attempt } = await acting.pay('late', { card: mastercard, keep: true });
    assert.equal(attempt?.status, 'working');
    assert.equal((await shopper.state()).attempt?.status, 'working', 'also without a session');
    assert.equal(
      (await acting.pay('late', { card: visa })).attempt?.status,
      'working',
      'nothing begins',
    );
    await paying.clearFaults();
    await paying.pass({ minutes: 10 });
    assert.equal((await acting.state()).attempt?.status, 'done');
    assert.deepEqual(await planOf(shopper), ['1 collected', '2 collected', '3 scheduled']);
    assert.equal(await cardOf(shopper), 'mastercard 4444');
    await assertBalanced(paying, shopper);
  });
}

test('a gateway that is down until the time is over charges nothing', async () => {
  const [shopper, acting] = await lateShopper();
  await paying.gateway.fault({ fault: 'error_before', path: '/v1/payment_intents', times: 1_000 });
  await acting.pay('late', { card: mastercard });
  await paying.pass({ minutes: 16 });
  assert.deepEqual(await acting.attempts(), ['starting 2 50000']);
  await paying.clearFaults();
  await paying.pass({ minutes: 30 });
  assert.deepEqual(await acting.attempts(), ['declined 2 50000']);
  assert.deepEqual(await planOf(shopper), ['1 collected', '2 overdue', '3 scheduled']);
  assert.equal((await acting.pay('late', { card: mastercard })).attempt?.status, 'done');
  await assertBalanced(paying, shopper);
});

test('a request that the gateway refuses is given up at once, with an alert', async () => {
  const [shopper, acting] = await lateShopper();
  const { pool } = paying.service.deps.database;
  const [card] = await shopper.rows('stored_cards');
  await pool.query("delete from alerts where kind = 'gateway_trouble'");
  await pool.query('update stored_cards set customer_ref = $2 where checkout_id = $1', [
    shopper.id,
    'cus_unknown',
  ]);
  await acting.pay('late', { card: mastercard });
  await paying.pass({ minutes: 30 });
  assert.deepEqual(await acting.attempts(), ['voided 2 50000']);
  const { rows } = await pool.query("select detail from alerts where kind = 'gateway_trouble'");
  assert.match(rows[0]?.detail, /The shopper’s attempt 1 on the plan was refused/);
  await pool.query('update stored_cards set customer_ref = $2 where checkout_id = $1', [
    shopper.id,
    card.customer_ref,
  ]);
  await assertBalanced(paying, shopper);
});

test('acting needs a session, our own page, and a body as the contract says', async () => {
  const [shopper, acting] = await paidShopper();
  const body = await acting.payBody('next');
  assert.equal((await shopper.send('POST', 'plan/pay', body)).status, 403);
  const other = await paidShopper();
  assert.equal((await other[0].send('POST', 'plan/pay', body, acting.headers)).status, 403);
  const foreign = { origin: 'https://evil.example' };
  assert.equal((await acting.post('plan/pay', body, foreign)).status, 403);
  const keep = await acting.payBody('next', { card: mastercard, keep: true });
  for (const wrong of [
    { ...body, what: 'all' },
    { ...body, payments: [] },
    { ...body, amount: 0 },
    { ...body, keep_card: true },
    { ...keep, consent: null },
    { ...keep, consent: { ...keep.consent, version: 'x' } },
    { ...keep, consent: { ...keep.consent, payments: [] } },
    await acting.payBody('rest', { card: mastercard, keep: true }),
  ]) {
    assert.equal((await acting.post('plan/pay', wrong)).status, 422, JSON.stringify(wrong));
  }
  const card = await acting.cardBody(mastercard);
  const late = { ...card, consent: { ...card.consent, payments: card.consent.payments.slice(1) } };
  assert.equal((await acting.post('plan/card', late)).status, 422);
  assert.equal((await acting.post('plan/card', { ...card, card_token: null })).status, 422);
  assert.deepEqual(await acting.attempts(), []);
  await assertBalanced(paying, shopper);
});

test('each attempt has a number, so that the page tells a new one from an old one', async () => {
  const [, acting] = await paidShopper();
  assert.equal((await acting.pay('next', { card: declinedCard })).attempt?.number, 1);
  const refused = await acting.pay('next', { changes: { amount: 1 } });
  assert.deepEqual([refused.attempt?.status, refused.attempt?.number], ['refused', 1]);
  assert.equal((await acting.pay('next')).attempt?.number, 2);
});

test('a checkout that an operator has to look at says that payments are paused', async () => {
  const [shopper, acting] = await paidShopper();
  const shown = await acting.state();
  assert.equal(shown.plan?.is_blocked, false);
  const { deps } = paying.service;
  const key = { merchant_id: paying.account.merchant.id, checkout_id: shopper.id };
  const at = timestamp(paying.clock.now());
  const block = { reference: 'pi_unknown', alert_id: deps.random.uuid(), created_at: at };
  await transaction(deps, ({ db }) => blockCheckout(db, key, block));
  const { plan } = await acting.state();
  assert.deepEqual([plan?.is_blocked, plan?.is_paused], [true, false], 'there is no refund');
  assert.equal((await acting.pay('next', { shown })).attempt?.refusal, 'payments_paused');
  assert.deepEqual(await acting.attempts(), []);
  await transaction(deps, ({ db }) => unblockCheckout(db, key, at));
  assert.equal((await acting.pay('next')).attempt?.status, 'done');
  await paying.pass({ days: 2 });
  await assertBalanced(paying, shopper);
});

test('a checkout that is blocked before its first payment is not paid', async () => {
  const shopper = await paying.shopper();
  const { deps } = paying.service;
  const key = { merchant_id: paying.account.merchant.id, checkout_id: shopper.id };
  const at = timestamp(paying.clock.now());
  const block = { reference: 'pi_lost', alert_id: deps.random.uuid(), created_at: at };
  await transaction(deps, ({ db }) => blockCheckout(db, key, block));
  const { status, paused } = await shopper.pay(3);
  assert.deepEqual([status, paused, await shopper.live()], ['open', true, []]);
  assert.deepEqual(await shopper.attempts(), []);
  assert.equal((await shopper.state()).paused, true);

  await transaction(deps, ({ db }) => unblockCheckout(db, key, at));
  assert.equal((await shopper.pay(3)).status, 'successful');
  await assertBalanced(paying, shopper);
});

test('cards that are declined in attempts on a plan count as card testing', async () => {
  const [shopper, acting] = await paidShopper();
  const { deps } = paying.service;
  const network = '192.0.2.77';
  shopper.moveTo(network);
  const merchant_id = paying.account.merchant.id;
  const countOf = async () => (await deps.rateLimits.declines(network, merchant_id, 0)).ofNetwork;
  await acting.replaceCard(challengeCard);
  await acting.decide('decline');
  assert.equal((await countOf()).count, 1, 'after the challenge');
  await shopper.send('GET', 'return', undefined, acting.headers);
  assert.equal((await countOf()).count, 1, 'a second return counts nothing');
  for (let count = 2; count <= 10; count += 1) await acting.replaceCard(declinedCard);
  assert.equal((await countOf()).count, 10);
  const { rows } = await deps.database.pool.query(
    "select detail from alerts where kind = 'card_testing'",
  );
  assert.match(rows[0]?.detail, /10 cards were declined on one payment link/);
});

test('a plan takes twenty attempts an hour', async () => {
  const [, acting] = await paidShopper();
  const body = { ...(await acting.payBody('next')), amount: 1 };
  const statuses: number[] = [];
  for (let count = 0; count < 21; count += 1) {
    statuses.push((await acting.post('plan/pay', body)).status);
  }
  assert.deepEqual([statuses.indexOf(429), statuses[0]], [20, 200]);
});

test('a once-off payment whose hold lapsed is paid by the shopper with a card', async () => {
  const [shopper, acting] = await paidShopper(visa, 1);
  paying.clock.advance({ days: 9 });
  await paying.work();
  assert.deepEqual(await planOf(shopper), ['1 overdue']);
  const { plan: late } = await shopper.state();
  assert.deepEqual(late?.payments[0]?.late, { reason: 'lapsed', retries_at: null });
  assert.equal(late?.is_card_stored, false);
  assert.equal((await acting.pay('late')).attempt?.refusal, 'plan_changed', 'no card is stored');
  const { attempt, plan } = await acting.pay('late', { card: mastercard });
  assert.equal(attempt?.status, 'done');
  assert.deepEqual(await planOf(shopper), ['1 collected']);
  assert.deepEqual(plan?.card, { brand: 'mastercard', last4: '4444' });
  const [payment] = await shopper.rows('instalments');
  assert.equal(plan?.payments[0]?.paid_at, payment.collected_at, 'not the day of the purchase');
  const paidOn = Temporal.Instant.from(payment.collected_at)
    .toZonedDateTimeISO('Africa/Johannesburg')
    .toLocaleString('en-GB', { dateStyle: 'long' });
  const { body: receipt } = await shopper.send('GET', 'receipts/1');
  assert.ok(String(receipt).includes(paidOn), paidOn);
  await assertBalanced(paying, shopper);
});

test('a paid order shows its card however many attempts on its plan came later', async () => {
  const [shopper, acting] = await paidShopper(visa, 1);
  await paying.service.deps.database.pool.query(
    `insert into payment_attempts
     select (p).* from (
       select jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'number', i,
         'purpose', 'plan_payment', 'status', 'declined')) as p
       from payment_attempts a, generate_series(1, 100) as i where a.checkout_id = $1) planted`,
    [shopper.id],
  );
  assert.deepEqual((await acting.state()).plan?.card, { brand: 'visa', last4: '4242' });
});

test('an attempt of a process that died is settled by another one', async () => {
  const [shopper, acting] = await lateShopper();
  await paying.gateway.fault({ fault: 'error_after', method: 'POST', path: '/v1/payment_intents' });
  await acting.pay('late', { card: mastercard });
  await paying.clearFaults();
  paying.clock.advance({ seconds: 10 });
  assert.equal(await recoverAttempts(paying.service.deps), 1);
  assert.deepEqual(await acting.attempts(), ['charged 2 50000']);
  await assertBalanced(paying, shopper);
});
