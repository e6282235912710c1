import assert from 'node:assert/strict';
import { amountRefused } from '#gateway/amount-refused.ts';
import type { Decline } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { MessageFacts } from '#purchases/messages/message.ts';
import {
  type QueueDeps,
  type QueuedMessage,
  queueMessages,
} from '#purchases/messages/queue-messages.ts';
import { lockOpenAlert } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { type Movement, postMovements } from '#record/ledger/post-movements.ts';
import type { Answer, AskedCollection } from './ask-gateway.ts';
import { moveCollections } from './collection.sql.ts';
import { listFinishedPlans, lockLeased, moveSettled, type Settled } from './instalment.sql.ts';
import {
  declinedKey,
  forbidsCard,
  type Instalment,
  nextCollectionTime,
  notAsked,
  retriesAt,
} from './instalment.ts';

export type Answered = AskedCollection & { answer: Answer };

/**
 * Writes the outcomes of requests for several payments of one merchant under one lease, and all
 * their consequences, in one transaction. An outcome counts only while its payment is claimed under
 * that lease.
 */
export async function recordCollections(
  deps: RecordDeps & { database: Database },
  merchant: Merchant,
  answers: Answered[],
): Promise<Answer['outcome'][]> {
  await transaction(deps, ({ db }) => recordAnswers(deps, db, merchant, answers));
  return answers.map(({ answer }) => answer.outcome);
}

type RecordDeps = { clock: Clock; log: Logger } & QueueDeps;

/** Writes the outcomes in the caller's transaction. */
export async function recordAnswers(
  deps: RecordDeps,
  db: Handle,
  merchant: Merchant,
  answers: Answered[],
): Promise<void> {
  const lease = answers[0]?.instalment.lease;
  assert(lease != null);
  const ids = answers.map(({ instalment }) => instalment.checkout_id);
  const claimed = new Set((await lockLeased(db, merchant.id, lease, ids)).map(keyOf));
  // Leave out payments that another process has claimed, or that an earlier run of this transaction
  // has settled.
  const valid = answers.filter(({ instalment }) => claimed.has(keyOf(instalment)));
  if (valid.length === 0) return;
  const now = merchant.now();
  const at = timestamp(now);
  const settled = valid.map((answer) => settle(merchant, answer, now));
  const moving = moveCollections(
    db,
    merchant.id,
    valid.map(({ collection, answer }) => ({
      checkout_id: collection.checkout_id,
      instalment: collection.instalment,
      number: collection.number,
      status: answer.outcome,
      payment_ref: 'payment_ref' in answer ? answer.payment_ref : null,
      ...declineOf(answer),
      scheme: 'scheme' in answer ? (answer.scheme ?? null) : null,
      card_key: declinedKey(collection, answer.outcome === 'declined' ? answer.decline : null),
      settled_at: at,
    })),
  );
  const [moved] = await Promise.all([moving, moveSettled(db, merchant.id, settled)]);
  assert.equal(moved, valid.length, 'a claimed payment has an open collection');
  await postMovements(deps, db, at, valid.flatMap(movementsOf));
  for (const [index, payment] of settled.entries()) {
    const answer = valid[index];
    if (payment.status === 'overdue' && answer) await alertOverdue(deps, db, answer);
  }
  await queueMessages(deps, db, await messagesOf(deps, db, merchant, valid, settled, at));
}

/** The facts about a decline that the collection stores. */
function declineOf(answer: Answer) {
  const decline = answer.outcome === 'declined' ? answer.decline : null;
  return {
    decline_reason: decline?.reason ?? null,
    may_retry: decline?.may_retry ?? null,
    decline_code: decline?.code ?? null,
    network_decline_code: decline?.network_code ?? null,
    wait_hours: decline?.wait_hours ?? null,
  };
}

const keyOf = ({ checkout_id, number }: Instalment) => `${checkout_id}:${number}`;

/** The new state of the payment, and when it is attempted next. */
function settle(
  { territory: { time_zone } }: Merchant,
  { instalment, answer, card }: Answered,
  now: Temporal.Instant,
): Settled {
  const { checkout_id, number, due_on, declines } = instalment;
  const none = {
    checkout_id,
    number,
    payment_ref: null,
    collected_at: null,
    declines,
    due_at: null,
  };
  switch (answer.outcome) {
    case 'collected':
      return {
        ...none,
        status: 'collected',
        payment_ref: answer.payment_ref,
        collected_at: timestamp(now),
      };
    case 'lost':
      return {
        ...none,
        status: instalment.status,
        payment_ref: instalment.payment_ref,
        due_at: timestamp(now),
      };
    case 'lapsed': {
      // Later payments are charged to the stored card. Without one, only the shopper can pay.
      if (card === null) return { ...none, status: 'overdue' };
      const due_at = timestamp(nextCollectionTime(now, time_zone));
      return { ...none, status: 'scheduled', due_at };
    }
    case 'declined': {
      const count = declines + 1;
      const { reason, may_retry, wait_hours } = answer.decline;
      const isOver = !may_retry || reason === 'authentication_failed';
      const next = isOver ? null : retriesAt(due_on, count, now, time_zone, wait_hours);
      if (next === null) return { ...none, status: 'overdue', declines: count };
      return { ...none, status: 'scheduled', declines: count, due_at: timestamp(next) };
    }
  }
}

