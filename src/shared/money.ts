import type { Territory } from './territories.ts';

/** An amount as it is written in the territory: `R 1 500,00` (decision 0028). */
export function showMoney(
  cents: number,
  territory: Pick<Territory, 'currency' | 'locale'>,
): string {
  const format = new Intl.NumberFormat(territory.locale, {
    style: 'currency',
    currency: territory.currency,
  });
  // A decimal string keeps every cent. A division may not.
  const digits = String(Math.abs(cents)).padStart(3, '0');
  const decimal = `${cents < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
  return format.format(decimal as Intl.StringNumericLiteral);
}
