import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainClosedWindow } from './refund.ts';

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
