import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { withDeadline } from '#platform/database/deadline.ts';
import { claimDue, newLease } from '#platform/database/due-work.sql.ts';
import { type Clock, timestamp, within } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { inSpan, type Tracer, traceHeaders } from '#platform/tracing/trace.ts';
import type { Callback, CallbackTrigger } from '#purchases/callbacks/callback.ts';
import { nextAttemptAt } from './answer.ts';
import { findAttempt } from './attempt.sql.ts';
import { type AttemptCommits, exhaustUnknown } from './attempt-commits.ts';
import { dueCallbacks, moveSent, releaseCallbacks } from './due-callbacks.sql.ts';
import { notSent } from './failure-reason.ts';
import { formBody, isForm } from './legacy-form.ts';
import { claimBatchSize, deadlineSeconds, leaseSeconds, runAttemptsMax } from './limits.ts';
import type { Exchange, SendCallback } from './send-callback.ts';

export type DeliveryDeps = AttemptCommits & {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  sealing: Sealing;
  sendCallback: SendCallback;
  tracer: Tracer | null;
};

/**
 * Makes one attempt to deliver a claimed callback. Returns null if the attempt could not begin,
 * because another process claimed the callback or had begun this attempt before it died.
 */
export function deliverCallback(
  deps: DeliveryDeps,
  callback: Callback,
  trigger: CallbackTrigger,
  operator: string | null = null,
  sendCallback = deps.sendCallback,
): Promise<Exchange | null> {
  const deliver = () => makeAttempt(deps, callback, { trigger, operator, sendCallback });
  const { checkout_id } = callback;
  return deps.tracer && checkout_id !== null
    ? deps.tracer.inCheckout(checkout_id, 'callback', deliver)
    : deliver();
}

async function makeAttempt(
  deps: DeliveryDeps,
  callback: Callback,
  {
    trigger,
    operator,
    sendCallback,
  }: { trigger: CallbackTrigger; operator: string | null; sendCallback: SendCallback },
): Promise<Exchange | null> {
  const attempt = await deps.openAttempt({
    callback,
    id: deps.random.uuid(),
    trigger,
    operator,
    traceHeaders: traceHeaders(),
  });
  if (attempt === null) {
    await countUnknown(deps, callback);
    return null;
  }
  const { headers } = attempt;
  const body = isForm(callback) ? formBody(deps.sealing, callback) : callback.payload;
  if (!headers || !body) {
    const reason = headers ? 'no_transaction_verify' : 'no_signing_key';
    return await deps.recordAttempt({ attempt, exchange: { ...nothing, reason } });
  }
  // The COMMIT of the attempt may have waited for a standby until the lease was over.
  if (!hasTimeToSend(deps.clock, callback)) {
    return await deps.recordAttempt({ attempt, exchange: { ...nothing, reason: notSent } });
  }
  const markSent = () =>
    void moveSent(deps.database.db, callback).catch((error) => {
      deps.log.warn({ err: error, callback_id: callback.id }, 'a callback was not marked as sent');
    });
  const whenSent = () => deps.sentExchanges.add(markSent);
  const exchange = await send(sendCallback, { url: callback.notify_url, headers, body, whenSent });
  deps.sentExchanges.remove(markSent);
  return await deps.recordAttempt({ attempt, exchange });
}

/**
 * Whether the lease outlasts an exchange. Otherwise another process could send at the same time.
 */
function hasTimeToSend(clock: Clock, { leased_until }: Callback): boolean {
  const left = Date.parse(leased_until ?? '') - clock.now().epochMilliseconds;
  return left >= deadlineSeconds * 1000;
}

function send(sendCallback: SendCallback, message: Parameters<SendCallback>[0]): Promise<Exchange> {
  return inSpan('POST', 'client', async (span) => {
    const exchange = await sendCallback(message);
    if (span) {
      span.attributes['tranche.outcome'] = exchange.reason ?? 'delivered';
      if (exchange.status) span.attributes['http.response.status_code'] = exchange.status;
    }
    return exchange;
  });
}

