import { findOpenSession } from '#operating/people/console-session.sql.ts';
import { originOf, type SecondPersonSettings } from '#operating/people/console-session.ts';
import { permissionsOf } from '#operating/people/permission.ts';
import type { Person } from '#operating/people/person.sql.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import { type FoundRow, findRowById } from '#operating/search/search.sql.ts';
import { type Lease, newLease } from '#platform/database/due-work.sql.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import type { ReviewDeps } from '#purchases/refunds/review-refund.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import { OperatorError } from '#record/actions/operate.ts';
import {
  claimBulkAction,
  listCallbacksToRetry,
  moveProgress,
  type Progress,
  releaseBulkAction,
} from './bulk-action.sql.ts';
import type { BulkAction } from './bulk-action.ts';
import { problemsMax } from './bulk-action.ts';

export type BulkActionDeps = DeliveryDeps & ReviewDeps & SecondPersonSettings;

/** Longer than one action takes. The claim is prolonged after each. */
const leaseSeconds = 120;
/** An action that failed for a reason of ours is retried after this time. */
const retrySeconds = 15;
const batchSize = 100;
const sessionEnded = 'The session that began this has ended.';
/** After this time an action is released where it is, so that others have their turn. */
const turnSeconds = 3;

/**
 * Goes on with the bulk action that has waited longest, until it is finished or its turn is over.
 * Then it is due again, behind the actions that have waited meanwhile. Returns 0 if there is no
 * more to do now.
 */
export async function runBulkActions(
  deps: BulkActionDeps,
  stopping?: AbortSignal,
): Promise<number> {
  const { db } = deps.database;
  const lease = newLease(deps, leaseSeconds);
  const bulkAction = await claimBulkAction(db, lease);
  if (!bulkAction) return 0;
  try {
    const end = await goOn(deps, bulkAction, lease, stopping);
    const now = timestamp(deps.clock.now());
    const isOver = end === 'finished' || end === 'signed out';
    const to = isOver ? { due_at: null, finished_at: now } : { due_at: now, finished_at: null };
    const why = end === 'signed out' ? { stopped: sessionEnded } : {};
    await releaseBulkAction(db, { id: bulkAction.id, lease: lease.lease }, { ...to, ...why });
    return end === 'stopped' ? 0 : 1;
  } catch (error) {
    deps.log.error({ err: error, bulk_action_id: bulkAction.id }, 'a bulk action could not go on');
    const due_at = timestamp(secondsAfter(deps.clock.now(), retrySeconds));
    await releaseBulkAction(
      db,
      { id: bulkAction.id, lease: lease.lease },
      { due_at, finished_at: null },
    );
    return 0;
  }
}

/**
 * Acts on one item after another, and writes after each how far it has come. A turn handles at least
 * one item. `stopped`: this process ends, or it lost the claim. `signed out`: the session that began it
 * has ended.
 */
async function goOn(
  deps: BulkActionDeps,
  bulkAction: BulkAction,
  { lease }: Lease,
  stopping?: AbortSignal,
): Promise<'finished' | 'turn over' | 'stopped' | 'signed out'> {
  const turnEnds = secondsAfter(deps.clock.now(), turnSeconds);
  const { operator, session_id, address } = bulkAction.actor;
  let progress: Progress = {
    position: bulkAction.position,
    done: bulkAction.done,
    failed: bulkAction.failed,
    problems: bulkAction.problems,
  };
  for (;;) {
    const items = await nextItems(deps, bulkAction, progress.position);
    if (items.length === 0) return 'finished';
    for (const { id, position } of items) {
      if (stopping?.aborted) return 'stopped';
      // A process that died here repeats one action. An approval is refused then, and a callback is
      // delivered once more, which every receiver has to expect.
      const now = timestamp(deps.clock.now());
      const recognised = await findOpenSession(deps.database.db, session_id, now);
      // The passkey of the session may have been removed, in that session itself.
      const isGone = recognised?.session.passkey_id != null && recognised.passkey_since === null;
      if (!recognised || isGone) return 'signed out';
      const acting = { ...deps, origin: originOf(deps, recognised, address) };
      const found = await findAllowed(deps, bulkAction, recognised.person, id);
      const problem =
        'problem' in found ? found.problem : await attempt(acting, operator, bulkAction, found);
      progress = {
        position,
        done: progress.done + (problem === null ? 1 : 0),
        failed: progress.failed + (problem === null ? 0 : 1),
        problems:
          problem === null || progress.problems.length >= problemsMax
            ? progress.problems
            : [...progress.problems, { id, problem }],
      };
      const until = timestamp(secondsAfter(deps.clock.now(), leaseSeconds));
      const isOurs = await moveProgress(
        deps.database.db,
        { id: bulkAction.id, lease },
        progress,
        until,
      );
      if (!isOurs) return 'stopped';
      if (Temporal.Instant.compare(deps.clock.now(), turnEnds) >= 0) return 'turn over';
    }
  }
}

/** The next items, each with the position to note when it is done. */
async function nextItems(
  deps: BulkActionDeps,
  { wanted }: BulkAction,
  position: string | null,
): Promise<{ id: string; position: string }[]> {
  if ('refund_ids' in wanted) {
    const start = position === null ? 0 : Number(position);
    return wanted.refund_ids
      .slice(start, start + batchSize)
      .map((id, index) => ({ id, position: String(start + index + 1) }));
  }
  const ids = await listCallbacksToRetry(deps.database.db, wanted, position, batchSize);
  return ids.map((id) => ({ id, position: id }));
}

/** The row of an item, or why the person may not act on it any more. */
async function findAllowed(
  deps: BulkActionDeps,
  bulkAction: BulkAction,
  person: Person,
  id: string,
): Promise<FoundRow | { problem: string }> {
  const { db } = deps.database;
  const hasAll = person.merchant_ids === null;
  const needed = bulkAction.kind === 'refunds approve' ? 'refunds.review' : 'callbacks.retry';
  if (!permissionsOf(person.roles, hasAll).includes(needed))
    return { problem: 'The person who began this may not do it any more.' };
  const scope: Scope = hasAll ? 'all merchants' : { merchant_ids: person.merchant_ids ?? [] };
  const table = bulkAction.kind === 'refunds approve' ? 'refund_requests' : 'callbacks';
  const row = await findRowById(db, scope, table, id);
  return row ?? { problem: 'This belongs to a merchant that the person may not see any more.' };
}

/** Why one action was refused, or null. */
async function attempt(
  deps: BulkActionDeps,
  operator: string,
  { kind }: BulkAction,
  row: FoundRow,
): Promise<string | null> {
  try {
    if (kind === 'refunds approve') {
      await approveRefund(deps, operator, row);
      return null;
    }
    const { status } = await retriggerCallback(deps, operator, row.id);
    return status === 'delivered' ? null : 'The delivery failed. Retries have begun.';
  } catch (error) {
    if (error instanceof OperatorError) return error.message;
    throw error;
  }
}
