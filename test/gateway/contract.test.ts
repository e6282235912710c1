import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { createGateway } from '#gateway/adapters/create-gateway.ts';
import { readGatewaySettings } from '#gateway/adapters/read-settings.ts';
import { amountRefused } from '#gateway/amount-refused.ts';
import {
  type CardVerification,
  type Charge,
  type Decline,
  type DeclineReason,
  type Gateway,
  OutcomeUnknown,
  type PaymentState,
  RequestRefused,
} from '#gateway/gateway.ts';
import { mainGateway } from '#gateway/gateway-name.ts';
import { createHyperswitchGateway } from '#gateway/hyperswitch/hyperswitch.ts';
import { customerId, paymentId, refundId, verificationId } from '#gateway/hyperswitch/ids.ts';
import { describePayment, ownWords } from '#gateway/hyperswitch/own-words.ts';
import { paymentState, verificationState } from '#gateway/hyperswitch/states.ts';
import type { GatewaySettings } from '#gateway/settings.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import { stripeSettings } from '#gateway/stripe/settings.ts';
import { createStripeGateway } from '#gateway/stripe/stripe.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Fault } from '../../test-gateway/faults.ts';
import {
  answerChallenge,
  type ContractSubject,
  type Held,
  merchantAt,
  newPayment,
  type Payment,
  secretKey,
  startGateway,
  useStripe,
  withTokens,
} from '../support/gateway.ts';
import { useHyperswitch } from '../support/hyperswitch.ts';
import { departures } from '../support/stripe-declarations.ts';
import { until } from '../support/until.ts';

// The contract of the port. It runs against every adapter with its API of the test gateway. The
// part that needs neither a browser nor a clock of ours also runs against Stripe's test mode.

type Subject = Pick<ContractSubject, 'gateway' | 'tokenFor' | 'begins'>;

const declines: [card: string, number: string, reason: DeclineReason, may_retry: boolean][] = [
  ['pm_card_visa_chargeDeclined', '4000000000000002', 'generic', true],
  ['pm_card_visa_chargeDeclinedInsufficientFunds', '4000000000009995', 'insufficient_funds', true],
  ['pm_card_visa_chargeDeclinedLostCard', '4000000000009987', 'lost_card', false],
  ['pm_card_visa_chargeDeclinedStolenCard', '4000000000009979', 'stolen_card', false],
  [
    'pm_card_visa_chargeDeclinedVelocityLimitExceeded',
    '4000000000006975',
    'velocity_exceeded',
    true,
  ],
  ['pm_card_chargeDeclinedExpiredCard', '4000000000000069', 'expired_card', false],
  ['pm_card_chargeDeclinedIncorrectCvc', '4000000000000127', 'incorrect_cvc', true],
  ['pm_card_chargeDeclinedProcessingError', '4000000000000119', 'processing_error', true],
  ['pm_card_chargeCustomerFail', '4000000000000341', 'generic', true],
  ['pm_card_threeDSecureRequiredProcessingError', '4000008400001280', 'generic', true],
];

/** Guarantees that hold with any gateway that the adapter can talk to. */
function contract(name: string, subject: Subject, options: { skip: string | false }): void {
  const { gateway } = subject;

  describe(`the gateway's contract with ${name}`, options, () => {
    for (const card of ['pm_card_visa', 'pm_card_mastercard', 'pm_card_amex']) {
      test(`${card} is held, found and voided; voiding it twice succeeds`, async () => {
        const payment = await newPayment(subject, card);
        const held = (await gateway.authorise(payment)) as Held;
        assert.equal(held.outcome, 'authorised');
        assert.match(held.card.last4 ?? '', /^\d{4}$/);
        assert.ok(held.card.card_ref);
        const { merchant } = payment;
        assert.deepEqual(await gateway.payment(merchant, held.payment_ref), held);
        assert.deepEqual(await gateway.findPayment(merchant, payment), held);
        const voiding = { key: `${payment.key}:void`, merchant, payment_ref: held.payment_ref };
        assert.deepEqual(await gateway.void(voiding), { outcome: 'voided' });
        const again = { ...voiding, key: `${payment.key}:void2` };
        assert.deepEqual(await gateway.void(again), { outcome: 'voided' });
        const { payment_ref } = held;
        assert.deepEqual(await gateway.payment(merchant, payment_ref), {
          outcome: 'voided',
          payment_ref,
        });
      });
    }

    test('the same key with the same input gives the same outcome', async () => {
      const payment = await newPayment(subject, 'pm_card_visa');
      const first = await gateway.authorise(payment);
      assert.deepEqual(await gateway.authorise(payment), first);
      const declined = await newPayment(subject, 'pm_card_visa_chargeDeclined');
      assert.deepEqual(await gateway.authorise(declined), await gateway.authorise(declined));
    });

    test('the same key with another input holds nothing more', async () => {
      const payment = await newPayment(subject, 'pm_card_visa');
      const first = await gateway.authorise(payment);
      // A process with another address sends this request.
      const elsewhere = { ...payment, return_url: 'https://elsewhere.example/return' };
      assert.deepEqual(await gateway.authorise(elsewhere), first);
      // A request with another amount or term must not get the first hold.
      for (const change of [{ amount: 60_000 }, { store_card: !payment.store_card }]) {
        await assert.rejects(gateway.authorise({ ...payment, ...change }), RequestRefused);
      }
    });

    for (const [card, , reason, may_retry] of declines) {
      test(`${card} is declined: ${reason}`, async () => {
        const payment = await newPayment(subject, card);
        const answer = await gateway.authorise(payment);
        assert.equal(answer.outcome, 'declined');
        const { decline, payment_ref } = answer as { decline: Decline; payment_ref: string };
        assert.deepEqual(judged(decline), { reason, may_retry });
        assert.deepEqual(await gateway.payment(payment.merchant, payment_ref), answer);
      });
    }

    test('a hold is captured whole, once, and refunded', async () => {
      const payment = await newPayment(subject, 'pm_card_visa');
      const { payment_ref } = (await gateway.authorise(payment)) as Held;
      const { merchant, key, amount } = payment;
      const capture = { key: `${key}:capture`, merchant, payment_ref, amount };
      assert.deepEqual(await gateway.capture(capture), { outcome: 'captured' });
      // A retry sends the same call under another key a day later.
      const again = { ...capture, key: `${key}:capture2` };
      assert.deepEqual(await gateway.capture(again), { outcome: 'captured' });
      const voiding = { key: `${key}:void`, merchant, payment_ref };
      assert.deepEqual(await gateway.void(voiding), { outcome: 'captured' });

      const refund = { key: `${key}:r1`, merchant, payment_ref, amount: 20_000, refund_id: 'one' };
      const first = await gateway.refund(refund);
      assert.equal(first.status, 'succeeded');
      assert.deepEqual(await gateway.refund(refund), first);
      assert.deepEqual(await gateway.refundStatus(merchant, first.refund_ref ?? ''), first);
      const tooMuch = { ...refund, key: `${key}:r2`, amount: 30_001 };
      assert.deepEqual(await gateway.refund(tooMuch), { refund_ref: null, status: 'failed' });
    });

    test('a hold is captured for less, and the rest is released', async () => {
      const payment = await newPayment(subject, 'pm_card_visa');
      const held = (await gateway.authorise(payment)) as Held;
      const { payment_ref, card, authentication, scheme } = held;
      const { merchant, key } = payment;
      const capture = { key: `${key}:capture`, merchant, payment_ref, amount: 12_345 };
      assert.deepEqual(await gateway.capture(capture), { outcome: 'captured' });
      assert.deepEqual(await gateway.payment(merchant, payment_ref), {
        outcome: 'captured',
        payment_ref,
        amount: 12_345,
        card,
        authentication,
        scheme,
      });
    });

    test('a capture of a voided hold answers that it lapsed', async () => {
      const payment = await newPayment(subject, 'pm_card_visa');
      const { payment_ref } = (await gateway.authorise(payment)) as Held;
      const { merchant, key, amount } = payment;
      await gateway.void({ key: `${key}:void`, merchant, payment_ref });
      const capture = { key: `${key}:capture`, merchant, payment_ref, amount };
      assert.deepEqual(await gateway.capture(capture), { outcome: 'lapsed' });
    });

    test('a stored card is charged without the shopper', async () => {
      const { charge } = await storeCard(subject, 'pm_card_visa');
      const first = await gateway.charge(charge);
      assert.equal(first.outcome, 'charged');
      assert.deepEqual(await gateway.charge(charge), first);
      const found = await gateway.findPayment(charge.merchant, charge);
      assert.equal(found?.outcome, 'captured');
      const { outcome: _, ...known } = first as Extract<Charge, { outcome: 'charged' }>;
      const { payment_ref, scheme, amount } = found as Captured;
      assert.deepEqual([{ payment_ref, scheme }, amount], [known, charge.amount]);
    });

    test('a card that was not stored has no reference and cannot be charged later', async () => {
      const payment = await newPayment(subject, 'pm_card_visa', { store_card: false });
      const held = (await gateway.authorise(payment)) as Held;
      assert.equal(held.card.card_ref, null);
    });

    test('an attempt that never reached the gateway is not found', async () => {
      const { merchant, customer_ref } = await newPayment(subject, 'pm_card_visa');
      const attempt = { customer_ref, attempt_id: randomUUID() };
      assert.equal(await gateway.findPayment(merchant, attempt), null);
    });

    test('a shopper pays several instalments at once, and each of them finds the payment', async () => {
      const pay = await newShopperPayment(subject, 'pm_card_visa');
      const paid = (await gateway.pay(pay)) as Captured;
      assert.equal(paid.outcome, 'captured');
      assert.equal(paid.amount, pay.amount);
      assert.ok(paid.card.card_ref, 'the card is stored');
      assert.deepEqual(await gateway.pay(pay), paid);
      assert.deepEqual(await gateway.findPayment(pay.merchant, pay), paid);
      for (const [number, count] of [
        [1, 0],
        [2, 1],
        [3, 1],
        [4, 0],
      ] as const) {
        const found = await gateway.listInstalmentPayments(pay.merchant, {
          ...pay,
          instalments: [number],
        });
        const { attempt_id } = pay;
        assert.deepEqual(found, Array(count).fill({ ...paid, attempt_id }), `instalment ${number}`);
      }
      await assert.rejects(gateway.pay({ ...pay, amount: 99_999 }), RequestRefused);
    });

    test('a shopper pays with the stored card, and a declined card takes nothing', async () => {
      const { charge } = await storeCard(subject, 'pm_card_visa');
      const given = await newShopperPayment(subject, 'pm_card_visa_chargeDeclined');
      const declined = await gateway.pay(given);
      assert.equal(declined.outcome, 'declined');
      const { customer_ref, card_ref, checkout_id } = charge;
      const pay = { ...given, key: randomUUID(), attempt_id: randomUUID(), customer_ref };
      const paid = await gateway.pay({ ...pay, checkout_id, card: { card_ref } });
      assert.equal(paid.outcome, 'captured');
      assert.equal((paid as Captured).card.card_ref, null, 'nothing new is stored');
    });

    test('a card is verified without a charge, charged later, and detached for ever', async () => {
      const { charge } = await storeCard(subject, 'pm_card_visa');
      const { merchant, checkout_id, customer_ref } = charge;
      const verify = {
        key: randomUUID(),
        merchant,
        checkout_id,
        attempt_id: randomUUID(),
        customer_ref,
        card_token: await subject.tokenFor('pm_card_mastercard'),
        return_url: 'https://pay.example.com/pay/token/return',
      };
      const entered = subject.begins
        ? null
        : await gateway.enteredCard(merchant, verify.card_token);
      const verified = (await gateway.verifyCard(verify)) as Verified;
      if (entered !== null) {
        assert.ok(entered.fingerprint, 'it recognises a card that is entered again');
        assert.deepEqual({ ...entered, card_ref: verified.card.card_ref }, verified.card);
        assert.equal((await gateway.enteredCard(merchant, 'ctoken_unknown')).last4, null);
      }
      assert.equal(verified.outcome, 'verified');
      assert.equal(verified.card.brand, 'mastercard');
      assert.deepEqual(await gateway.verifyCard(verify), verified);
      const { verification_ref, card } = verified;
      assert.deepEqual(await gateway.cardVerification(merchant, verification_ref), verified);
      assert.deepEqual(await gateway.findCardVerification(merchant, verify), verified);
      const voiding = { key: randomUUID(), merchant, verification_ref };
      assert.deepEqual(await gateway.voidVerification(voiding), verified, 'too late to void');
      assert.equal(
        await gateway.findCardVerification(merchant, { ...verify, attempt_id: 'x' }),
        null,
      );

      const { card_ref } = card;
      assert.equal((await gateway.charge({ ...charge, card_ref })).outcome, 'charged');
      await gateway.detachCard({ key: randomUUID(), merchant, card_ref });
      await gateway.detachCard({ key: randomUUID(), merchant, card_ref });
      const again = { ...charge, card_ref, key: randomUUID(), attempt_id: randomUUID() };
      assert.equal((await gateway.charge(again)).outcome, 'declined');
    });

    test('neither a declined card nor a used token is verified', async () => {
      const pay = await newShopperPayment(subject, 'pm_card_visa_chargeDeclinedLostCard');
      const { merchant, checkout_id, customer_ref, card, return_url } = pay;
      const verify = { merchant, checkout_id, customer_ref, ...card, return_url };
      const ask = (attempt_id: string) =>
        gateway.verifyCard({ ...verify, key: randomUUID(), attempt_id });
      const first = await ask('one');
      assert.equal(first.outcome, 'declined');
      assert.equal((first as { decline: Decline }).decline.reason, 'lost_card');
      if (subject.begins) return;
      assert.deepEqual(await ask('two'), {
        outcome: 'declined',
        verification_ref: null,
        decline: { reason: 'processing_error', may_retry: true },
      });
    });

    const tokens = { skip: subject.begins && 'the adapter gets no token of a card' };
    test('an unknown or used token makes the shopper enter the card again', tokens, async () => {
      const payment = await newPayment(subject, 'pm_card_visa');
      await gateway.authorise(payment);
      for (const card_token of ['ctoken_unknown', payment.card_token]) {
        const answer = await gateway.authorise({ ...payment, key: randomUUID(), card_token });
        assert.deepEqual(answer, {
          outcome: 'declined',
          payment_ref: null,
          decline: { reason: 'processing_error', may_retry: true },
        });
      }
    });

    test('a payment of an amount that the gateway does not accept refuses the checkout', async () => {
      const payment = await newPayment(subject, 'pm_card_visa', { amount: 100_000_000_000 });
      const answer = await gateway.authorise(payment);
      assert.equal(answer.outcome, 'refused');
    });

    test('a charge of an amount that the gateway does not accept says nothing about the card', async () => {
      const { charge } = await storeCard(subject, 'pm_card_visa');
      const answer = await gateway.charge({ ...charge, amount: 100_000_000_000 });
      assert.deepEqual(answer, { outcome: 'declined', payment_ref: null, decline: amountRefused });
    });
  });
}

