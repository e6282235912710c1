import type Stripe from 'stripe';
import { type DisputeReason, disputeReasons } from '../cards.ts';
import { invalidRequest, missing, StripeAnswer } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { makeBalanceTransaction } from '../objects/balance-transaction.ts';
import {
  agedDispute,
  evidenceTexts,
  isInquiry,
  makeDispute,
  responseSeconds,
} from '../objects/dispute.ts';
import type { EventType } from '../objects/event.ts';
import type { Kept } from '../store.ts';
import { emit } from './events.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok, oneOf, throwMissing } from './operation.ts';

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

/** Money of a dispute moves: out when it opens, back when it is won. The fee is not returned. */
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

function tell(context: Context, dispute: Kept<'dispute'>, type: EventType): void {
  emit(context, dispute.merchant, type, present(context, dispute));
}

/** The disputes of a charge, as of now. */
export function disputesOf(context: Context, charge: string): Stripe.Dispute[] {
  return context.store
    .withMember('dispute', 'charge', charge)
    .map((dispute) => agedDispute(dispute, context.timeOf(dispute.merchant)).object);
}

function findDispute(context: Context, id: string): Kept<'dispute'> {
  const dispute = context.store.find('dispute', id);
  if (dispute === null) throw missing('dispute', id);
  return agedDispute(dispute, context.timeOf(dispute.merchant));
}

function present(context: Context, kept: Kept<'dispute'>): Stripe.Dispute {
  const { object } = agedDispute(kept, context.timeOf(kept.merchant));
  const balance_transactions = context.store
    .withMember('balance_transaction', 'source', object.id)
    .map((transaction) => transaction.object);
  return { ...object, balance_transactions };
}

export function retrieveDispute(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  return ok(present(context, findDispute(context, id)));
}

export function listDisputes(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'dispute',
    url: '/v1/disputes',
    filters: ['charge', 'payment_intent'],
    present: (dispute) => present(context, dispute),
  });
}

const evidenceShape = Object.fromEntries(evidenceTexts.map((name) => [name, 'string' as const]));

/** Stages evidence, or submits it. Evidence is submitted once, before the deadline. */
export function updateDispute(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, {
    evidence: evidenceShape,
    submit: 'boolean',
    metadata: 'metadata',
  });
  const dispute = findDispute(context, id);
  const { object } = dispute;
  if (given.metadata) Object.assign(object.metadata, given.metadata);
  if (given.evidence === undefined && given.submit !== true) {
    context.store.save('dispute', dispute);
    return ok(present(context, dispute));
  }
  refuseUnlessOpen(object);
  Object.assign(object.evidence, given.evidence ?? {});
  object.evidence_details.has_evidence = true;
  const wasInquiry = isInquiry(object);
  // As with Stripe, evidence is submitted unless the caller says that it is only staged.
  if (given.submit !== false) {
    object.evidence_details.submission_count = 1;
    object.evidence_details.submission_method = 'manual';
    object.status = wasInquiry ? 'warning_under_review' : 'under_review';
  }
  context.store.save('dispute', dispute);
  tell(context, dispute, 'charge.dispute.updated');
  // Stripe's test evidence decides the dispute at once.
  const text = object.evidence.uncategorized_text;
  if (given.submit !== false && text === 'winning_evidence') settle(context, dispute, 'won');
  if (given.submit !== false && text === 'losing_evidence') settle(context, dispute, 'lost');
  return ok(present(context, dispute));
}

/** Accepts the dispute: it is lost. */
export function closeDispute(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const dispute = findDispute(context, id);
  refuseUnlessOpen(dispute.object);
  settle(context, dispute, 'lost');
  return ok(present(context, dispute));
}

function refuseUnlessOpen({ status }: Stripe.Dispute): void {
  if (status === 'needs_response' || status === 'warning_needs_response') return;
  throw new StripeAnswer(
    400,
    {
      type: 'invalid_request_error',
      message: `This dispute takes no evidence and cannot be closed because it has a status of ${status}.`,
    },
    true,
  );
}

function settle(context: Context, dispute: Kept<'dispute'>, outcome: 'won' | 'lost'): void {
  const { object } = dispute;
  const wasInquiry = isInquiry(object);
  object.status = wasInquiry ? 'warning_closed' : outcome;
  context.store.save('dispute', dispute);
  if (!wasInquiry && outcome === 'won') {
    book(context, dispute, 'dispute_reversal', object.amount, null);
    tell(context, dispute, 'charge.dispute.funds_reinstated');
  }
  tell(context, dispute, 'charge.dispute.closed');
}

// Control of disputes, for tests and the sandbox.

export function controlDispute(context: Context, form: Form): Answer {
  const given = readForm(form, { payment_intent: 'string', reason: 'string', amount: 'integer' });
  const reason = given.reason ?? 'fraudulent';
  oneOf(reason, Object.keys(disputeReasons), 'reason');
  const id = given.payment_intent ?? throwMissing('payment_intent');
  const intent = context.store.find('payment_intent', id);
  const charge = intent && context.store.find('charge', String(intent.object.latest_charge));
  if (!charge) throw missing('payment_intent', id, 'payment_intent');
  const amount = given.amount ?? charge.object.amount_captured;
  if (!charge.object.captured || amount < 1 || amount > charge.object.amount_captured) {
    throw invalidRequest('Only what was captured can be disputed.', { param: 'amount' });
  }
  if (disputesOf(context, charge.object.id).some(({ status }) => !isOver(status))) {
    throw invalidRequest('The payment is disputed already.', { param: 'payment_intent' });
  }
  const dispute = openDispute(context, charge, { reason: reason as DisputeReason, amount });
  return ok(present(context, dispute));
}

const isOver = (status: string) => ['won', 'lost', 'warning_closed'].includes(status);

/** The bank decides: `won`, `lost`, or an inquiry becomes a dispute (`escalated`). */
export function controlResolution(context: Context, form: Form, id: string): Answer {
  const { outcome = throwMissing('outcome') } = readForm(form, { outcome: 'string' });
  oneOf(outcome, ['won', 'lost', 'escalated'], 'outcome');
  const dispute = findDispute(context, id);
  const { object } = dispute;
  if (isOver(object.status) || (outcome === 'escalated' && !isInquiry(object))) {
    throw invalidRequest(`A dispute with a status of ${object.status} cannot be ${outcome}.`, {
      param: 'outcome',
    });
  }
  if (outcome === 'escalated') {
    object.status = 'needs_response';
    object.is_charge_refundable = false;
    object.evidence_details.due_by = context.timeOf(dispute.merchant) + responseSeconds;
    context.store.save('dispute', dispute);
    withdraw(context, dispute);
    tell(context, dispute, 'charge.dispute.updated');
  } else settle(context, dispute, outcome === 'won' ? 'won' : 'lost');
  return ok(present(context, dispute));
}
