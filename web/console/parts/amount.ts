/**
 * Cents of an amount as people type it: `600`, `600,50`, `R 1 500.00`. Null if the text is not an
 * amount.
 */
export function parseAmount(text: string): number | null {
  const plain = text.replaceAll(/[\sR\u00a0\u202f]/g, '').replace('.', ',');
  const match = /^(\d{1,11})(?:,(\d{1,2}))?$/.exec(plain);
  if (!match) return null;
  return Number(match[1]) * 100 + Number((match[2] ?? '').padEnd(2, '0'));
}

/** An amount for a text field: `600,50`. */
export const typedAmount = (cents: number) =>
  `${Math.floor(cents / 100)},${String(cents % 100).padStart(2, '0')}`;
