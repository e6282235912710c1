import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InstalmentStatus } from '../instalments/instalment.ts';
import { explainClosedWindow, nextWatch, splitRefund } from './refund.ts';

const tooLate = 'Orders can only be refunded within 100 days of the purchase date.';
const sameDay = "Order can't be refunded on the day of purchase.";

// Johannesburg is UTC+2 all year: local midnight is 22:00 UTC of the day before.
const cases: [string, 'manual' | 'auto', string, string, string | null][] = [
  ['manual at once', 'manual', '2026-01-01T08:00:00Z', '2026-01-01T08:00:00Z', null],
  ['day 100, last second', 'manual', '2026-01-01T08:00:00Z', '2026-04-11T21:59:59Z', null],
  ['day 101, first second', 'manual', '2026-01-01T08:00:00Z', '2026-04-11T22:00:00Z', tooLate],
  [
    'bought before local midnight',
    'manual',
    '2026-01-01T21:59:59Z',
    '2026-04-11T22:00:00Z',
    tooLate,
  ],
  ['bought after local midnight', 'manual', '2026-01-01T22:00:00Z', '2026-04-11T22:00:00Z', null],
  ['across a leap day', 'manual', '2028-01-01T08:00:00Z', '2028-04-10T21:59:59Z', null],
  [
    'across a leap day, too late',
    'manual',
    '2028-01-01T08:00:00Z',
    '2028-04-10T22:00:00Z',
    tooLate,
  ],
  ['auto on the same day', 'auto', '2026-01-01T08:00:00Z', '2026-01-01T20:00:00Z', sameDay],
  ['auto at 09:59:59 next day', 'auto', '2026-01-01T08:00:00Z', '2026-01-02T07:59:59Z', sameDay],
  ['auto at 10:00:00 next day', 'auto', '2026-01-01T08:00:00Z', '2026-01-02T08:00:00Z', null],
  [
    'auto, bought after local midnight',
    'auto',
    '2026-01-01T22:00:00Z',
    '2026-01-02T20:00:00Z',
    sameDay,
  ],
  ['auto on day 100', 'auto', '2026-01-01T08:00:00Z', '2026-04-11T21:59:59Z', null],
];

for (const [name, refund_mode, completed_at, now, expected] of cases) {
  test(`the refund window is judged by local dates: ${name}`, () => {
    const purchase = { completed_at, refund_mode, time_zone: 'Africa/Johannesburg' };
    assert.equal(explainClosedWindow(purchase, Temporal.Instant.from(now)), expected);
  });
}

/** Payments of 100 with the given statuses. */
function payments(...statuses: InstalmentStatus[]) {
  return statuses.map((status, index) => ({
    number: index + 1,
    amount: 100,
    reduced: 0,
    status,
    collected_at: status === 'collected' ? `2026-0${index + 1}-01T06:00:00.000Z` : null,
  }));
}

describe('a refund is taken from uncollected payments, then the hold, then the card', () => {
  const held = payments('authorised', 'scheduled', 'scheduled');
  const twoOfThree = payments('collected', 'collected', 'scheduled');
  for (const [name, plan, returned, amount, expected] of [
    ['before capture, the last payment first', held, [], 150, ['3 cancel 100', '2 cancel 50']],
    ['before capture, into the hold', held, [], 250, ['3 cancel 100', '2 cancel 100', '1 hold 50']],
    ['before capture, all of it', held, [], 300, ['3 cancel 100', '2 cancel 100', '1 hold 100']],
    ['after two of three, the last one', twoOfThree, [], 60, ['3 cancel 60']],
    ['after two of three, the newest too', twoOfThree, [], 160, ['3 cancel 100', '2 card 60']],
    [
      'after an earlier refund, what it left',
      payments('collected', 'collected', 'cancelled').map((one) =>
        one.number === 3 ? { ...one, reduced: 100 } : one,
      ),
      [[2, 60]],
      100,
      ['2 card 40', '1 card 60'],
    ],
    [
      'an overdue payment is not collected',
      payments('collected', 'overdue', 'scheduled'),
      [],
      250,
      ['3 cancel 100', '2 cancel 100', '1 card 50'],
    ],
    [
      'the newest payment is the last collected, whatever its number',
      payments('collected', 'collected').map((one) =>
        one.number === 1 ? { ...one, collected_at: '2026-09-01T06:00:00.000Z' } : one,
      ),
      [],
      150,
      ['1 card 100', '2 card 50'],
    ],
  ] as [string, ReturnType<typeof payments>, [number, number][], number, string[]][]) {
    test(name, () => {
      const parts = splitRefund(plan, new Map(returned), amount);
      assert.deepEqual(
        parts.map((part) => `${part.instalment} ${part.kind} ${part.amount}`),
        expected,
      );
    });
  }
});

test('a refund larger than what is left of the payments is not split', () => {
  assert.throws(() => splitRefund(payments('collected'), new Map([[1, 50]]), 51), /1 cents/);
});

test('a refund is watched for 30 days after it is complete', () => {
  const completed = '2026-01-01T00:00:00.000Z';
  const after = (days: number) => Temporal.Instant.from(completed).add({ hours: 24 * days });
  assert.equal(nextWatch(completed, after(0))?.toString(), after(1).toString());
  assert.equal(nextWatch(completed, after(21))?.toString(), after(30).toString());
  assert.equal(nextWatch(completed, after(30)), null);
});
