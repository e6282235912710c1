import { noMembers } from '#gateway/adapter.ts';
import type { DisputeState, Gateway, GatewayRecord } from '#gateway/gateway.ts';
import type { Payment, Refund } from './answers.ts';
import { fail, type HyperswitchApi } from './api.ts';
import { disputeState, listDisputes } from './disputes.ts';
import { isVerification } from './ids.ts';
import { fewAtOnce, listPage } from './lists.ts';
import { ownWords } from './own-words.ts';
import { timeOf } from './states.ts';

const paymentStates: Record<string, GatewayRecord['state']> = {
  succeeded: 'taken',
  partially_captured: 'taken',
  requires_capture: 'held',
  requires_payment_method: 'nothing',
  requires_confirmation: 'nothing',
  failed: 'nothing',
  cancelled: 'nothing',
  expired: 'nothing',
};

const textOf = (value: unknown) => (value === undefined || value === null ? null : String(value));

function paymentRecord(payment: Payment): GatewayRecord {
  const { payment_id } = payment;
  const { attempt_id, checkout_id, instalments, number_of_payments } = ownWords(payment);
  // A verification without an amount takes nothing. A verification with a small amount holds it.
  // Statuses that we do not know are not decided yet.
  const isForNothing = isVerification(payment_id) && payment.amount === 0;
  const state = isForNothing ? 'nothing' : paymentStates[payment.status];
  return {
    ...noMembers,
    reference: payment_id,
    own_id: attempt_id,
    checkout_id,
    payment_ref: payment_id,
    customer_ref: payment.customer_id ?? null,
    instalments,
    number_of_payments,
    amount: state === 'taken' ? (payment.amount_received ?? payment.amount) : payment.amount,
    state: state ?? 'in_flight',
    created_at: timeOf(payment.created ?? ''),
  };
}

function refundRecord(refund: Refund): GatewayRecord {
  const { refund_id, request_id, request_amount, request_created_at } = refund.metadata ?? {};
  const { status } = refund;
  return {
    ...noMembers,
    reference: refund.refund_id,
    own_id: textOf(refund_id),
    payment_ref: refund.payment_id,
    amount: refund.amount,
    state: status === 'failed' ? 'nothing' : status === 'succeeded' ? 'taken' : 'in_flight',
    created_at: timeOf(refund.created_at ?? ''),
    request:
      request_id && request_amount && request_created_at
        ? {
            id: String(request_id),
            amount: Number(request_amount),
            created_at: String(request_created_at),
          }
        : null,
  };
}

type Page = Parameters<Gateway['listRecords']>[1];
type Listed = { records: GatewayRecord[]; next: string | null };

const isWithin = ({ created_at }: GatewayRecord, { from, to }: Page) =>
  (from === null || created_at >= from) && (to === null || created_at < to);

/**
 * The documentation and the server disagree on the names of the time filters, so none is used.
 * Records come newest first, so the list ends with the first page that is older than the range.
 */
async function listPayments(api: HyperswitchApi, page: Page): Promise<Listed> {
  const { data, next } = await listPage(api, page.after);
  const last = data.at(-1);
  const isOver = !last || (page.from !== null && timeOf(last.created ?? '') < page.from);
  const within = data.filter((payment) => isWithin(paymentRecord(payment), page));
  const known = await fewAtOnce(within, (payment) => withAmount(api, payment));
  return { records: known.map(paymentRecord), next: isOver ? null : next };
}

/**
 * Lists do not say how much was taken. It is the whole amount, unless the payment was held first
 * and less of it was captured: only such a payment is looked up.
 */
async function withAmount(api: HyperswitchApi, payment: Payment): Promise<Payment> {
  const isWhole = payment.capture_method === 'automatic' && payment.status === 'succeeded';
  if (isWhole || paymentStates[payment.status] !== 'taken') return payment;
  const path = `/payments/${encodeURIComponent(payment.payment_id)}`;
  const { amount_received } = await api.call<Payment>('GET', path, {}).catch(fail);
  return { ...payment, amount_received: amount_received ?? 0 };
}

const pageSize = 100;

/** The largest offset that the gateway takes. */
const offsetMax = 20_000;

/** `after` is the end of the range and the number of refunds that came before the page. */
async function listRefunds(api: HyperswitchApi, page: Page): Promise<Listed> {
  const [end = '', given = '0'] = (page.after ?? `${page.to ?? ''} 0`).split(' ');
  const offset = Number(given);
  const body = {
    limit: pageSize,
    offset,
    start_time: page.from ?? '1970-01-01T00:00:00.000Z',
    ...(end !== '' && { end_time: end }),
  };
  const { data } = await api
    .call<{ data: Refund[] }>('POST', '/refunds/list', { body })
    .catch(fail);
  const records = data.map(refundRecord);
  const last = records.at(-1);
  const following =
    offset + pageSize > offsetMax ? `${last?.created_at} 0` : `${end} ${offset + pageSize}`;
  return {
    records: records.filter((record) => isWithin(record, page)),
    next: data.length < pageSize ? null : following,
  };
}

function disputeRecordState({ withdrawn, unknown_status }: DisputeState): GatewayRecord['state'] {
  if (unknown_status !== undefined) return 'in_flight';
  return withdrawn === 0 ? 'nothing' : 'taken';
}

async function listDisputeRecords(api: HyperswitchApi, page: Page): Promise<Listed> {
  const { disputes, next } = await listDisputes(api, page.after);
  const records = disputes.map(disputeState).map((dispute) => ({
    ...noMembers,
    reference: dispute.dispute_ref,
    own_id: dispute.payment_ref,
    payment_ref: dispute.payment_ref,
    amount: dispute.withdrawn,
    state: disputeRecordState(dispute),
    created_at: dispute.opened_at,
  }));
  return { records: records.filter((record) => isWithin(record, page)), next };
}

/** The gateway's own records, page by page. The gateway lists neither charges nor balance. */
export function recordCalls(api: HyperswitchApi): Pick<Gateway, 'listRecords'> {
  return {
    async listRecords(kind, page) {
      if (kind === 'payments') return await listPayments(api, page);
      if (kind === 'refunds') return await listRefunds(api, page);
      if (kind === 'disputes') return await listDisputeRecords(api, page);
      return { records: [], next: null };
    },
  };
}
