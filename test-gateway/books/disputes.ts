import type Stripe from 'stripe';
import type { DisputeReason } from '../cards.ts';
import { makeBalanceTransaction } from '../objects/balance-transaction.ts';
import { agedDispute, isInquiry, makeDispute, responseSeconds } from '../objects/dispute.ts';
import { type EventType, makeEvent } from '../objects/event.ts';
import type { Kept } from '../store.ts';
import type { Context } from './context.ts';

/** Opens a dispute. Unless it is an inquiry, the amount and a fee are withdrawn at once. */
export function openDispute(
  context: Context,
  charge: Kept<'charge'>,
  given: { reason: DisputeReason; amount: number },
): Kept<'dispute'> {
  const { merchant } = charge;
  const now = context.timeOf(merchant);
  const dispute = makeDispute({ merchant, now }, charge.object, given);
  charge.object.disputed = true;
  context.store.save('charge', charge);
  context.store.save('dispute', dispute);
  tell(context, dispute, 'charge.dispute.created');
  if (!isInquiry(dispute.object)) withdraw(context, dispute);
  return dispute;
}

function withdraw(context: Context, dispute: Kept<'dispute'>): void {
  const { dispute: amount } = context.account.fees;
  book(context, dispute, 'dispute', -dispute.object.amount, { amount, description: 'Dispute fee' });
  tell(context, dispute, 'charge.dispute.funds_withdrawn');
}

/**
 * Books the money that a dispute withdraws, or that returns when the dispute is won. The fee does
 * not return.
 */
function book(
  context: Context,
  { object, merchant }: Kept<'dispute'>,
  reporting_category: 'dispute' | 'dispute_reversal',
  amount: number,
  fee: { amount: number; description: string } | null,
): void {
  const transaction = makeBalanceTransaction(
    { merchant, now: context.timeOf(merchant) },
    {
      type: 'adjustment',
      reporting_category,
      amount,
      fee,
      currency: object.currency,
      description: `Chargeback ${amount < 0 ? 'withdrawal' : 'reversal'} for ${object.charge}`,
      source: object.id,
    },
    context.account.settlement,
  );
  context.store.save('balance_transaction', transaction);
}

/** Records what happened. The webhook is called once the transaction is committed. */
function tell(context: Context, dispute: Kept<'dispute'>, type: EventType): void {
  const { merchant } = dispute;
  const event = makeEvent(
    { merchant, now: context.timeOf(merchant) },
    { type, object: presentDispute(context, dispute), hasWebhook: context.notify !== null },
  );
  context.store.save('event', event);
  context.notify?.(event.object);
}

/** The disputes of a charge, in their current state. */
export function disputesOf(context: Context, charge: string): Stripe.Dispute[] {
  return context.store
    .withMember('dispute', 'charge', charge)
    .map((dispute) => agedDispute(dispute, context.timeOf(dispute.merchant)).object);
}

/** A dispute in its current state; null for an unknown id. */
export function findDispute(context: Context, id: string): Kept<'dispute'> | null {
  const dispute = context.store.find('dispute', id);
  return dispute === null ? null : agedDispute(dispute, context.timeOf(dispute.merchant));
}

/** A dispute with the money that it moved. */
export function presentDispute(context: Context, kept: Kept<'dispute'>): Stripe.Dispute {
  const { object } = agedDispute(kept, context.timeOf(kept.merchant));
  const balance_transactions = context.store
    .withMember('balance_transaction', 'source', object.id)
    .map((transaction) => transaction.object);
  return { ...object, balance_transactions };
}

/** Whether the dispute still takes evidence and can be accepted. */
export const takesAnswer = ({ status }: Stripe.Dispute) =>
  status === 'needs_response' || status === 'warning_needs_response';

/**
 * Stages evidence, or submits it. As with Stripe, certain test evidence decides the dispute at
 * once.
 */
export function answerDispute(
  context: Context,
  dispute: Kept<'dispute'>,
  /** Null removes a field. */
  evidence: Record<string, string | null>,
  isSubmitted: boolean,
): void {
  const { object } = dispute;
  Object.assign(object.evidence, evidence);
  object.evidence_details.has_evidence = true;
  if (isSubmitted) {
    object.evidence_details.submission_count = 1;
    object.evidence_details.submission_method = 'manual';
    object.status = isInquiry(object) ? 'warning_under_review' : 'under_review';
  }
  context.store.save('dispute', dispute);
  tell(context, dispute, 'charge.dispute.updated');
  const text = object.evidence.uncategorized_text;
  if (isSubmitted && text === 'winning_evidence') settleDispute(context, dispute, 'won');
  if (isSubmitted && text === 'losing_evidence') settleDispute(context, dispute, 'lost');
}

/** The bank's inquiry becomes a dispute, and its money is withdrawn. */
export function escalateDispute(context: Context, dispute: Kept<'dispute'>): void {
  const { object } = dispute;
  object.status = 'needs_response';
  object.is_charge_refundable = false;
  object.evidence_details.due_by = context.timeOf(dispute.merchant) + responseSeconds;
  context.store.save('dispute', dispute);
  withdraw(context, dispute);
  tell(context, dispute, 'charge.dispute.updated');
}

/**
 * Closes a dispute, because the bank decides or the merchant accepts it. Unless `isReinstated`, the
 * money of a won dispute comes back later.
 */
export function settleDispute(
  context: Context,
  dispute: Kept<'dispute'>,
  outcome: 'won' | 'lost',
  isReinstated = true,
): void {
  const { object } = dispute;
  const wasInquiry = isInquiry(object);
  object.status = wasInquiry ? 'warning_closed' : outcome;
  context.store.save('dispute', dispute);
  if (!wasInquiry && outcome === 'won' && isReinstated) reinstate(context, dispute);
  tell(context, dispute, 'charge.dispute.closed');
}

/** The money of a won dispute comes back. */
export function reinstate(context: Context, dispute: Kept<'dispute'>): void {
  book(context, dispute, 'dispute_reversal', dispute.object.amount, null);
  tell(context, dispute, 'charge.dispute.funds_reinstated');
}

/** Whether the dispute is won and its money has not come back. */
export const isWithheld = (context: Context, dispute: Kept<'dispute'>) =>
  dispute.object.status === 'won' &&
  presentDispute(context, dispute).balance_transactions.length === 1;
