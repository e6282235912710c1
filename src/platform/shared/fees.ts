// The console shows the sums that the service would post, so both run these functions.

/** The fee for a sale: a share, a fixed part, and the VAT on both. 100 basis points are 1 %. */
type Prices = { basis_points: number; fixed: number; vat_basis_points: number };

export type Amounts = { gross: number; fee: number; vat: number; net: number };

/**
 * `amount × part / whole`, rounded to the nearest cent, half a cent away from zero; `whole` > 0.
 */
export function proportion(amount: number, part: number, whole: number): number {
  // The product of two amounts can exceed the integers that a number holds exactly.
  const product = BigInt(amount) * BigInt(part) * 2n;
  const divisor = BigInt(whole) * 2n;
  const half = product < 0n ? -BigInt(whole) : BigInt(whole);
  return Number((product + half) / divisor);
}

/** The amount owed for a sale. The fixed part of the fee is charged once for each order. */
export function saleAmounts(prices: Prices, gross: number, bearsFixedPart: boolean): Amounts {
  const fee = proportion(gross, prices.basis_points, 10_000) + (bearsFixedPart ? prices.fixed : 0);
  const vat = proportion(fee, prices.vat_basis_points, 10_000);
  return { gross, fee, vat, net: gross - fee - vat };
}
