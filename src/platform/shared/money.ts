import type { Territory } from './territories.ts';

/** Making a formatter costs a hundred times as much as using one, so each is made once. */
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
  return format.format(decimal(cents) as Intl.StringNumericLiteral);
}

/**
 * An amount with two decimals, as in files: `1500.00`. Working on digits keeps every cent; a
 * division might not.
 */
export function decimal(cents: number): string {
  const digits = String(Math.abs(cents)).padStart(3, '0');
  return `${cents < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/**
 * Reads `1500`, `R 1 500,00` or `1,500.5` as cents. Returns null if the text is not an amount, or
 * is one of more than ten digits before the cents. Only groups of three digits are thousands:
 * `150,5` must not become ten times as much.
 */
export function centsIn(text: string): number | null {
  const match = /^[A-Za-z]{0,3}\s*(\d+|\d{1,3}(?:[\s.,']\d{3})+)(?:[.,](\d{1,2}))?$/.exec(text);
  if (!match) return null;
  const whole = (match[1] ?? '').replaceAll(/\D/g, '');
  return whole.length > 10 ? null : Number(`${whole}${(match[2] ?? '').padEnd(2, '0')}`);
}