const hyperswitchKeys = {
  protocol: 'hyperswitch',
  environment: 'sandbox',
  secretKey: 'x',
  publicKey: 'pk',
} as const;

type Listed = Awaited<ReturnType<Gateway['listRecords']>>;
type Captured = Extract<PaymentState, { outcome: 'captured' }>;
type Verified = Extract<CardVerification, { outcome: 'verified' }>;

/** A shopper pays instalments 2 and 3 with another card, which is stored. */
async function newShopperPayment(subject: Subject, number: string) {
  const payment = await newPayment(subject, number);
  const { merchant, checkout_id, attempt_id, customer_ref, amount, currency, return_url } = payment;
  const card = { card_token: payment.card_token, store: true };
  const key = `${checkout_id}:s1`;
  const instalments = [2, 3];
  const statement = { merchant_name: 'Bean There', instalments, number_of_payments: 3 };
  return {
    statement,
    key,
    merchant,
    checkout_id,
    attempt_id,
    customer_ref,
    amount,
    currency,
    return_url,
    card,
    instalments,
  };
}
/** Our reading of a decline, without the codes of the gateway and the network. */
const judged = ({ reason, may_retry }: Decline): Decline => ({ reason, may_retry });

/** Stores a card with a first payment and returns the charge for a second one. */
async function storeCard(
  subject: Subject & { url?: string },
  card: string,
  given: Partial<Payment> = {},
): Promise<{ payment: Payment; charge: Parameters<Gateway['charge']>[0] }> {
  const payment = await newPayment(subject, card, given);
  let answer = await subject.gateway.authorise(payment);
  if (answer.outcome === 'challenge') {
    await answerChallenge(answer.url, 'approve');
    answer = (await subject.gateway.payment(payment.merchant, answer.payment_ref)) as Held;
  }
  assert.equal(answer.outcome, 'authorised');
  const { checkout_id, merchant, customer_ref, amount, currency } = payment;
  return {
    payment,
    charge: {
      key: `${checkout_id}:i2:a1`,
      merchant,
      checkout_id,
      instalment: 2,
      attempt_id: randomUUID(),
      customer_ref,
      card_ref: (answer as Held).card.card_ref ?? '',
      amount,
      currency,
      statement: { merchant_name: 'Bean There', instalments: [2], number_of_payments: 3 },
    },
  };
}

const started = await startGateway();
after(() => started.close());
const stripe = useStripe(started.url);
const hyperswitch = useHyperswitch(started.url);
contract('Stripe’s protocol', stripe, { skip: false });
contract('Hyperswitch’s protocol', hyperswitch, { skip: false });
contract("Stripe's test mode", ...stripeSubject());
stories('Stripe’s protocol', stripe);
stories('Hyperswitch’s protocol', hyperswitch);

