import type { Language } from '#platform/shared/language.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import type { LetterText, ValuesIn } from '#platform/shared/words/words.ts';
import { words } from '#platform/shared/words/words.ts';
import type { MessageFacts, ShopperMessageKind } from '#purchases/messages/message.ts';

// Defines which sentences each kind of message has. The catalogues have the sentences in every
// language.

/** The facts of a letter. Amounts and dates are already written in its language. */
export type LetterFacts = {
  merchant: string;
  order: string;
  /** How many payments the plan has. */
  count: number;
  /** Whether nothing of the plan is left to pay. */
  isOver: boolean;
  /** The sum of the plan's payments, after refunds reduced or cancelled some of them. */
  total: string;
  paid: string;
  /** The first payment to come; null when there is none. */
  next: { amount: string; date: string } | null;
  /** The amount of the payment, refund or charge that the letter is about. */
  amount: string;
  number: number;
  /** `2–4` if several payments were paid at once; otherwise null. */
  numbers: string | null;
  date: string;
  /**
   * When the service retries a declined payment. Null if it does not, or if that day has passed.
   */
  retryOn: string | null;
  /** Whether two more retries follow that one, within a week. */
  retriesMore: boolean;
  /** Whether the payment is late and the service no longer retries it. */
  isOverdue: boolean;
  /** The sum of the payments that are late and not retried; null if there are none. */
  late: string | null;
  /** For `plan_finished`: whether a charge finished the plan, which the letter then states. */
  isCharge: boolean;
  /** Whether the bank forbids every further charge of the card. */
  isForbidden: boolean;
  uncharged: MessageFacts['uncharged'] | null;
  /** Null when no card is known. */
  card: { brand: string; last4: string } | null;
  cardExpires: string;
  /** A person's answer to the shopper, and the shopper's question. */
  answer: { text: string; question: string | null } | null;
  /** Whether the refund took something off payments that were not collected. */
  changesPlan: boolean;
  /** The amount that the refund returned to the card; null if nothing. */
  returned: string | null;
};

export type Said = {
  subject: string;
  paragraphs: string[];
  /** The label of the letter's only link. */
  link: string;
};

export function writeLetter(
  kind: ShopperMessageKind,
  facts: LetterFacts,
  language: Language,
): Said {
  return letters[kind](translateInto(language, facts), facts);
}

/** The values that a letter's texts may name. A text that names any other does not compile. */
const valuesOf = ({
  next,
  card,
  retryOn,
  retriesMore,
  cardExpires,
  numbers,
  isOver,
  isOverdue,
  late,
  isCharge,
  isForbidden,
  uncharged,
  answer,
  changesPlan,
  returned,
  ...facts
}: LetterFacts) => ({
  ...facts,
  numbers: numbers ?? '',
  next_amount: next?.amount ?? '',
  next_date: next?.date ?? '',
  retry_on: retryOn ?? '',
  expires: cardExpires,
  returned: returned ?? '',
  late: late ?? '',
});

type ValueName = keyof ReturnType<typeof valuesOf> | 'card';
type LetterKey = {
  [Key in keyof LetterText]: ValuesIn<LetterText[Key]> extends ValueName ? Key : never;
}[keyof LetterText];
type Translate = (key: LetterKey) => string;

function translateInto(language: Language, facts: LetterFacts): Translate {
  const { letter } = words[language];
  const card = facts.card ? fillIn(letter.card, facts.card) : letter.card_unknown;
  const values = { ...valuesOf(facts), card };
  return (key) => fillIn(letter[key], values);
}

