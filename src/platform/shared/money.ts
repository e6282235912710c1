import type { Territory } from './territories.ts';

/** Making a formatter costs a hundred times what using one does, so each is made once. */
const formats = new Map<string, Intl.NumberFormat>();

/** An amount as it is written in the territory: `R 1 500,00` (decision 0028). */
export function showMoney(
  cents: number,
  { currency, locale }: Pick<Territory, 'currency' | 'locale'>,
): string {
  const key = `${locale} ${currency}`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.NumberFormat(locale, { style: 'currency', currency });
    formats.set(key, format);
  }
  // A decimal string keeps every cent. A division may not.
  const digits = String(Math.abs(cents)).padStart(3, '0');
  const decimal = `${cents < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
  return format.format(decimal as Intl.StringNumericLiteral);
}
