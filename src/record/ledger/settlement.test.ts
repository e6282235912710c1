import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Amounts, proportion, saleAmounts } from '#platform/shared/fees.ts';
import { explainBadTerms, refundAmounts, reversalAmounts, type SaleState } from './settlement.ts';

const amount = fc.integer({ min: 1, max: 10_000_000_000_000 });
const terms = fc.record({
  basis_points: fc.integer({ min: 0, max: 10_000 }),
  fixed: fc.integer({ min: 0, max: 1_000_000 }),
  vat_basis_points: fc.integer({ min: 0, max: 10_000 }),
});

function saleOf({ gross, fee, vat }: Amounts): SaleState {
  const none = { refunded: 0, fee_returned: 0, vat_returned: 0 };
  return { checkout_id: '', instalment: null, gross, fee, vat, ...none };
}

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

test('refunds of a whole sale, in any parts, return its whole fee and VAT, or nothing of them', () => {
  fc.assert(
    fc.property(
      terms,
      fc.array(fc.integer({ min: 1, max: 500_000 }), { minLength: 1, maxLength: 12 }),
      fc.constantFrom('kept' as const, 'returned' as const),
      (given, parts, refund_fee) => {
        const gross = parts.reduce((sum, part) => sum + part, 0);
        const line = saleAmounts(given, gross, true);
        const sale = saleOf(line);
        const total = { fee: 0, vat: 0, net: 0 };
        for (const part of parts) {
          const back = refundAmounts({ refund_fee }, sale, part);
          assert.equal(back.gross, back.fee + back.vat + back.net);
          assert.ok(back.fee <= 0 && back.vat <= 0);
          sale.refunded += part;
          for (const name of ['fee', 'vat', 'net'] as const) total[name] += back[name];
        }
        const isReturned = refund_fee === 'returned';
        assert.equal(total.fee + 0, isReturned ? 0 - line.fee : 0);
        assert.equal(total.vat + 0, isReturned ? 0 - line.vat : 0);
        assert.equal(total.net, isReturned ? -line.net : -gross);
      },
    ),
  );
});

test('a refund that came back charges what the refund returned, and never more', () => {
  fc.assert(
    fc.property(
      terms,
      fc.integer({ min: 1, max: 500_000 }),
      fc.integer({ min: 0, max: 500_000 }),
      fc.constantFrom('kept' as const, 'returned' as const),
      fc.constantFrom('kept' as const, 'returned' as const),
      (given, part, rest, then, later) => {
        const sale = saleOf(saleAmounts(given, part + rest, true));
        const back = refundAmounts({ refund_fee: then }, sale, part);
        const after = {
          ...sale,
          refunded: part,
          fee_returned: 0 - back.fee,
          vat_returned: 0 - back.vat,
        };
        const again = reversalAmounts({ refund_fee: later }, after, part);
        assert.equal(again.gross, again.fee + again.vat + again.net);
        assert.ok(again.fee <= after.fee_returned && again.vat <= after.vat_returned);
        if (then === later) assert.equal(again.net + back.net, 0);
      },
    ),
  );
});

test('a reversal charges the share of the fee that its refund returned, and nothing if fees are kept', () => {
  // A sale of 100.00 with a fee of 3.00 and VAT of 0.45, of which 60.00 is refunded in two parts.
  const sale = {
    ...{ checkout_id: '', instalment: null, gross: 10_000, fee: 300, vat: 45 },
    ...{ refunded: 6_000, fee_returned: 180, vat_returned: 27 },
  };
  assert.deepEqual(reversalAmounts({ refund_fee: 'returned' }, sale, 2_000), {
    ...{ gross: 2_000, fee: 60, vat: 9, net: 1_931 },
  });
  assert.deepEqual(reversalAmounts({ refund_fee: 'kept' }, sale, 2_000), {
    ...{ gross: 2_000, fee: 0, vat: 0, net: 2_000 },
  });
});

test('terms are refused beyond their limits, and a reserve without its days', () => {
  const sound = {
    ...{ basis_points: 10_000, vat_basis_points: 10_000, reserve_basis_points: 10_000 },
    ...{ fixed: 1_000_000_000, reserve_days: 366 },
  } as Parameters<typeof explainBadTerms>[0];
  const points = (name: string) => `${name} is 10001 and must be at most 10000, which is 100 %.`;
  const noDays = 'A reserve needs --reserve-days: after how many days it is released.';
  for (const [changes, expected] of [
    [{}, null],
    [{ basis_points: 10_001 }, points('--basis-points')],
    [{ vat_basis_points: 10_001 }, points('--vat-basis-points')],
    [{ reserve_basis_points: 10_001 }, points('--reserve-basis-points')],
    [{ fixed: 1_000_000_001 }, '--fixed must be at most 1000000000 cents.'],
    [{ reserve_days: 367 }, '--reserve-days must be at most 366.'],
    [{ reserve_days: 0 }, noDays],
    [{ reserve_days: 0, reserve_basis_points: 1 }, noDays],
    [{ reserve_days: 0, reserve_basis_points: 0 }, null],
    [{ reserve_days: 1, reserve_basis_points: 0 }, null],
  ] as const) {
    assert.equal(explainBadTerms({ ...sound, ...changes }), expected);
  }
});
