import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EntryKind } from '#record/ledger/settlement.ts';
import {
  accountPayableFrom,
  countApprovals,
  isForAccount,
  mayApprove,
  nextPayoutAt,
  type Payout,
  payoutDay,
  payoutReference,
  reserveOf,
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

test('a new account is paid only after a whole business day has passed since its confirmation', () => {
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

test('a reference consists of the business day and the number', () => {
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

test('a payout needs two different approvers, and none once it is exported', () => {
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
  // Once another account is in use, the earlier approvals do not count, and two more are needed.
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

test('a reserve is a share of what is left of the sales, and of nothing else', () => {
  const sale = 1_000_000;
  for (const [basis_points, open, held] of [
    [1_000, { sale }, 100_000],
    [0, { sale }, 0],
    [1_000, {}, 0],
    // Refunds, disputes and what the merchant already owed reduce the sales.
    [1_000, { sale, refund: -950_000 }, 5_000],
    [1_000, { sale, dispute: -400_000, dispute_fee: -100_000 }, 50_000],
    [1_000, { sale, refund: -1_000_000 }, 0],
    [1_000, { sale, refund: -1_500_000 }, 0],
    // These entries are not new sales. The reserve was held back when the goods were sold.
    [1_000, { payout_returned: 500_000, refund_reversed: 200_000 }, 0],
    [1_000, { sale, payout_returned: 500_000, dispute_reversed: 200_000 }, 100_000],
    [1_000, { sale, refund: -1_000_000, payout_returned: 500_000 }, 0],
    // The whole sale is held back, but only once, although it is in no payout yet.
    [10_000, { sale }, sale],
    [10_000, { sale, reserve: -sale }, 0],
    [10_000, { sale: sale + 5, reserve: -sale }, 5],
    [10_000, { sale, reserve: -sale, refund: -300_000 }, 0],
    [10_000, { sale: sale + 400_000, reserve: -sale, refund: -300_000 }, 100_000],
    // A share of one cent is rounded to a whole cent.
    [5_000, { sale: 1 }, 1],
    [4_999, { sale: 1 }, 0],
  ] as [number, Partial<Record<EntryKind, number>>, number][]) {
    const kinds = Object.entries(open).map(([kind, net]) => ({ kind: kind as EntryKind, net }));
    assert.equal(reserveOf(kinds, basis_points), held, JSON.stringify([basis_points, open]));
    const left = kinds.reduce((sum, { net }) => sum + net, 0);
    assert.ok(held === 0 || left - held >= 0, 'a reserve makes no balance negative');
  }
});
