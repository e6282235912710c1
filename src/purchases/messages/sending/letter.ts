import type { PaymentState } from '#purchases/shoppers/plan.ts';

// The content of a message, before it becomes text and HTML.

export type Letter = {
  /** The merchant's name at the head of the letter. */
  from: string;
  /** The URL of the merchant's logo, which replaces the name. */
  logo?: string;
  subject: string;
  paragraphs: string[];
  /** One line per payment: name, date, amount, state. If it is empty, there is no table. */
  rows: LetterRow[];
  link: { label: string; url: string } | null;
  /** The small print below the letter. */
  footer: string[];
};

export type LetterRow = {
  name: string;
  date: string;
  amount: string;
  /** The status of the payment, and its name in the letter's language. */
  status: PaymentState;
  state: string;
};
