import { createHmac } from 'node:crypto';
import type { Database } from '../database/database.ts';
import { claimDue, newLease } from '../database/due-work.sql.ts';
import { reading, transaction } from '../database/transaction.ts';
import { sign } from '../http/signature.ts';
import { findCallbackKey } from '../integrations/callback-key.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { raiseAlert } from '../operators/raise-alert.ts';
import { type Clock, secondsAfter, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import type { Sealing } from '../shared/sealing.ts';
import {
  claimFirst,
  dueCallbacks,
  type Hosts,
  hasCallbackAttempt,
  insertCallbackAttempt,
  moveAttemptFinished,
  moveLeased,
} from './callback.sql.ts';
import {
  type Callback,
  type CallbackTrigger,
  leaseSeconds,
  mostRunAttempts,
  nextTry,
  readRedirectUrl,
  readRetryAfter,
} from './callback.ts';
import { formBody, formHeaders, isForm } from './legacy-form.ts';
import { noteDestination } from './note-destination.ts';
import type { Exchange, SendCallback } from './send-callback.ts';

export type DeliveryDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  sealing: Sealing;
  sendCallback: SendCallback;
};

/**
 * One delivery of a callback in hand, and what became of it; null when it was in other hands after
 * all. The attempt is written before the socket opens, together with the time of the next one, as
 * if this one failed: whatever happens to this process, nobody delivers again too soon and nothing
 * is forgotten.
 */
