import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { findMessage, listCopies } from '#purchases/messages/message.sql.ts';
import type { Message } from '#purchases/messages/message.ts';
import { type QueueDeps, queueMessages } from '#purchases/messages/queue-messages.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { composeMessage } from './compose-message.ts';
import { composeRequest } from './compose-request.ts';
import type { Letter } from './letter.ts';
import { listMessageSources, type MessageSources } from './message-subject.sql.ts';
import { renderSubject, renderText } from './render-letter.ts';
import { isStillTrue, subjectOf } from './send-messages.ts';

type Key = { merchant_id: string; checkout_id: string };

/** A message as it would be written now. If it cannot be sent again, `refusal` says why. */
export type ShownMessage = { to: string; subject: string; text: string; refusal: string | null };

/** The shortest time between two copies of one message. */
const pauseSeconds = 600;
/** A shopper gets at most this many copies of one message. */
const copiesMax = 20;

/**
 * Shows the mail of a message to a person at the console. Mails are not kept, so it is written
 * again from the plan as it is now. The shopper's own link is left out, because it would sign the
 * reader in as the shopper.
 */
export async function showMessage(
  deps: { database: Database; clock: Clock } & QueueDeps,
  merchant: Merchant,
  message: Message,
): Promise<ShownMessage> {
  return await reading(deps, async (db) => {
    const sources = await sourcesOf(db, merchant, message);
    const today = merchant.localDate(merchant.now()).toString();
    const refusal = explainRefusal(deps, merchant, message, sources, await copiesOf(db, message));
    const found = letterOf(merchant, message, sources, today);
    if (found === null) return { to: '', subject: '', text: '', refusal };
    const { to, letter } = found;
    return { to, subject: renderSubject(letter), text: renderText(letter), refusal };
  });
}

function letterOf(
  merchant: Merchant,
  message: Message,
  sources: MessageSources,
  today: string,
): { to: string; letter: Letter } | null {
  const { kind, facts } = message;
  const checkout = sources.checkouts.get(message.checkout_id ?? '');
  if (!checkout || kind === 'payment_link') return null;
  if (kind === 'evidence_asked') {
    return { to: merchant.contact ?? '', letter: composeRequest(merchant, checkout, facts, '') };
  }
  const subject = subjectOf(merchant, message, sources, today, '(the shopper’s own link)');
  if (subject === null) return null;
  return { to: checkout.customer.email, letter: composeMessage({ kind, facts }, subject) };
}

/**
 * Sends a message again for a person, as a new message: mail programs hide a second mail with the
 * same Message-ID.
 */
export async function sendAgain(
  deps: OperatorDeps & QueueDeps,
  operator: string,
  merchant: Merchant,
  checkout_id: string,
  id: string,
): Promise<void> {
  const key: Key = { merchant_id: merchant.id, checkout_id };
  await operate(deps, operator, 'messages send-again', async (db) => {
    // Two people who send the same message wait for each other.
    await lockCheckout(db, merchant.id, checkout_id);
    const message = isUuid(id) ? await findMessage(db, merchant.id, checkout_id, id) : null;
    if (!message) throw new OperatorError(`This order has no message ${id}.`);
    const sources = await sourcesOf(db, merchant, message);
    const copies = await copiesOf(db, message);
    const refusal = explainRefusal(deps, merchant, message, sources, copies);
    if (refusal !== null) throw new OperatorError(refusal);
    const { kind, facts } = message;
    const about = `${causeOf(message)}#${copies.length + 2}`;
    await queueMessages(deps, db, [{ ...key, kind, about, facts, at: timestamp(merchant.now()) }]);
    const details = { message: id, kind };
    return { subject_id: checkout_id, merchant_id: merchant.id, details, result: null };
  });
}

const causeOf = ({ about }: Pick<Message, 'about'>) => about.split('#')[0] ?? '';

const copiesOf = (db: Handle, message: Message) =>
  listCopies(db, message, causeOf(message), copiesMax);

function explainRefusal(
  { sendsMessages }: QueueDeps,
  merchant: Merchant,
  message: Message,
  sources: MessageSources,
  copies: Pick<Message, 'created_at'>[],
): string | null {
  const now = merchant.now();
  if (!sendsMessages) return 'This service sends no mail.';
  if (sources.checkouts.get(message.checkout_id ?? '')?.erased_at !== null) {
    return 'The shopper’s data was erased.';
  }
  if (message.kind === 'sign_in_link') {
    return 'The shopper can ask for a new link on the plan page.';
  }
  if (message.kind === 'evidence_asked') {
    return 'To ask the merchant again, open the page of the dispute.';
  }
  if (message.status === 'pending') return 'It has not been sent yet. The service will send it.';
  if (!isStillTrue(message, sources, merchant.localDate(now).toString(), now)) {
    return 'What it says is no longer true, so it is not sent again.';
  }
  const since = timestamp(secondsAfter(now, -pauseSeconds));
  if (copies.some(({ created_at }) => created_at > since)) {
    return 'It was sent again a moment ago. Wait ten minutes before the next one.';
  }
  if (copies.length >= copiesMax) {
    return `It has been sent again ${copiesMax} times. Contact the shopper in another way.`;
  }
  return null;
}

const sourcesOf = (db: Handle, merchant: Merchant, message: Message) =>
  listMessageSources(db, merchant.id, [message], merchant.now());
