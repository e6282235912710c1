import { findCheckoutCallback, listCallbackAttempts } from '../callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '../callbacks/callback.ts';
import { findCheckout, findCheckoutMerchant, findMove } from '../checkouts/checkout.sql.ts';
import type { Checkout, CheckoutStatus } from '../checkouts/checkout.ts';
import type { Database } from '../database/database.ts';
import { snapshot } from '../database/transaction.ts';
import { listCollections, listInstalments } from '../instalments/instalment.sql.ts';
import type { Collection, Instalment } from '../instalments/instalment.ts';
import { listPostings } from '../ledger/posting.sql.ts';
import { movementKinds, type Posting } from '../ledger/posting.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import type { Merchant } from '../merchants/merchant.ts';
import { listOperatorActions, type OperatorAction } from '../operators/operator-action.sql.ts';
import { listAttempts } from '../payments/payment-attempt.sql.ts';
import type { PaymentAttempt } from '../payments/payment-attempt.ts';
import { listCheckoutRefunds, listParts } from '../refunds/refund.sql.ts';
import type { RefundPart, RefundRequest } from '../refunds/refund.ts';
import type { Clock, Timestamp } from '../shared/clock.ts';
import { showMoney } from '../shared/money.ts';
import { isUuid } from '../shared/uuid.ts';

/** All rows that belong to one checkout. */
export type CheckoutHistory = {
  merchant: Merchant;
  checkout: Checkout;
  move: { to_status: CheckoutStatus; at: Timestamp } | null;
  attempts: PaymentAttempt[];
  callback: Callback | null;
  callback_attempts: CallbackAttempt[];
  instalments: Instalment[];
  collections: Collection[];
  refunds: RefundRequest[];
  parts: RefundPart[];
  postings: Posting[];
  /** What operators did to the checkout and its refunds, the oldest first, on the real clock. */
  actions: OperatorAction[];
};

/** Reads a checkout and its rows in one snapshot. Null if there is no such checkout. */
export async function readCheckoutHistory(
  deps: { database: Database; clock: Clock },
  id: string,
): Promise<CheckoutHistory | null> {
  return await snapshot(deps, async (db) => {
    const merchant_id = isUuid(id) ? await findCheckoutMerchant(db, id) : null;
    const merchant = merchant_id && (await findMerchant(db, merchant_id));
    const checkout = merchant && (await findCheckout(db, merchant.id, id));
    if (!checkout) return null;
    const key = { merchant_id: merchant.id, checkout_id: checkout.id };
    const of = [key.merchant_id, key.checkout_id] as const;
    const callback = await findCheckoutCallback(db, ...of);
    const refunds = await listCheckoutRefunds(db, ...of);
    const subject_ids = [checkout.id, ...refunds.map((refund) => refund.id)];
    return {
      merchant,
      checkout,
      move: await findMove(db, ...of),
      attempts: (await listAttempts(db, ...of)).reverse(),
      callback,
      callback_attempts: callback ? await listCallbackAttempts(db, callback) : [],
      instalments: await listInstalments(db, key),
      collections: await listCollections(db, key),
      refunds,
      parts: await listParts(db, ...of),
      postings: (await listPostings(db, ...of)).sort(byCause),
      actions: (await listOperatorActions(db, { subject_ids }, 1_000)).reverse(),
    };
  });
}

/** Orders the postings of one transaction, whose ids share a millisecond, causes first. */
function byCause(one: Posting, other: Posting): number {
  const keyOf = ({ at, id, kind }: Posting) =>
    `${at} ${id.slice(0, 13)} ${String(movementKinds.indexOf(kind)).padStart(2, '0')}`;
  return keyOf(one) < keyOf(other) ? -1 : 1;
}

export type TimelineEntry = { at: Timestamp; says: string };

/** What happened to a checkout, in order of time on the merchant's clock. */
export function timelineOf(history: CheckoutHistory): TimelineEntry[] {
  const { merchant, checkout, move } = history;
  const money = (cents: number) => showMoney(cents, { ...merchant.territory, ...checkout });
  const entries: TimelineEntry[] = [
    { at: checkout.created_at, says: `created, ${money(checkout.amount)}` },
    ...history.attempts.map((attempt) => ({
      at: attempt.settled_at ?? attempt.created_at,
      says: describeAttempt(attempt, money),
    })),
  ];
  if (move) {
    const { number_of_payments } = checkout;
    const term = number_of_payments === null ? '' : `, ${countOf(number_of_payments, 'payment')}`;
    entries.push({ at: move.at, says: `${move.to_status.replace('_', ' ')}${term}` });
  }
  for (const attempt of history.callback_attempts) {
    const { number, outcome, reason, operator, started_at } = attempt;
    const by = operator === null ? '' : ` by ${operator}`;
    const why = reason === null ? '' : `: ${reason}`;
    entries.push({ at: started_at, says: `callback, attempt ${number}${by}, ${outcome}${why}` });
  }
  for (const collection of history.collections) {
    entries.push({
      at: collection.settled_at ?? collection.created_at,
      says: describeCollection(collection, money),
    });
  }
  for (const [index, refund] of history.refunds.entries()) {
    entries.push(...refundEntries(history, refund, `refund ${index + 1}`, money));
  }
  // The sort is stable: entries of the same moment keep their order, causes first.
  return entries.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));
}

