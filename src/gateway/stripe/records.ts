import type Stripe from 'stripe';
import { noMembers } from '#gateway/adapter.ts';
import type { Gateway, GatewayRecord, RecordKind } from '#gateway/gateway.ts';
import type { StripeApi } from './api.ts';
import { movedBy } from './disputes.ts';
import { fail } from './errors.ts';
import { timeOf } from './states.ts';

const idOf = (value: string | { id: string } | null | undefined) =>
  typeof value === 'object' && value !== null ? value.id : (value ?? null);

const secondsOf = (time: string) =>
  Math.floor(Temporal.Instant.from(time).epochMilliseconds / 1000);

const paymentStates: Partial<Record<Stripe.PaymentIntent.Status, GatewayRecord['state']>> = {
  succeeded: 'taken',
  requires_capture: 'held',
  processing: 'in_flight',
  requires_action: 'in_flight',
};

function paymentRecord(intent: Stripe.PaymentIntent): GatewayRecord {
  const { metadata } = intent;
  const state = paymentStates[intent.status] ?? 'nothing';
  const covered = (metadata.instalments ?? metadata.instalment ?? '').split(',');
  return {
    ...noMembers,
    reference: intent.id,
    own_id: metadata.attempt_id ?? null,
    checkout_id: metadata.checkout_id ?? null,
    payment_ref: intent.id,
    customer_ref: idOf(intent.customer),
    instalments: covered.filter((digits) => digits !== '').map(Number),
    number_of_payments: metadata.number_of_payments ? Number(metadata.number_of_payments) : null,
    amount: state === 'taken' ? intent.amount_received : intent.amount,
    state,
    created_at: timeOf(intent.created),
  };
}

/** A charge belongs to a payment, unless another program made it. */
function chargeRecord(charge: Stripe.Charge): GatewayRecord {
  return {
    ...noMembers,
    reference: charge.id,
    payment_ref: idOf(charge.payment_intent),
    amount: charge.amount_captured,
    state: charge.captured ? 'taken' : 'nothing',
    created_at: timeOf(charge.created),
  };
}

function refundRecord(refund: Stripe.Refund): GatewayRecord {
  const isGone = refund.status === 'failed' || refund.status === 'canceled';
  const { refund_id, request_id, request_amount, request_created_at } = refund.metadata ?? {};
  return {
    ...noMembers,
    reference: refund.id,
    own_id: refund_id ?? null,
    payment_ref: idOf(refund.payment_intent),
    amount: refund.amount,
    state: isGone ? 'nothing' : refund.status === 'succeeded' ? 'taken' : 'in_flight',
    created_at: timeOf(refund.created),
    request:
      request_id && request_amount && request_created_at
        ? { id: request_id, amount: Number(request_amount), created_at: request_created_at }
        : null,
  };
}

function disputeRecord(dispute: Stripe.Dispute): GatewayRecord {
  const { withdrawn } = movedBy(dispute);
  const payment_ref = idOf(dispute.payment_intent);
  return {
    ...noMembers,
    reference: dispute.id,
    own_id: payment_ref,
    payment_ref,
    amount: withdrawn,
    state: withdrawn === 0 ? 'nothing' : 'taken',
    created_at: timeOf(dispute.created),
  };
}

/**
 * The types of transactions by which the gateway charges an account for its services. Their amount
 * is the fee.
 */
const accountFees = new Set(['stripe_fee', 'stripe_fx_fee', 'tax_fee', 'network_cost']);
/**
 * The types of movements between the account and its owner's bank, and of reserves that the gateway
 * keeps.
 */
const ownFunds = /^(payout|topup|transfer|reserve|payment_network_reserve)/;
/** Transactions with these sources are compared as charges, refunds and disputes. */
const comparedSources = new Set(['charge', 'refund', 'dispute']);

/**
 * A movement of the balance is `taken` unless another record of the run explains it, or it is a fee
 * of the account or the account owner's own money.
 */
function transactionRecord(moved: Stripe.BalanceTransaction): GatewayRecord {
  const { source, currency, type } = moved;
  const of = typeof source === 'object' && source !== null ? source : null;
  const intent = of && 'payment_intent' in of ? of.payment_intent : null;
  const isCompared = of !== null && comparedSources.has(of.object);
  const isOfAccount = !isCompared && (accountFees.has(type) || moved.reporting_category === 'fee');
  return {
    ...noMembers,
    reference: moved.id,
    payment_ref: idOf(intent as string | { id: string } | null),
    amount: moved.amount,
    state: isCompared || isOfAccount || ownFunds.test(type) ? 'nothing' : 'taken',
    created_at: timeOf(moved.created),
    fee: {
      type,
      amount: isOfAccount ? moved.fee - moved.amount : moved.fee,
      currency: currency.toUpperCase(),
      isOfAccount,
    },
  };
}

type Page = Stripe.PaginationParams & { limit: number };
type Listed<T> = { data: T[]; has_more: boolean };

async function present<T>(
  list: PromiseLike<Listed<T>>,
  recordOf: (one: T) => GatewayRecord,
): Promise<{ records: GatewayRecord[]; has_more: boolean }> {
  const { data, has_more } = await list;
  return { records: data.map(recordOf), has_more };
}

const lists: Record<
  RecordKind,
  (stripe: Stripe, page: Page) => Promise<{ records: GatewayRecord[]; has_more: boolean }>
> = {
  payments: (stripe, page) => present(stripe.paymentIntents.list(page), paymentRecord),
  charges: (stripe, page) => present(stripe.charges.list(page), chargeRecord),
  refunds: (stripe, page) => present(stripe.refunds.list(page), refundRecord),
  disputes: (stripe, page) => present(stripe.disputes.list(page), disputeRecord),
  transactions: (stripe, page) =>
    present(
      stripe.balanceTransactions.list({ ...page, expand: ['data.source'] }),
      transactionRecord,
    ),
};

/** The gateway's own records, page by page, for the reconciliation. */
export function recordCalls({ stripe }: StripeApi): Pick<Gateway, 'listRecords'> {
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
        const { records, has_more } = await lists[kind](stripe, query);
        return { records, next: has_more ? (records.at(-1)?.reference ?? null) : null };
      } catch (error) {
        fail(error);
      }
    },
  };
}
