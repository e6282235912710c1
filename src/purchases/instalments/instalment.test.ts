import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { offeredTerms } from '#merchants/merchant.ts';
import {
  type CardDecline,
  capturesAt,
  collectionId,
  collectsAt,
  declinesPerDayMax,
  findForbidding,
  findForbiddingForGood,
  instalmentId,
  nextCollectionTime,
  planPayments,
  retriesAt,
  waitsUntil,
} from './instalment.ts';

const date = (text: string) => Temporal.PlainDate.from(text);

test('cents that do not divide go to the first payment', () => {
  const amounts = planPayments(100_000, 3, date('2026-11-15')).map((payment) => payment.amount);
  assert.deepEqual(amounts, [33_334, 33_333, 33_333]);
});

test('a purchase on the last day of a month returns to that day after a shorter month', () => {
  const dates = planPayments(120_000, 5, date('2027-12-31')).map((payment) => payment.due_on);
  assert.deepEqual(dates, ['2027-12-31', '2028-01-31', '2028-02-29', '2028-03-31', '2028-04-30']);
});

test('for any amount, term and date the payments sum to the amount and fall due month by month', () => {
  const anyDate = fc
    .record({ days: fc.integer({ min: 0, max: 36_525 }) })
    .map(({ days }) => date('2000-01-01').add({ days }));
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 120 }),
      fc.integer({ min: 120, max: 10_000_000_000_000 }),
      anyDate,
      (term, amount, purchased) => {
        const payments = planPayments(amount, term, purchased);
        assert.equal(payments.length, term);
        assert.equal(
          payments.reduce((sum, payment) => sum + payment.amount, 0),
          amount,
        );
        const [first, ...later] = payments;
        assert.ok(first);
        assert.equal(first.due_on, purchased.toString());
        for (const [index, payment] of later.entries()) {
          assert.ok(payment.amount > 0);
          assert.equal(payment.amount, later[0]?.amount);
          const surplus: number = first.amount - payment.amount;
          assert.ok(surplus >= 0 && surplus < term);
          const due = date(payment.due_on);
          const months = (due.year - purchased.year) * 12 + due.month - purchased.month;
          assert.equal(months, index + 1);
          assert.equal(due.day, Math.min(purchased.day, due.daysInMonth));
        }
      },
    ),
    { numRuns: process.env.TRANCHE_TEST_LONG ? 5_000 : 500 },
  );
});

test('no term on offer makes a payment that the gateway does not accept', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: 1, max: 120 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 1, max: 1_000_000 }),
      fc.integer({ min: 1, max: 5_000 }),
      (some, amount, payment_min) => {
        const terms = some.toSorted((one, other) => one - other);
        const rule = { from_amount: 1, to_amount: 1_000_000, terms };
        const offered = offeredTerms(rule, amount, payment_min);
        const least = (term: number) =>
          Math.min(...planPayments(amount, term, date('2026-11-15')).map((one) => one.amount));
        assert.deepEqual(
          offered,
          terms.filter((term) => amount >= term && least(term) >= payment_min),
        );
      },
    ),
    { numRuns: process.env.TRANCHE_TEST_LONG ? 5_000 : 500 },
  );
});

// Johannesburg is UTC+2 all year; New York has one spring night without 02:00.
const johannesburg = 'Africa/Johannesburg';

test('the hold is captured at 02:00 local time on the day after the purchase', () => {
  assert.equal(capturesAt('2026-11-15', johannesburg).toString(), '2026-11-16T00:00:00Z');
  assert.equal(capturesAt('2026-12-31', johannesburg).toString(), '2027-01-01T00:00:00Z');
  // 02:00 does not exist on that night, so the capture is at 03:00.
  assert.equal(capturesAt('2026-03-07', 'America/New_York').toString(), '2026-03-08T07:00:00Z');
});

test('a retry is never earlier than the card network asks, and comes as soon as it may', () => {
  const now = Temporal.Instant.from('2026-02-28T06:00:00.350Z');
  for (const [hours, declines, expected] of [
    [1, 1, '2026-03-01T06:00:00Z'],
    [24, 1, '2026-03-01T06:00:00.35Z'],
    [49, 1, '2026-03-02T07:00:00.35Z'],
    [240, 1, '2026-03-10T06:00:00.35Z'],
    [48, 2, '2026-03-03T06:00:00Z'],
    [240, 4, null],
  ] as const) {
    const next = retriesAt('2026-02-28', declines, now, johannesburg, hours);
    assert.equal(next?.toString() ?? null, expected, `${hours} hours`);
  }
});