const letters: Record<ShopperMessageKind, (translate: Translate, facts: LetterFacts) => Said> = {
  receipt: (translate, facts) => ({
    subject: translate('paid_subject'),
    paragraphs: [
      translate('receipt'),
      ...standing(translate, facts),
      ...(facts.next ? [translate('receipt_later')] : []),
    ],
    link: translate('see'),
  }),
  charge_soon: (translate, { isForbidden }) =>
    isForbidden
      ? {
          subject: translate('soon_other_subject'),
          paragraphs: [translate('soon_other'), translate('soon_other_next')],
          link: translate('expires_link'),
        }
      : {
          subject: translate('soon_subject'),
          paragraphs: [translate('soon'), translate('soon_next')],
          link: translate('see'),
        },
  charged: (translate, facts) => ({
    subject: translate('paid_subject'),
    paragraphs: [
      translate(facts.numbers ? 'charged_several' : 'charged'),
      ...standing(translate, facts),
    ],
    link: translate('see'),
  }),
  declined: (translate, facts) => ({
    subject: translate('declined_subject'),
    paragraphs: [
      ...uncollected(translate, facts),
      facts.next && facts.isOverdue && !facts.isForbidden
        ? `${translate('declined_free')} ${translate('declined_next')}`
        : translate('declined_free'),
    ],
    link: translate('declined_link'),
  }),
  card_expires: (translate) => ({
    subject: translate('expires_subject'),
    // This sentence begins with the card's name, so its first letter becomes upper case.
    paragraphs: [upperFirst(translate('expires')), translate('expires_next')],
    link: translate('expires_link'),
  }),
  card_replaced: (translate, { late }) => ({
    subject: translate('replaced_subject'),
    paragraphs: [
      late === null
        ? translate('replaced')
        : `${translate('replaced')} ${translate('replaced_late')}`,
      translate('replaced_next'),
    ],
    link: translate('see'),
  }),
  refunded: (translate, facts) => ({
    subject: translate('refunded_subject'),
    paragraphs: [
      `${translate('refunded')}${facts.changesPlan ? ` ${translate('refunded_plan')}` : ''}`,
      ...(facts.returned ? [translate('refunded_card')] : []),
      ...(facts.changesPlan ? standing(translate, facts) : []),
    ],
    link: translate('see'),
  }),
  plan_finished: (translate, { numbers, isCharge }) => ({
    subject: translate('finished_subject'),
    paragraphs: [
      ...(isCharge ? [translate(numbers ? 'charged_several' : 'charged')] : []),
      translate('finished'),
    ],
    link: translate('see'),
  }),
  sign_in_link: (translate) => ({
    subject: translate('link_subject'),
    paragraphs: [translate('link'), translate('link_next')],
    link: translate('link_open'),
  }),
  answer: (translate, { answer }) => ({
    subject: translate('answer_subject'),
    paragraphs: [
      translate('answer'),
      ...linesOf(answer?.text ?? ''),
      ...(answer?.question
        ? [`${translate('answer_asked')} “${linesOf(answer.question).join(' ')}”`]
        : []),
    ],
    link: translate('answer_link'),
  }),
};

/** Says why a payment was not collected, and what happens next. */
function uncollected(
  translate: Translate,
  { uncharged, isForbidden, retryOn, retriesMore, isOverdue }: LetterFacts,
): string[] {
  if (uncharged === 'lapsed') return [translate('lapsed'), translate('lapsed_next')];
  const why = translate(uncharged === 'not_asked' ? 'declined_unasked' : 'declined');
  if (isForbidden) return [why, translate('declined_other')];
  if (retryOn) {
    const more = retriesMore ? ` ${translate('declined_retry_more')}` : '';
    return [why, `${translate('declined_retry')}${more} ${translate('declined_retry_now')}`];
  }
  return isOverdue ? [why, translate('declined_stopped')] : [why];
}

/**
 * Says where the plan stands, in one paragraph. A plan with one payment, or with none left, needs
 * no such paragraph.
 */
function standing(translate: Translate, { count, isOver, next }: LetterFacts): string[] {
  if (count === 1 || isOver) return [];
  return [next ? `${translate('standing')} ${translate('standing_next')}` : translate('standing')];
}

/** Each line that a person wrote becomes a paragraph. */
const linesOf = (text: string) => text.split('\n').filter((line) => line.trim() !== '');

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
