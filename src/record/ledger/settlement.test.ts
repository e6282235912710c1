import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Amounts, proportion, saleAmounts } from '#platform/shared/fees.ts';
import { systemRandom } from '#platform/shared/random.ts';
import { entriesOf, withoutFee } from './post-entries.ts';
import {
  type BookedEntry,
  disputeFeeAmounts,
  type EntryKind,
  explainBadTerms,
  newSale,
  refundSale,
  reverseRefund,
  salesOf,
} from './settlement.ts';

const amount = fc.integer({ min: 1, max: 10_000_000_000_000 });
const terms = fc.record({
  basis_points: fc.integer({ min: 0, max: 10_000 }),
  fixed: fc.integer({ min: 0, max: 1_000_000 }),
  vat_basis_points: fc.integer({ min: 0, max: 10_000 }),
});

const fees = fc.constantFrom('kept' as const, 'returned' as const);
const saleOf = (amounts: Amounts) => newSale({ checkout_id: 'c', instalment: null }, amounts);
const negated = ({ gross, fee, vat, net }: Amounts) => ({
  ...{ gross: 0 - gross, fee: 0 - fee, vat: 0 - vat, net: 0 - net },
});
const booked = (kind: EntryKind, refund_id: string | null, amounts: Amounts) => ({
  ...{ kind, checkout_id: 'c', instalment: null, refund_id, dispute_id: null, ...amounts },
});
const sumOf = (lines: Amounts[], name: keyof Amounts) =>
  lines.reduce((sum, line) => sum + line[name], 0);

test('a share is rounded to the nearest cent, half a cent away from zero', () => {
  assert.equal(proportion(50, 1, 100), 1);
  assert.equal(proportion(49, 1, 100), 0);
  assert.equal(proportion(-50, 1, 100), -1);
  assert.equal(proportion(-49, 1, 100), -0 + 0);
  assert.equal(proportion(10_000_000_000_000, 9_999, 10_000), 9_999_000_000_000);
});

test('a share is at most half a cent from the exact one, at any amount', () => {
  fc.assert(
    fc.property(amount, fc.integer({ min: 0, max: 10_000 }), (gross, points) => {
      const exact = BigInt(gross) * BigInt(points);
      const error = BigInt(proportion(gross, points, 10_000)) * 10_000n - exact;
      assert.ok(error > -5_000n && error <= 5_000n);
    }),
  );
});

test('gross, fee, VAT and net of a line add up', () => {
  fc.assert(
    fc.property(terms, amount, fc.boolean(), (given, gross, isFirst) => {
      const line = saleAmounts(given, gross, isFirst);
      assert.equal(line.gross, line.fee + line.vat + line.net);
      assert.ok(line.fee >= 0 && line.vat >= 0);
    }),
  );
});

test('refunds of a whole sale, in any parts, return all of its fee and VAT, or none', () => {
  fc.assert(
    fc.property(
      terms,
      fc.array(fc.record({ part: fc.integer({ min: 1, max: 500_000 }), comesBack: fc.boolean() }), {
        minLength: 1,
        maxLength: 12,
      }),
      fees,
      (given, parts, refund_fee) => {
        const gross = parts.reduce((sum, { part }) => sum + part, 0);
        const line = saleAmounts(given, gross, true);
        const sale = saleOf(line);
        const refund = (id: string, part: number) =>
          booked('refund', id, refundSale({ refund_fee }, sale, id, part));
        const lines = parts.map(({ part }, index) => refund(`${index}`, part));
        for (const back of lines) {
          assert.equal(back.gross, back.fee + back.vat + back.net);
          assert.ok(back.fee <= 0 && back.vat <= 0);
        }
        const returned = parts.flatMap(({ part, comesBack }, index) =>
          comesBack ? [{ id: `${index}`, part }] : [],
        );
        const reverse = ({ id, part }: { id: string; part: number }) =>
          booked('refund_reversed', id, reverseRefund(sale, id, part));
        lines.push(...returned.map(reverse));
        lines.push(...returned.toReversed().map(({ id, part }) => refund(id, part)));
        const isReturned = refund_fee === 'returned';
        assert.equal(sumOf(lines, 'fee'), isReturned ? 0 - line.fee : 0);
        assert.equal(sumOf(lines, 'vat'), isReturned ? 0 - line.vat : 0);
        assert.equal(sumOf(lines, 'net'), isReturned ? 0 - line.net : -gross);
        assert.deepEqual(salesOf([booked('sale', null, line), ...lines]), [sale]);
      },
    ),
  );
});