function stripeSubject(): [Subject, { skip: string | false }] {
  const key = process.env.STRIPE_TEST_KEY ?? '';
  if (key === '') return [stripe, { skip: 'STRIPE_TEST_KEY is not set' }];
  const gateway = withTokens(
    createStripeGateway({
      ...{ protocol: 'stripe', environment: 'sandbox' },
      ...{ secretKey: key, publicKey: 'pk_test_unused' },
    }),
  );
  const tokenFor = async (payment_method: string) => {
    const response = await fetch('https://api.stripe.com/v1/test_helpers/confirmation_tokens', {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}` },
      body: new URLSearchParams({ payment_method }),
    });
    const { id } = (await response.json()) as { id: string };
    return id;
  };
  return [{ gateway, tokenFor, begins: false }, { skip: false }];
}

/** Guarantees that need the test gateway: its faults, its challenges and its time. */
function stories(name: string, local: ContractSubject): void {
  const { gateway } = local;

  describe(`with ${name}`, () => {
    describe('test cards by their numbers', () => {
      for (const number of ['4242424242424242', '5555555555554444', '378282246310005']) {
        test(`${number} succeeds`, async () => {
          const answer = await gateway.authorise(await newPayment(local, number));
          assert.equal(answer.outcome, 'authorised');
          assert.equal((answer as Held).card.last4, number.slice(-4));
        });
      }

      for (const [, number, reason, may_retry] of declines) {
        test(`${number} is declined: ${reason}`, async () => {
          const answer = await gateway.authorise(await newPayment(local, number));
          assert.equal(answer.outcome, 'declined');
          assert.deepEqual(judged((answer as { decline: Decline }).decline), { reason, may_retry });
        });
      }

      const tokens = { skip: local.begins && 'the adapter gets no token of a card' };
      test('a mistyped number and a number of a real card get no token', tokens, async () => {
        await assert.rejects(local.tokenFor('4242424242424241'), /incorrect_number/);
        await assert.rejects(local.tokenFor('4111111111111111'), /card_declined/);
      });

      const later: [number: string, decline: Decline | null][] = [
        ['4242424242424242', null],
        ['4000002500003155', null],
        ['4000000000003220', null],
        ['4000002760003184', { reason: 'authentication_required', may_retry: false }],
        ['4000000000777005', { reason: 'insufficient_funds', may_retry: true }],
        ['4000000000777104', { reason: 'lost_card', may_retry: false }],
      ];
      for (const [number, decline] of later) {
        test(`${number}: a later payment ${decline ? `is declined: ${decline.reason}` : 'succeeds'}`, async () => {
          const { charge } = await storeCard(local, number);
          const answer = await gateway.charge(charge);
          assert.equal(answer.outcome, decline ? 'declined' : 'charged');
          if (decline) assert.deepEqual(judged((answer as { decline: Decline }).decline), decline);
          // A declined charge can be looked up too.
          const found = await gateway.findPayment(charge.merchant, charge);
          assert.equal(found?.outcome, decline ? 'declined' : 'captured');
          if (decline) assert.deepEqual(judged((found as { decline: Decline }).decline), decline);
        });
      }

      test('4000002500003155: a shopper who pays or adds the card passes a challenge first', async () => {
        const pay = await newShopperPayment(local, '4000002500003155');
        const { merchant, checkout_id } = pay;
        const asked = await gateway.pay(pay);
        assert.equal(asked.outcome, 'challenge');
        const { url, payment_ref } = asked as { url: string; payment_ref: string };
        await answerChallenge(url, 'approve');
        assert.equal((await gateway.payment(merchant, payment_ref)).outcome, 'captured');

        for (const [decision, outcome] of [
          ['approve', 'verified'],
          ['decline', 'declined'],
          ['close', 'challenge'],
        ] as const) {
          const card_token = await local.tokenFor('4000002500003155');
          const names = { key: randomUUID(), attempt_id: randomUUID() };
          const verifying = await gateway.verifyCard({ ...pay, ...names, card_token });
          assert.equal(verifying.outcome, 'challenge');
          const { verification_ref, url } = verifying as { verification_ref: string; url: string };
          await answerChallenge(url, decision);
          const state = await gateway.cardVerification(merchant, verification_ref);
          assert.equal(state.outcome, outcome);
          const voided = await gateway.voidVerification({
            key: randomUUID(),
            merchant,
            verification_ref,
          });
          // Hyperswitch cannot end a challenge that the bank may still approve, and says that a card
          // was declined.
          const left = decision === 'close' ? 'challenge' : 'declined';
          const ended = local.begins ? left : 'voided';
          assert.equal(voided.outcome, decision === 'approve' ? 'verified' : ended);
        }
        const books = await local.books({ checkout: checkout_id });
        assert.equal(books.payment_intents.length, 1, 'a verification charges nothing');
      });

      test('4000000000007726: a refund is pending for an hour, then succeeded', async () => {
        const time = merchantAt();
        const { refund } = await refunded('4000000000007726', time);
        assert.equal(refund.status, 'pending');
        const refund_ref = refund.refund_ref ?? '';
        const soon = await gateway.refundStatus(time.later({ minutes: 59 }), refund_ref);
        assert.equal(soon.status, 'pending');
        const then = await gateway.refundStatus(time.later({ minutes: 60 }), refund_ref);
        assert.equal(then.status, 'succeeded');
      });

      test('4000000000005126: a refund succeeds, fails three days later, and can be repeated', async () => {
        const time = merchantAt();
        const { refund, again } = await refunded('4000000000005126', time);
        assert.equal(refund.status, 'succeeded');
        assert.deepEqual(await again(time.later({ days: 2 })), {
          refund_ref: null,
          status: 'failed',
        });
        const refund_ref = refund.refund_ref ?? '';
        const then = await gateway.refundStatus(time.later({ days: 3 }), refund_ref);
        assert.equal(then.status, 'failed');
        assert.equal((await again(time.later({ days: 3 }))).status, 'succeeded');
      });

      test('a refund that is declined on demand fails, at once or after its hour', async () => {
        for (const [number, soon] of [
          ['4242424242424242', 'failed'],
          ['4000000000007726', 'pending'],
        ] as const) {
          const time = merchantAt();
          const { again } = await refunded(number, time, { amount: 20_000 });
          const path = local.begins ? '/refunds' : '/v1/refunds';
          await local.fault({ fault: 'decline', method: 'POST', path });
          const { refund_ref, status } = await again(time);
          assert.equal(status, soon);
          const then = await gateway.refundStatus(time.later({ minutes: 60 }), refund_ref ?? '');
          assert.equal(then.status, 'failed');
        }
      });

      async function refunded(
        number: string,
        time: ReturnType<typeof merchantAt>,
        given: { amount?: number } = {},
      ) {
        const payment = await newPayment(local, number, { merchant: time });
        const { payment_ref } = (await gateway.authorise(payment)) as Held;
        const { key } = payment;
        await gateway.capture({
          key: `${key}:capture`,
          merchant: time,
          payment_ref,
          amount: payment.amount,
        });
        const { amount = payment.amount } = given;
        const again = (merchant: Payment['merchant']) =>
          gateway.refund({
            key: randomUUID(),
            merchant,
            payment_ref,
            amount,
            refund_id: randomUUID(),
          });
        return { refund: await again(time), again };
      }
    });

    describe('the issuer’s challenge', () => {
      const statusOf = (back: URL) =>
        back.searchParams.get(local.begins ? 'status' : 'redirect_status');
      async function challenged(number: string) {
        const payment = await newPayment(local, number);
        const answer = await gateway.authorise(payment);
        assert.equal(answer.outcome, 'challenge');
        const { url, payment_ref } = answer as { url: string; payment_ref: string };
        const state = () => gateway.payment(payment.merchant, payment_ref);
        return { payment, url, payment_ref, state };
      }

      for (const number of ['4000002500003155', '4000002760003184', '4000000000003220']) {
        test(`${number}: an approved challenge holds the amount`, async () => {
          const { url, payment_ref, state, payment } = await challenged(number);
          const back = await answerChallenge(url, 'approve');
          assert.equal(back.origin + back.pathname, payment.return_url);
          const named = local.begins ? 'payment_id' : 'payment_intent';
          assert.equal(back.searchParams.get(named), payment_ref);
          assert.equal(statusOf(back), local.begins ? 'requires_capture' : 'succeeded');
          assert.equal((await state()).outcome, 'authorised');
        });
      }

      test('4000008260003178 and 4000008400001629: declined after an approved challenge', async () => {
        for (const [number, reason] of [
          ['4000008260003178', 'insufficient_funds'],
          ['4000008400001629', 'generic'],
        ] as const) {
          const { url, state } = await challenged(number);
          const back = await answerChallenge(url, 'approve');
          assert.equal(statusOf(back), 'failed');
          const found = await state();
          assert.equal(found.outcome, 'declined');
          assert.equal((found as { decline: Decline }).decline.reason, reason);
        }
      });

      test('a declined challenge is a failed authentication, and the shopper may retry', async () => {
        const { url, state, payment_ref } = await challenged('4000000000003220');
        const back = await answerChallenge(url, 'decline');
        assert.equal(statusOf(back), 'failed');
        const found = await state();
        assert.equal(found.outcome, 'declined');
        assert.equal(found.payment_ref, payment_ref);
        const { decline } = found as { decline: Decline };
        assert.deepEqual(judged(decline), { reason: 'authentication_failed', may_retry: true });
        assert.ok(decline.card_key, 'it recognises the card when it is entered again');
      });

      test('what the bank holds after the shopper left its challenge is voided', async () => {
        const { url, state, payment, payment_ref } = await challenged('4000000000003220');
        const back = await answerChallenge(url, 'close');
        assert.equal(statusOf(back), local.begins ? 'requires_customer_action' : 'pending');
        assert.deepEqual(await state(), { outcome: 'challenge', payment_ref, url });
        const { merchant, key } = payment;
        const end = () => gateway.void({ key: `${key}:void`, merchant, payment_ref });
        assert.deepEqual(await end(), { outcome: local.begins ? 'challenge' : 'voided' });
        const late = await answerChallenge(url, 'approve');
        assert.equal(statusOf(late), local.begins ? 'requires_capture' : 'failed');
        assert.deepEqual(await end(), { outcome: 'voided' });
        assert.equal((await state()).outcome, 'voided');
      });

      test('the page shows the amount and three buttons, cannot be framed, and takes only one answer', async () => {
        const { url, state } = await challenged('4000000000003220');
        const response = await fetch(url);
        const page = await response.text();
        assert.match(page.replaceAll(/&#160;|\u00a0/g, ' '), /R 500,00/);
        for (const name of ['Approve', 'Decline', 'Close']) {
          assert.match(page, new RegExp(`<button[^>]*>${name}</button>`));
        }
        const policy = response.headers.get('content-security-policy') ?? '';
        assert.match(policy, /default-src 'none'/);
        assert.match(policy, /frame-ancestors 'none'/);
        await answerChallenge(url, 'approve');
        await answerChallenge(url, 'decline');
        assert.equal((await state()).outcome, 'authorised');
        const reopened = await fetch(url, { redirect: 'manual' });
        assert.equal(reopened.status, 303);
      });

      test('without its secret there is no challenge page', async () => {
        const { url, payment_ref } = await challenged('4000000000003220');
        const guessed = new URL(`/challenge/${payment_ref}/challenge_guess`, url);
        const response = await fetch(guessed, {
          method: 'POST',
          body: new URLSearchParams({ decision: 'approve' }),
        });
        assert.equal(response.status, 404);
      });
    });

    describe('the merchant’s time', () => {
      test('a hold lapses after seven days', async () => {
        const time = merchantAt();
        const payment = await newPayment(local, '4242424242424242', { merchant: time });
        const held = (await gateway.authorise(payment)) as Held;
        assert.equal(held.capture_before, '2026-11-22T08:00:00.000Z');
        const { payment_ref } = held;
        const before = time.later({ days: 6, hours: 23 });
        assert.equal((await gateway.payment(before, payment_ref)).outcome, 'authorised');
        const lapsed = time.later({ days: 7 });
        const capture = {
          key: randomUUID(),
          merchant: lapsed,
          payment_ref,
          amount: payment.amount,
        };
        assert.deepEqual(await gateway.capture(capture), { outcome: 'lapsed' });
        assert.equal((await gateway.payment(lapsed, payment_ref)).outcome, 'voided');
        const books = await local.books({ checkout: payment.checkout_id });
        assert.deepEqual(
          books.payment_intents.map(({ status }) => status),
          ['canceled'],
        );
      });

      test('one merchant’s time does not age another’s holds', async () => {
        const [one, other] = [merchantAt(), merchantAt()];
        const mine = (await gateway.authorise(
          await newPayment(local, '4242424242424242', { merchant: one }),
        )) as Held;
        await newPayment(local, '4242424242424242', { merchant: other.later({ days: 30 }) });
        assert.equal((await gateway.payment(one, mine.payment_ref)).outcome, 'authorised');
      });

      test('a key is forgotten after 24 hours, and an id never', async () => {
        const time = merchantAt();
        const { charge } = await storeCard(local, '4242424242424242', { merchant: time });
        const first = await gateway.charge(charge);
        const soon = await gateway.charge({ ...charge, merchant: time.later({ hours: 23 }) });
        assert.deepEqual(soon, first);
        const late = await gateway.charge({ ...charge, merchant: time.later({ hours: 24 }) });
        assert.equal(late.outcome, 'charged');
        assert.equal(late.payment_ref === first.payment_ref, local.begins);
      });
    });

    describe('an unknown outcome', () => {
      // This adapter has a short timeout, for calls that must time out. Others must not time out on
      // a busy machine.
      const quick = local.quick();

      /** Calls once and expects an unknown outcome. */
      async function unknown(request: () => Promise<unknown>): Promise<void> {
        await assert.rejects(request(), (error) => {
          assert.ok(error instanceof OutcomeUnknown, String(error));
          return true;
        });
      }

      /**
       * Gives up on a request that has reached the gateway. On a busy machine one may time out too
       * early, so this sends it again.
       */
      async function timeOut(kind: Fault['fault'], payment: Payment): Promise<void> {
        await until(`the fault ${kind}`, async () => {
          await unknown(() => quick.authorise(payment));
          return await local.hasStruck(kind);
        });
        await local.call('DELETE', '/_test/faults');
      }

      // Stripe's SDK retries a closed connection once by itself, so the fault must strike twice.
      const times = local.begins ? 1 : 2;
      const withEffect = [
        { fault: 'error_after' },
        { fault: 'drop_after', times },
        { fault: 'latency_after', ms: 600_000, times: 100 },
      ] as const;
      const without = [{ fault: 'error_before' }, { fault: 'drop_before', times }] as const;

      for (const fault of withEffect) {
        test(`${fault.fault}: the effect is found, and a retry with the key returns it`, async () => {
          const payment = await newPayment(local, '4242424242424242');
          await local.fault({ ...fault, ...local.requestOf('authorise', payment) });
          if (fault.fault === 'latency_after') await timeOut(fault.fault, payment);
          else await unknown(() => gateway.authorise(payment));
          const found = await gateway.findPayment(payment.merchant, payment);
          assert.equal(found?.outcome, local.begins ? 'begun' : 'authorised');
          const held = await settled(() => gateway.authorise(payment));
          assert.equal(held.outcome, 'authorised');
          assert.deepEqual(await gateway.findPayment(payment.merchant, payment), held);
          const books = await local.books({ checkout: payment.checkout_id });
          assert.equal(books.payment_intents.length, 1);
        });
      }

      for (const fault of without) {
        test(`${fault.fault}: a retry with the key has the effect once`, async () => {
          const payment = await newPayment(local, '4242424242424242');
          await local.fault({ ...fault, ...local.requestOf('authorise', payment) });
          await unknown(() => gateway.authorise(payment));
          assert.equal(await gateway.findPayment(payment.merchant, payment), null);
          assert.equal((await gateway.authorise(payment)).outcome, 'authorised');
          assert.equal((await gateway.authorise(payment)).outcome, 'authorised');
          const books = await local.books({ checkout: payment.checkout_id });
          assert.equal(books.payment_intents.length, 1);
        });
      }

      test('latency: a payment that happens after the timeout is found by a retry', async () => {
        const payment = await newPayment(local, '4242424242424242');
        const asked = local.requestOf('authorise', payment);
        await local.fault({ fault: 'latency', ms: 600_000, times: 100, ...asked });
        await timeOut('latency', payment);
        const answer = await settled(() => gateway.authorise(payment));
        assert.equal(answer.outcome, 'authorised');
      });

      test('a request in flight: the second one makes no second payment', async () => {
        const payment = await newPayment(local, '4242424242424242');
        await local.fault({ fault: 'hold_key', ...local.requestOf('authorise', payment) });
        const first = gateway.authorise(payment);
        await local.struck('hold_key');
        await unknown(() => gateway.authorise(payment));
        await local.call('DELETE', '/_test/faults');
        assert.deepEqual(await gateway.authorise(payment).catch(() => first), await first);
        assert.equal((await first).outcome, 'authorised');
        const books = await local.books({ checkout: payment.checkout_id });
        assert.equal(books.payment_intents.length, 1);
      });

      test('a hold that could not be voided while it was processed is voided by a retry', async (t) => {
        if (local.begins) return t.skip('it has no keys that repeat a refusal');
        const payment = await newPayment(local, '4242424242424242');
        const { merchant, checkout_id } = payment;
        await gateway.authorise(payment);
        const found = await gateway.findPayment(merchant, payment);
        const reference = found?.payment_ref ?? '';
        const key = `${checkout_id}:void`;
        const asked = local.requestOf('void', { ...payment, key, reference });
        await local.fault({ fault: 'processing', ...asked });
        const ask = () => gateway.void({ key, merchant, payment_ref: reference });
        await unknown(ask);
        assert.deepEqual(await ask(), { outcome: 'voided' });
        assert.deepEqual(await ask(), { outcome: 'voided' });
      });

      const operations = [
        'capture',
        'void',
        'charge',
        'refund',
        'createCustomer',
        'pay',
        'verifyCard',
        'detachCard',
      ] as const;
      for (const operation of operations) {
        for (const fault of ['error_before', 'error_after'] as const) {
          test(`${operation} with ${fault}: unknown, then settled, with one effect`, async () => {
            const { payment, charge } = await storeCard(local, '4242424242424242');
            const { merchant, amount, checkout_id } = payment;
            const found = await gateway.findPayment(merchant, payment);
            const payment_ref = found?.payment_ref ?? '';
            const key = `${checkout_id}:fault`;
            const pay = {
              ...(await newShopperPayment(local, '4242424242424242')),
              checkout_id,
              merchant,
              customer_ref: payment.customer_ref,
            };
            if (operation === 'refund') {
              await gateway.capture({ key: randomUUID(), merchant, payment_ref, amount });
            }
            const ask = {
              capture: () => gateway.capture({ key, merchant, payment_ref, amount }),
              void: () => gateway.void({ key, merchant, payment_ref }),
              charge: () => gateway.charge({ ...charge, key }),
              refund: () =>
                gateway.refund({ key, merchant, payment_ref, amount, refund_id: 'one' }),
              createCustomer: () =>
                gateway.createCustomer({
                  key,
                  merchant,
                  checkout_id,
                  shopper: { email: 'shopper@example.com' },
                }),
              pay: () => gateway.pay({ ...pay, key }),
              verifyCard: () => gateway.verifyCard({ ...pay, ...pay.card, key }),
              detachCard: () => gateway.detachCard({ key, merchant, card_ref: charge.card_ref }),
            }[operation];
            const { attempt_id } = operation === 'charge' ? charge : pay;
            const reference = operation === 'detachCard' ? charge.card_ref : payment_ref;
            const names = { key, attempt_id, checkout_id, reference };
            await local.fault({ fault, ...local.requestOf(operation, names) });
            await unknown(ask);
            const done = await ask();
            assert.deepEqual(await ask(), done);
            const books = await local.books({ checkout: checkout_id });
            const expected = {
              capture: { intents: 1, received: amount, refunds: 0 },
              void: { intents: 1, received: 0, refunds: 0 },
              charge: { intents: 2, received: amount, refunds: 0 },
              refund: { intents: 1, received: amount, refunds: 1 },
              createCustomer: { intents: 1, received: 0, refunds: 0 },
              pay: { intents: 2, received: amount, refunds: 0 },
              verifyCard: { intents: 1, received: 0, refunds: 0 },
              detachCard: { intents: 1, received: 0, refunds: 0 },
            }[operation];
            assert.deepEqual(
              {
                intents: books.payment_intents.length,
                received: books.payment_intents.reduce((sum, one) => sum + one.amount_received, 0),
                refunds: books.refunds.length,
              },
              expected,
            );
          });
        }
      }

      test('a connection that was closed once makes one payment', async () => {
        const payment = await newPayment(local, '4242424242424242');
        await local.fault({ fault: 'drop_after', ...local.requestOf('authorise', payment) });
        const held = await settled(() => gateway.authorise(payment));
        assert.equal(held.outcome, 'authorised');
        const books = await local.books({ checkout: payment.checkout_id });
        assert.equal(books.payment_intents.length, 1);
      });

      test('a gateway that is down leaves the outcome unknown', async () => {
        const other = await startGateway();
        const gone = local.begins ? useHyperswitch(other.url) : other;
        const payment = await newPayment(gone, '4242424242424242');
        await other.close();
        await unknown(() => gone.gateway.authorise(payment));
      });

      /** Repeats the request until its key is no longer in flight. Returns the answer. */
      async function settled<T>(ask: () => Promise<T>): Promise<T> {
        for (let left = 5_000; ; left -= 1) {
          try {
            return await ask();
          } catch (error) {
            if (!(error instanceof OutcomeUnknown) || left === 0) throw error;
            await new Promise((resolve) => setTimeout(resolve, 20));
          }
        }
      }
    });

    describe('what the gateway refuses', () => {
      test('a shopper whose address begins with refused has a checkout that cannot be paid', async () => {
        for (const email of ['refused@example.com', 'refused+today@example.com']) {
          const payment = await newPayment(local, '4242424242424242', { email });
          assert.equal((await gateway.authorise(payment)).outcome, 'refused');
        }
      });

      test('a shopper can pay although the gateway refuses the address', async () => {
        const payment = await newPayment(local, '4242424242424242', { email: 'shopper@localhost' });
        assert.equal((await gateway.authorise(payment)).outcome, 'authorised');
      });

      for (const [decline_code, reason] of [
        ['lost_card', 'lost_card'],
        ['stop_payment_order', 'generic'],
        ['revocation_of_authorization', 'generic'],
      ] as const) {
        test(`a decline on demand that forbids a retry: ${decline_code}`, async () => {
          const { charge } = await storeCard(local, '4242424242424242');
          await local.fault({
            fault: 'decline',
            decline_code,
            ...local.requestOf('charge', charge),
          });
          const answer = await gateway.charge(charge);
          const { decline } = answer as { decline: Decline };
          assert.deepEqual(decline, {
            reason,
            may_retry: false,
            code: decline_code,
            network_code: decline_code === 'lost_card' ? '41' : null,
            card_key: local.begins ? 'visa 4242 2031-12' : 'testvisa00000000',
          });
        });
      }

      test('an error contains no key, no card and nothing that was sent', async () => {
        const [secretKey, apiUrl] = ['sk_test_a_wrong_key', local.url];
        const protocol = local.begins ? 'hyperswitch' : 'stripe';
        const payment = await newPayment(local, '4242424242424242');
        const { card_token, ...begun } = { ...payment, instalments: [1] };
        const asked = createGateway({
          ...{ protocol, environment: 'sandbox', secretKey, publicKey: 'pk_test_x', apiUrl },
          scriptUrl: `${apiUrl}/v1/HyperLoader.js`,
        }).begin({ ...begun, capture: 'later', card: local.begins ? null : { card_token } });
        await assert.rejects(asked, (error: Error) => {
          assert.ok(!(error instanceof OutcomeUnknown));
          const text = `${error.message} ${JSON.stringify(error)} ${error.cause ?? ''}`;
          assert.match(text, /401/);
          assert.doesNotMatch(text, /sk_test|ctoken_|shopper|42424242/);
          return true;
        });
      });
    });

    describe('disputes, records and heartbeats', () => {
      /** Takes a payment that its cardholder disputes. */
      async function disputed(number: string) {
        const payment = await newPayment(local, number);
        const { payment_ref } = (await gateway.authorise(payment)) as Held;
        const { merchant, key, amount } = payment;
        await gateway.capture({ key: `${key}:capture`, merchant, payment_ref, amount });
        const { disputes } = await gateway.listDisputes(null);
        const found = disputes.find((one) => one.payment_ref === payment_ref);
        assert.ok(found);
        return { found, merchant, amount };
      }

      test('a dispute is listed, answered once, and its money is withdrawn until it is won', async () => {
        const { found, merchant, amount } = await disputed('4000000000000259');
        assert.equal(found.status, 'needs_response');
        assert.deepEqual([found.amount, found.withdrawn, found.currency], [amount, amount, 'ZAR']);
        assert.ok(found.due_by);
        const { dispute_ref } = found;
        const answer = { key: randomUUID(), merchant, dispute_ref, files: {} };
        const staging = gateway.stageEvidence({ ...answer, evidence: { order: 'Coffee' } });
        if (gateway.capabilities.stagesEvidence) {
          const staged = await staging;
          assert.deepEqual([staged.status, staged.has_answer], ['needs_response', false]);
        } else await assert.rejects(staging, RequestRefused);
        const evidence = { history: 'winning_evidence' };
        const sent = await gateway.submitEvidence({ ...answer, key: randomUUID(), evidence });
        assert.deepEqual([sent.status, sent.has_answer, sent.withdrawn], ['won', true, 0]);
        assert.deepEqual(await gateway.dispute(merchant, dispute_ref), sent);
        const again = gateway.submitEvidence({ ...answer, key: randomUUID(), evidence });
        await assert.rejects(again, RequestRefused);
      });

      test('a dispute is accepted or expires, and an inquiry withdraws nothing', async () => {
        const { found, merchant, amount } = await disputed('4000000000002685');
        const { dispute_ref } = found;
        const lost = await gateway.acceptDispute({ key: randomUUID(), merchant, dispute_ref });
        assert.deepEqual([lost.status, lost.withdrawn], ['lost', amount]);
        const inquiry = await disputed('4000000000001976');
        const { status, withdrawn } = inquiry.found;
        assert.deepEqual([status, withdrawn], ['inquiry', 0]);
        const late = await disputed('4000000000000259');
        const time = merchantAt();
        const then = { id: late.merchant.id, now: time.later({ days: 90 }).now };
        const expired = await gateway.dispute(then, late.found.dispute_ref);
        assert.deepEqual([expired.status, expired.withdrawn], ['lost', late.amount]);
      });

      test('payments and refunds are listed with our names, page by page', async () => {
        const { payment, charge } = await storeCard(local, '4242424242424242');
        const charged = await gateway.charge(charge);
        const payment_ref = charged.payment_ref ?? '';
        const { merchant, customer_ref, checkout_id } = payment;
        const refund_id = randomUUID();
        const request = { id: randomUUID(), amount: 2_000, created_at: merchant.now };
        const refund = { key: randomUUID(), merchant, payment_ref, amount: 1_000, refund_id };
        const { refund_ref } = await gateway.refund({ ...refund, request });
        assert.deepEqual(await gateway.findRefund(merchant, refund), {
          refund_ref,
          status: 'succeeded',
        });
        const other = { ...refund, refund_id: randomUUID() };
        assert.equal(await gateway.findRefund(merchant, other), null);
        const whole = { after: null, from: merchant.now, to: null };
        const { records } = await gateway.listRecords('payments', whole);
        const [newest] = records;
        assert.deepEqual(newest, {
          reference: payment_ref,
          own_id: charge.attempt_id,
          checkout_id,
          amount: charge.amount,
          state: 'taken',
          created_at: merchant.now,
          payment_ref,
          customer_ref,
          instalments: [2],
          number_of_payments: 3,
          request: null,
          fee: null,
        });
        assert.equal(records[1]?.state, 'held');
        const refunds = await gateway.listRecords('refunds', whole);
        const [first] = refunds.records;
        assert.deepEqual(
          [first?.reference, first?.own_id, first?.payment_ref, first?.request],
          [refund_ref, refund_id, payment_ref, request],
        );
        const past = { from: null, to: '2020-01-01T00:00:00.000Z' };
        for (const kind of ['payments', 'refunds', 'disputes'] as const) {
          let after: string | null = null;
          do {
            const listed: Listed = await gateway.listRecords(kind, { ...past, after });
            assert.deepEqual(listed.records, []);
            after = listed.next;
          } while (after !== null);
        }
      });

      test('each database has a heartbeat of its own, which a late request does not lower', async () => {
        const [one, other] = [randomUUID(), randomUUID()];
        const write = async (database: string, count: number) => {
          const known = (await gateway.listHeartbeats()).find((each) => each.database === database);
          const heartbeat_ref = known?.heartbeat_ref ?? null;
          await gateway.writeHeartbeat({ heartbeat_ref, database, count });
        };
        await write(one, 1);
        await write(other, 7);
        await write(one, 2);
        await write(one, 3);
        // These two were sent before, and arrive now.
        await write(one, 1);
        await write(one, 2);
        const found = await gateway.listHeartbeats();
        const counts = [one, other].map(
          (database) => found.find((each) => each.database === database)?.count,
        );
        assert.deepEqual(counts, [3, 7]);
      });
    });

    describe("the gateway's record of a shopper", () => {
      test('can be deleted more than once; its cards go with it, and its payments stay', async () => {
        const { payment, charge } = await storeCard(local, '4242424242424242');
        const charged = await gateway.charge(charge);
        const { merchant, customer_ref } = payment;
        for (let time = 0; time < 2; time += 1)
          await gateway.deleteCustomer({ merchant, customer_ref });
        const { body } = await local.call('GET', `/v1/customers/${customer_ref}`);
        assert.deepEqual(departures(body, 'DeletedCustomer'), []);
        assert.deepEqual(body, { id: customer_ref, object: 'customer', deleted: true });
        const again = { ...charge, key: randomUUID(), attempt_id: randomUUID() };
        // At Hyperswitch the card is missing, at Stripe its shopper.
        if (local.begins) assert.equal((await gateway.charge(again)).outcome, 'declined');
        else await assert.rejects(gateway.charge(again), RequestRefused);
        const payment_ref = charged.payment_ref ?? '';
        const refund = { key: randomUUID(), merchant, payment_ref, amount: 1_000, refund_id: '1' };
        assert.equal((await gateway.refund(refund)).status, 'succeeded');
        await gateway.deleteCustomer({ merchant, customer_ref: 'cus_unknown' });
      });

      test('is found by its checkout until it is deleted', async () => {
        const { payment } = await storeCard(local, '4242424242424242');
        const { merchant, customer_ref, checkout_id } = payment;
        assert.deepEqual(await gateway.findCustomers(merchant, checkout_id), [customer_ref]);
        assert.deepEqual(await gateway.findCustomers(merchant, randomUUID()), []);
        await gateway.deleteCustomer({ merchant, customer_ref });
        assert.deepEqual(await gateway.findCustomers(merchant, checkout_id), []);
      });
    });
  });
}

const local = stripe;
const { gateway } = local;

describe('settings', () => {
  const good = {
    sandbox: {
      ...{ protocol: 'stripe', environment: 'sandbox' },
      ...{ secretKey: 'sk_test_x', publicKey: 'pk_test_x' },
    },
    production: {
      ...{ protocol: 'stripe', environment: 'production' },
      ...{ secretKey: 'sk_live_x', publicKey: 'pk_live_x' },
    },
  } satisfies Record<string, GatewaySettings>;
  const cases: [name: string, settings: GatewaySettings, problems: number][] = [
    ['a test key in the sandbox', good.sandbox, 0],
    ['a live key in production', good.production, 0],
    ['a restricted live key in production', { ...good.production, secretKey: 'rk_live_x' }, 0],
    ['a live key in the sandbox', { ...good.sandbox, secretKey: 'sk_live_x' }, 1],
    ['a live public key in the sandbox', { ...good.sandbox, publicKey: 'pk_live_x' }, 1],
    ['a test key in production', { ...good.production, secretKey: 'sk_test_x' }, 1],
    ['everything wrong in production', { ...good.sandbox, environment: 'production' }, 2],
    ['a test gateway in production', { ...good.production, testGateway: true }, 1],
    ['plain http on loopback', { ...good.sandbox, apiUrl: 'http://127.0.0.1:3001' }, 0],
    ['plain http on IPv6 loopback', { ...good.sandbox, apiUrl: 'http://[::1]:3001' }, 0],
    ['plain http elsewhere', { ...good.sandbox, apiUrl: 'http://gateway.example.com' }, 1],
    [
      'a name that only looks like loopback',
      { ...good.sandbox, apiUrl: 'http://127.0.0.1.example.com' },
      1,
    ],
    [
      'a script over plain http elsewhere',
      { ...good.sandbox, scriptUrl: 'http://example.com/x.js' },
      1,
    ],
    ['an address that is not a URL', { ...good.sandbox, apiUrl: 'gateway' }, 1],
  ];
  for (const [name, settings, problems] of cases) {
    test(`${name}: ${problems === 0 ? 'accepted' : 'refused'}`, () => {
      assert.equal(stripeSettings.problems(settings).length, problems);
      if (problems > 0) assert.throws(() => createStripeGateway(settings));
    });
  }

  test('the page may load the card script and frame from the gateway only', () => {
    const { origin } = new URL(local.url);
    assert.deepEqual(gateway.cardEntry, {
      form: 'stripe',
      entersCard: 'before',
      scriptUrl: `${origin}/v1/tranche.js`,
      publicKey: 'pk_test_of_the_suite',
      scriptOrigins: [origin],
      frameOrigins: [origin],
      connectOrigins: [],
    });
    const { cardEntry } = createStripeGateway(good.sandbox);
    assert.equal(new URL(cardEntry.scriptUrl).origin, 'https://js.stripe.com');
  });
});

describe('what the card schemes want to know', () => {
  const intentOf = async (payment_ref: string) =>
    (
      await local.call('GET', `/v1/payment_intents/${payment_ref}`, {
        'expand[0]': 'latest_charge',
      })
    ).body;

  for (const [number, flow, result, eci] of [
    ['4242424242424242', 'frictionless', 'attempt_acknowledged', '06'],
    ['5555555555554444', 'frictionless', 'attempt_acknowledged', '01'],
    ['378282246310005', null, 'not_supported', null],
    ['4000000000003055', 'challenge', 'authenticated', '05'],
  ] as const) {
    test(`${number}: the first payment asks for 3-D Secure, and its result is known`, async () => {
      const payment = await newPayment(local, number);
      let answer = await gateway.authorise(payment);
      if (answer.outcome === 'challenge') {
        await answerChallenge(answer.url, 'approve');
        answer = (await gateway.payment(payment.merchant, answer.payment_ref)) as Held;
      }
      assert.equal(answer.outcome, 'authorised');
      const { authentication, card, payment_ref } = answer as Held;
      assert.ok(authentication);
      const { version, transaction_id, ...rest } = authentication;
      assert.deepEqual(rest, { flow, result, eci });
      assert.equal(version !== null, flow !== null);
      assert.equal(transaction_id !== null, flow !== null);
      assert.match(card.expires ?? '', /^20\d\d-12$/);
      const { payment_method_options } = await intentOf(payment_ref);
      assert.equal(payment_method_options.card.request_three_d_secure, 'any');
      assert.equal(payment_method_options.card.setup_credential_usage, 'installment');
    });
  }

  for (const [protocol, subject] of Object.entries({ stripe, hyperswitch })) {
    test(`the network's ids of every payment are known, with Mastercard's link (${protocol})`, async () => {
      for (const [number, hasLink] of [
        ['4242424242424242', false],
        ['5555555555554444', true],
      ] as const) {
        const { payment, charge } = await storeCard(subject, number);
        const first = await subject.gateway.findPayment(payment.merchant, payment);
        const later = await subject.gateway.charge(charge);
        const [one, other] = [first, later].map((state) => (state as Held).scheme);
        for (const scheme of [one, other]) {
          assert.ok(scheme?.network_transaction_id);
          assert.equal(scheme.transaction_link_id !== null, hasLink);
        }
        assert.notEqual(one?.network_transaction_id, other?.network_transaction_id);
      }
    });
  }

  test('a later charge names the stored card, under which the gateway keeps the ids of the first', async () => {
    const { payment, charge } = await storeCard(hyperswitch, '5555555555554444');
    const first = (await hyperswitch.gateway.findPayment(payment.merchant, payment)) as Held;
    await hyperswitch.gateway.charge(charge);
    const path = `${hyperswitch.url}/payments/${paymentId(charge.attempt_id)}`;
    const answer = await fetch(path, { headers: { 'api-key': secretKey } });
    const { payment_method_tokenization_details: kept } = (await answer.json()) as {
      payment_method_tokenization_details: Record<string, unknown>;
    };
    assert.deepEqual(
      [kept.payment_method_id, kept.network_transaction_id, kept.network_transaction_link_id],
      [charge.card_ref, ...Object.values(first.scheme ?? {})],
    );
  });

  test('a payment that stores no card sets up no credential', async () => {
    const answer = await gateway.authorise(
      await newPayment(local, '4242424242424242', { store_card: false }),
    );
    const { payment_method_options } = await intentOf((answer as Held).payment_ref);
    assert.equal(payment_method_options.card.setup_credential_usage, undefined);
    assert.equal(payment_method_options.card.request_three_d_secure, 'any');
  });

  test('the statement and the description say which payment of how many it is', async () => {
    const { payment, charge } = await storeCard(local, '4242424242424242');
    const [held] = (await local.books({ customer: payment.customer_ref })).payment_intents;
    const first = await intentOf(held?.id ?? '');
    assert.equal(first.description, 'Payment 1 of 3 to Bean There');
    assert.equal(first.latest_charge.calculated_statement_descriptor, 'TRANCHE* Bean T 1 of 3');
    const charged = await gateway.charge(charge);
    const second = await intentOf(charged.payment_ref ?? '');
    assert.equal(second.description, 'Payment 2 of 3 to Bean There');
    assert.equal(second.latest_charge.calculated_statement_descriptor, 'TRANCHE* Bean T 2 of 3');
    assert.deepEqual([second.metadata.instalment, second.metadata.number_of_payments], ['2', '3']);
    assert.equal(second.payment_method_options.card.stored_credential_usage, 'installment');
  });

  test('a decline keeps the codes of the gateway and of the network', async () => {
    const answer = await gateway.authorise(await newPayment(local, '4000000000009995'));
    assert.equal(answer.outcome, 'declined');
    assert.deepEqual(answer.outcome === 'declined' && answer.decline, {
      reason: 'insufficient_funds',
      may_retry: true,
      code: 'insufficient_funds',
      network_code: '51',
      card_key: 'testinsufficient',
    });
  });
});

describe('what only Hyperswitch’s protocol has', () => {
  test('our ids become ids of 30 characters, the same each time and different for each', () => {
    const ids = [paymentId, verificationId, customerId, refundId];
    const uuid = 'ffffffff-ffff-8fff-bfff-ffffffffffff';
    for (const id of [uuid, randomUUID(), 'no uuid', `${uuid}:a1`, '']) {
      const made = ids.map((make) => make(id));
      for (const one of made) assert.match(one, /^(pay|ver|cus|ref)_[0-9a-hjkmnp-tv-z]{26}$/);
      assert.equal(new Set(made).size, made.length);
      assert.deepEqual(
        ids.map((make) => make(id)),
        made,
      );
    }
    const many = new Set(Array.from({ length: 1_000 }, () => paymentId(randomUUID())));
    assert.equal(many.size, 1_000);
  });

  test('what we said of a payment is read from its ids and its description, and from nothing else', () => {
    const [attempt_id, checkout_id] = [randomUUID(), '00000000-0000-8000-8000-00000000000f'];
    const made = { payment_id: paymentId(attempt_id), customer_id: customerId(checkout_id) };
    const forged = { metadata: { checkout_id, attempt_id, instalments: '1,2,3' } };
    const read = (given: object) => ownWords({ ...made, ...forged, ...given } as never);
    for (const [instalments, isOnPlan, said, number_of_payments] of [
      [[1], false, 'Payment 1 of 12', 12],
      [[2], true, 'Plan payment 2 of 12', null],
      [[2, 3, 12], true, 'Plan payment 2-3, 12 of 12', null],
      [
        Array.from({ length: 119 }, (_, index) => index + 2),
        true,
        'Plan payment 2-120 of 12',
        null,
      ],
    ] as const) {
      const merchant_name = 'Payment 1 of 1 to all';
      const statement = { merchant_name, instalments: [...instalments], number_of_payments: 12 };
      const description = describePayment(statement, isOnPlan);
      assert.equal(description, `${said} to ${merchant_name}`);
      const expected = { attempt_id, checkout_id, instalments, number_of_payments };
      assert.deepEqual(read({ description }), expected);
      const long = describePayment({ ...statement, merchant_name: 'x'.repeat(300) }, isOnPlan);
      assert.equal(long.length, 255);
      assert.deepEqual(read({ description: long }), expected);
    }
    const odd = Array.from({ length: 60 }, (_, index) => 2 * index + 1);
    const tooMany = { merchant_name: 'Bean There', instalments: odd, number_of_payments: 120 };
    assert.throws(() => describePayment(tooMany, true), RequestRefused);
    const unsaid = { attempt_id, checkout_id, instalments: [], number_of_payments: null };
    for (const description of [
      null,
      '',
      'A payment',
      'For Payment 1 of 2 to us',
      'Payment , of 2 to',
    ]) {
      assert.deepEqual(read({ description }), unsaid, String(description));
    }
    assert.equal(read({ payment_id: verificationId(attempt_id) }).attempt_id, attempt_id);
    for (const id of ['', 'pay_1', refundId(attempt_id), `pay_z${made.payment_id.slice(5)}`]) {
      const { attempt_id: attempt, checkout_id: checkout } = read({
        payment_id: id,
        customer_id: id || null,
      });
      assert.deepEqual([attempt, checkout], [null, null], id);
    }
  });

  test('without the operator’s own mapping, declines are read from the raw codes', async () => {
    const raw = await startGateway({ account: { mapsErrors: false } });
    try {
      const subject = useHyperswitch(raw.url);
      for (const [, number, reason, may_retry] of declines) {
        const answer = await subject.gateway.authorise(await newPayment(subject, number));
        assert.equal(answer.outcome, 'declined', number);
        assert.deepEqual(judged((answer as { decline: Decline }).decline), { reason, may_retry });
      }
    } finally {
      await raw.close();
    }
  });

  for (const operation of ['capture', 'void'] as const) {
    test(`a hold that the acquirer does not ${operation} stays undecided until its time is over`, async () => {
      const { gateway } = hyperswitch;
      const payment = await newPayment(hyperswitch, 'pm_card_visa');
      const { payment_ref } = (await gateway.authorise(payment)) as Held;
      const request = hyperswitch.requestOf(operation, { reference: payment_ref });
      await hyperswitch.fault({ fault: 'decline', ...request });
      const { key, merchant, amount } = payment;
      const ask = () => gateway[operation]({ key, merchant, payment_ref, amount });
      await assert.rejects(ask(), StatusUnknown);
      await assert.rejects(ask(), StatusUnknown, 'the gateway says failed, which may be wrong');
      const week = Temporal.Instant.from(merchant.now).add({ hours: 24 * 7 });
      const later = { ...merchant, now: timestamp(week) };
      const { outcome } = await gateway[operation]({ key, merchant: later, payment_ref, amount });
      assert.equal(outcome, { capture: 'lapsed', void: 'voided' }[operation]);
    });
  }

  test('a challenge is cancelled only once the bank can no longer approve it', async () => {
    const { gateway } = hyperswitch;
    const { merchant, ...payment } = await newPayment(hyperswitch, '4000000000003220');
    const { payment_ref, url } = (await gateway.authorise({ ...payment, merchant })) as {
      payment_ref: string;
      url: string;
    };
    const endAfter = (minutes: number) => {
      const now = timestamp(Temporal.Instant.from(merchant.now).add({ minutes }));
      return gateway.void({ key: payment.key, merchant: { ...merchant, now }, payment_ref });
    };
    assert.deepEqual(await endAfter(74), { outcome: 'challenge' });
    assert.deepEqual(await endAfter(76), { outcome: 'voided' });
    // The bank takes no answer any more.
    await answerChallenge(url, 'approve');
    assert.equal((await gateway.payment(merchant, payment_ref)).outcome, 'voided');
  });

  test('a payment that was captured in part is not voided, and can be refunded', async () => {
    const { gateway } = hyperswitch;
    const payment = await newPayment(hyperswitch, 'pm_card_visa');
    const { payment_ref } = (await gateway.authorise(payment)) as Held;
    const { key, merchant } = payment;
    const part = { key, merchant, payment_ref, amount: 12_345 };
    await gateway.capture(part);
    assert.deepEqual(await gateway.void(part), { outcome: 'captured' });
    const { status } = await gateway.refund({ ...part, refund_id: 'one' });
    assert.equal(status, 'succeeded');
  });

  test('a payment about which the acquirer never answered is neither declined nor made again', async () => {
    const { gateway } = hyperswitch;
    const { charge } = await storeCard(hyperswitch, 'pm_card_visa');
    const request = hyperswitch.requestOf('charge', charge);
    await hyperswitch.fault({ fault: 'decline', decline_code: 'TIMEOUT', ...request });
    await assert.rejects(gateway.charge(charge), StatusUnknown);
    await assert.rejects(gateway.charge(charge), StatusUnknown);
    const { merchant } = charge;
    const found = await gateway.findPayment(merchant, charge);
    assert.equal(found?.outcome, 'processing');
    const payment_ref = found?.payment_ref ?? '';
    await assert.rejects(gateway.void({ key: 'void', merchant, payment_ref }), StatusUnknown);
  });

  test('a charge whose answer was lost is found, even if its card was removed since', async () => {
    const { gateway } = hyperswitch;
    const { charge } = await storeCard(hyperswitch, 'pm_card_visa');
    await hyperswitch.fault({ fault: 'drop_after', ...hyperswitch.requestOf('charge', charge) });
    await assert.rejects(gateway.charge(charge), OutcomeUnknown);
    const { merchant, card_ref } = charge;
    await gateway.detachCard({ key: 'gone', merchant, card_ref });
    assert.equal((await gateway.charge(charge)).outcome, 'charged');
  });

  test('a hold names no stored card if the card cannot be charged later', async () => {
    const without = await startGateway({ account: { hasAgreements: false } });
    try {
      const subject = useHyperswitch(without.url);
      const { gateway } = subject;
      const onceOff = await newPayment(subject, 'pm_card_visa', { store_card: false });
      assert.equal((await gateway.authorise(onceOff)).outcome, 'authorised');
      const given = await newPayment(subject, 'pm_card_visa');
      const state = await gateway.authorise(given);
      assert.equal(state.outcome, 'authorised');
      assert.equal((state as Held).card.card_ref, null);
      assert.deepEqual(await gateway.findPayment(given.merchant, given), state);
    } finally {
      await without.close();
    }
  });

  test('a payment that took money waits until its card is stored, but not for ever', () => {
    const taken = {
      ...{ payment_id: 'pay_1', amount: 50_000, amount_received: 50_000, currency: 'ZAR' },
      ...{ setup_future_usage: 'off_session', expires_on: '2026-11-15T08:15:00Z' },
    };
    const details = (is_eligible_for_mit_payment: boolean) => ({
      payment_method_tokenization_details: { is_eligible_for_mit_payment },
    });
    const [early, late] = ['2026-11-15T08:29:59Z', '2026-11-15T08:30:00Z'];
    const notStored = { outcome: 'captured', card_ref: null };
    for (const [given, now, expected] of [
      [{}, early, { outcome: 'processing', card_ref: undefined }],
      [{}, late, notStored],
      [{ payment_method_id: 'pm_1' }, early, { outcome: 'captured', card_ref: 'pm_1' }],
      // The card cannot be charged later, or is not to be stored.
      [details(false), early, notStored],
      [{ setup_future_usage: 'on_session' }, early, notStored],
      [{ setup_future_usage: null }, early, notStored],
    ] as const) {
      for (const status of ['succeeded', 'partially_captured']) {
        const state = paymentState({ ...taken, ...given, status }, now);
        const card_ref = 'card' in state ? state.card.card_ref : undefined;
        assert.deepEqual({ outcome: state.outcome, card_ref }, expected);
      }
    }
  });

  test('a verified card that is never stored is declined in the end', () => {
    const verified = {
      ...{ payment_id: 'ver_1', amount: 1_000, currency: 'ZAR', status: 'cancelled' },
      ...{ setup_future_usage: 'off_session', expires_on: '2026-11-15T08:15:00Z' },
      cancellation_reason: 'the card is verified',
    };
    const [early, late] = ['2026-11-15T08:29:59Z', '2026-11-15T08:30:00Z'];
    assert.throws(() => verificationState(verified, early), OutcomeUnknown);
    for (const given of [verified, { ...verified, amount: 0, status: 'succeeded' }]) {
      const state = verificationState(given, late);
      assert.equal(state.outcome, 'declined');
      assert.equal((state as { decline: Decline }).decline.may_retry, false);
    }
    const stored = { ...verified, payment_method_id: 'pm_1' };
    assert.equal(verificationState(stored, late).outcome, 'verified');
  });

  test('a payment failed without an answer if nothing says that the acquirer declined it', async () => {
    const failed = { payment_id: 'pay_1', status: 'failed', amount: 100, currency: 'ZAR' };
    const error_message =
      'This Payment has been moved to failed as there is no response from the connector';
    const processing = 'processing';
    const declined = { error_code: '51', error_message: 'Insufficient funds' };
    for (const [given, outcome] of [
      [{ error_message }, processing],
      [{ error_message, error_code: 'a failed question' }, processing],
      [{}, processing],
      [{ error_code: '' }, processing],
      [{ error_code: 'TIMEOUT' }, processing],
      [{ error_code: '503' }, processing],
      [declined, 'declined'],
      [{ error_code: '5030' }, 'declined'],
      [{ error_message, connector_transaction_id: 'tx_1' }, 'declined'],
      [{ error_message, amount: 0 }, 'declined'],
    ] as const) {
      const state = paymentState({ ...failed, ...given }, '2026-11-15T08:00:00.000Z');
      assert.equal(state.outcome, outcome, JSON.stringify(given));
    }
    const { adapter, answers, close } = await startAnswering();
    const charge = () =>
      adapter.charge({
        ...{ key: 'key', merchant: merchantAt(), amount: 100, currency: 'ZAR' },
        ...{ checkout_id: 'one', instalment: 2, attempt_id: 'two', customer_ref: 'cus_1' },
        card_ref: 'pm_1',
        statement: { merchant_name: 'Bean There', instalments: [2], number_of_payments: 3 },
      });
    try {
      for (const given of [{ error_message }, { error_message, error_code: 'other' }, {}]) {
        answers.push([200, { ...failed, ...given }]);
        await assert.rejects(charge(), StatusUnknown);
      }
      answers.push([200, { ...failed, ...declined }]);
      assert.equal((await charge()).outcome, 'declined');
      const part = { status: 'partially_captured', amount_received: 60 };
      answers.push([200, { ...failed, ...part }]);
      await assert.rejects(charge(), RequestRefused, 'less was taken');
      answers.push([200, { ...failed, status: 'succeeded', amount_received: 100 }]);
      assert.equal((await charge()).outcome, 'charged');
    } finally {
      close();
    }
  });

  test('a list of several pages has each payment once, with the amount that was captured', async () => {
    const paged = await startGateway({});
    try {
      const { gateway } = useHyperswitch(paged.url);
      const payment = await newPayment(useHyperswitch(paged.url), 'pm_card_visa');
      const { payment_ref } = (await gateway.authorise(payment)) as Held;
      const { merchant, key, checkout_id, customer_ref } = payment;
      await gateway.capture({ key, merchant, payment_ref, amount: 12_345 });
      const refs = new Set([payment_ref]);
      while (refs.size < 201) {
        const begun = await gateway.begin({
          ...{ ...payment, card: null, capture: 'now', instalments: [1] },
          attempt_id: randomUUID(),
        });
        refs.add((begun as { payment_ref: string }).payment_ref);
      }
      const wanted = { customer_ref, checkout_id, instalments: [1] };
      const found = await gateway.listInstalmentPayments(merchant, wanted);
      assert.deepEqual(found.map((state) => state.payment_ref).reverse(), [...refs]);
      const page = (after: string | null) =>
        gateway.listRecords('payments', { after, from: null, to: null });
      let listed = await page(null);
      const records = listed.records;
      while (listed.next !== null) {
        listed = await page(listed.next);
        records.push(...listed.records);
      }
      assert.deepEqual(records.map(({ reference }) => reference).reverse(), [...refs]);
      assert.deepEqual([records.at(-1)?.state, records.at(-1)?.amount], ['taken', 12_345]);
    } finally {
      await paged.close();
    }
  });

  test('where a payment of nothing is impossible, a card is verified by a hold that is voided at once', async () => {
    const subject = useHyperswitch(started.url, { verificationAmount: 1_000 });
    const { gateway } = subject;
    assert.equal(gateway.capabilities.verificationAmount, 1_000);
    const { charge } = await storeCard(subject, 'pm_card_visa');
    const { merchant, checkout_id, customer_ref } = charge;
    const verify = async (card: string) => ({
      ...{ key: randomUUID(), merchant, checkout_id, attempt_id: randomUUID(), customer_ref },
      card_token: await subject.tokenFor(card),
      return_url: 'https://pay.example.com/pay/token/return',
    });
    const card = await verify('pm_card_mastercard');
    const verification_ref = verificationId(card.attempt_id);
    // The hold is voided, and the answer is lost. The next look-up says that the card is verified.
    const path = '/payments/:id/cancel';
    await subject.fault({ fault: 'drop_after', path, key_contains: verification_ref });
    await assert.rejects(gateway.verifyCard(card), OutcomeUnknown);
    const verified = (await gateway.cardVerification(merchant, verification_ref)) as Verified;
    assert.equal(verified.outcome, 'verified');
    assert.equal(verified.card.brand, 'mastercard');
    const voiding = { key: randomUUID(), merchant, verification_ref };
    assert.deepEqual(await gateway.voidVerification(voiding), verified, 'too late to void');
    const { payment_intents } = await subject.books({ customer: customer_ref });
    const hold = payment_intents.find(({ amount }) => amount === 1_000);
    assert.deepEqual([hold?.status, hold?.amount_received], ['canceled', 0]);
    const { records } = await gateway.listRecords('payments', {
      after: null,
      from: null,
      to: null,
    });
    assert.equal(records.find((one) => one.reference === verification_ref)?.state, 'nothing');
    const { card_ref } = verified.card;
    assert.equal((await gateway.charge({ ...charge, card_ref })).outcome, 'charged');
    // A card that the shopper never approved is not verified.
    const halfHour = { minutes: 31 };
    const other = await verify('pm_card_threeDSecure2Required');
    const waiting = await gateway.verifyCard(other);
    assert.equal(waiting.outcome, 'challenge');
    const listed = await gateway.listRecords('payments', { after: null, from: null, to: null });
    const open = listed.records.find((one) => one.reference === waiting.verification_ref);
    assert.deepEqual([open?.state, open?.amount], ['in_flight', 1_000]);
    const ending = {
      key: randomUUID(),
      merchant: { ...merchant, now: timestamp(Temporal.Instant.from(merchant.now).add(halfHour)) },
      verification_ref: waiting.verification_ref ?? '',
    };
    assert.equal((await gateway.voidVerification({ ...ending, merchant })).outcome, 'challenge');
    assert.equal((await gateway.voidVerification(ending)).outcome, 'voided');
    assert.equal((await gateway.findCardVerification(merchant, other))?.outcome, 'voided');
    const taken = { payment_id: verification_ref, status: 'succeeded', amount: 1_000 };
    assert.throws(
      () => verificationState(taken as never, timestamp(Temporal.Now.instant())),
      /took money/,
    );
  });

  /** Starts a gateway that sends the answers that a test queues, and an adapter for it. */
  async function startAnswering() {
    const answers: [status: number, body: unknown][] = [];
    const asked: string[] = [];
    const server = http.createServer(({ url = '' }, response) => {
      asked.push(url);
      const [status, body] = answers.shift() ?? [200, {}];
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '7' });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const adapter = createHyperswitchGateway({
      ...hyperswitchKeys,
      ...{ apiUrl, scriptUrl: `${apiUrl}/HyperLoader.js` },
    });
    const close = () => {
      server.closeAllConnections();
      server.close();
    };
    return { adapter, apiUrl, answers, asked, close };
  }

  test('the acquirer is asked about a charge that is found by its attempt and not decided', async () => {
    const { adapter, answers, asked, close } = await startAnswering();
    const merchant = merchantAt();
    const payment = { payment_id: 'pay_1', amount: 100, amount_received: 100, currency: 'ZAR' };
    const find = () =>
      adapter.findPayment(merchant, { customer_ref: 'cus_1', attempt_id: randomUUID() });
    const processing: [number, unknown] = [200, { ...payment, status: 'processing' }];
    try {
      answers.push(processing, [200, { ...payment, status: 'succeeded' }]);
      assert.equal((await find())?.outcome, 'captured');
      assert.match(asked.at(-1) ?? '', /force_sync=true$/);
      // Even if the acquirer's answer is a 404, the payment exists and must not be made again.
      answers.push(processing, [404, { error: { code: 'HE_02' } }]);
      await assert.rejects(find(), RequestRefused);
      answers.push([404, { error: { code: 'HE_02' } }]);
      assert.equal(await find(), null);
    } finally {
      close();
    }
  });

  test('an unknown status counts as in flight, unknown members are ignored, and an error in a 200 is an error', async () => {
    const { adapter, apiUrl, answers, asked: paths, close } = await startAnswering();
    const merchant = merchantAt();
    const payment = { payment_id: 'pay_1', amount: 100, currency: 'ZAR', colour: 'blue' };
    const look = () => adapter.payment(merchant, 'pay_1');
    const asking = ['requires_payment_method', 'requires_confirmation', 'requires_customer_action'];
    try {
      for (const status of [
        'conflicted',
        'review',
        'a_new_one',
        'partially_captured_and_processing',
        // These come without what the shopper would need: the session's secret or the bank's
        // address.
        ...asking,
      ]) {
        answers.push([200, { ...payment, status }]);
        // The acquirer may know that the shopper approved the challenge and did not come back.
        if (status === 'requires_customer_action') answers.push([200, { ...payment, status }]);
        const more = {
          ...(status === 'a_new_one' && { unknown_status: status }),
          ...(asking.includes(status) && { asks_shopper: true }),
        };
        const expected = { outcome: 'processing', payment_ref: 'pay_1', ...more };
        assert.deepEqual(await look(), expected, status);
        assert.equal(answers.length, 0);
      }
      const refund = { refund_id: 'ref_1', payment_id: 'pay_1', amount: 100, currency: 'ZAR' };
      const asked = { key: 'key', merchant, payment_ref: 'pay_1', amount: 100 };
      const charged = {
        ...{ checkout_id: 'one', instalment: 2, attempt_id: 'two', currency: 'ZAR' },
        ...{ customer_ref: 'cus_1', card_ref: 'pm_1' },
        statement: { merchant_name: 'Bean There', instalments: [2], number_of_payments: 3 },
      };
      for (const [call, body] of [
        [() => adapter.refundStatus(merchant, 'ref_1'), refund],
        [() => adapter.capture(asked), payment],
        [() => adapter.void(asked), payment],
        [() => adapter.charge({ ...asked, ...charged }), payment],
      ] as const) {
        answers.push([200, { ...body, status: 'a_new_one' }]);
        await assert.rejects(call(), StatusUnknown);
      }
      // The code for a missing card also stands for a missing setting of the operator.
      const missing: [number, unknown] = [404, { error: { code: 'HE_02' } }];
      const charge = () => adapter.charge({ ...asked, ...charged });
      answers.push(missing, missing, [200, { payment_method_id: 'pm_1' }]);
      await assert.rejects(charge(), RequestRefused);
      answers.push(missing, missing, missing);
      assert.equal((await charge()).outcome, 'declined');
      // The server has one code for every wrong value, and one for every other precondition.
      for (const [code, message, isAmount] of [
        ['IR_07', 'Invalid value provided: amount', true],
        ['IR_16', 'amount should not be more than 999999999', true],
        ['IR_07', 'Invalid value provided: browser_info', false],
        ['IR_16', 'mandate payment cannot be done', false],
      ] as const) {
        answers.push([400, { error: { code, message } }]);
        if (!isAmount) await assert.rejects(charge(), RequestRefused);
        else {
          answers.push(missing);
          const { decline } = (await charge()) as { decline: Decline };
          assert.deepEqual(decline, amountRefused);
        }
        assert.equal(answers.length, 0);
      }
      // A dispute with an unknown status hides no other dispute, and pauses its plan.
      const disputed = { ...payment, amount: '100', dispute_stage: 'dispute' };
      answers.push([
        200,
        ['a_new_one', 'dispute_won'].map((dispute_status) => ({
          ...{ ...disputed, dispute_status, dispute_id: dispute_status, created_at: merchant.now },
        })),
      ]);
      const { disputes } = await adapter.listDisputes(null);
      assert.deepEqual(
        disputes.map(({ status, unknown_status }) => [status, unknown_status]),
        [
          ['needs_response', 'a_new_one'],
          ['won', undefined],
        ],
      );
      const evidence_details = { due_by: null, submission_count: 1 };
      const ofStripe = {
        ...{ ...payment, payment_intent: null, created: 0 },
        ...{ evidence_details, balance_transactions: [] },
      };
      const statuses = ['a_new_one', 'warning_closed'];
      answers.push([200, { data: statuses.map((status) => ({ ...ofStripe, status })) }]);
      const stripeKeys = { secretKey: 'sk_test_1', publicKey: 'pk_test_1', apiUrl };
      const other = createStripeGateway({
        ...{ ...stripeKeys, protocol: 'stripe', environment: 'sandbox' },
      });
      assert.deepEqual(
        (await other.listDisputes(null)).disputes.map(({ status, unknown_status, has_answer }) => [
          ...[status, unknown_status, has_answer],
        ]),
        [
          ['needs_response', 'a_new_one', false],
          ['closed', undefined, true],
        ],
      );
      const unknown: [status: number, body: unknown, why: string][] = [
        [500, { error: { code: 'HE_00' } }, 'no_answer'],
        [502, '<html>', 'no_answer'],
        [200, '<html>', 'undecided'],
        [409, { error: { code: 'HE_00' } }, 'undecided'],
        [422, { error: { code: 'HE_00' } }, 'undecided'],
        [429, {}, 'too_many'],
      ];
      for (const [status, body, why] of unknown) {
        answers.push([status, body]);
        await assert.rejects(look(), (error: OutcomeUnknown) => {
          assert.ok(error instanceof OutcomeUnknown);
          assert.equal(error.why, why);
          assert.equal(error.retryAfterMs, why === 'too_many' ? 7_000 : null);
          return true;
        });
      }
      answers.push([200, { error: { code: 'HE_03', message: 'blocked' } }]);
      await assert.rejects(look(), RequestRefused);
      // The acquirer is asked twice a minute, however often the payment is looked up.
      for (const [minutes, asked] of [
        [0, 2],
        [1, 4],
      ]) {
        for (let times = 0; times < 5; times += 1) {
          const processing = { ...payment, status: 'processing' };
          answers.splice(0, answers.length, [200, processing], [200, processing]);
          assert.equal(
            (await adapter.payment(merchant.later({ minutes }), 'pay_2')).outcome,
            'processing',
          );
        }
        const questions = paths.filter((path) => path === '/payments/pay_2?force_sync=true');
        assert.equal(questions.length, asked);
      }
    } finally {
      close();
    }
  });

  test('plain http is accepted on loopback only, and an address must be a URL', () => {
    for (const [address, isGood] of [
      ['https://api.example.com', true],
      ['http://127.0.0.1:3001', true],
      ['http://api.example.com', false],
      ['http://127.0.0.1.example.com', false],
      ['api', false],
    ] as const) {
      for (const given of [
        { apiUrl: address, scriptUrl: 'https://js.example.com/HyperLoader.js' },
        { apiUrl: 'https://api.example.com', scriptUrl: address },
      ]) {
        const open = () => createHyperswitchGateway({ ...hyperswitchKeys, ...given });
        if (!isGood) assert.throws(open);
        else assert.equal(open().cardEntry.scriptUrl, given.scriptUrl);
      }
    }
    const { cardEntry } = createHyperswitchGateway({
      ...{ ...hyperswitchKeys, apiUrl: 'https://api.example.com/v1' },
      scriptUrl: 'https://js.example.com/web/HyperLoader.js',
    });
    assert.deepEqual(cardEntry, {
      form: 'hyperswitch',
      entersCard: 'after',
      apiUrl: 'https://api.example.com/v1',
      scriptUrl: 'https://js.example.com/web/HyperLoader.js',
      publicKey: 'pk',
      scriptOrigins: ['https://js.example.com'],
      frameOrigins: ['https://js.example.com'],
      connectOrigins: ['https://api.example.com'],
    });
  });

  test('frames may have origins of their own, which the page allows', () => {
    const { frameOrigins: origins } = readGatewaySettings(
      ...([mainGateway, 'hyperswitch', 'sandbox'] as const),
      (name) =>
        name === 'HYPERSWITCH_FRAME_ORIGINS'
          ? 'https://frames.example.com/, https://other.example.com'
          : undefined,
    );
    assert(origins);
    const scriptUrl = 'https://js.example.com/HyperLoader.js';
    const open = (frameOrigins: string[]) => {
      const addresses = { apiUrl: 'https://api.example.com', scriptUrl, frameOrigins };
      return createHyperswitchGateway({ ...hyperswitchKeys, ...addresses }).cardEntry.frameOrigins;
    };
    assert.deepEqual(open(origins), ['https://frames.example.com', 'https://other.example.com']);
    for (const bad of ['', 'frames', 'http://frames.example.com', 'https://a.example.com/path']) {
      assert.throws(() => open([bad]), /frame|HYPERSWITCH_FRAME_ORIGINS/);
    }
  });

  test('an event counts only with a signature over exactly its bytes', async () => {
    const webhookSecret = 'the hash key of the profile';
    const adapter = createHyperswitchGateway({
      ...{ ...hyperswitchKeys, apiUrl: started.url, webhookSecret },
      scriptUrl: `${started.url}/v1/HyperLoader.js`,
    });
    const sign = (body: string) => createHmac('sha512', webhookSecret).update(body).digest('hex');
    const event = (type: string, object: object) =>
      JSON.stringify({ event_id: 'evt_1', content: { type, object } });
    const dispute = event('dispute_details', { dispute_id: 'dp_1' });
    const payment = event('payment_details', { payment_id: 'pay_1' });
    const read = (body: string, signature: string) =>
      adapter.readEvent(Buffer.from(body), (name) =>
        name === 'x-webhook-signature-512' ? signature : '',
      );
    const announced = { event_id: 'evt_1', dispute_ref: 'dp_1' };
    assert.deepEqual(await read(dispute, sign(dispute)), announced);
    assert.deepEqual(await read(payment, sign(payment)), { ...announced, dispute_ref: null });
    for (const signature of [
      '',
      'x',
      sign(payment),
      sign(dispute).slice(2),
      `${sign(dispute)}00`,
    ]) {
      assert.equal(await read(dispute, signature), null);
    }
    assert.equal(adapter.capabilities.sendsEvents, true);
  });
});
