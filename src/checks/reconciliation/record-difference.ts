import type pg from 'pg';
import { type GatewayRecord, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { CannotRecord } from '#platform/shared/cannot-record.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutMerchant, lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { readOrLog } from '#purchases/disputes/check-disputes.ts';
import { findDisputedCheckout } from '#purchases/disputes/dispute.sql.ts';
import { recordDispute } from '#purchases/disputes/record-dispute.ts';
import { blockCheckout } from '#purchases/instalments/block-checkout.ts';
import { recordLostCapture, recordLostCharge } from '#purchases/instalments/record-lost-payment.ts';
import { returnToPaid } from '#purchases/payment-links/return-to-paid.ts';
import { moveToGateway } from '#purchases/payments/move-gateway.ts';
import {
  findAttemptNumber,
  recordLostFirstPayment,
  recordLostPlanPayment,
} from '#purchases/payments/record-lost-payment.ts';
import { recordLostRefund } from '#purchases/refunds/record-lost-refund.ts';
import { type OperatorDeps, operate } from '#record/actions/operate.ts';
import { compareWithRows, type DifferenceKind } from './compare.ts';
import type { ReconcileDeps } from './reconcile.ts';
import {
  clientOf,
  listPaidCheckouts,
  listRequestDifferences,
  type RunDifference,
} from './reconciliation.sql.ts';
import { whenAllowed } from './when-allowed.ts';

export type RecordingDeps = ReconcileDeps &
  OperatorDeps & {
    operator: string;
    /** The gateway whose records are read. */
    gateway: GatewayName;
    /**
     * Whether money is stopped. While it is, no process settles what was in flight at the backup.
     */
    isStopped: boolean;
  };

/** Our rows already match the gateway's record: an earlier run has recorded it. */
class AlreadyRecorded extends Error {}

/** Shoppers got the messages about these events before the database was restored. */
const silent = { sendsMessages: false };

/**
 * Records something that the gateway did and this database does not know (decision 0098). If that
 * is not possible, raises an alert and blocks the checkout, so that nothing in it is charged or
 * refunded twice. Returns the differences that are settled: all refunds of one request are recorded
 * together.
 */
export async function recordDifference(
  deps: RecordingDeps,
  client: pg.ClientBase,
  run_id: string,
  difference: RunDifference,
  report: (why: string | null) => Promise<string>,
): Promise<RunDifference[]> {
  const reported = async (): Promise<RunDifference[]> => [
    { ...difference, alert_id: await report(null), outcome: 'reported' },
  ];
  const { record, record_kind } = difference;
  if (record === null || difference.kind === 'held_too_long') return await reported();
  if (record_kind === 'dispute') {
    // One dispute that cannot be recorded must not keep the money of all merchants stopped.
    const read = () => whenAllowed(deps.clock, () => recordLostDispute(deps, record));
    const isRecorded = await readOrLog(deps, record.reference, read);
    return isRecorded ? [{ ...difference, outcome: 'recorded' }] : await reported();
  }
  const checkout_id =
    record_kind === 'refund'
      ? (difference.checkout_id ?? (await findPaidCheckout(deps, client, record)))
      : difference.checkout_id;
  const merchant = checkout_id === null ? null : await findOwner(deps, checkout_id);
  // The record belongs to a checkout that is not in this database, so nothing can be done twice.
  if (checkout_id === null || merchant === null) return await reported();
  const group =
    record_kind === 'refund' && record.request
      ? await listRequestDifferences(client, run_id, record.request.id)
      : [difference];
  try {
    if (record_kind === 'refund') await recordLostRefunds(deps, merchant, checkout_id, group);
    else await recordLostPayment(deps, merchant, checkout_id, record);
    return group.map((one) => ({ ...one, outcome: 'recorded' }));
  } catch (error) {
    if (!(error instanceof CannotRecord)) throw error;
    const alert_id = await report(
      `${error.message}. Nothing on this checkout is charged or refunded until you run \`tranche gateway release ${checkout_id}\`.`,
    );
    const blocked = { reference: difference.reference, alert_id };
    await transaction(deps, async ({ db }) => {
      const key = { merchant_id: merchant.id, checkout_id };
      await lockCheckout(db, merchant.id, checkout_id);
      const created_at = timestamp(deps.clock.now());
      await blockCheckout(db, key, { ...blocked, created_at });
    });
    return [{ ...difference, checkout_id, alert_id, outcome: 'blocked' }];
  }
}

async function findPaidCheckout(
  { gateway }: RecordingDeps,
  client: pg.ClientBase,
  { payment_ref }: GatewayRecord,
): Promise<string | null> {
  if (payment_ref === null) return null;
  const checkouts = await listPaidCheckouts(client, gateway, [payment_ref]);
  return checkouts.get(payment_ref)?.checkout_id ?? null;
}

async function findOwner(deps: RecordingDeps, checkout_id: string): Promise<Merchant | null> {
  const { db } = deps.database;
  const merchant_id = isUuid(checkout_id) ? await findCheckoutMerchant(db, checkout_id) : null;
  return merchant_id === null ? null : await findMerchant(db, deps.clock, merchant_id);
}

async function recordLostPayment(
  deps: RecordingDeps,
  merchant: Merchant,
  checkout_id: string,
  record: GatewayRecord,
): Promise<void> {
  const { reference: payment_ref, amount, own_id, customer_ref, instalments } = record;
  const key = { merchant_id: merchant.id, checkout_id };
  const quiet = { ...deps, ...silent };
  const live = await readLive(deps, merchant, record);
  const recorded = await withCheckout(deps, key, checkout_id, async (db, checkout) => {
    const kind = await compareAgain(deps, db, 'payments', record);
    if (kind === null) throw new AlreadyRecorded();
    if (kind === 'other_state' && record.state === 'taken') {
      await recordLostCapture(deps, db, merchant, key, { payment_ref, amount });
      return 'all';
    }
    if (kind !== 'unknown_to_us') {
      const shown = showMoney(amount, merchant.territory);
      throw new CannotRecord(`the gateway reports ${record.state} for ${shown}`);
    }
    if (own_id === null || customer_ref === null) throw new CannotRecord('it is not ours');
    if (record.state === 'in_flight') {
      throw new CannotRecord('the shopper may still approve it. Void it at the gateway first');
    }
    const at = record.created_at;
    const number = findAttemptNumber('plan_payment', checkout_id, own_id);
    if (number !== null) {
      const paid = { id: own_id, number, instalments, amount, customer_ref, at, state: live };
      await recordLostPlanPayment(quiet, db, checkout, { ...paid, payment_ref });
      return 'all';
    }
    if (checkout.status === 'received') {
      const { number_of_payments } = record;
      if (number_of_payments === null || live === null || !instalments.includes(1))
        throw new CannotRecord('it is not a first payment');
      const held = { id: own_id, amount, number_of_payments, customer_ref, created_at: at };
      await recordLostFirstPayment(quiet, db, merchant, checkout, { ...held, state: live });
      await returnToPaid(db, checkout, timestamp(merchant.now()));
      return live.outcome === 'captured' ? 'purchase' : 'all';
    }
    const [instalment] = instalments;
    if (checkout.status !== 'successful' || instalment === undefined || instalments.length > 1) {
      throw new CannotRecord(`the checkout is ${checkout.status}`);
    }
    if (record.state !== 'taken')
      throw new CannotRecord('it is a hold for a checkout that is already paid');
    const charge = { id: own_id, instalment, amount, payment_ref, at };
    await recordLostCharge(deps, db, key, { ...charge, scheme: live?.scheme ?? null });
    return 'all';
  });
  // The capture is recorded by an action of its own. If that fails, the plan already exists and its
  // checkout is blocked.
  if (recorded === 'purchase') await recordLostPayment(deps, merchant, checkout_id, record);
}

/**
 * Reads details that a list does not contain: the time of a hold, and the ids of the card network.
 * If they cannot be read, everything but a first payment is recorded without them.
 */
async function readLive(deps: RecordingDeps, merchant: Merchant, record: GatewayRecord) {
  const gateway = deps.gateways.of(deps.gateway);
  try {
    const state = await whenAllowed(deps.clock, () =>
      gateway.payment(merchant.forGateway(), record.reference),
    );
    return state.outcome === 'authorised' || state.outcome === 'captured' ? state : null;
  } catch (error) {
    const isOfGateway = error instanceof OutcomeUnknown || error instanceof RequestRefused;
    if (!isOfGateway || record.instalments.includes(1)) throw error;
    return null;
  }
}

/** How a record differs from our rows now. The caller holds the checkout's lock. */
async function compareAgain(
  deps: RecordingDeps,
  db: Handle,
  kind: 'payments' | 'refunds',
  record: GatewayRecord,
): Promise<DifferenceKind | null> {
  // Only `held_too_long` depends on the time, and it is never recorded.
  const nowOf = () => deps.clock.now();
  const by = { gateway: deps.gateway, nowOf, recorder: deps };
  const found = await compareWithRows(clientOf(db), kind, [record], by);
  return (found[0]?.kind as DifferenceKind | undefined) ?? null;
}

/** Records a dispute. Returns whether the disputed payment is known. */
async function recordLostDispute(
  deps: RecordingDeps,
  { reference, payment_ref }: GatewayRecord,
): Promise<boolean> {
  const { db } = deps.database;
  const owner =
    payment_ref === null ? null : await findDisputedCheckout(db, deps.gateway, payment_ref);
  const merchant = owner ? await findMerchant(db, deps.clock, owner.merchant_id) : null;
  if (payment_ref === null || !owner || !merchant) return false;
  const time = merchant.forGateway();
  const state = await deps.gateways.of(deps.gateway).dispute(time, reference);
  await recordDispute(deps, merchant, owner, { ...state, payment_ref });
  return true;
}

async function recordLostRefunds(
  deps: RecordingDeps,
  merchant: Merchant,
  checkout_id: string,
  differences: RunDifference[],
): Promise<void> {
  const records = differences.flatMap(({ record }) => (record ? [record] : []));
  const request = records[0]?.request;
  const key = { merchant_id: merchant.id, checkout_id };
  await withCheckout(deps, key, request?.id ?? checkout_id, async (db, checkout) => {
    const kinds: DifferenceKind[] = [];
    for (const record of records) {
      const kind = await compareAgain(deps, db, 'refunds', record);
      if (kind !== null) kinds.push(kind);
    }
    if (kinds.length === 0) throw new AlreadyRecorded();
    const isLost = kinds.length === records.length && kinds.every((one) => one === 'unknown_to_us');
    if (!request || !isLost) throw new CannotRecord('its request is not known');
    await recordLostRefund(deps, db, merchant, checkout, request, records);
  });
}

/**
 * Makes each recording one action of the operator, with its audit row. If there was nothing to
 * record, writes nothing and returns null.
 */
async function withCheckout<T>(
  deps: RecordingDeps,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
  subject_id: string,
  work: (db: Handle, checkout: Checkout) => Promise<T>,
): Promise<T | null> {
  try {
    return await operate(deps, deps.operator, 'gateway record', async (db) => {
      const locked = await lockCheckout(db, merchant_id, checkout_id);
      if (!locked) throw new CannotRecord('the checkout is gone');
      // The lost database may have moved the checkout to this gateway before its first attempt.
      const isThere = locked.gateway === deps.gateway;
      const checkout = isThere ? locked : await moveToGateway(db, locked, deps.gateway);
      if (!checkout) throw new CannotRecord(`its checkout is at the gateway ${locked.gateway}`);
      return { subject_id, details: { checkout_id }, result: await work(db, checkout) };
    });
  } catch (error) {
    if (error instanceof AlreadyRecorded) return null;
    throw error;
  }
}
