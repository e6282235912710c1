import { type CardBehaviour, cardNumbered, passesLuhn } from '../cards.ts';

/** A card as it was typed. */
export type EnteredCard = {
  number?: string | undefined;
  exp_month?: number | undefined;
  exp_year?: number | undefined;
  cvc?: string | undefined;
};

type Problem = {
  code: string;
  message: string;
  param: 'number' | 'exp_month' | 'exp_year' | 'cvc';
  decline_code?: string;
};

export const fullYear = (year: number): number => (year < 100 ? 2000 + year : year);

/**
 * Finds the test card, or says what is wrong with the entry. Any other number is refused and not
 * stored, because it may be a real card.
 */
export function readEnteredCard(
  given: EnteredCard,
  now: number,
): { card: CardBehaviour } | { problem: Problem } {
  const number = (given.number ?? '').replace(/[\s-]/g, '');
  const refuse = (
    code: string,
    param: Problem['param'],
    message: string,
    decline_code?: string,
  ): { problem: Problem } => ({
    problem: { code, message, param, ...(decline_code && { decline_code }) },
  });
  if (!/^\d{12,19}$/.test(number) || !passesLuhn(number)) {
    return refuse('incorrect_number', 'number', 'Your card number is incorrect.');
  }
  const card = cardNumbered(number);
  if (card === null) {
    return refuse(
      'card_declined',
      'number',
      'Your card was declined. Your request was in test mode, but used a non test card.',
      'test_mode_live_card',
    );
  }
  if (given.exp_month !== undefined && !(given.exp_month >= 1 && given.exp_month <= 12)) {
    return refuse('invalid_expiry_month', 'exp_month', "Your card's expiration month is invalid.");
  }
  if (given.exp_year !== undefined) {
    const year = fullYear(given.exp_year);
    // A card is valid until the end of its month in every time zone.
    const ends = Date.UTC(year, given.exp_month ?? 12, 2) / 1000;
    const tooFar = year > new Date(now * 1000).getUTCFullYear() + 50;
    if (ends <= now || tooFar) {
      return refuse('invalid_expiry_year', 'exp_year', "Your card's expiration year is invalid.");
    }
  }
  if (given.cvc !== undefined && !/^\d{3,4}$/.test(given.cvc)) {
    return refuse('invalid_cvc', 'cvc', "Your card's security code is invalid.");
  }
  return { card };
}
