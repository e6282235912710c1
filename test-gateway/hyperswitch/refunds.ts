import type { Static } from 'typebox';
import type { Context } from '../books/context.ts';
import { refundCharge, refundProblem } from '../books/refunds.ts';
import { refusalNamed } from '../cards.ts';
import { daySeconds, newId } from '../objects/made.ts';
import { agedRefund } from '../objects/refund.ts';
import type { Kept } from '../store.ts';
import { HyperswitchError, missing } from './errors.ts';
import { findPayment, isSetup, statusOf } from './payment.ts';
import type * as schemas from './schemas.ts';

const refundsMax = 10;
const refundDaysMax = 365;

function present({ object, merchant }: Kept<'refund'>, context: Context) {
  const reason = object.failure_reason ?? null;
  const answer: Static<typeof schemas.refund> = {
    refund_id: object.id,
    payment_id: String(object.payment_intent),
    amount: object.amount,
    currency: object.currency.toUpperCase(),
    status: object.status === 'succeeded' || object.status === 'failed' ? object.status : 'pending',
    reason: object.reason,
    metadata: object.metadata,
    error_message: reason === null ? null : 'The refund was refused',
    error_code: reason,
    unified_code: reason === null ? null : 'UE_9000',
    unified_message: reason === null ? null : 'Something went wrong',
    created_at: new Date(object.created * 1000).toISOString(),
    updated_at: new Date(context.timeOf(merchant) * 1000).toISOString(),
    connector: 'test_acquirer',
    profile_id: null,
    merchant_connector_id: null,
  };
  return answer;
}

/** The charge of a payment that was captured, wholly or in part. */
function chargeToRefund(context: Context, payment_id: string): Kept<'charge'> {
  const payment = findPayment(context, payment_id);
  if (payment === null) throw missing('Payment');
  const status = statusOf(payment);
  const isTaken = status === 'succeeded' || status === 'partially_captured';
  const charge = isSetup(payment)
    ? null
    : context.store.find('charge', String(payment.object.latest_charge));
  if (!isTaken || charge === null) {
    throw new HyperswitchError(
      400,
      'IR_14',
      `This Payment could not be refund because it has a status of ${status}. The expected state is succeeded, partially_captured`,
    );
  }
  return charge;
}

export function createRefund(context: Context, given: Static<typeof schemas.createRefund>): object {
  const { store } = context;
  const charge = chargeToRefund(context, given.payment_id);
  const id = given.refund_id ?? newId('ref').slice(0, 24).padEnd(30, '0');
  const age = context.timeOf(charge.merchant) - charge.object.created;
  if (age > refundDaysMax * daySeconds) {
    throw new HyperswitchError(
      422,
      'IR_05',
      `created_at contains invalid data. Expected format is not more than ${refundDaysMax} days old`,
    );
  }
  const amount = given.amount ?? undefined;
  const problem = refundProblem(context, charge, amount);
  if (problem === 'nothing_left' || problem === 'wrong_amount') {
    throw new HyperswitchError(400, 'IR_13', 'The refund amount exceeds the amount captured');
  }
  if (store.refundsOf(charge.object.id).length >= refundsMax) {
    throw new HyperswitchError(400, 'IR_12', 'Reached maximum refund attempts');
  }
  // The real server compares ids after all other checks, when its table refuses the row.
  if (store.find('refund', id) !== null) {
    throw new HyperswitchError(
      400,
      'HE_01',
      'Duplicate refund request. Refund already attempted with the refund ID',
    );
  }
  // The acquirer refuses to refund a disputed payment. Hyperswitch records that as a failed refund.
  const decline = problem === 'disputed' ? refusalNamed('charge_disputed') : context.decline;
  const refund = refundCharge({ ...context, decline }, charge, {
    id,
    amount,
    reason: given.reason ?? null,
    metadata: Object.fromEntries(
      Object.entries(given.metadata ?? {}).map(([name, value]) => [name, String(value)]),
    ),
  });
  return present(refund, context);
}

/** Asks the acquirer about a pending refund only if the caller demands it (`force_sync`). */
export function retrieveRefund(context: Context, isAsked: boolean, id: string): object {
  const stored = context.store.find('refund', id);
  if (stored === null) throw missing('Refund');
  if (isAsked && known(stored, context).object.status === 'pending') {
    const { status } = agedRefund(stored, context.timeOf(stored.merchant)).object;
    stored.hidden.isAsked = status !== 'pending';
    context.store.save('refund', stored);
  }
  return present(known(stored, context), context);
}

/**
 * A refund as far as Hyperswitch knows it: a pending one stays pending until Hyperswitch has asked
 * the acquirer.
 */
const known = (stored: Kept<'refund'>, context: Context): Kept<'refund'> =>
  stored.object.status === 'pending' && !stored.hidden.isAsked
    ? stored
    : agedRefund(stored, context.timeOf(stored.merchant));

/** Lists refunds, newest first. */
export function listRefunds(context: Context, given: Static<typeof schemas.listRefunds>): object {
  const seconds = (time: string) => Math.floor(Date.parse(time) / 1000);
  const offset = given.offset ?? 0;
  const limit = given.limit ?? 10;
  const found = context.store.page('refund', {
    members: given.payment_id ? [['payment_intent', given.payment_id]] : [],
    created: {
      ...(given.start_time && { gte: seconds(given.start_time) }),
      ...(given.end_time && { lte: seconds(given.end_time) }),
    },
    after: undefined,
    before: undefined,
    limit: offset + limit,
  });
  const data = found
    .filter(({ object }) => !given.refund_id || object.id === given.refund_id)
    .slice(offset)
    .map((refund) => present(known(refund, context), context));
  return { count: data.length, total_count: found.length, data };
}