/**
 * Counts an attempt whose process died. If it was sent, the next one is due `retryMinutes` after it
 * began. If it is not known to have been sent, the next one is due at once: the lease has run out,
 * so no process is still sending it. If the previous attempt has no result either, the next one
 * waits, because sending the callback may be what kills the processes. Does nothing if the callback
 * is no longer ours.
 */
async function countUnknown(deps: DeliveryDeps, callback: Callback): Promise<void> {
  const { db, pool } = deps.database;
  const number = callback.attempts + 1;
  const attempt = await findAttempt(db, callback, number);
  if (attempt === null) return;
  const before = await findAttempt(db, callback, number - 1);
  const mustWait = callback.sent_attempt === number || before?.outcome === 'unknown';
  const due_at = mustWait
    ? timestamp(nextAttemptAt(Temporal.Instant.from(attempt.started_at)))
    : attempt.started_at;
  await releaseCallbacks(pool, [{ ...callback, attempts_made: 1, due_at }]);
}

const nothing: Exchange = {
  delivered: false,
  reason: null,
  address: null,
  tls_version: null,
  status: null,
  headers: null,
  body: null,
  body_bytes: null,
  truncated: false,
  timings: {},
};

/**
 * Makes the first delivery, in the process that ended the checkout and claimed its callback, while
 * the shopper waits. Returns when the delivery has been recorded, or at the deadline if that comes
 * first. Never throws: a callback that is not delivered now is delivered later.
 */
export async function deliverFirst(deps: DeliveryDeps, callback: Callback): Promise<void> {
  // The request may wait for the database for longer than the lease lasts. The delivery may not,
  // because another process may make the next attempt once the lease has ended.
  const endsAt = deps.clock.monotonic() + leaseSeconds * 1000;
  const deliver = () => deliverCallback(deps, callback, 'first');
  const delivery = withDeadline({ endsAt, lookUpEndsAt: endsAt }, deliver).catch((error) => {
    const { checkout_id } = callback;
    const text = 'the first delivery of a callback broke off; it is delivered when it is due';
    deps.log.error({ err: error, checkout_id }, text);
  });
  await within(deps.clock, deadlineSeconds * 1000, delivery);
}

/** Claims some of a merchant's due callbacks, to all hosts or to one. */
export async function claimCallbacks(
  deps: Pick<DeliveryDeps, 'database' | 'clock' | 'random'>,
  merchant: Merchant,
  rows: number,
  { host, seconds = leaseSeconds }: { host?: string; seconds?: number } = {},
): Promise<Callback[]> {
  const now = timestamp(merchant.now());
  const claim = { ...newLease(deps, seconds), merchantNow: now };
  return await claimDue(deps.database.db, dueCallbacks(host), merchant.id, claim, rows);
}

/** Delivers a claimed callback. Never throws: anything that is not recorded falls due again. */
export async function deliverClaimed(
  deps: DeliveryDeps,
  callback: Callback,
  sendCallback = deps.sendCallback,
): Promise<Exchange | null> {
  try {
    // The last attempt of the run was counted after a crash, so no attempt is left.
    if (callback.run_attempts >= runAttemptsMax) {
      await exhaustUnknown(deps, callback);
      return null;
    }
    const trigger = callback.attempts === 0 ? 'first' : 'retry';
    return await deliverCallback(deps, callback, trigger, null, sendCallback);
  } catch (error) {
    deps.log.error({ err: error, callback_id: callback.id }, 'a callback was not recorded');
    return null;
  }
}

/** Delivers some of one merchant's due callbacks. Returns how many. */
export async function deliverMerchantCallbacks(
  deps: DeliveryDeps,
  merchant: Merchant,
): Promise<number> {
  const callbacks = await claimCallbacks(deps, merchant, claimBatchSize);
  await Promise.all(callbacks.map((callback) => deliverClaimed(deps, callback)));
  return callbacks.length;
}