type Money = (cents: number) => string;

const countOf = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function describeAttempt(attempt: PaymentAttempt, money: Money): string {
  const { number, amount, number_of_payments, card_brand, card_last4, decline_reason } = attempt;
  const card = card_last4 === null ? '' : ` on ${card_brand ?? 'card'} ${card_last4}`;
  const why = decline_reason === null ? '' : `: ${decline_reason}`;
  return `attempt ${number} to pay ${money(amount)} of ${countOf(number_of_payments, 'payment')}${card}, ${attempt.status}${why}`;
}

function describeCollection(collection: Collection, money: Money): string {
  const { instalment, kind, status, decline_reason } = collection;
  const why = decline_reason === null ? '' : `: ${decline_reason}`;
  const outcome = status === 'open' ? 'outcome not known yet' : status;
  return `payment ${instalment}, ${kind} of ${money(collection.amount)}, ${outcome}${why}`;
}

/**
 * The history of one refund. Its row holds only the latest state. The postings hold the earlier
 * ones: every round reserves the amount when it begins and releases it when it ends.
 */
function refundEntries(
  { postings, parts, actions }: CheckoutHistory,
  refund: RefundRequest,
  name: string,
  money: Money,
): TimelineEntry[] {
  const who = (action: string) =>
    actions
      .filter((one) => one.subject_id === refund.id && one.action === action)
      .map(({ operator }) => operator);
  const entry = (at: Timestamp, says: string) => ({ at, says: `${name} ${says}` });
  const entries = [entry(refund.created_at, `requested, ${money(refund.amount)}`)];
  if (refund.approved_at !== null) {
    const [operator] = who('refunds approve');
    const how = operator === undefined ? 'automatically' : `by ${operator}`;
    entries.push(entry(refund.approved_at, `approved ${how}`));
  }
  const booked = postings.filter(({ refund_id }) => refund_id === refund.id);
  const retries = booked.filter(({ kind }) => kind === 'reserved').slice(1);
  for (const [index, { at }] of retries.entries()) {
    entries.push(entry(at, `retried by ${who('refunds retry')[index] ?? 'an operator'}`));
  }
  const ends = booked.filter(({ kind }) => kind === 'released');
  const returns = booked.filter(({ kind }) => kind === 'returned');
  for (const part of parts.filter(({ refund_id }) => refund_id === refund.id)) {
    const { instalment, settled_at, keyed_at } = part;
    const isReturned = returns.some(
      (one) => one.instalment === instalment && one.at === settled_at,
    );
    // The part was done before the card network returned it. The row holds only the return.
    const done =
      isReturned &&
      booked.find(
        (one) => one.kind === 'refunded' && one.instalment === instalment && one.at >= keyed_at,
      );
    if (done) entries.push(entry(done.at, describePart({ ...part, status: 'done' }, money)));
    const says = isReturned
      ? `has ${money(part.amount)} of payment ${instalment} returned by the card network`
      : describePart(part, money);
    entries.push(entry(settled_at ?? keyed_at, says));
  }
  for (const [index, { at }] of ends.entries()) {
    const until = retries[index]?.at;
    const returned = returns.find((one) => one.at >= at && (until === undefined || one.at < until));
    const isLast = until === undefined;
    const reason = isLast && refund.reason !== null ? `: ${refund.reason}` : '';
    if (returned || (isLast && refund.status === 'complete')) {
      entries.push(entry(at, 'complete'));
      if (returned) entries.push(entry(returned.at, `failed${reason}`));
    } else {
      const [operator] = who('refunds decline');
      const how = operator === undefined ? 'failed' : `declined by ${operator}`;
      entries.push(entry(at, `${how}${reason}`));
    }
  }
  return entries;
}

function describePart({ kind, status, instalment, amount }: RefundPart, money: Money): string {
  const what = {
    cancel: `${money(amount)} less of payment ${instalment}`,
    hold: `${money(amount)} less of the hold of payment ${instalment}`,
    card: `${money(amount)} of payment ${instalment} back to the card`,
  }[kind];
  const how = { open: ', in flight', done: '', failed: ', refused', put_back: ', put back' }[
    status
  ];
  return `takes ${what}${how}`;
}