test('refunds that are written together are read back with the same cents, whatever their ids', () => {
  const part = fc.record({ part: fc.integer({ min: 1, max: 500_000 }), id: fc.uuid() });
  const of = { merchant_id: 'm', currency: 'ZAR', at: '2026-01-05T08:00:00.000Z' };
  fc.assert(
    fc.property(
      terms,
      fc.uniqueArray(part, { minLength: 1, selector: ({ id }) => id }),
      (given, parts) => {
        const line = saleAmounts(
          given,
          sumOf(
            parts.map(({ part }) => withoutFee(part)),
            'gross',
          ),
          true,
        );
        const sale = saleOf(line);
        const refunds = parts.map(({ part }) =>
          booked('refund', 'a', refundSale({ refund_fee: 'returned' }, sale, 'a', part)),
        );
        const ids = parts.map(({ id }) => id);
        const random = { ...systemRandom, uuid: () => ids.pop() as string };
        const rows = entriesOf({ random }, of, refunds)?.values as (BookedEntry & { id: string })[];
        const read = rows.toSorted((one, other) => (one.id < other.id ? -1 : 1));
        assert.deepEqual(salesOf([booked('sale', null, line), ...read]), [sale]);
      },
    ),
  );
});

test('the reversal of a refund undoes all of it, even if the terms have changed since', () => {
  fc.assert(
    fc.property(
      terms,
      fc.array(fc.tuple(fc.integer({ min: 1, max: 500_000 }), fees), {
        minLength: 1,
        maxLength: 6,
      }),
      fc.nat(),
      (given, refunds, chosen) => {
        const gross = refunds.reduce((sum, [part]) => sum + part, 0);
        const sale = saleOf(saleAmounts(given, gross, true));
        const lines = refunds.map(([part, refund_fee], index) => ({
          ...refundSale({ refund_fee }, sale, `${index}`, part),
          refund_id: `${index}`,
        }));
        const one = lines[chosen % lines.length];
        assert.ok(one);
        assert.deepEqual(reverseRefund(sale, one.refund_id, 0 - one.gross), negated(one));
      },
    ),
  );
});

test('a reversal is its own refund negated, as the books have it', () => {
  const refund = (refund_id: string, gross: number, fee: number, vat: number) =>
    booked('refund', refund_id, { gross, fee, vat, net: gross - fee - vat });
  const sold = booked('sale', null, { gross: 100_000, fee: 5_350, vat: 803, net: 93_847 });
  const whole = refund('a', -100_000, -5_350, -803);
  const kept = refund('a', -50_000, 0, 0);
  const returned = refund('b', -50_000, -2_675, -401);
  const reversed = booked('refund_reversed', 'a', negated(whole));
  for (const [entries, refund_id, amount, expected] of [
    [[sold, whole], 'a', 100_000, [100_000, 5_350, 803, 93_847]],
    [[sold, kept, returned], 'a', 50_000, [50_000, 0, 0, 50_000]],
    [[sold, kept, returned], 'b', 50_000, [50_000, 2_675, 401, 46_924]],
    // The refund was reversed. It was sent again under terms by which refunds return no fee.
    [[sold, whole, reversed, refund('a', -100_000, 0, 0)], 'a', 100_000, [100_000, 0, 0, 100_000]],
    // The refund cancelled a payment before the order was owed, so it returned no fee.
    [[sold], 'a', 10_000, [10_000, 0, 0, 10_000]],
    [[sold, returned], 'a', 10_000, [10_000, 0, 0, 10_000]],
    // One part of the refund is reversed.
    [
      [sold, refund('b', -30_000, -1_605, -241), returned],
      'b',
      30_000,
      [30_000, 1_605, 241, 28_154],
    ],
    // Sales of another payment or checkout are not counted.
    [
      [sold, { ...sold, checkout_id: 'd' }, { ...whole, checkout_id: 'd' }],
      'a',
      100_000,
      [100_000, 0, 0, 100_000],
    ],
    [
      [
        { ...sold, instalment: 1 },
        { ...whole, instalment: 2 },
      ],
      'a',
      100_000,
      [100_000, 0, 0, 100_000],
    ],
  ] as const) {
    const [state] = salesOf([...entries]);
    assert.ok(state);
    const { gross, fee, vat, net } = reverseRefund(state, refund_id, amount);
    assert.deepEqual([gross, fee, vat, net], expected);
  }
});

