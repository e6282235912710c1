import { type DisputeState, OutcomeUnknown } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { leaseSeconds, nextRetryAt } from '#gateway/retry-times.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import { releaseDue } from '#platform/database/due-work.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { hasAlert } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import {
  dueDisputes,
  findDisputedCheckout,
  findDisputeOfAny,
  findReached,
  hasOpenCollections,
  listKnownRefs,
  moveReached,
} from './dispute.sql.ts';
import type { Dispute } from './dispute.ts';
import { type DisputeDeps, isNews, readDispute, recordDispute } from './record-dispute.ts';

const work: MerchantDueWork<'disputes', DisputeDeps> = {
  due: dueDisputes,
  leaseSeconds,
  batchSize: 8,
  merchantsMax: 50,
  concurrency: 1,
  roundMilliseconds: 0,
  run: (deps, merchant, disputes) =>
    Promise.all(disputes.map((dispute) => check(deps, merchant, dispute))),
};

/** Checks the disputes that are due (decision 0082). */
export async function checkDueDisputes(deps: DisputeDeps, stopping?: AbortSignal): Promise<number> {
  return await runDueWork(deps, work, stopping);
}

export const checkMerchantDisputes = (deps: DisputeDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

async function check(deps: DisputeDeps, merchant: Merchant, dispute: Dispute): Promise<void> {
  const { merchant_id, id, lease, attempts } = dispute;
  try {
    await readAgain(deps, merchant, dispute);
  } catch (error) {
    const about = { err: error, dispute_id: id };
    if (error instanceof OutcomeUnknown) deps.log.warn(about, 'a dispute could not be read');
    else deps.log.error(about, 'a dispute could not be checked');
    const retryAt = timestamp(nextRetryAt(merchant.now(), attempts));
    const key = { merchant_id, id };
    await releaseDue(deps.database.db, 'disputes', key, lease as string, retryAt);
    await raiseGatewayAlert(deps, merchant, {
      what: 'A dispute',
      subject_id: id,
      error,
      isOutcomeUnknown: error instanceof OutcomeUnknown,
      retries: attempts,
    });
  }
}

/**
 * `agrees` is whether the row has the withdrawal that the gateway reports. An answer that takes
 * back what is recorded is not believed.
 */
type ReadDispute = Dispute & { agrees: boolean };

/** Reads a known dispute at the gateway and records what it says. */
export async function readAgain(
  deps: DisputeDeps,
  merchant: Merchant,
  dispute: Dispute,
): Promise<ReadDispute> {
  const state = await readDispute(deps, merchant, dispute);
  const recorded = await recordDispute(deps, merchant, dispute, state);
  return { ...recorded, agrees: recorded.withdrawn === state.withdrawn };
}

/** Reads a dispute again by the gateway's reference. Returns null if we do not know it. */
export async function readKnown(
  deps: DisputeDeps,
  gateway: GatewayName,
  dispute_ref: string,
): Promise<ReadDispute | null> {
  const { db } = deps.database;
  const known = await findDisputeOfAny(db, { dispute_ref, gateway });
  const merchant = known && (await findMerchant(db, deps.clock, known.merchant_id));
  return known && merchant ? await readAgain(deps, merchant, known) : null;
}

/**
 * Looks for disputes that are new or have changed at the gateways. A gateway that does not answer
 * does not delay the others. Returns 0, so that the worker waits until the next poll.
 */
export async function findNewDisputes(deps: DisputeDeps): Promise<number> {
  let failure: unknown = null;
  for (const gateway of deps.gateways.names) {
    try {
      await findNewDisputesAt(deps, gateway);
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== null) throw failure;
  return 0;
}

/**
 * Reads the disputes of a gateway page by page, from the newest down to the newest one of the last
 * complete poll. A poll that fails or skips a dispute does not move that position, so the next one
 * reads the same pages. Known disputes on these pages are read again if they have changed: after
 * its end a dispute is not due any more, and the bank may still reopen it.
 */
export async function findNewDisputesAt(deps: DisputeDeps, gateway: GatewayName): Promise<void> {
  const { db } = deps.database;
  const reached = await findReached(db, gateway);
  let newest: string | null = null;
  let isWhole = true;
  for (let after: string | null = null; ; ) {
    const { disputes, next } = await deps.gateways.of(gateway).listDisputes(after);
    const refs = disputes.map(({ dispute_ref }) => dispute_ref);
    newest ??= refs[0] ?? null;
    const known = await listKnownRefs(db, gateway, refs);
    for (const state of disputes) {
      const before = known.get(state.dispute_ref);
      if (before === undefined) isWhole = (await isSettled(deps, gateway, state)) && isWhole;
      else if (isNews(before, state)) {
        // The list may be older than the row, so it is only a hint.
        const { dispute_ref } = state;
        await readOrLog(deps, dispute_ref, () => readKnown(deps, gateway, dispute_ref));
      }
    }
    if (next === null || (reached !== null && refs.includes(reached))) break;
    after = next;
  }
  if (isWhole && newest !== null && newest !== reached) await moveReached(db, gateway, newest);
}

/**
 * Runs `read`, which reads one dispute and records it. A failure is logged and answered with null,
 * so that it does not stop the work on others: the next poll or comparison finds the same
 * difference.
 */
export async function readOrLog<T>(
  { log }: Pick<DisputeDeps, 'log'>,
  dispute_ref: string,
  read: () => Promise<T>,
): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    log.warn({ err: error, dispute_ref }, 'a dispute could not be read or recorded');
    return null;
  }
}

