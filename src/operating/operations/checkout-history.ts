import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import { findRowById } from '#operating/search/search.sql.ts';
import type { Database } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutCallback, listCheckoutEvents } from '#purchases/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import { findCheckout, findMove } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout, CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import type { ConversationEntry } from '#purchases/conversations/conversation.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { findStoredCardFace, listInstalments } from '#purchases/instalments/instalment.sql.ts';
import type { Collection, Instalment } from '#purchases/instalments/instalment.ts';
import type { Message } from '#purchases/messages/message.ts';
import {
  isFirstPayment,
  isOnPlan,
  type PaymentAttempt,
} from '#purchases/payments/payment-attempt.ts';
import type { RefundPart, RefundRequest } from '#purchases/refunds/refund.ts';
import { listOperatorActions, type OperatorAction } from '#record/actions/operator-action.sql.ts';
import { balancesOf, movementKinds, type Posting } from '#record/ledger/posting.ts';
import type { Note } from '#record/notes/note.sql.ts';
import { namesFor, type ShowActor } from './actors.ts';
import { withoutStaff } from './callbacks.ts';
import { notesFor, withAuthors } from './checkout-pages.ts';
import {
  countCheckoutRefunds,
  type HistoryOwner,
  type HistoryTable,
  listNewest,
  sumPostings,
} from './history.sql.ts';
import { listPartsOf } from './refunds.sql.ts';
import { peopleOf, withNames } from './refunds.ts';

export type CheckoutHistory = {
  merchant: Merchant;
  checkout: Checkout;
  move: { to_status: CheckoutStatus; at: Timestamp } | null;
  /** The attempts at the checkout's first payment. */
  attempts: PaymentAttempt[];
  callback: Callback | null;
  callback_attempts: CallbackAttempt[];
  /** The events about refunds and disputes that were sent to the shop. */
  events: Callback[];
  instalments: Instalment[];
  collections: Collection[];
  /** The shopper's attempts on the plan page, after the first payment. */
  planAttempts: PaymentAttempt[];
  refunds: RefundRequest[];
  /** How many older refunds there are. */
  earlier_refunds: number;
  parts: RefundPart[];
  postings: Posting[];
  /** The sums of all postings by account. */
  balances: ReturnType<typeof balancesOf>;
  messages: Message[];
  card: { brand: string | null; last4: string | null } | null;
  /** Operators' actions on the checkout and its refunds, the oldest first, on the real clock. */
  actions: OperatorAction[];
  notes: Note[];
  conversation: ConversationEntry[];
  disputes: Dispute[];
  /** Returns the names of the people who acted, if the viewer may see them. */
  show: ShowActor;
  /** The tables with more rows than were read: only the newest are here. */
  cut: HistoryTable[];
};

const noLimits = { rows: 1_000_000_000, notes: 1_000_000_000 };

/**
 * Reads a checkout and its rows in one snapshot: the newest rows up to the limits, or all. Returns
 * null if the scope has no such checkout.
 */
export async function readCheckoutHistory(
  deps: { database: Database; clock: Clock },
  scope: Scope,
  id: string,
  limits = noLimits,
): Promise<CheckoutHistory | null> {
  return await snapshot(deps, async (db) => {
    const row = isUuid(id) ? await findRowById(db, scope, 'checkouts', id) : null;
    const merchant = row && (await findMerchant(db, deps.clock, row.merchant_id));
    const checkout = merchant && (await findCheckout(db, merchant.id, id));
    if (!checkout) return null;
    const key = { merchant_id: merchant.id, checkout_id: checkout.id };
    const of = [key.merchant_id, key.checkout_id] as const;
    const cut: HistoryTable[] = [];
    const newest = async <Table extends HistoryTable>(
      table: Table,
      owner: HistoryOwner = key,
      limit = limits.rows,
    ) => {
      const rows = await listNewest(db, table, owner, limit + 1);
      if (rows.length > limit) cut.push(table);
      return rows.slice(-limit);
    };
    const attempts: PaymentAttempt[] = await newest('payment_attempts');
    const callback = await findCheckoutCallback(db, ...of);
    const sent = callback && { merchant_id: merchant.id, callback_id: callback.id };
    const refunds: RefundRequest[] = await newest('refund_requests');
    const disputes: Dispute[] = await newest('disputes');
    const subject_ids = [checkout.id, ...[...refunds, ...disputes].map((one) => one.id)];
    const events = await listCheckoutEvents(db, key, limits.rows);
    subject_ids.push(...[callback, ...events].flatMap((one) => one?.id ?? []));
    const actionsMax = Math.min(limits.rows, 1_000);
    const actions = (await listOperatorActions(db, { subject_ids }, actionsMax)).reverse();
    const notes = await newest('notes', { ...key, ...notesFor(scope) }, limits.notes);
    const conversation = await newest('conversation_entries', key, limits.notes);
    const acted = [...actions, ...conversation].map(({ person_id }) => person_id);
    const show = await namesFor({ scope }, db, [...peopleOf(refunds), ...acted]);
    const refundCount = cut.includes('refund_requests')
      ? await countCheckoutRefunds(db, ...of)
      : refunds.length;
    return {
      merchant,
      checkout,
      move: await findMove(db, ...of),
      attempts: attempts.filter(isFirstPayment),
      callback,
      callback_attempts: sent
        ? withoutStaff({ scope }, await newest('callback_attempts', sent))
        : [],
      events,
      instalments: await listInstalments(db, key),
      collections: await newest('collections'),
      planAttempts: attempts.filter(isOnPlan),
      refunds: refunds.map((refund) => withNames(refund, show)),
      earlier_refunds: refundCount - refunds.length,
      parts: await listPartsOf(db, refunds),
      postings: (await newest('postings')).sort(byCause),
      balances: balancesOf(await sumPostings(db, ...of)),
      messages: await newest('messages'),
      card: await findStoredCardFace(db, key),
      actions,
      notes: await withAuthors({ scope }, db, notes),
      conversation,
      disputes,
      show,
      cut,
    };
  });
}

/**
 * Orders postings by time. Those of one transaction have ids with the same millisecond; among them,
 * causes come before their effects.
 */
function byCause(one: Posting, other: Posting): number {
  const keyOf = ({ at, id, kind }: Posting) =>
    `${at} ${id.slice(0, 13)} ${String(movementKinds.indexOf(kind)).padStart(2, '0')}`;
  return keyOf(one) < keyOf(other) ? -1 : 1;
}
