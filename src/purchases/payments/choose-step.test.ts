import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { mainGateway } from '#gateway/gateway-name.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import {
  type Answer,
  chooseMove,
  chooseRequest,
  isCardDeclined,
  mustEnd,
  type Outcome,
} from './choose-step.ts';
import {
  type AttemptPurpose,
  type AttemptStatus,
  attemptId,
  attemptPurposes,
  type PaymentAttempt,
  requestKey,
} from './payment-attempt.ts';

const opened = '2026-11-01T10:00:00.000Z';
const checkout = { status: 'received' as CheckoutStatus, expires_at: '2026-11-01T10:30:00.000Z' };

/** The last moment of an attempt that began when its checkout did. */
const lastOf: Record<AttemptPurpose, string> = {
  first_payment: '2026-11-01T10:45:00.000Z',
  plan_payment: '2026-11-01T10:15:00.000Z',
  new_card: '2026-11-01T10:15:00.000Z',
};
const at = (time: string, milliseconds = 0) => Temporal.Instant.from(time).add({ milliseconds });

const attemptOf = (changes: Partial<PaymentAttempt>): PaymentAttempt => ({
  merchant_id: 'm',
  id: 'a',
  checkout_id: 'c',
  gateway: mainGateway,
  purpose: 'first_payment',
  number: 1,
  instalments: [1],
  number_of_payments: 3,
  amount: 100,
  currency: 'ZAR',
  uses_stored_card: false,
  consent: null,
  created_at: opened,
  written_id: 'w',
  status: 'starting',
  sealed_card_token: Buffer.from('token'),
  sealed_network: Buffer.from('network'),
  customer_ref: 'cus_1',
  payment_ref: null,
  challenge_url: null,
  card_ref: null,
  card_brand: null,
  card_last4: null,
  card_expires: null,
  authentication: null,
  scheme: null,
  capture_before: null,
  decline_reason: null,
  may_retry: null,
  decline_code: null,
  network_decline_code: null,
  card_key: null,
  asked_at: null,
  settled_at: null,
  due_at: opened,
  attempts: 0,
  lease: 'l',
  leased_until: null,
  ...changes,
});

const card = { card_ref: 'pm_1', brand: 'visa', last4: '4242', expires: '2027-03' };
const outcomes = {
  done: {
    ...{ outcome: 'done', payment_ref: 'pi_1', card },
    ...{ authentication: null, scheme: null, capture_before: null },
  },
  begun: { outcome: 'begun', payment_ref: 'pi_1', session: { client_secret: 'secret' } },
  challenge: { outcome: 'challenge', payment_ref: 'pi_1', url: 'https://bank.example' },
  processing: { outcome: 'processing', payment_ref: 'pi_1' },
  declined: {
    outcome: 'declined',
    payment_ref: 'pi_1',
    decline: { reason: 'lost_card' as never, may_retry: false, code: 'lost' },
  },
  voided: { outcome: 'voided', payment_ref: 'pi_1' },
  refused: { outcome: 'refused', detail: 'no' },
} satisfies Record<Answer['outcome'], Answer>;

const recorded = (answer: Answer): Outcome =>
  answer.outcome === 'begun' ? { ...answer, sealed_session: Buffer.from('sealed') } : answer;

test('a first payment never shares its key or its id with an attempt on the plan', () => {
  const names = attemptPurposes.map((purpose) => ({ purpose, checkout_id: 'c', number: 2 }));
  // Payments of the plan and new cards share one series of numbers, so that no two have the same.
  assert.deepEqual(names.map(requestKey), ['c:p2', 'c:s2', 'c:s2']);
  const [first, plan, card] = names.map(attemptId);
  assert.notEqual(first, plan);
  assert.equal(plan, card);
});

describe('what the gateway is asked', () => {
  for (const purpose of attemptPurposes) {
    const end = lastOf[purpose];
    const attempt = attemptOf({ purpose });
    for (const [description, changes, now, request] of [
      ['a young attempt is sent', {}, opened, 'send'],
      ['it is sent until its last moment', {}, end, 'send'],
      ['it is also sent without a card', { sealed_card_token: null }, opened, 'send'],
      ['a voiding attempt is not sent', { status: 'voiding' }, opened, 'find'],
      ['a payment with a reference is looked up', { payment_ref: 'pi_1' }, opened, 'look_up'],
      ['a session is looked up', { status: 'begun', payment_ref: 'pi_1' }, end, 'look_up'],
      ['a challenge is looked up', { status: 'challenged', payment_ref: 'pi_1' }, end, 'look_up'],
      ['a voiding payment is ended', { status: 'voiding', payment_ref: 'pi_1' }, opened, 'end'],
    ] as [string, Partial<PaymentAttempt>, string, string][]) {
      test(`${purpose}: ${description}`, () => {
        assert.equal(chooseRequest({ ...attempt, ...changes }, checkout, at(now)), request);
      });
    }
    test(`${purpose}: it is not sent a moment later`, () => {
      assert.equal(chooseRequest(attempt, checkout, at(end, 1)), 'find');
    });
  }

  test('a request is not repeated after the gateway has forgotten its key', () => {
    const long = { expires_at: '2026-11-03T10:00:00.000Z' };
    const now = at('2026-11-02T09:00:00.000Z');
    assert.equal(chooseRequest(attemptOf({}), long, now), 'find');
  });
});

