import type { Territory } from './territories.ts';

/** An amount as people of the territory read it (D40): `R 1 500,00`. */
export function showMoney(
  cents: number,
  territory: Pick<Territory, 'currency' | 'locale'>,
): string {
  const format = new Intl.NumberFormat(territory.locale, {
    style: 'currency',
    currency: territory.currency,
  });
  // A decimal string keeps every cent, where a division may not.
  const digits = String(Math.abs(cents)).padStart(3, '0');
  const decimal = `${cents < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
  return format.format(decimal as Intl.StringNumericLiteral);
}