/** Polls look at a dispute about an unknown payment for at least this long. */
const unknownHours = 24;

/** Records a new dispute. Returns false if the next poll must look at it again. */
async function isSettled(
  deps: DisputeDeps,
  gateway: GatewayName,
  state: DisputeState,
): Promise<boolean> {
  const { db } = deps.database;
  const { dispute_ref, payment_ref, opened_at } = state;
  try {
    // Requests in flight are looked up before the payment. In the other order, a request could end
    // between the two reads, and neither read would show it.
    const isInFlight = await hasOpenCollections(db, opened_at);
    const recorded = await recordNew(deps, gateway, state, isInFlight);
    if (recorded) await alertUnknown(deps, recorded, state);
    return recorded !== null || (isOld(deps, opened_at) && !isInFlight);
  } catch (error) {
    deps.log.error({ err: error, dispute_ref }, 'a dispute could not be recorded');
    const detail = `Dispute ${dispute_ref} of payment ${payment_ref} could not be recorded. The log says why. The service keeps retrying.`;
    if (!(await hasAlert(db, 'dispute_unrecorded', detail))) {
      await raiseAlert(deps, db, { kind: 'dispute_unrecorded', detail });
    }
    return false;
  }
}

/** Raises an alert about a status that this version does not know. */
async function alertUnknown(
  deps: DisputeDeps,
  { merchant_id, id }: Dispute,
  { unknown_status }: DisputeState,
): Promise<void> {
  if (unknown_status === undefined) return;
  await raiseGatewayAlert(
    deps,
    { id: merchant_id },
    {
      ...{ what: 'A dispute', subject_id: id, isOutcomeUnknown: true, retries: 0 },
      error: new StatusUnknown('the dispute', unknown_status),
    },
  );
}

const isOld = ({ clock }: DisputeDeps, opened_at: string) =>
  clock.now().since(opened_at).total('hours') > unknownHours;

/**
 * Records a dispute that is only at the gateway so far. If its payment is unknown, returns null and
 * raises one alert: at once, or after `unknownHours` if a request in flight may have made the
 * payment.
 */
async function recordNew(
  deps: DisputeDeps,
  gateway: GatewayName,
  state: DisputeState,
  isInFlight: boolean,
): Promise<Dispute | null> {
  const { db } = deps.database;
  const { payment_ref, dispute_ref, opened_at } = state;
  const owner = payment_ref && (await findDisputedCheckout(db, gateway, payment_ref));
  const merchant = owner && (await findMerchant(db, deps.clock, owner.merchant_id));
  if (!payment_ref || !owner || !merchant) {
    if (isInFlight && !isOld(deps, opened_at)) return null;
    const detail = `The gateway has dispute ${dispute_ref} of payment ${payment_ref}, which is not one of ours.`;
    if (!(await hasAlert(db, 'dispute_unknown', detail))) {
      await raiseAlert(deps, db, { kind: 'dispute_unknown', detail });
    }
    return null;
  }
  return await recordDispute(deps, merchant, owner, { ...state, payment_ref });
}
