import type { PlanPlace } from './gateway.ts';

/** A complete statement descriptor: the account's prefix, `* `, and our suffix. */
const descriptorCharactersMax = 22;
const separator = '* ';

/** The longest prefix that a gateway allows an account. */
export const prefixCharactersMax = 10;

/**
 * The text after the account's prefix on the shopper's card statement: as much of the merchant's
 * name as fits, and which payment this is. `Bean T 2 of 3` makes `TRANCHE* Bean T 2 of 3`.
 */
export function statementSuffix(
  prefix: string | null,
  merchant_name: string,
  place: PlanPlace,
): string {
  // A prefix that we do not know may be as long as the gateway allows.
  const room = descriptorCharactersMax - separator.length - (prefix?.length ?? prefixCharactersMax);
  const placed = placeText(place);
  const which = placed.length > room ? '' : placed;
  const name = descriptorText(merchant_name);
  const nameRoom = which === '' ? room : room - which.length - 1;
  const shown = name.slice(0, Math.max(0, nameRoom)).trim();
  const suffix = [shown, which].filter((part) => part !== '').join(' ');
  // The card schemes require a letter.
  return /[a-z]/i.test(suffix) ? suffix : 'Payment'.slice(0, room);
}

/** The description of a payment in the gateway's own records. It contains no personal data. */
export function paymentDescription(merchant_name: string, place: PlanPlace): string {
  const which = placeText(place);
  return which === '' ? `Payment to ${merchant_name}` : `Payment ${which} to ${merchant_name}`;
}

/** `2 of 3`, or `2-3 of 3` if a shopper pays several at once. */
function placeText({ instalments, number_of_payments }: PlanPlace): string {
  if (number_of_payments === 1) return '';
  const numbers = [...new Set([Math.min(...instalments), Math.max(...instalments)])];
  return `${numbers.join('-')} of ${number_of_payments}`;
}

/** Text without accents, and without the characters that the schemes refuse. */
function descriptorText(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[<>\\'"*]|[^\x20-\x7e]/g, '')
    .replace(/ +/g, ' ')
    .trim();
}