describe('an attempt that is over is ended, if it can be', () => {
  for (const purpose of attemptPurposes) {
    for (const [outcome, answer] of Object.entries(outcomes)) {
      const canEnd =
        ['begun', 'challenge', 'processing'].includes(outcome) ||
        (outcome === 'done' && purpose === 'first_payment');
      test(`${purpose}: ${outcome}`, () => {
        const attempt = attemptOf({ purpose });
        const ends = (changes: Partial<PaymentAttempt>, now: Temporal.Instant) =>
          mustEnd({ ...attempt, ...changes }, checkout, answer, now);
        assert.equal(ends({}, at(lastOf[purpose])), false);
        assert.equal(ends({}, at(lastOf[purpose], 1)), canEnd);
        assert.equal(ends({ status: 'voiding' }, at(opened)), canEnd);
      });
    }
  }
});

describe('what follows from the outcome of an attempt', () => {
  const all: AttemptPurpose[] = [...attemptPurposes];
  const onPlan: AttemptPurpose[] = ['plan_payment', 'new_card'];
  const first: AttemptPurpose[] = ['first_payment'];
  for (const [purposes, from, outcome, status, effect] of [
    [first, 'starting', 'done', 'authorised', 'succeed'],
    [first, 'challenged', 'done', 'authorised', 'succeed'],
    [first, 'voiding', 'done', 'voiding', 'nothing'],
    [['plan_payment'], 'starting', 'done', 'charged', 'succeed'],
    [['plan_payment'], 'voiding', 'done', 'charged', 'succeed'],
    [['new_card'], 'voiding', 'done', 'verified', 'succeed'],
    [all, 'starting', 'begun', 'begun', 'nothing'],
    [all, 'begun', 'begun', 'begun', 'nothing'],
    [all, 'voiding', 'begun', 'voiding', 'nothing'],
    [first, 'begun', 'done', 'authorised', 'succeed'],
    [all, 'begun', 'declined', 'declined', 'fail'],
    [all, 'begun', 'challenge', 'challenged', 'nothing'],
    [all, 'starting', 'challenge', 'challenged', 'nothing'],
    [first, 'voiding', 'challenge', 'voiding', 'nothing'],
    [onPlan, 'voiding', 'challenge', 'challenged', 'nothing'],
    [all, 'starting', 'processing', undefined, 'nothing'],
    [all, 'voiding', 'processing', undefined, 'nothing'],
    [all, 'begun', 'processing', 'starting', 'nothing'],
    [all, 'challenged', 'processing', 'starting', 'nothing'],
    [all, 'starting', 'declined', 'declined', 'fail'],
    [all, 'voiding', 'declined', 'declined', 'fail'],
    [all, 'challenged', 'voided', 'voided', 'fail'],
    [first, 'starting', 'refused', 'refused', 'refuse'],
    [first, 'voiding', 'refused', 'voided', 'fail'],
  ] as [AttemptPurpose[], AttemptStatus, Outcome['outcome'], AttemptStatus | undefined, string][]) {
    for (const purpose of purposes) {
      test(`${purpose}: ${from}, ${outcome}`, () => {
        const attempt = attemptOf({ purpose, status: from });
        const paid =
          purpose === 'first_payment' ? checkout : { ...checkout, status: 'successful' as const };
        const move = chooseMove(attempt, paid, recorded(outcomes[outcome]), at(opened));
        assert.deepEqual([move.to.status, move.effect], [status, effect]);
        const isEnded = move.effect !== 'nothing';
        assert.equal(move.to.due_at === null, isEnded);
        assert.equal(move.to.settled_at !== undefined, isEnded);
        assert.equal(move.to.sealed_network === null, isEnded);
        // Whatever happens, the claim is released.
        assert.deepEqual([move.to.lease, move.to.leased_until], [null, null]);
      });
    }
  }

  test('a voiding attempt of which the gateway may have nothing is voided, not declined', () => {
    for (const purpose of attemptPurposes) {
      const attempt = attemptOf({ purpose, status: 'voiding' });
      const answer = { ...outcomes.declined, payment_ref: null };
      const { to } = chooseMove(attempt, checkout, answer, at(opened));
      assert.equal(to.status, 'voided');
      assert.equal(isCardDeclined(answer), false);
    }
  });

  test('a challenge that cannot be ended is ended again, at growing intervals', () => {
    for (const purpose of attemptPurposes) {
      const now = at(lastOf[purpose], 1);
      for (const answer of [outcomes.challenge, { ...outcomes.processing, asks_shopper: true }]) {
        const moved = (changes: Partial<PaymentAttempt>) => {
          const attempt = attemptOf({ purpose, ...changes });
          const { to, effect } = chooseMove(attempt, checkout, recorded(answer as Answer), now);
          assert.equal(effect, 'nothing');
          const { status = attempt.status, attempts } = to;
          const wait = Temporal.Instant.from(to.due_at ?? '')
            .since(now)
            .total('seconds');
          return { status, attempts, wait: Math.round(wait) };
        };
        const first = moved({ status: 'challenged', attempts: 9 });
        assert.deepEqual(first, { status: 'voiding', attempts: 1, wait: 5 });
        const third = moved({ status: 'voiding', attempts: 2 });
        assert.deepEqual(third, { status: 'voiding', attempts: 3, wait: 20 });
      }
    }
  });

  for (const [description, status, now] of [
    ['of a checkout that was cancelled', 'cancelled', at(opened)],
    ['that comes too late', 'received', at(lastOf.first_payment, 1)],
  ] as const) {
    test(`a hold ${description} is voided at once`, () => {
      const { to, effect } = chooseMove(attemptOf({}), { ...checkout, status }, outcomes.done, now);
      assert.deepEqual(
        [to.status, to.due_at, effect],
        ['voiding', now.toString({ smallestUnit: 'millisecond' }), 'nothing'],
      );
    });
  }

  for (const [challenge_url, decline_reason, reason] of [
    [null, null, 'processing_error'],
    ['https://bank.example', null, 'authentication_failed'],
    ['https://bank.example', 'generic', 'generic'],
  ] as const) {
    for (const purpose of onPlan) {
      test(`${purpose}: the shopper is told why it was voided: ${reason}`, () => {
        const attempt = attemptOf({ purpose, status: 'voiding', challenge_url, decline_reason });
        const { to } = chooseMove(attempt, checkout, outcomes.voided, at(opened));
        assert.deepEqual([to.decline_reason, to.may_retry], [reason, true]);
      });
    }
  }

  for (const status of ['begun', 'challenged'] as const) {
    test(`an attempt that was ${status} for long is looked up soon after it was sent`, () => {
      const attempt = attemptOf({ status, attempts: 8 });
      const { to } = chooseMove(attempt, checkout, outcomes.processing, at(opened));
      assert.deepEqual([to.due_at, to.attempts], ['2026-11-01T10:00:05.000Z', 1]);
    });
  }

  for (const status of ['begun', 'challenged'] as const) {
    test(`a ${status} attempt stays open until a card is sent`, () => {
      const attempt = attemptOf({ status });
      const answer = { ...outcomes.processing, asks_shopper: true } as const;
      const { to } = chooseMove(attempt, checkout, answer, at(opened));
      assert.deepEqual(
        [to.status, to.sealed_card_token, to.due_at],
        [undefined, undefined, '2026-11-01T10:00:40.000Z'],
      );
    });
  }

  test('a challenge is looked up at growing intervals, and at its end', () => {
    const lookUps: string[] = [];
    let attempt = attemptOf({});
    for (let now = at(opened); lookUps.length < 40; ) {
      const { to } = chooseMove(attempt, checkout, outcomes.challenge, now);
      attempt = { ...attempt, ...to } as PaymentAttempt;
      now = at(to.due_at as string);
      lookUps.push(now.toString());
      if (Temporal.Instant.compare(now, at(lastOf.first_payment)) > 0) break;
    }
    assert.deepEqual(lookUps.slice(0, 3), [
      '2026-11-01T10:00:20Z',
      '2026-11-01T10:01:00Z',
      '2026-11-01T10:02:20Z',
    ]);
    assert.deepEqual(lookUps.slice(-2), ['2026-11-01T10:44:55Z', '2026-11-01T10:45:00.001Z']);
  });
});
