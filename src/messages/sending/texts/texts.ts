import type { PaymentState } from '../../../shoppers/plan.ts';
import type { MessageKind } from '../../message.ts';
import type { LetterFacts } from '../letter.ts';

/** What a letter of one kind says in one language. */
export type Words = {
  subject: string;
  paragraphs: string[];
  /** The label of the one link that the letter has. */
  link: string;
};

/** Everything that messages say in one language. The type makes a missing text a compile error. */
export type MessageTexts = {
  letters: Record<MessageKind, (facts: LetterFacts) => Words>;
  states: Record<PaymentState, string>;
  payment: (number: number, count: number) => string;
  footer: (merchant: string) => string[];
};

/** Sentences that only some letters have: empty ones are left out. */
export const sentences = (...parts: (string | null | false)[]) =>
  parts.filter((part): part is string => typeof part === 'string' && part !== '');