describe('a declined payment is retried at 08:00, 1, 3 and 7 days after its date', () => {
  const at = (text: string) => Temporal.Instant.from(text);
  for (const [name, declines, now, expected] of [
    ['the first retry', 1, '2026-02-28T06:00:00Z', '2026-03-01T06:00:00Z'],
    ['the second', 2, '2026-03-01T06:00:00Z', '2026-03-03T06:00:00Z'],
    ['the third', 3, '2026-03-03T06:00:00Z', '2026-03-07T06:00:00Z'],
    ['no fourth retry', 4, '2026-03-07T06:00:00Z', null],
    // After a month-long outage the retries do not accumulate.
    ['late because of an outage', 1, '2026-04-01T05:59:59Z', '2026-04-02T06:00:00Z'],
    ['late, the second', 2, '2026-04-02T06:00:00Z', '2026-04-04T06:00:00Z'],
    ['late, the third', 3, '2026-04-04T06:00:00Z', '2026-04-08T06:00:00Z'],
  ] as const) {
    test(name, () => {
      const next = retriesAt('2026-02-28', declines, at(now), johannesburg, 24);
      assert.equal(next?.toString() ?? null, expected);
    });
  }
});

test('payments are numbered from 1', () => {
  const numbers = planPayments(120_000, 3, date('2026-11-15')).map(({ number }) => number);
  assert.deepEqual(numbers, [1, 2, 3]);
});

test('a payment is collected at 08:00 local time, and the next collection is at the next 08:00', () => {
  assert.equal(collectsAt('2026-11-15', johannesburg).toString(), '2026-11-15T06:00:00Z');
  for (const [now, next] of [
    ['2026-11-15T05:59:59Z', '2026-11-15T06:00:00Z'],
    ['2026-11-15T06:00:00Z', '2026-11-16T06:00:00Z'],
    // In Johannesburg it is already the 16th.
    ['2026-11-15T22:30:00Z', '2026-11-16T06:00:00Z'],
  ] as const) {
    const found = nextCollectionTime(Temporal.Instant.from(now), johannesburg);
    assert.equal(found.toString(), next, now);
  }
});

test('every attempt to collect a payment has its own id, which is always the same', () => {
  const ids = [
    collectionId('c', 1, 1),
    collectionId('c', 1, 2),
    collectionId('c', 2, 1),
    collectionId('d', 1, 1),
  ];
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(collectionId('c', 1, 1), 'c2aafbe3-9dde-8451-a976-289238ad7c23');
  assert.equal(instalmentId({ checkout_id: 'c', number: 2 }), 'c:2');
});

