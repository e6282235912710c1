import type Stripe from 'stripe';
import { timestamp } from '../shared/clock.ts';
import type { Gateway, GatewayRecord } from './gateway.ts';

const timeOf = (seconds: number) =>
  timestamp(Temporal.Instant.fromEpochMilliseconds(seconds * 1000));

const idOf = (value: string | { id: string } | null) =>
  typeof value === 'string' || value === null ? value : value.id;

const secondsOf = (time: string) =>
  Math.floor(Temporal.Instant.from(time).epochMilliseconds / 1000);

const paymentStates: Partial<Record<Stripe.PaymentIntent.Status, GatewayRecord['state']>> = {
  succeeded: 'taken',
  requires_capture: 'held',
  processing: 'in_flight',
  requires_action: 'in_flight',
};

function paymentRecord(intent: Stripe.PaymentIntent): GatewayRecord {
  const state = paymentStates[intent.status] ?? 'nothing';
  return {
    reference: intent.id,
    own_id: intent.metadata.attempt_id ?? null,
    checkout_id: intent.metadata.checkout_id ?? null,
    amount: state === 'taken' ? intent.amount_received : intent.amount,
    state,
    created_at: timeOf(intent.created),
  };
}

function refundRecord(refund: Stripe.Refund): GatewayRecord {
  const isGone = refund.status === 'failed' || refund.status === 'canceled';
  return {
    reference: refund.id,
    own_id: refund.metadata?.refund_id ?? null,
    checkout_id: null,
    amount: refund.amount,
    state: isGone ? 'nothing' : refund.status === 'succeeded' ? 'taken' : 'in_flight',
    created_at: timeOf(refund.created),
  };
}

function disputeRecord(dispute: Stripe.Dispute): GatewayRecord {
  const moved = dispute.balance_transactions.reduce((sum, { amount }) => sum - amount, 0);
  return {
    reference: dispute.id,
    own_id: idOf(dispute.payment_intent),
    checkout_id: null,
    amount: moved + 0,
    state: moved === 0 ? 'nothing' : 'taken',
    created_at: timeOf(dispute.created),
  };
}

/** The gateway's own records, page by page, for the reconciliation. */
export function recordCalls(
  stripe: Stripe,
  fail: (error: unknown) => never,
): Pick<Gateway, 'listRecords'> {
  return {
    async listRecords(kind, { after, from, to }) {
      const created = {
        ...(from !== null && { gte: secondsOf(from) }),
        ...(to !== null && { lt: secondsOf(to) }),
      };
      const query = {
        limit: 100,
        ...(after !== null && { starting_after: after }),
        ...(Object.keys(created).length > 0 && { created }),
      };
      try {
        const { records, has_more } = await readPage(stripe, kind, query);
        return { records, next: has_more ? (records.at(-1)?.reference ?? null) : null };
      } catch (error) {
        fail(error);
      }
    },
  };
}

async function readPage(
  stripe: Stripe,
  kind: Parameters<Gateway['listRecords']>[0],
  query: { limit: number; starting_after?: string },
): Promise<{ records: GatewayRecord[]; has_more: boolean }> {
  switch (kind) {
    case 'payments': {
      const { data, has_more } = await stripe.paymentIntents.list(query);
      return { records: data.map(paymentRecord), has_more };
    }
    case 'refunds': {
      const { data, has_more } = await stripe.refunds.list(query);
      return { records: data.map(refundRecord), has_more };
    }
    case 'disputes': {
      const { data, has_more } = await stripe.disputes.list(query);
      return { records: data.map(disputeRecord), has_more };
    }
  }
}
