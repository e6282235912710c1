import type { HeldCard } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';

/** Hyperswitch's names for the card networks, and ours. */
const brands: Record<string, string> = {
  Visa: 'visa',
  Mastercard: 'mastercard',
  AmericanExpress: 'amex',
  DinersClub: 'diners',
  Discover: 'discover',
  JCB: 'jcb',
  UnionPay: 'unionpay',
};

/** The card that was entered, as the port describes it. */
export function cardOf({
  payment_method_data,
  fingerprint,
}: Payment): Required<Omit<HeldCard, 'card_ref'>> {
  const card = payment_method_data?.card;
  const network = card?.card_network ?? null;
  const [month, year] = [card?.card_exp_month, card?.card_exp_year];
  return {
    brand: network === null ? null : (brands[network] ?? network.toLowerCase()),
    last4: card?.last4 ?? null,
    expires: month && year ? `${year.padStart(4, '20')}-${month.padStart(2, '0')}` : null,
    fingerprint: fingerprint ?? null,
  };
}
