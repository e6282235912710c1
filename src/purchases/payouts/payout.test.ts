import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  accountPayableFrom,
  countApprovals,
  isForAccount,
  mayApprove,
  nextPayoutAt,
  type Payout,
  payoutDay,
  payoutReference,
} from './payout.ts';

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

test('a reference is made of the business day and the number', () => {
  assert.equal(payoutReference('2026-04-01', 17), 'TR20260401-17');
});

test('approvals for an account that is no longer in use do not count before the export', () => {
  for (const [status, approvers, bank_account, inUse, count] of [
    ['draft', 0, null, null, 0],
    ['draft', 1, 4, 4, 1],
    ['draft', 1, 4, 5, 0],
    ['draft', 1, 4, null, 0],
    ['approved', 2, 4, 4, 2],
    ['approved', 2, 4, 5, 0],
    ['exported', 2, 4, 5, 2],
    ['paid', 2, 4, null, 2],
  ] as const) {
    const payout = payoutOf(status, ['thandi', 'sipho'].slice(0, approvers), bank_account);
    const account = inUse === null ? null : { number: inUse };
    assert.equal(countApprovals(payout, account), count, `${status} ${bank_account} ${inUse}`);
  }
  assert.equal(isForAccount({ bank_account: null }, null), true);
  assert.equal(isForAccount({ bank_account: 4 }, { number: 4 }), true);
  assert.equal(isForAccount({ bank_account: 4 }, { number: 5 }), false);
});

test('a payout takes two different people, and no one once it is exported', () => {
  for (const [status, approvers, operator, may] of [
    ['draft', [], 'thandi', true],
    ['draft', ['thandi'], 'thandi', false],
    ['draft', ['thandi'], 'sipho', true],
    ['approved', ['thandi', 'sipho'], 'lerato', false],
    ['exported', [], 'lerato', false],
    ['paid', ['thandi'], 'lerato', false],
  ] as const) {
    const payout = payoutOf(status, approvers, 4);
    assert.equal(mayApprove(payout, { number: 4 }, operator), may, `${status} ${operator}`);
  }
  // The approvals of an approved payout end with its account, and it is approved anew.
  const approved = payoutOf('approved', ['thandi', 'sipho'], 4);
  assert.equal(mayApprove(approved, { number: 5 }, 'thandi'), true);
});

function payoutOf(
  status: Payout['status'],
  approvers: readonly string[],
  bank_account: number | null,
): Payout {
  const [first_approver = null, approver = null] = approvers;
  return { status, first_approver, approver, bank_account } as Payout;
}
