import type { Database } from '../../database/database.ts';
import { claimDue, newLease } from '../../database/due-work.sql.ts';
import { type Merchant, merchantNow } from '../../merchants/merchant.ts';
import { type Clock, timestamp, within } from '../../shared/clock.ts';
import type { Logger } from '../../shared/logger.ts';
import type { Random } from '../../shared/random.ts';
import type { Sealing } from '../../shared/sealing.ts';
import {
  claimFirst,
  dueCallbacks,
  findAttemptStart,
  moveFirstDue,
  moveUnknownCounted,
} from '../callback.sql.ts';
import {
  type Callback,
  type CallbackTrigger,
  deadlineSeconds,
  leaseSeconds,
  mostRunAttempts,
  nextTry,
} from '../callback.ts';
import { formBody, isForm } from '../legacy-form.ts';
import { type AttemptCommits, exhaustUnknown } from './attempt-commits.ts';
import type { Exchange, SendCallback } from './send-callback.ts';

export type DeliveryDeps = AttemptCommits & {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  sealing: Sealing;
  sendCallback: SendCallback;
};

/**
 * One delivery of a callback in hand, and what became of it; null when it was in other hands after
 * all. Written down before the socket opens, and after.
 */
export async function deliverCallback(
  deps: DeliveryDeps,
  callback: Callback,
  trigger: CallbackTrigger,
  operator: string | null = null,
): Promise<Exchange | null> {
  const attempt = await deps.openAttempt({ callback, id: deps.random.uuid(), trigger, operator });
  if (attempt === null) {
    // If it is in our hands after all, whoever had it before died with this attempt under way.
    const { db } = deps.database;
    const began = await findAttemptStart(db, callback, callback.attempts + 1);
    if (began !== null) {
      const next = nextTry(Temporal.Instant.from(began));
      await moveUnknownCounted(db, callback, timestamp(next));
    }
    return null;
  }
  const { headers } = attempt;
  const body = isForm(callback) ? formBody(deps.sealing, callback) : callback.payload;
  const exchange =
    headers && body
      ? await deps.sendCallback({ url: callback.notify_url, headers, body })
      : { ...nothing, reason: headers ? 'no_transaction_verify' : 'no_signing_key' };
  return await deps.recordAttempt({ attempt, exchange });
}

const nothing: Exchange = {
  delivered: false,
  reason: null,
  address: null,
  tls_version: null,
  status: null,
  headers: null,
  body: null,
  truncated: false,
  timings: {},
};

/**
 * The first delivery, by the process that ended the checkout, for a shopper who waits: for its
 * answer, but no longer than the deadline, whatever else is slow. Never throws: what is not
 * delivered now is delivered later.
 */
export async function deliverFirst(
  deps: DeliveryDeps,
  merchant: Merchant,
  checkout_id: string,
): Promise<void> {
  const deliver = async () => {
    const { db } = deps.database;
    const callback = await claimFirst(db, merchant.id, checkout_id, newLease(deps, leaseSeconds));
    if (callback) await deliverCallback(deps, callback, 'first');
  };
  const delivery = deliver().catch((error) => {
    deps.log.error({ err: error, checkout_id }, 'a first delivery was not recorded');
  });
  await within(deps.clock, deadlineSeconds * 1000, delivery);
}

/**
 * Leaves the first delivery to whoever delivers what is due, without delay: for a checkout that
 * was ended by no request. A receiver that hangs then takes no place but its own. Never throws.
 */
export async function leaveFirst(
  deps: DeliveryDeps,
  merchant: Merchant,
  checkout_id: string,
): Promise<void> {
  const now = timestamp(merchantNow(deps.clock, merchant));
  try {
    await moveFirstDue(deps.database.db, merchant.id, checkout_id, now);
  } catch (error) {
    deps.log.warn({ err: error, checkout_id }, 'a first delivery is made a little later');
  }
}

/** How many of one merchant are taken in hand at once. */
export const handful = 8;

/** Takes some of a merchant's due callbacks in hand, of all or of one host. */
export async function claimCallbacks(
  deps: Pick<DeliveryDeps, 'database' | 'clock' | 'random'>,
  merchant: Merchant,
  most: number,
  host?: string,
  seconds = leaseSeconds,
): Promise<Callback[]> {
  const now = timestamp(merchantNow(deps.clock, merchant));
  const claim = { ...newLease(deps, seconds), merchantNow: now };
  return await claimDue(deps.database.db, dueCallbacks(host), merchant.id, claim, most);
}

/** Delivers one that was due, in hand. Never throws: what is not recorded is due again. */
export async function deliverClaimed(
  deps: DeliveryDeps,
  callback: Callback,
): Promise<Exchange | null> {
  try {
    // A crash took the last try's result with it: there is none left to make.
    if (callback.run_attempts >= mostRunAttempts) {
      await exhaustUnknown(deps, callback);
      return null;
    }
    const trigger = callback.attempts === 0 ? 'first' : 'retry';
    return await deliverCallback(deps, callback, trigger);
  } catch (error) {
    deps.log.error({ err: error, callback_id: callback.id }, 'a callback was not recorded');
    return null;
  }
}

/** Delivers some of what is due of one merchant, and waits for it. */
export async function deliverMerchantCallbacks(
  deps: DeliveryDeps,
  merchant: Merchant,
): Promise<number> {
  const callbacks = await claimCallbacks(deps, merchant, handful);
  await Promise.all(callbacks.map((callback) => deliverClaimed(deps, callback)));
  return callbacks.length;
}
