import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { planPayments } from './instalment.ts';

const date = (text: string) => Temporal.PlainDate.from(text);

test('cents that do not divide go to the first payment', () => {
  const amounts = planPayments(100_000, 3, date('2026-11-15')).map((payment) => payment.amount);
  assert.deepEqual(amounts, [33_334, 33_333, 33_333]);
});

test('a purchase on the last day of a month comes back to that day after a shorter month', () => {
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
