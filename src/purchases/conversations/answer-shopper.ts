import type { Merchant } from '#merchants/merchant.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { type QueueDeps, queueMessages } from '#purchases/messages/queue-messages.ts';
import { type OperatorDeps, OperatorError, operate, personOf } from '#record/actions/operate.ts';
import {
  insertEntry,
  listEntries,
  lockConversation,
  moveConversation,
} from './conversation.sql.ts';
import { answerCharactersMax, cleanText, entriesMax } from './conversation.ts';

type Key = { merchant_id: string; checkout_id: string };

export type Answer = {
  /** Names the answer, so that a repeated request with the same text writes it only once. */
  request_id: string;
  /** `moved_at` of the conversation as the person saw it. */
  seen_at: string;
  text: string;
  solves: boolean;
};

/**
 * Writes a person's answer to the shopper, which is mailed and shown on the plan page. The audit
 * does not contain the text, because it may hold personal data, which erasing a shopper must
 * delete.
 */
export async function answerShopper(
  deps: OperatorDeps & QueueDeps,
  operator: string,
  merchant: Merchant,
  { checkout_id }: Pick<Key, 'checkout_id'>,
  answer: Answer,
): Promise<void> {
  const key = { merchant_id: merchant.id, checkout_id };
  const text = cleanText(answer.text);
  if (text === '' || text.length > answerCharactersMax) {
    throw new OperatorError(`An answer must have 1 to ${answerCharactersMax} characters.`);
  }
  if (!deps.sendsMessages) {
    throw new OperatorError('This service sends no e-mail, so the shopper cannot be answered.');
  }
  await operate(deps, operator, 'conversations answer', async (db) => {
    // Erasing a shopper holds this lock while it deletes the texts.
    const checkout = await lockCheckout(db, merchant.id, checkout_id);
    const conversation = await lockConversation(db, key);
    if (!conversation || !checkout || checkout.erased_at !== null) {
      throw new OperatorError('The shopper’s data was erased, so no answer can be sent.');
    }
    const entries = await listEntries(db, key, entriesMax);
    const details = { request_id: answer.request_id, solves: answer.solves };
    const done = { subject_id: checkout_id, merchant_id: merchant.id, details, result: null };
    const earlier = entries.find(({ id }) => id === answer.request_id);
    if (earlier && earlier.text !== text) {
      throw new OperatorError('This request was already used for another answer. Begin a new one.');
    }
    if (earlier) {
      const isNewest = conversation.moved_at === earlier.at;
      if (answer.solves && isNewest) {
        await moveConversation(db, key, { status: 'solved', moved_at: earlier.at });
      }
      return done;
    }
    if (conversation.moved_at !== answer.seen_at) {
      throw new OperatorError('There are newer messages here. Read them before you answer.');
    }
    if (entries.length >= entriesMax) {
      throw new OperatorError('This conversation is full. Write to the shopper by e-mail.');
    }
    const at = timestamp(merchant.now());
    const author = { author: 'person', person_id: personOf(deps), name: operator } as const;
    // Refuse an id that exists. It could be that of a text in another conversation, and that text
    // would be mailed to this shopper.
    if (!(await insertEntry(db, { ...key, id: answer.request_id, ...author, text, at }))) {
      throw new OperatorError(
        'An answer with this request_id was written elsewhere. Use another request_id.',
      );
    }
    const status = answer.solves ? 'solved' : 'answered';
    await moveConversation(db, key, { status, moved_at: at });
    await queueMessages(deps, db, [
      { ...key, kind: 'answer', about: answer.request_id, facts: { entry: answer.request_id }, at },
    ]);
    return done;
  });
}

/** Records a person's decision that nothing is left to do. The shopper gets no message. */
export async function solveConversation(
  deps: OperatorDeps,
  operator: string,
  key: Key,
  seen_at: string,
): Promise<void> {
  await operate(deps, operator, 'conversations solve', async (db) => {
    const conversation = await lockConversation(db, key);
    if (conversation?.moved_at !== seen_at) {
      throw new OperatorError('There are newer messages here. Read them first.');
    }
    await moveConversation(db, key, { status: 'solved', moved_at: conversation.moved_at });
    const { merchant_id, checkout_id: subject_id } = key;
    return { subject_id, merchant_id, details: {}, result: null };
  });
}
