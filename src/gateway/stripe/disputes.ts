import type Stripe from 'stripe';
import type { DisputeCalls } from '#gateway/adapter.ts';
import type { EvidenceFileKind } from '#gateway/evidence.ts';
import type { DisputeState, Gateway } from '#gateway/gateway.ts';
import { networkEvidence, networkNames } from '#gateway/network-evidence.ts';
import type { StripeApi } from './api.ts';
import { fail } from './errors.ts';
import { timeOf } from './states.ts';

const statuses: Partial<Record<Stripe.Dispute['status'], DisputeState['status']>> = {
  warning_needs_response: 'inquiry',
  warning_under_review: 'inquiry',
  needs_response: 'needs_response',
  under_review: 'under_review',
  won: 'won',
  lost: 'lost',
  warning_closed: 'closed',
  prevented: 'closed',
};

/** A dispute whose status we do not know counts as open, so that its plan is paused. */
function statusOf(status: string): Pick<DisputeState, 'status' | 'unknown_status'> {
  const known = statuses[status];
  return known
    ? { status: known }
    : { status: 'needs_response', unknown_status: status.slice(0, 50) };
}

const needsResponse = new Set<Stripe.Dispute['status']>([
  'needs_response',
  'warning_needs_response',
]);

const idOf = (value: string | { id: string } | null) =>
  typeof value === 'string' || value === null ? value : value.id;

/**
 * The amounts that a dispute moved, in the currency of the payment. Balance transactions are in the
 * currency in which the account settles. If that is a different currency, a withdrawal and its
 * reversal may be converted at different rates, so only their signs count: each moves the disputed
 * amount.
 */
export function movedBy({
  amount: disputed,
  currency,
  balance_transactions: moved,
}: Stripe.Dispute): Pick<DisputeState, 'withdrawn' | 'fee' | 'other_currency'> {
  const other = moved.find((one) => one.currency !== currency)?.currency ?? null;
  const own = moved.filter((one) => one.currency === currency);
  const sum = moved.reduce(
    (total, { amount }) => total + (other === null ? amount : Math.sign(amount) * disputed),
    0,
  );
  return {
    withdrawn: Math.max(0, 0 - sum),
    fee: own.reduce((total, { fee }) => total + fee, 0),
    other_currency: other?.toUpperCase() ?? null,
  };
}

function disputeState(dispute: Stripe.Dispute): DisputeState {
  const { evidence_details: evidence } = dispute;
  return {
    dispute_ref: dispute.id,
    payment_ref: idOf(dispute.payment_intent),
    amount: dispute.amount,
    currency: dispute.currency.toUpperCase(),
    reason: dispute.reason,
    network_reason_code: dispute.network_reason_code ?? null,
    ...statusOf(dispute.status),
    opened_at: timeOf(dispute.created),
    due_by: evidence.due_by === null ? null : timeOf(evidence.due_by),
    // Stripe keeps the count of answers when an answered inquiry becomes a dispute, but the dispute
    // still needs evidence.
    has_answer:
      evidence.submission_count > 0 &&
      statuses[dispute.status] !== undefined &&
      !needsResponse.has(dispute.status),
    ...movedBy(dispute),
  };
}

const fileNames = {
  delivery: 'shipping_documentation',
  correspondence: 'customer_communication',
  receipt: 'receipt',
  other: 'uncategorized_file',
} as const satisfies Record<EvidenceFileKind, string>;

const stripeNames = [...networkNames, ...Object.values(fileNames)] as const;
type StripeEvidence = Partial<Record<(typeof stripeNames)[number], string>>;

/** The evidence under Stripe's names. */
export function stripeEvidence({
  evidence,
  files,
}: Pick<Parameters<Gateway['stageEvidence']>[0], 'evidence' | 'files'>): StripeEvidence {
  const kinds = Object.entries(files) as [EvidenceFileKind, string][];
  return {
    ...networkEvidence(evidence),
    ...Object.fromEntries(kinds.map(([kind, file_ref]) => [fileNames[kind], file_ref])),
  };
}

/** Stripe keeps a field that is not sent, so fields that it has and we do not send are emptied. */
const emptied = (held: Stripe.Dispute.Evidence): StripeEvidence =>
  Object.fromEntries(stripeNames.filter((name) => held[name] !== null).map((name) => [name, '']));

/** The calls of the gateway's port for disputes. */
export function disputeCalls({ stripe, options, settings }: StripeApi): DisputeCalls {
  const { webhookSecret } = settings;
  const update = async (answer: Parameters<Gateway['stageEvidence']>[0], submit: boolean) => {
    const { key, merchant, dispute_ref } = answer;
    const held = await stripe.disputes.retrieve(dispute_ref, {}, options(merchant)).catch(fail);
    const evidence = { ...emptied(held.evidence), ...stripeEvidence(answer) };
    const updated = await stripe.disputes
      .update(dispute_ref, { evidence, submit }, options(merchant, key))
      .catch(fail);
    return disputeState(updated);
  };
  return {
    async readEvent(raw, header) {
      if (webhookSecret === undefined) return null;
      try {
        const event = await stripe.webhooks.constructEventAsync(
          raw,
          header('stripe-signature'),
          webhookSecret,
        );
        const isDispute = event.type.startsWith('charge.dispute.');
        const dispute_ref = isDispute ? (event.data.object as { id: string }).id : null;
        return { event_id: event.id, dispute_ref };
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

    async uploadEvidence({ key, merchant, name, media_type, content }) {
      const file = { name, type: media_type, data: content };
      const { id } = await stripe.files
        .create({ purpose: 'dispute_evidence', file }, options(merchant, key))
        .catch(fail);
      return { file_ref: id };
    },

    stageEvidence: (answer) => update(answer, false),
    submitEvidence: (answer) => update(answer, true),

    async acceptDispute({ key, merchant, dispute_ref }) {
      const closed = await stripe.disputes
        .close(dispute_ref, {}, options(merchant, key))
        .catch(fail);
      return disputeState(closed);
    },
  };
}
