import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accountPayableFrom, nextPayoutAt, payoutDay } from './payout.ts';

const calendar = {
  holidays: new Set(['2026-04-03', '2026-04-06', '2026-12-16', '2026-12-25']),
  time_zone: 'Africa/Johannesburg',
};
const next = (date: string) => nextPayoutAt(calendar, Temporal.PlainDate.from(date)).toString();
const day = (instant: string) => payoutDay(calendar, Temporal.Instant.from(instant)).toString();

test('payouts are made at 04:00 local time and skip weekends and public holidays', () => {
  assert.equal(next('2026-03-31'), '2026-04-01T02:00:00Z');
  // Good Friday, the weekend and Family Day.
  assert.equal(next('2026-04-02'), '2026-04-07T02:00:00Z');
  assert.equal(next('2026-12-15'), '2026-12-17T02:00:00Z');
  assert.equal(next('2026-12-24'), '2026-12-28T02:00:00Z');
});

test('a payout belongs to the last business day whose payout time has come', () => {
  assert.equal(day('2026-04-01T02:00:00Z'), '2026-04-01');
  assert.equal(day('2026-04-01T01:59:59Z'), '2026-03-31');
  // Only one payout is made after an outage over several days.
  assert.equal(day('2026-04-06T12:00:00Z'), '2026-04-02');
});

test('a new account is paid once a whole business day lies behind its confirmation', () => {
  for (const [confirmed, days, from] of [
    // Friday 11 December 2026 is a business day; the 16th is a holiday.
    ['2026-12-11T10:00', 0, '2026-12-11T10:00'],
    ['2026-12-11T10:00', 1, '2026-12-15T00:00'],
    ['2026-12-12T10:00', 1, '2026-12-15T00:00'],
    ['2026-12-15T23:59', 1, '2026-12-18T00:00'],
    ['2026-12-11T10:00', 2, '2026-12-16T00:00'],
  ] as const) {
    const at = Temporal.PlainDateTime.from(confirmed).toZonedDateTime('Africa/Johannesburg');
    const payable = accountPayableFrom(calendar, { newAccountBusinessDays: days }, at.toInstant());
    const local = payable.toZonedDateTimeISO('Africa/Johannesburg').toPlainDateTime();
    assert.equal(local.toString({ smallestUnit: 'minute' }), from, confirmed);
  }
});
