import type { LetterFacts } from '../letter.ts';
import { type MessageTexts, sentences } from './texts.ts';

const card = ({ card }: LetterFacts) =>
  card ? `your ${card.brand} card ending ${card.last4}` : 'your card';

const standing = ({ count, paid, total, next }: LetterFacts) =>
  count > 1 &&
  `${paid} of ${total} is paid.${next ? ` Next: ${next.amount} on ${next.date}.` : ''}`;

export const en: MessageTexts = {
  letters: {
    receipt: (facts) => ({
      subject: `${facts.amount} paid to ${facts.merchant}`,
      paragraphs: sentences(
        `You paid ${facts.amount} to ${facts.merchant} for order ${facts.order}.`,
        standing(facts),
        facts.next && `We charge the later payments to ${card(facts)} on the dates below.`,
      ),
      link: 'See your payments',
    }),
    charge_soon: (facts) => ({
      subject: `${facts.amount} will be charged on ${facts.date}`,
      paragraphs: [
        `On ${facts.date} we charge ${facts.amount} to ${card(facts)}. It is payment ${facts.number} of ${facts.count} for order ${facts.order} from ${facts.merchant}.`,
        'You do not need to do anything. To use another card, open your payments.',
      ],
      link: 'See your payments',
    }),
    charged: (facts) => ({
      subject: `${facts.amount} paid to ${facts.merchant}`,
      paragraphs: sentences(
        `We charged ${facts.amount} to ${card(facts)}. It was ${facts.numbers ? `payments ${facts.numbers}` : `payment ${facts.number}`} of ${facts.count} for order ${facts.order}.`,
        standing(facts),
      ),
      link: 'See your payments',
    }),
    declined: (facts) => ({
      subject: `Your payment of ${facts.amount} to ${facts.merchant} did not go through`,
      paragraphs: sentences(
        `Your bank declined payment ${facts.number} of ${facts.count} for order ${facts.order}: ${facts.amount} from ${card(facts)}. Nothing was charged.`,
        facts.retryOn
          ? `We try again on ${facts.retryOn}. You can also pay now, with this card or another one.`
          : 'We do not try again by ourselves. Please pay it now, with this card or another one.',
        'A late payment costs you nothing extra.',
      ),
      link: 'Pay now',
    }),
    card_expires: (facts) => ({
      subject: `Your card for ${facts.merchant} expires before your last payment`,
      paragraphs: [
        `${facts.card ? `Your ${facts.card.brand} card ending ${facts.card.last4}` : 'Your card'} expires at the end of ${facts.cardExpires}. Payments for order ${facts.order} go on after that.`,
        'Open your payments and add the new card, so that nothing is declined.',
      ],
      link: 'Add another card',
    }),
    card_replaced: (facts) => ({
      subject: `Your card for ${facts.merchant} was changed`,
      paragraphs: [
        `From now on we charge the payments for order ${facts.order} to ${card(facts)}.`,
        'If you did not do this, tell us from the page with your payments.',
      ],
      link: 'See your payments',
    }),
    refunded: (facts) => ({
      subject: `${facts.amount} refunded by ${facts.merchant}`,
      paragraphs: sentences(
        `${facts.merchant} refunded ${facts.amount} of order ${facts.order}. The table shows what it changed.`,
        'What goes back to your card shows on your statement as soon as your bank has handled it.',
        standing(facts),
      ),
      link: 'See your payments',
    }),
    plan_finished: (facts) => ({
      subject: `Everything is paid: ${facts.total} to ${facts.merchant}`,
      paragraphs: [
        `You made the last payment for order ${facts.order}. Nothing more will be charged.`,
      ],
      link: 'See your payments',
    }),
    sign_in_link: (facts) => ({
      subject: `Your link to the payments for ${facts.merchant}`,
      paragraphs: [
        `Use this link to pay, or to change the card, for order ${facts.order}. It works once, within 15 minutes.`,
        'If you did not ask for it, ignore this message. Nothing changes without it.',
      ],
      link: 'Open your payments',
    }),
  },
  states: {
    paid: 'paid',
    next: 'next',
    planned: 'planned',
    late: 'late',
    cancelled: 'cancelled',
  },
  payment: (number, count) => (count === 1 ? 'Payment' : `Payment ${number} of ${count}`),
  footer: (merchant) => [
    `You get this message because you bought from ${merchant} and pay through Tranche.`,
  ],
};