function movementsOf({ instalment, collection, answer }: Answered): Movement[] {
  const { merchant_id, checkout_id, currency, number } = instalment;
  const of = { merchant_id, checkout_id, currency, instalment: number };
  if (answer.outcome === 'lapsed') return [{ ...of, kind: 'lapsed', amount: instalment.amount }];
  if (answer.outcome !== 'collected') return [];
  const { amount } = collection;
  return collection.kind === 'charge'
    ? [{ ...of, kind: 'collected', amount }]
    : [
        { ...of, kind: 'captured', amount },
        { ...of, kind: 'used', amount: instalment.amount },
      ];
}

/** Why nothing was charged, if the reason was not a decline by the bank. */
function unchargedFor(answer: Answer): Pick<MessageFacts, 'uncharged'> {
  if (answer.outcome === 'lapsed') return { uncharged: 'lapsed' };
  const isUnasked = answer.outcome === 'declined' && answer.decline.code === notAsked;
  return isUnasked ? { uncharged: notAsked } : {};
}

/**
 * Messages to shoppers: about each charge and the end of a plan, about the first and the last
 * decline of a payment, and about a lapsed hold that only the shopper can make good. The other
 * declines change nothing for the shopper.
 */
async function messagesOf(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  answers: Answered[],
  settled: Settled[],
  at: Timestamp,
): Promise<QueuedMessage[]> {
  if (!deps.sendsMessages) return [];
  const messages: QueuedMessage[] = [];
  for (const [index, { instalment, collection, answer }] of answers.entries()) {
    const { merchant_id, checkout_id, number } = instalment;
    const about = `payment ${number}`;
    const { card_ref } = collection;
    const facts = { instalment: number, amount: collection.amount, ...(card_ref && { card_ref }) };
    const key = { merchant_id, checkout_id, at };
    // The shopper already has the receipt for the first payment, so its capture is not announced.
    if (answer.outcome === 'collected' && collection.kind === 'charge') {
      messages.push({ ...key, kind: 'charged', about, facts });
    }
    const isUncollected = answer.outcome === 'declined' || answer.outcome === 'lapsed';
    const isNews = settled[index]?.declines === 1 || settled[index]?.status === 'overdue';
    if (isUncollected && isNews) {
      const attempt = `${about}, attempt ${collection.number}`;
      const why = { ...facts, ...unchargedFor(answer) };
      messages.push({ ...key, kind: 'declined', about: attempt, facts: why });
    }
  }
  // A capture counts as well as a charge: if the shopper has paid off all later payments, the
  // capture of the first one finishes the plan.
  const ids = answers
    .filter((one) => one.answer.outcome === 'collected' && one.number_of_payments > 1)
    .map(({ instalment }) => instalment.checkout_id);
  const finished = ids.length > 0 ? await listFinishedPlans(db, merchant.id, ids) : [];
  for (const checkout_id of finished) {
    // One mail announces the last charge and the end of the plan.
    const last = messages.findLastIndex(
      (one) => one.checkout_id === checkout_id && one.kind === 'charged',
    );
    const facts = last < 0 ? {} : messages.splice(last, 1)[0]?.facts;
    messages.push({ merchant_id: merchant.id, checkout_id, at, kind: 'plan_finished', facts });
  }
  return messages;
}

async function alertOverdue(
  deps: { clock: Clock; random: Random; log: Logger },
  db: Handle,
  { instalment, answer }: Answered,
): Promise<void> {
  const { checkout_id, number } = instalment;
  const why =
    answer.outcome === 'declined'
      ? explainDecline(answer.decline)
      : 'its hold lapsed and no card is stored, so only the shopper can pay it.';
  const about = { merchant_id: instalment.merchant_id, subject_id: checkout_id };
  await raiseAlert(deps, db, {
    kind: 'payment_overdue',
    ...about,
    detail: `Payment ${number} is overdue: ${why}`,
    // One open alert about a checkout covers all of its late payments.
    isNotice: await lockOpenAlert(db, 'payment_overdue', about),
  });
}

function explainDecline({ reason, may_retry, code = null }: Decline): string {
  if (code === amountRefused.code) {
    return 'the gateway does not accept the amount, and the bank was not asked. It would refuse a retry, too.';
  }
  const declined = `the card was declined (${reason.replaceAll('_', ' ')}).`;
  return forbidsCard({ decline_reason: reason, decline_code: code, may_retry })
    ? `${declined} The bank forbids charging this card again. The shopper can pay with another card on the plan page.`
    : `${declined} The shopper can pay it on the plan page, and a retry charges the stored card once more.`;
}
