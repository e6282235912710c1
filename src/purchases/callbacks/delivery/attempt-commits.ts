import { findKeysAndClocks } from '#merchants/integrations/callback-key.ts';
import type { Database } from '#platform/database/database.ts';
import { type GroupCommit, groupCommit } from '#platform/database/group-commit.ts';
import { type Transaction, transaction } from '#platform/database/transaction.ts';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { Callback, CallbackTrigger } from '#purchases/callbacks/callback.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { lockOpenAlert } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { isAwaited, nextAttemptAt, readRedirectUrl, readRetryAfter } from './answer.ts';
import { insertCallbackAttempts, listWrittenAttempts, moveAttemptsEnded } from './attempt.sql.ts';
import { callbackHeaders } from './callback-headers.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { isAlerted } from './destination.sql.ts';
import { countDeliveries } from './destination-statistics.ts';
import { releaseCallbacks } from './due-callbacks.sql.ts';
import { notSent } from './failure-reason.ts';
import { formHeaders, isForm } from './legacy-form.ts';
import { commitBatchSize, leaseSeconds, markSentMilliseconds, runAttemptsMax } from './limits.ts';
import { noteDestinations } from './note-destinations.ts';
import type { Exchange } from './send-callback.ts';
import { storedAnswer } from './stored-answer.ts';

type Attempt = {
  callback: Callback;
  id: string;
  trigger: CallbackTrigger;
  operator: string | null;
  /** The header that lets the receiver continue the trace, if there is a trace. */
  traceHeaders: Record<string, string>;
};

/** `headers` is null without a signing key; the times are on the merchant's clock. */
type OpenAttempt = Attempt & {
  headers: Record<string, string> | null;
  clock_ahead_ms: number;
  started: MerchantTime;
  /** `leaseSeconds` after the attempt was opened. Used if the lease is lost before the result. */
  lease_end: Timestamp;
};

type Ended = { attempt: OpenAttempt; exchange: Exchange };

/**
 * The row of an attempt is written before the socket opens. Its result is recorded afterwards. The
 * row keeps other processes from beginning an attempt with that number. If this process dies in
 * between, the process that claims the callback next finds the row and counts it, so the callback
 * is neither sent again too soon nor lost. Attempts that arrive while a commit is in flight share
 * the next commit.
 */
export type AttemptCommits = {
  /** Null if another process has claimed the callback or has already begun this attempt. */
  openAttempt: GroupCommit<Attempt, OpenAttempt | null>;
  /** Records the result of an attempt, and releases its callback if the lease still holds. */
  recordAttempt: GroupCommit<Ended, Exchange>;
  /** Exchanges whose requests were sent. A slow one is recorded as sent in the database. */
  sentExchanges: Deadlines;
};

type CommitDeps = MerchantMailDeps & {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  sealing: Sealing;
  metrics?: {
    observeBatch(commit: string, items: number): void;
    countDeliveries(outcome: 'delivered' | 'failed', attempts: number): void;
  };
};

export function attemptCommits(deps: CommitDeps): AttemptCommits {
  const observed = (commit: string) => ({
    ...deps,
    observeBatch: (items: number) => deps.metrics?.observeBatch(commit, items),
  });
  return {
    openAttempt: groupCommit(
      observed('callback attempts opened'),
      (group) => openAttempts(deps, group),
      commitBatchSize,
    ),
    recordAttempt: groupCommit(
      observed('callback attempts recorded'),
      (group) => recordAttempts(deps, group),
      commitBatchSize,
    ),
    sentExchanges: createDeadlines(deps.clock, markSentMilliseconds),
  };
}

