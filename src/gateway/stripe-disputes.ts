import type Stripe from 'stripe';
import { timestamp } from '../shared/clock.ts';
import type { DisputeState, Gateway, MerchantTime } from './gateway.ts';

const statuses: Partial<Record<Stripe.Dispute['status'], DisputeState['status']>> = {
  warning_needs_response: 'inquiry',
  warning_under_review: 'inquiry',
  needs_response: 'needs_response',
  under_review: 'under_review',
  won: 'won',
  lost: 'lost',
};

const needsResponse = new Set<Stripe.Dispute['status']>([
  'needs_response',
  'warning_needs_response',
]);

const idOf = (value: string | { id: string } | null) =>
  typeof value === 'string' || value === null ? value : value.id;

const timeOf = (seconds: number) =>
  timestamp(Temporal.Instant.fromEpochMilliseconds(seconds * 1000));

function disputeState(dispute: Stripe.Dispute): DisputeState {
  const { evidence_details: evidence, balance_transactions: moved } = dispute;
  return {
    dispute_ref: dispute.id,
    payment_ref: idOf(dispute.payment_intent),
    amount: dispute.amount,
    currency: dispute.currency.toUpperCase(),
    reason: dispute.reason,
    network_reason_code: dispute.network_reason_code ?? null,
    // An inquiry that ended, and whatever Stripe adds: nothing can be done about it.
    status: statuses[dispute.status] ?? 'closed',
    opened_at: timeOf(dispute.created),
    due_by: evidence.due_by === null ? null : timeOf(evidence.due_by),
    // An inquiry that was answered keeps its count when it becomes a dispute, which needs evidence.
    has_answer: evidence.submission_count > 0 && !needsResponse.has(dispute.status),
    withdrawn: 0 - moved.reduce((sum, { amount }) => sum + amount, 0),
    fee: moved.reduce((sum, { fee }) => sum + fee, 0),
  };
}

type DisputeCalls = Pick<
  Gateway,
  | 'receivesEvents'
  | 'readEvent'
  | 'listDisputes'
  | 'dispute'
  | 'stageEvidence'
  | 'submitEvidence'
  | 'acceptDispute'
>;

/** The part of the port that is about disputes. */
export function disputeCalls(
  stripe: Stripe,
  options: (merchant: MerchantTime, key?: string) => Stripe.RequestOptions,
  fail: (error: unknown) => never,
  webhookSecret: string | undefined,
): DisputeCalls {
  return {
    receivesEvents: webhookSecret !== undefined,

    async readEvent(raw, signature) {
      if (webhookSecret === undefined) return null;
      try {
        const event = await stripe.webhooks.constructEventAsync(raw, signature, webhookSecret);
        const isDispute = event.type.startsWith('charge.dispute.');
        return { dispute_ref: isDispute ? (event.data.object as { id: string }).id : null };
      } catch {
        return null;
      }
    },

    async listDisputes(after) {
      const page = await stripe.disputes
        .list({ limit: 100, ...(after !== null && { starting_after: after }) })
        .catch(fail);
      const next = page.has_more ? (page.data.at(-1)?.id ?? null) : null;
      return { disputes: page.data.map(disputeState), next };
    },

    async dispute(merchant, dispute_ref) {
      const found = await stripe.disputes.retrieve(dispute_ref, {}, options(merchant)).catch(fail);
      return disputeState(found);
    },

    async stageEvidence({ key, merchant, dispute_ref, evidence }) {
      const staged = await stripe.disputes
        .update(dispute_ref, { evidence, submit: false }, options(merchant, key))
        .catch(fail);
      return disputeState(staged);
    },

    async submitEvidence({ key, merchant, dispute_ref, evidence }) {
      const submitted = await stripe.disputes
        .update(dispute_ref, { evidence, submit: true }, options(merchant, key))
        .catch(fail);
      return disputeState(submitted);
    },

    async acceptDispute({ key, merchant, dispute_ref }) {
      const closed = await stripe.disputes
        .close(dispute_ref, {}, options(merchant, key))
        .catch(fail);
      return disputeState(closed);
    },
  };
}
