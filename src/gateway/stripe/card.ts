import type Stripe from 'stripe';

type Card = Pick<Stripe.PaymentMethod.Card, 'brand' | 'last4' | 'exp_year' | 'exp_month'> & {
  fingerprint?: string | null;
};

export const describeCard = (card: Card | null | undefined) => ({
  brand: card?.brand ?? null,
  last4: card?.last4 ?? null,
  expires: card ? `${card.exp_year}-${String(card.exp_month).padStart(2, '0')}` : null,
  fingerprint: card?.fingerprint ?? null,
});
