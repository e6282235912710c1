import type { PaymentState } from '../../shoppers/plan.ts';

// What a message says, before it becomes text and HTML. A language turns facts into a letter; how a
// letter looks is the same in every language.

export type Letter = {
  /** The merchant, at the head of the letter. */
  from: string;
  subject: string;
  paragraphs: string[];
  /** One line per payment: name, date, amount, state. Empty: no table. */
  rows: LetterRow[];
  link: { label: string; url: string } | null;
  /** Small print under the letter. */
  footer: string[];
};

export type LetterRow = {
  name: string;
  date: string;
  amount: string;
  /** The status, and its word. */
  status: PaymentState;
  state: string;
};

/** What a language is given to write a letter from. Amounts and dates are already in its words. */
export type LetterFacts = {
  merchant: string;
  order: string;
  /** How many payments the plan has. */
  count: number;
  total: string;
  paid: string;
  next: { amount: string; date: string } | null;
  /** The payment, refund or charge that the letter is about. */
  amount: string;
  number: number;
  /** `2–4` when several payments were paid at once; else null. */
  numbers: string | null;
  date: string;
  retryOn: string | null;
  /** `Visa ending 4242`, or null when no card is known. */
  card: { brand: string; last4: string } | null;
  cardExpires: string;
};