test('a refund first takes the cents of the sale that an earlier refund has freed', () => {
  const sale = saleOf({ gross: 10_000, fee: 300, vat: 45, net: 9_655 });
  const refund = (id: string, amount: number) =>
    refundSale({ refund_fee: 'returned' }, sale, id, amount).fee;
  assert.deepEqual([refund('a', 2_000), refund('b', 2_000)], [-60, -60]);
  reverseRefund(sale, 'a', 2_000);
  assert.equal(refund('c', 3_000), -90);
  assert.deepEqual(sale.taken.at(-1)?.ranges, [
    { from: 0, to: 2_000 },
    { from: 4_000, to: 5_000 },
  ]);
});

test('the fee of a dispute is returned with the VAT that was charged on it, and no more than that', () => {
  const charged = { fee: 15_000, vat: 2_250 };
  for (const [vat_basis_points, before, change, expected] of [
    [1_500, [], 15_000, [15_000, 2_250]],
    [1_550, [charged], -15_000, [-15_000, -2_250]],
    [1_550, [charged], 1_000, [1_000, 155]],
    [1_550, [charged], -5_001, [-5_001, -750]],
    [1_550, [charged, { fee: -5_001, vat: -750 }], -9_999, [-9_999, -1_500]],
    [1_500, [charged, { fee: -15_000, vat: -2_250 }], -15_000, null],
    // The merchant had no terms when the gateway charged the fee.
    [1_500, [], -15_000, null],
  ] as [number, { fee: number; vat: number }[], number, [number, number] | null][]) {
    const amounts = disputeFeeAmounts({ vat_basis_points }, before, change);
    assert.deepEqual(amounts && [amounts.fee, amounts.vat], expected);
    assert.ok(!amounts || amounts.gross === amounts.fee + amounts.vat + amounts.net);
  }
});

test('terms beyond their limits are refused, and so is a reserve without a number of days', () => {
  const sound = {
    ...{ basis_points: 10_000, vat_basis_points: 10_000, reserve_basis_points: 10_000 },
    ...{ fixed: 1_000_000_000, reserve_days: 366 },
  } as Parameters<typeof explainBadTerms>[0];
  const points = (name: string) =>
    `The ${name} is 10001 basis points and must be at most 10000, which is 100 %.`;
  const noDays = 'A reserve needs a number of days after which it is released.';
  for (const [changes, expected] of [
    [{}, null],
    [{ basis_points: 10_001 }, points('fee')],
    [{ vat_basis_points: 10_001 }, points('VAT')],
    [{ reserve_basis_points: 10_001 }, points('reserve')],
    [{ fixed: 1_000_000_001 }, 'The fixed fee must be at most 1000000000 cents.'],
    [{ reserve_days: 367 }, 'The reserve can be held for at most 366 days.'],
    [{ reserve_days: 0 }, noDays],
    [{ reserve_days: 0, reserve_basis_points: 1 }, noDays],
    [{ reserve_days: 0, reserve_basis_points: 0 }, null],
    [{ reserve_days: 1, reserve_basis_points: 0 }, null],
  ] as const) {
    assert.equal(explainBadTerms({ ...sound, ...changes }), expected);
  }
});
