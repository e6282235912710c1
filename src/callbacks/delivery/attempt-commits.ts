import type { Database, Handle } from '../../database/database.ts';
import { type GroupCommit, groupCommit } from '../../database/group-commit.ts';
import { transaction } from '../../database/transaction.ts';
import { findCallbackKeys } from '../../integrations/callback-key.ts';
import { listClocks } from '../../merchants/merchant.sql.ts';
import { raiseAlert } from '../../operators/raise-alert.ts';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '../../shared/clock.ts';
import type { Logger } from '../../shared/logger.ts';
import type { Random } from '../../shared/random.ts';
import type { Sealing } from '../../shared/sealing.ts';
import {
  insertCallbackAttempts,
  listWritten,
  moveAttemptsFinished,
  moveExhausted,
  movePutDown,
} from '../callback.sql.ts';
import {
  type Callback,
  type CallbackTrigger,
  mostRunAttempts,
  nextTry,
  readRedirectUrl,
  readRetryAfter,
} from '../callback.ts';
import { formHeaders, isForm } from '../legacy-form.ts';
import { callbackHeaders } from './callback-headers.ts';
import { noteDestinations } from './note-destinations.ts';
import type { Exchange } from './send-callback.ts';

/** A try at a callback in hand. */
export type Attempt = {
  callback: Callback;
  id: string;
  trigger: CallbackTrigger;
  operator: string | null;
};

/** What is sent with it (nothing where nobody can sign), and when it began for the merchant. */
export type OpenAttempt = Attempt & {
  headers: Record<string, string> | null;
  clock_ahead_ms: number;
  started_at: Timestamp;
};

type Ended = { attempt: OpenAttempt; exchange: Exchange };

/**
 * How attempts are written: before the socket opens, and closed afterwards. That there is an
 * attempt of that number keeps everybody else from beginning it; one that was never closed is
 * counted by whoever finds it, so whatever happens to this process in between, nobody delivers
 * again too soon and nothing is forgotten. Those that come while a commit is in flight share the
 * next one.
 */
export type AttemptCommits = {
  /** Null when the callback is in other hands. */
  openAttempt: GroupCommit<Attempt, OpenAttempt | null>;
  /** Closes the attempt with what became of it, and puts the callback down if it is in hand. */
  recordAttempt: GroupCommit<Ended, Exchange>;
};

type CommitDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  sealing: Sealing;
};

const mostInOneCommit = 400;

export function attemptCommits(deps: CommitDeps): AttemptCommits {
  return {
    openAttempt: groupCommit((group) => openAttempts(deps, group), mostInOneCommit),
    recordAttempt: groupCommit((group) => recordAttempts(deps, group), mostInOneCommit),
  };
}

async function openAttempts(deps: CommitDeps, group: Attempt[]): Promise<(OpenAttempt | null)[]> {
  return await transaction(deps, async (tx) => {
    const { db, client, commit } = tx;
    const now = deps.clock.now();
    const integrations = new Set(group.map(({ callback }) => callback.integration_id));
    const merchants = new Set(group.map(({ callback }) => callback.merchant_id));
    // Keys and clocks are read with every group and never remembered: a key that was revoked or
    // taken into use a moment ago is the one that counts.
    const [keys, clocks] = await Promise.all([
      findCallbackKeys(deps, tx, integrations, timestamp(now)),
      listClocks(client, [...merchants]),
    ]);
    const timeOf = merchantTimes(now);
    const open = group.map((attempt): OpenAttempt => {
      const { integration_id, merchant_id } = attempt.callback;
      const key = keys.get(integration_id);
      const clock_ahead_ms = clocks.get(merchant_id) ?? 0;
      return {
        ...attempt,
        headers: writeHeaders(attempt, key, now),
        clock_ahead_ms,
        started_at: timeOf(clock_ahead_ms),
      };
    });
    const rows = open.map(attemptRow);
    const [count] = await Promise.all([insertCallbackAttempts(client, rows), commit()]);
    if (count === rows.length) return open;
    // Some are in other hands, or an earlier run of this transaction has written them.
    const ours = new Set(await listWritten(db, rows));
    return open.map((attempt) => (ours.has(attempt.id) ? attempt : null));
  });
}

