import type Stripe from 'stripe';
import type { Static } from 'typebox';
import type { Context } from '../books/context.ts';
import { answerDispute, findDispute, settleDispute, takesAnswer } from '../books/disputes.ts';
import { agedDispute } from '../objects/dispute.ts';
import type { EventObject } from '../objects/event.ts';
import type { Kept } from '../store.ts';
import { HyperswitchError } from './errors.ts';
import type * as schemas from './schemas.ts';

type Answer = Static<typeof schemas.dispute>;

const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString();

/**
 * Hyperswitch's status of a dispute. A dispute that the merchant lost is expired if its deadline
 * passed, accepted if no evidence was submitted, and lost otherwise.
 */
function statusOf({ status, evidence_details }: Stripe.Dispute): Answer['dispute_status'] {
  const { past_due, submission_count } = evidence_details;
  switch (status) {
    case 'needs_response':
    case 'warning_needs_response':
      return 'dispute_opened';
    case 'under_review':
    case 'warning_under_review':
      return 'dispute_challenged';
    case 'won':
      return 'dispute_won';
    case 'warning_closed':
      return past_due ? 'dispute_expired' : 'dispute_cancelled';
    default:
      if (past_due) return 'dispute_expired';
      return submission_count === 0 ? 'dispute_accepted' : 'dispute_lost';
  }
}

function present(dispute: Stripe.Dispute): Answer {
  const { due_by } = dispute.evidence_details;
  return {
    dispute_id: dispute.id,
    payment_id: String(dispute.payment_intent),
    attempt_id: `${String(dispute.payment_intent)}_1`,
    amount: String(dispute.amount),
    currency: dispute.currency.toUpperCase(),
    dispute_stage:
      dispute.payment_method_details?.card?.case_type === 'inquiry' &&
      dispute.status.startsWith('warning_')
        ? 'pre_dispute'
        : 'dispute',
    dispute_status: statusOf(dispute),
    connector: 'test_acquirer',
    connector_status: dispute.status,
    connector_dispute_id: dispute.id,
    connector_reason: dispute.reason,
    connector_reason_code: dispute.network_reason_code ?? null,
    challenge_required_by: due_by === null ? null : timeOf(due_by),
    connector_created_at: timeOf(dispute.created),
    connector_updated_at: null,
    created_at: timeOf(dispute.created),
    profile_id: null,
    merchant_connector_id: null,
    is_already_refunded: false,
  };
}

function openedDispute(context: Context, id: string): Kept<'dispute'> {
  const dispute = findDispute(context, id);
  if (dispute !== null) return dispute;
  throw new HyperswitchError(404, 'HE_04', 'Dispute does not exist in our records');
}

export const retrieveDispute = (context: Context, id: string): object =>
  present(openedDispute(context, id).object);

/** Lists disputes, newest first. */
export function listDisputes(context: Context, given: { limit: number; offset: number }): object {
  return context.store
    .list('dispute', { limit: given.offset + given.limit })
    .slice(given.offset)
    .map((dispute) => present(agedDispute(dispute, context.timeOf(dispute.merchant)).object));
}

function refuseUnlessOpen({ object }: Kept<'dispute'>): void {
  if (takesAnswer(object)) return;
  throw new HyperswitchError(400, 'HE_03', 'Dispute status validation failed');
}

/** Sends evidence to the bank at once, because Hyperswitch cannot stage evidence. */
export function submitEvidence(
  context: Context,
  { dispute_id, ...given }: Static<typeof schemas.submitEvidence> & { dispute_id: string },
): object {
  const dispute = openedDispute(context, dispute_id);
  refuseUnlessOpen(dispute);
  const texts = Object.entries(given).filter(([, value]) => typeof value === 'string');
  answerDispute(context, dispute, Object.fromEntries(texts) as Record<string, string>, true);
  return present(openedDispute(context, dispute_id).object);
}

export function acceptDispute(context: Context, id: string): object {
  const dispute = openedDispute(context, id);
  refuseUnlessOpen(dispute);
  settleDispute(context, dispute, 'lost');
  return present(openedDispute(context, id).object);
}

/** The webhook that announces an event of the books; null if Hyperswitch sends none for it. */
export function webhookOf(event: EventObject): object | null {
  // Hyperswitch sends no webhook for movements of money.
  if (event.type.startsWith('charge.dispute.funds_')) return null;
  const object = present(event.data.object);
  return {
    merchant_id: 'merchant_test',
    event_id: event.id,
    event_type: object.dispute_status,
    content: { type: 'dispute_details', object },
    timestamp: timeOf(event.created),
  };
}
