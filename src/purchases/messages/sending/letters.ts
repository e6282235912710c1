import type { Language } from '#platform/shared/language.ts';
import { fillIn } from '#platform/shared/words/fill-in.ts';
import type { LetterText, ValuesIn } from '#platform/shared/words/words.ts';
import { words } from '#platform/shared/words/words.ts';
import type { MessageKind } from '#purchases/messages/message.ts';

// Which sentences each kind of message has. The catalogues have the sentences in every language.

/** The facts of a letter. Amounts and dates are already in the words of its language. */
export type LetterFacts = {
  merchant: string;
  order: string;
  /** How many payments the plan has. */
  count: number;
  /** Refunds cancelled every payment. */
  isCancelled: boolean;
  /** The sum that the plan asks for, without the part that refunds took. */
  total: string;
  paid: string;
  /** The first payment to come; null when there is none. */
  next: { amount: string; date: string } | null;
  /** The payment, refund or charge that the letter is about. */
  amount: string;
  number: number;
  /** `2–4` when several payments were paid at once; else null. */
  numbers: string | null;
  date: string;
  /** When a declined payment is retried by itself; null when it is not, or was due before today. */
  retryOn: string | null;
  /** It is not retried by itself any more. */
  isOverdue: boolean;
  /** Null when no card is known. */
  card: { brand: string; last4: string } | null;
  cardExpires: string;
};

export type Said = {
  subject: string;
  paragraphs: string[];
  /** The label of the one link that the letter has. */
  link: string;
};

export function writeLetter(kind: MessageKind, facts: LetterFacts, language: Language): Said {
  return letters[kind](sayIn(language, facts), facts);
}

/** The values that a letter's texts may name. A text that names another one does not compile. */
const valuesOf = ({
  next,
  card,
  retryOn,
  cardExpires,
  numbers,
  isCancelled,
  isOverdue,
  ...facts
}: LetterFacts) => ({
  ...facts,
  numbers: numbers ?? '',
  next_amount: next?.amount ?? '',
  next_date: next?.date ?? '',
  retry_on: retryOn ?? '',
  expires: cardExpires,
});

type ValueName = keyof ReturnType<typeof valuesOf> | 'card';
type LetterKey = {
  [Key in keyof LetterText]: ValuesIn<LetterText[Key]> extends ValueName ? Key : never;
}[keyof LetterText];
type Say = (key: LetterKey) => string;

function sayIn(language: Language, facts: LetterFacts): Say {
  const { letter } = words[language];
  const card = facts.card ? fillIn(letter.card, facts.card) : letter.card_unknown;
  const values = { ...valuesOf(facts), card };
  return (key) => fillIn(letter[key], values);
}

const letters: Record<MessageKind, (say: Say, facts: LetterFacts) => Said> = {
  receipt: (say, facts) => ({
    subject: say('paid_subject'),
    paragraphs: [
      say('receipt'),
      ...standing(say, facts),
      ...(facts.next ? [say('receipt_later')] : []),
    ],
    link: say('see'),
  }),
  charge_soon: (say) => ({
    subject: say('soon_subject'),
    paragraphs: [say('soon'), say('soon_next')],
    link: say('see'),
  }),
  charged: (say, facts) => ({
    subject: say('paid_subject'),
    paragraphs: [say(facts.numbers ? 'charged_several' : 'charged'), ...standing(say, facts)],
    link: say('see'),
  }),
  declined: (say, { retryOn, isOverdue }) => ({
    subject: say('declined_subject'),
    paragraphs: [
      say('declined'),
      ...(retryOn ? [say('declined_retry')] : isOverdue ? [say('declined_stopped')] : []),
      say('declined_free'),
    ],
    link: say('declined_link'),
  }),
  card_expires: (say) => ({
    subject: say('expires_subject'),
    // The sentence begins with the card.
    paragraphs: [upperFirst(say('expires')), say('expires_next')],
    link: say('expires_link'),
  }),
  card_replaced: (say) => ({
    subject: say('replaced_subject'),
    paragraphs: [say('replaced'), say('replaced_next')],
    link: say('see'),
  }),
  refunded: (say, facts) => ({
    subject: say('refunded_subject'),
    paragraphs: [say('refunded'), say('refunded_next'), ...standing(say, facts)],
    link: say('see'),
  }),
  plan_finished: (say) => ({
    subject: say('finished_subject'),
    paragraphs: [say('finished')],
    link: say('see'),
  }),
  sign_in_link: (say) => ({
    subject: say('link_subject'),
    paragraphs: [say('link'), say('link_next')],
    link: say('link_open'),
  }),
};

/** Where the plan stands, in one paragraph. A plan of one payment, or of none any more, needs none. */
function standing(say: Say, { count, isCancelled, next }: LetterFacts): string[] {
  if (count === 1 || isCancelled) return [];
  return [next ? `${say('standing')} ${say('standing_next')}` : say('standing')];
}

const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