async function openAttempts(deps: CommitDeps, group: Attempt[]): Promise<(OpenAttempt | null)[]> {
  const write = async ({ db, client, commit }: Transaction) => {
    const now = deps.clock.now();
    const integrations = new Set(group.map(({ callback }) => callback.integration_id));
    const merchants = new Set(group.map(({ callback }) => callback.merchant_id));
    // Keys and clocks are read with every batch and never cached, so that a rotated or revoked key
    // takes effect at once.
    const { keys, clocks } = await findKeysAndClocks(deps, db, {
      integration_ids: [...integrations],
      merchant_ids: [...merchants],
      now: timestamp(now),
    });
    const timeOf = merchantTimes(now);
    const leaseEndOf = merchantTimes(secondsAfter(now, leaseSeconds));
    const open = group.map((attempt): OpenAttempt => {
      const { integration_id, merchant_id } = attempt.callback;
      const key = keys.get(integration_id);
      const clock_ahead_ms = clocks.get(merchant_id) ?? 0;
      return {
        ...attempt,
        headers: writeHeaders(attempt, key, now),
        clock_ahead_ms,
        started: timeOf(clock_ahead_ms),
        lease_end: leaseEndOf(clock_ahead_ms).text,
      };
    });
    const rows = open.map(attemptRow);
    const [count] = await Promise.all([insertCallbackAttempts(client, rows), commit()]);
    if (count === rows.length) return open;
    // Another process claimed some of the callbacks, or an earlier run of this transaction has
    // written the attempts.
    const ours = new Set(await listWrittenAttempts(db, rows));
    return open.map((attempt) => (ours.has(attempt.id) ? attempt : null));
  };
  return await transaction(deps, write, { isPlannedOnce: true });
}

type MerchantTime = { instant: Temporal.Instant; text: Timestamp };

/**
 * One instant on the clocks of several merchants, each ahead by its own amount. Most clocks are not
 * ahead at all, so a batch has few different times, and each is computed only once.
 */
function merchantTimes(now: Temporal.Instant): (clock_ahead_ms: number) => MerchantTime {
  const times = new Map<number, MerchantTime>();
  return (clock_ahead_ms) => {
    let time = times.get(clock_ahead_ms);
    if (time === undefined) {
      const instant = now.add({ milliseconds: clock_ahead_ms });
      time = { instant, text: timestamp(instant) };
      times.set(clock_ahead_ms, time);
    }
    return time;
  };
}

const keyOf = ({ callback, id }: Attempt) => ({
  merchant_id: callback.merchant_id,
  callback_id: callback.id,
  number: callback.attempts + 1,
  id,
});

const attemptRow = (attempt: OpenAttempt) => ({
  ...keyOf(attempt),
  lease: attempt.callback.lease,
  trigger: attempt.trigger,
  operator: attempt.operator,
  started_at: attempt.started.text,
  request_headers: attempt.headers ?? {},
});

function writeHeaders(
  { callback, traceHeaders }: Attempt,
  key: string | undefined,
  now: Temporal.Instant,
): Record<string, string> | null {
  const number = callback.attempts + 1;
  if (isForm(callback)) return { ...formHeaders(callback, number), ...traceHeaders };
  if (key === undefined) return null;
  return { ...callbackHeaders({ ...callback, number, key, now }), ...traceHeaders };
}

async function recordAttempts(deps: CommitDeps, group: Ended[]): Promise<Exchange[]> {
  const write = async (tx: Transaction) => {
    const { db, client, commit } = tx;
    const now = deps.clock.now();
    const timeOf = merchantTimes(now);
    const rows = group.map((one) => ended(one, now, timeOf(one.attempt.clock_ahead_ms)));
    const isDone = group.every(({ exchange }) => exchange.delivered);
    const [closed] = await Promise.all([moveAttemptsEnded(client, rows), isDone ? commit() : null]);
    // No other process records these attempts. If none was open, an earlier run of this transaction
    // has recorded them and counted their failures.
    if (closed > 0) {
      const deliveries = group.map(({ attempt, exchange }) => ({
        callback: attempt.callback,
        reason: exchange.reason,
      }));
      await noteDestinations(deps, db, deliveries);
    }
    for (const { attempt, exchange } of group.filter(isExhausted)) {
      await exhaust(deps, tx, attempt.callback, { attempts_made: 1, reason: exchange.reason });
    }
    return group.map(({ exchange }) => exchange);
  };
  const recorded = await transaction(deps, write, { isPlannedOnce: true });
  const counted = group.map(({ attempt: { callback }, exchange: { reason, timings } }) => ({
    callback,
    reason,
    milliseconds: timings.total,
  }));
  countDeliveries(deps, counted);
  const delivered = group.filter(({ exchange }) => exchange.delivered).length;
  deps.metrics?.countDeliveries('delivered', delivered);
  deps.metrics?.countDeliveries('failed', group.length - delivered);
  return recorded;
}