export async function deliverCallback(
  deps: DeliveryDeps,
  merchant: Merchant,
  callback: Callback,
  trigger: CallbackTrigger,
  operator: string | null = null,
): Promise<Exchange | null> {
  const key = { merchant_id: callback.merchant_id, id: deps.random.uuid() };
  const number = callback.attempts + 1;
  const headers = await writeHeaders(deps, callback, number);
  const startedAt = merchantNow(deps.clock, merchant);
  const isOpen = await transaction(deps, async ({ db }, maybeCommitted) => {
    const opened = await moveLeased(db, callback, {
      attempts: number,
      run_attempts: callback.run_attempts + 1,
      due_at: timestamp(nextTry(startedAt)),
    });
    if (!opened) return false;
    if (maybeCommitted && (await hasCallbackAttempt(db, key))) return true;
    await insertCallbackAttempt(db, {
      ...key,
      callback_id: callback.id,
      number,
      run: callback.run,
      trigger,
      operator,
      started_at: timestamp(startedAt),
      request_headers: headers ?? {},
    });
    return true;
  });
  if (!isOpen) return null;
  const body = isForm(callback) ? formBody(deps.sealing, callback) : callback.payload;
  const exchange: Exchange =
    headers && body
      ? await deps.sendCallback({ url: callback.notify_url, headers, body })
      : { ...nothing, reason: headers ? 'no_transaction_verify' : 'no_signing_key' };
  await recordExchange(deps, merchant, callback, { ...key, trigger, startedAt }, exchange);
  return exchange;
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

/** The spec's header, ours, and those of Standard Webhooks for whoever wants replay protection. */
async function writeHeaders(
  deps: DeliveryDeps,
  callback: Callback,
  number: number,
): Promise<Record<string, string> | null> {
  if (isForm(callback)) return formHeaders(callback, number);
  const now = deps.clock.now();
  const key = await reading(deps, (db) =>
    findCallbackKey(deps, db, callback.integration_id, timestamp(now)),
  );
  if (key === null) return null;
  const seconds = Math.floor(now.epochMilliseconds / 1000);
  const signed = Buffer.concat([Buffer.from(`${callback.id}.${seconds}.`), callback.payload]);
  return {
    'content-type': 'application/json',
    'x-signature': sign(key, callback.payload),
    'user-agent': 'Tranche-Callback/1',
    'x-callback-id': callback.id,
    'x-callback-attempt': String(number),
    'webhook-id': callback.id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${createHmac('sha256', key).update(signed).digest('base64')}`,
  };
}

async function recordExchange(
  deps: DeliveryDeps,
  merchant: Merchant,
  callback: Callback,
  attempt: {
    merchant_id: string;
    id: string;
    trigger: CallbackTrigger;
    startedAt: Temporal.Instant;
  },
  exchange: Exchange,
): Promise<void> {
  const now = merchantNow(deps.clock, merchant);
  const { 'retry-after': retryAfter } = exchange.headers ?? {};
  const wait = readRetryAfter(exchange.status, retryAfter, deps.clock.now());
  await transaction(deps, async ({ db }) => {
    await moveAttemptFinished(db, attempt, {
      finished_at: timestamp(now),
      outcome: exchange.delivered ? 'delivered' : 'failed',
      reason: exchange.reason,
      address: exchange.address,
      tls_version: exchange.tls_version,
      response_status: exchange.status,
      response_headers: exchange.headers,
      response_body: exchange.body,
      timings: exchange.timings,
    });
    await noteDestination(deps, db, callback, exchange.reason);
    const free = { lease: null, leased_until: null };
    if (exchange.delivered) {
      // What was cut off is not what the receiver said, even where it reads like an answer.
      const isSteering = attempt.trigger === 'first' && exchange.body && !exchange.truncated;
      const member = isForm(callback) ? 'redirect' : 'redirect_url';
      const redirect_url = isSteering ? readRedirectUrl(exchange.body as Buffer, member) : null;
      await moveLeased(db, callback, {
        ...free,
        status: 'delivered',
        due_at: null,
        delivered_at: timestamp(now),
        ...(redirect_url !== null && { redirect_url }),
      });
      return;
    }
    if (callback.run_attempts + 1 < mostRunAttempts) {
      const due = nextTry(attempt.startedAt, wait === null ? null : secondsAfter(now, wait));
      await moveLeased(db, callback, { ...free, due_at: timestamp(due) });
      return;
    }
    await exhaust(deps, db, callback, exchange.reason);
  });
}

/** No more tries by ourselves: the operator is told, once. */
async function exhaust(
  deps: DeliveryDeps,
  db: Parameters<typeof moveLeased>[0],
  callback: Callback,
  reason: string | null,
): Promise<void> {
  const moved = await moveLeased(db, callback, {
    status: 'exhausted',
    due_at: null,
    lease: null,
    leased_until: null,
  });
  if (!moved) return;
  await raiseAlert(deps, db, {
    kind: 'callback_exhausted',
    merchant_id: callback.merchant_id,
    integration_id: callback.integration_id,
    detail: `Callback ${callback.id} of checkout ${callback.checkout_id} was not delivered in ${mostRunAttempts} attempts (last: ${reason ?? 'unknown'}). Re-trigger it with: tranche callbacks retry ${callback.id}`,
  });
}

/**
 * The first delivery, made while the shopper waits (or for one who left) by whoever ended the
 * checkout. Never throws: what is not delivered now is delivered later.
 */
export async function deliverFirst(
  deps: DeliveryDeps,
  merchant: Merchant,
  checkout_id: string,
): Promise<void> {
  try {
    const { db } = deps.database;
    const callback = await claimFirst(db, merchant.id, checkout_id, newLease(deps, leaseSeconds));
    if (callback) await deliverCallback(deps, merchant, callback, 'first');
  } catch (error) {
    deps.log.error({ err: error, checkout_id }, 'a first delivery was not recorded');
  }
}

/** How many of one merchant are taken in hand at once. */
export const handful = 8;

const everyHost: Hosts = { except: [] };

/** Takes some of a merchant's due callbacks in hand. */
export async function claimCallbacks(
  deps: DeliveryDeps,
  merchant: Merchant,
  hosts: Hosts,
  most: number,
): Promise<Callback[]> {
  const now = timestamp(merchantNow(deps.clock, merchant));
  const claim = { ...newLease(deps, leaseSeconds), merchantNow: now };
  return await claimDue(deps.database.db, dueCallbacks(hosts), merchant.id, claim, most);
}

/** Delivers one that was due, in hand. Never throws: what is not recorded is due again. */
export async function deliverClaimed(
  deps: DeliveryDeps,
  merchant: Merchant,
  callback: Callback,
): Promise<Exchange | null> {
  try {
    // A crash took the last try's result with it: there is none left to make.
    if (callback.run_attempts >= mostRunAttempts) {
      await transaction(deps, ({ db }) => exhaust(deps, db, callback, null));
      return null;
    }
    const trigger = callback.attempts === 0 ? 'first' : 'retry';
    return await deliverCallback(deps, merchant, callback, trigger);
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
  const callbacks = await claimCallbacks(deps, merchant, everyHost, handful);
  await Promise.all(callbacks.map((callback) => deliverClaimed(deps, merchant, callback)));
  return callbacks.length;
}