/** One instant as merchants have it, each by how far its clock is ahead. */
function merchantTimes(now: Temporal.Instant): (clock_ahead_ms: number) => Timestamp {
  const times = new Map<number, Timestamp>();
  return (clock_ahead_ms) => {
    let time = times.get(clock_ahead_ms);
    if (time === undefined) {
      time = timestamp(now.add({ milliseconds: clock_ahead_ms }));
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
  started_at: attempt.started_at,
  request_headers: attempt.headers ?? {},
});

function writeHeaders(
  { callback }: Attempt,
  key: string | undefined,
  now: Temporal.Instant,
): Record<string, string> | null {
  const number = callback.attempts + 1;
  if (isForm(callback)) return formHeaders(callback, number);
  return key === undefined ? null : callbackHeaders({ ...callback, number, key, now });
}

async function recordAttempts(deps: CommitDeps, group: Ended[]): Promise<Exchange[]> {
  return await transaction(deps, async (tx) => {
    const { db, client } = tx;
    const now = deps.clock.now();
    const timeOf = merchantTimes(now);
    const isGivenUp = ({ attempt, exchange }: Ended) =>
      !exchange.delivered && isLast(attempt.callback);
    const [closed] = await Promise.all([
      moveAttemptsFinished(
        client,
        group.map((one) => finished(one, timeOf(one.attempt.clock_ahead_ms))),
      ),
      movePutDown(
        client,
        group
          .filter((one) => !isGivenUp(one))
          .map((one) => settled(one, now, timeOf(one.attempt.clock_ahead_ms))),
      ),
    ]);
    // Nobody else closes them, so there are none if an earlier run of this transaction did.
    if (closed > 0) {
      const deliveries = group.map(({ attempt, exchange }) => ({
        callback: attempt.callback,
        reason: exchange.reason,
      }));
      await noteDestinations(deps, tx, deliveries);
    }
    for (const { attempt, exchange } of group.filter(isGivenUp)) {
      await giveUp(deps, db, attempt.callback, { made: 1, reason: exchange.reason });
    }
    return group.map(({ exchange }) => exchange);
  });
}

function finished({ attempt, exchange }: Ended, finished_at: Timestamp) {
  return {
    ...keyOf(attempt),
    finished_at,
    outcome: exchange.delivered ? ('delivered' as const) : ('failed' as const),
    reason: exchange.reason,
    address: exchange.address,
    tls_version: exchange.tls_version,
    response_status: exchange.status,
    response_headers: exchange.headers,
    response_body: exchange.body,
    timings: exchange.timings,
  };
}

/** What becomes of a callback that is not given up: told, or to be tried again. */
function settled({ attempt, exchange }: Ended, now: Temporal.Instant, merchantNow: Timestamp) {
  const { callback, trigger } = attempt;
  const counted = {
    merchant_id: callback.merchant_id,
    id: callback.id,
    lease: callback.lease,
    due_at: null,
    delivered_at: null,
    redirect_url: null,
  };
  if (exchange.delivered) {
    // What was cut off is not what the receiver said, even where it reads like an answer.
    const answer = trigger === 'first' && !exchange.truncated ? exchange.body : null;
    return {
      ...counted,
      status: 'delivered' as const,
      delivered_at: merchantNow,
      redirect_url:
        answer && readRedirectUrl(answer, isForm(callback) ? 'redirect' : 'redirect_url'),
    };
  }
  const { 'retry-after': retryAfter } = exchange.headers ?? {};
  const wait = readRetryAfter(exchange.status, retryAfter, now);
  const asked = wait === null ? null : secondsAfter(Temporal.Instant.from(merchantNow), wait);
  const due = nextTry(Temporal.Instant.from(attempt.started_at), asked);
  return { ...counted, status: 'pending' as const, due_at: timestamp(due) };
}

const isLast = (callback: Callback) => callback.run_attempts + 1 >= mostRunAttempts;

/** Gives up one whose last try nobody knows the result of: a crash took it along. */
export async function exhaustUnknown(deps: CommitDeps, callback: Callback): Promise<void> {
  await transaction(deps, async ({ db }) => {
    await giveUp(deps, db, callback, { made: 0, reason: null });
  });
}

/** No more tries by ourselves after so many more: the operator is told, once. */
async function giveUp(
  deps: CommitDeps,
  db: Handle,
  callback: Callback,
  last: { made: 0 | 1; reason: string | null },
): Promise<void> {
  const wasInHand = await moveExhausted(db, callback, {
    attempts: callback.attempts + last.made,
    run_attempts: callback.run_attempts + last.made,
  });
  if (!wasInHand) return;
  await raiseAlert(deps, db, {
    kind: 'callback_exhausted',
    merchant_id: callback.merchant_id,
    integration_id: callback.integration_id,
    subject_id: callback.id,
    detail: `Callback ${callback.id} of checkout ${callback.checkout_id} was not delivered in ${mostRunAttempts} attempts (last: ${last.reason ?? 'unknown'}). Re-trigger it with: tranche callbacks retry ${callback.id}`,
  });
}