/**
 * Whether the last attempt of a run failed. Then `exhaust` releases the callback, and
 * `moveAttemptsEnded` does not.
 */
const isExhausted = ({ attempt, exchange }: Ended) =>
  !exchange.delivered && isLast(attempt.callback);

function ended(one: Ended, now: Temporal.Instant, merchantNow: MerchantTime) {
  const { attempt, exchange } = one;
  const { lease, host } = attempt.callback;
  return {
    ...keyOf(attempt),
    ...{ lease, host, finished_at: merchantNow.text, lease_end: attempt.lease_end },
    ...(isExhausted(one) ? { ...unchanged, status: null } : released(one, now, merchantNow)),
    outcome: exchange.delivered ? ('delivered' as const) : ('failed' as const),
    reason: exchange.reason,
    address: exchange.address,
    tls_version: exchange.tls_version,
    response_status: exchange.status,
    ...storedAnswer(exchange),
    timings: exchange.timings,
  };
}

/** Null keeps `delivered_at` and `redirect_url` as they are. */
const unchanged = { due_at: null, delivered_at: null, redirect_url: null };

/** How a callback that is not exhausted is released: delivered, or due for a retry. */
function released({ attempt, exchange }: Ended, now: Temporal.Instant, merchantNow: MerchantTime) {
  const { callback, trigger, started } = attempt;
  if (exchange.delivered) {
    const isFirst = trigger === 'first' && callback.event === null;
    const isHeard = isFirst && isAwaited(callback, started.instant);
    // A truncated body is not a complete answer, even if it parses.
    const answer = isHeard && !exchange.truncated ? exchange.body : null;
    return {
      ...unchanged,
      status: 'delivered' as const,
      delivered_at: merchantNow.text,
      redirect_url:
        answer && readRedirectUrl(answer, isForm(callback) ? 'redirect' : 'redirect_url'),
    };
  }
  // The lease had too little time left, so nothing was sent. The attempt is repeated at once if it
  // was the first one or an operator's. A retry waits for the usual interval, so that a slow
  // database does not use up the run.
  if (exchange.reason === notSent && trigger !== 'retry') {
    return { ...unchanged, status: 'pending' as const, due_at: merchantNow.text };
  }
  const { 'retry-after': retryAfter } = exchange.headers ?? {};
  const wait = readRetryAfter(exchange.status, retryAfter, now);
  const asked = wait === null ? null : secondsAfter(merchantNow.instant, wait);
  const due = nextAttemptAt(started.instant, asked);
  return { ...unchanged, status: 'pending' as const, due_at: timestamp(due) };
}

const isLast = (callback: Callback) => callback.run_attempts + 1 >= runAttemptsMax;

/** Exhausts a callback whose last attempt was counted after a crash. Its result is unknown. */
export async function exhaustUnknown(
  deps: Omit<CommitDeps, 'mailMerchant'>,
  callback: Callback,
): Promise<void> {
  await transaction(deps, async (tx) => {
    await exhaust(deps, tx, callback, { attempts_made: 0, reason: null });
  });
}

/** Ends the run of a callback and raises one alert. */
async function exhaust(
  deps: Omit<CommitDeps, 'mailMerchant'>,
  { db, client }: Pick<Transaction, 'db' | 'client'>,
  callback: Callback,
  last: { attempts_made: 0 | 1; reason: string | null },
): Promise<void> {
  const { attempts_made } = last;
  const exhausted = { ...callback, attempts_made, status: 'exhausted', due_at: null } as const;
  if ((await releaseCallbacks(client, [exhausted])) === 0) return;
  const { merchant_id } = callback;
  await raiseAlert(deps, db, {
    kind: 'callback_exhausted',
    merchant_id,
    integration_id: callback.integration_id,
    subject_id: callback.id,
    detail: `The callback was not delivered in ${runAttemptsMax} attempts (last: ${last.reason ?? 'unknown'}). It can be sent again.`,
    // If an alert about the failing receiver is open, this one is only a notice, so that operators
    // need not close an alert for each callback.
    isNotice:
      (await isAlerted(db, callback)) &&
      (await lockOpenAlert(db, 'destination_failing', { merchant_id })),
  });
}
