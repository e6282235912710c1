import type { Timestamp } from '#platform/shared/clock.ts';
import { printable } from '#platform/shared/plain-text.ts';

/**
 * A shopper's questions about a plan and the answers of people: one conversation for each plan. It
 * is `open` if the shopper wrote last, `answered` after an answer, and `solved` when a person has
 * marked it as solved, with or without an answer. A new question opens it again.
 */
export const conversationStatuses = ['open', 'answered', 'solved'] as const;
export type ConversationStatus = (typeof conversationStatuses)[number];

export type Conversation = {
  merchant_id: string;
  checkout_id: string;
  status: ConversationStatus;
  /**
   * The time of the last text, by the shopper or by a person who answers, on the merchant's clock.
   */
  moved_at: Timestamp;
};

/** One text of a conversation. A shopper's text has no name. */
export type ConversationEntry = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  author: 'shopper' | 'person';
  person_id: string | null;
  name: string | null;
  text: string;
  at: Timestamp;
};

export const questionCharactersMax = 1_000;
export const answerCharactersMax = 4_000;

/** A conversation has at most this many texts, so that all of them can be read at once. */
export const entriesMax = 200;

/** The plan page and the console show at most this many texts, the newest ones. */
export const entriesShown = 50;

/** A text as it is stored: without characters that change how the surrounding text is shown. */
export const cleanText = (text: string) =>
  printable(text.normalize('NFC').replaceAll('\r\n', '\n'))
    .replace(/\n{3,}/g, '\n\n')
    .trim();
