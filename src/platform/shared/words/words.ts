import type { Language } from '../language.ts';
import { af } from './af.ts';
import { en } from './en.ts';
import { zu } from './zu.ts';

// The texts that shoppers read, one catalogue per language. English is the source: a text that
// another language lacks does not compile, and a test finds texts that no page and no message uses.
// `{name}` stands for a value. A native speaker has not reviewed the Afrikaans and isiZulu texts
// yet (decision 0028).

/**
 * A catalogue has one section for each place where its texts appear, such as the hosted page, the
 * receipt or the mails. So the hosted page loads only the texts that it needs.
 */
export type Words = {
  [Section in keyof typeof en]: Record<keyof (typeof en)[Section], string>;
};
export type PageKey = keyof typeof en.page;
export type PageWords = Words['page'];

export const words: Record<Language, Words> = { en, af, zu };

/** The texts of messages, as types, so that the values they name can be checked. */
export type LetterText = typeof en.letter;

/** The values that a text names: `amount` of `Pay {amount} now`. */
export type ValuesIn<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ValuesIn<Rest>
  : never;