describe('a card is not charged after a decline that forbids it', () => {
  const card = { checkout_id: 'c', card_ref: 'pm_1', card_key: 'key_1' };
  const refused: CardDecline = {
    ...card,
    instalment: 1,
    decline_reason: 'card_declined' as CardDecline['decline_reason'],
    decline_code: null,
    may_retry: false,
    wait_hours: null,
    created_at: '2026-11-15T06:00:00.000Z',
    settled_at: '2026-11-15T06:00:00.000Z',
  };
  for (const [name, changes, isFound] of [
    ['the card was refused for good', {}, true],
    ['the same card was entered again', { card_ref: 'pm_2' }, true],
    ['another card was refused', { card_ref: 'pm_2', card_key: 'key_2' }, false],
    ['a card whose key is unknown was refused', { card_ref: 'pm_2', card_key: null }, false],
    ['another checkout was refused', { checkout_id: 'd' }, false],
    ['the bank allows a retry', { may_retry: true }, false],
    ['the bank says nothing about a retry', { may_retry: null }, false],
    ['the card expired', { decline_reason: 'expired_card' }, false],
    ['the shopper must confirm', { decline_reason: 'authentication_required' }, false],
    ['the reason is unknown', { decline_reason: null }, true],
    ['the gateway does not accept the amount', { decline_code: 'amount_refused' }, false],
  ] as [string, Partial<CardDecline>, boolean][]) {
    test(name, () => {
      const decline = { ...refused, ...changes };
      assert.equal(findForbiddingForGood([decline], card), isFound ? decline : null);
    });
  }

  test('cards without a reference or a key are not mistaken for one another', () => {
    const unknown = { ...refused, card_ref: null, card_key: null };
    const other = { checkout_id: 'c', card_ref: null, card_key: null };
    assert.equal(findForbiddingForGood([unknown], other), null);
    const key = { checkout_id: 'c', card_ref: null, card_key: 'key_1' };
    assert.equal(findForbiddingForGood([refused], key), refused);
    const reference = { checkout_id: 'c', card_ref: 'pm_1', card_key: null };
    assert.equal(findForbiddingForGood([refused], reference), refused);
  });

  const now = Temporal.Instant.from('2026-11-16T06:00:00Z');
  const declinesAt = (count: number, created_at: string, changes: Partial<CardDecline> = {}) =>
    Array.from({ length: count }, () => ({
      ...{ ...refused, may_retry: true, card_ref: 'pm_9', card_key: null, created_at },
      ...changes,
    }));
  const early = '2026-11-15T06:00:00.001Z';
  for (const [name, declines, numbers, expected] of [
    ['one that forbids the card for good', [refused], [2], true],
    ['declines of one payment within a day', declinesAt(declinesPerDayMax, early), [1], false],
    ['one decline fewer', declinesAt(declinesPerDayMax - 1, early), [1], null],
    ['a day ago', declinesAt(declinesPerDayMax, '2026-11-15T06:00:00.000Z'), [1], null],
    ['another payment', declinesAt(declinesPerDayMax, early), [2], null],
    ['one of several payments', declinesAt(declinesPerDayMax, early), [2, 1], false],
    ['another checkout', declinesAt(declinesPerDayMax, early, { checkout_id: 'd' }), [1], null],
    [
      'payments together',
      [...declinesAt(2, early), ...declinesAt(2, early, { instalment: 2 })],
      [1, 2],
      null,
    ],
    ['no declines', [], [1], null],
  ] as [string, CardDecline[], number[], boolean | null][]) {
    test(`declines today: ${name}`, () => {
      const found = findForbidding(declines, card, numbers, now);
      assert.equal(found?.isForGood ?? null, expected);
      assert.equal(found?.decline ?? null, expected === null ? null : declines[0]);
    });
  }
});

describe('a card is not charged before the latest time that the card network asked for', () => {
  const card = { checkout_id: 'c', card_ref: 'pm_1', card_key: 'key_1' };
  const decline = (changes: Partial<CardDecline> = {}): CardDecline => ({
    ...card,
    instalment: 2,
    decline_reason: 'insufficient_funds',
    decline_code: null,
    may_retry: true,
    wait_hours: 48,
    created_at: '2026-11-15T05:59:00.000Z',
    settled_at: '2026-11-15T06:00:00.000Z',
    ...changes,
  });
  const other = { card_ref: 'pm_2', card_key: 'key_2' };
  const until = '2026-11-17T06:00:00Z';
  for (const [name, declines, expected] of [
    ['the card was declined', [decline()], until],
    [
      'another card was declined after it',
      [decline(), decline({ ...other, wait_hours: 96 })],
      until,
    ],
    ['it was declined again without a time', [decline(), decline({ wait_hours: null })], until],
    ['a shorter time was asked for after it', [decline(), decline({ wait_hours: 30 })], until],
    ['the same card was entered again', [decline({ card_ref: 'pm_2' })], until],
    ['another card was declined', [decline(other)], null],
    ['another checkout', [decline({ checkout_id: 'd' })], null],
    ['the time has passed', [decline({ wait_hours: 24 })], null],
    ['the card is refused for good', [decline({ decline_reason: null, may_retry: false })], null],
    ['no declines', [], null],
  ] as [string, CardDecline[], string | null][]) {
    test(name, () => {
      const now = Temporal.Instant.from('2026-11-16T06:00:00Z');
      assert.equal(waitsUntil(declines, card, now)?.toString() ?? null, expected);
    });
  }
});

test('a retry whose day is today or past is planned from now', () => {
  const at = (text: string) => Temporal.Instant.from(text);
  // The second retry is planned for the 3rd, which is today: two days from now instead.
  const next = retriesAt('2026-02-28', 2, at('2026-03-03T05:00:00Z'), johannesburg);
  assert.equal(next?.toString(), '2026-03-05T06:00:00Z');
});
