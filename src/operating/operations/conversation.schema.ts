import Type from 'typebox';
import { languages } from '#platform/shared/language.ts';
import {
  answerCharactersMax,
  conversationStatuses,
} from '#purchases/conversations/conversation.ts';
import { Id, nullable, oneOf, owner, paging, Time } from './list.schema.ts';

/** GET /api/conversations: shoppers' questions. The one that changed last comes first. */
export const ConversationsQuery = Type.Object({
  ...paging,
  status: Type.Optional(oneOf(conversationStatuses)),
});

export const ConversationRow = Type.Object({
  checkout_id: Id,
  ...owner,
  status: oneOf(conversationStatuses),
  moved_at: Time,
  /** The last text, and whether the shopper wrote it. */
  text: Type.String(),
  is_asked: Type.Boolean(),
});
export type ConversationRow = Type.Static<typeof ConversationRow>;

/** GET /api/conversations/:id, by the checkout's id, and the answer to every action on it. */
export const ConversationDetails = Type.Object({
  ...ConversationRow.properties,
  /** The shopper's language, in which the mail around an answer is written. */
  language: oneOf(languages),
  /** False if the shopper cannot be reached by mail. */
  may_answer: Type.Boolean(),
  /** The newest texts, in ascending order. A shopper's text has no name. */
  entries: Type.Array(
    Type.Object({
      id: Id,
      at: Time,
      author: oneOf(['shopper', 'person'] as const),
      name: nullable(Type.String()),
      text: Type.String(),
    }),
  ),
  /** Whether there are older texts. */
  is_cut: Type.Boolean(),
});
export type ConversationDetails = Type.Static<typeof ConversationDetails>;

/** POST /api/conversations/:id/answer. `seen_at` is the `moved_at` that the person saw. */
export const AnswerShopper = Type.Object({
  request_id: Id,
  seen_at: Time,
  text: Type.String({ minLength: 1, maxLength: answerCharactersMax }),
  solves: Type.Boolean(),
});

/** POST /api/conversations/:id/solve */
export const SolveConversation = Type.Object({ seen_at: Time });
