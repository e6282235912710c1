import type { MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { findOpenSession } from '#operating/people/console-session.sql.ts';
import { originOf, type SecondPersonSettings } from '#operating/people/console-session.ts';
import { type Permission, permissionsOf } from '#operating/people/permission.ts';
import type { Person } from '#operating/people/person.sql.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import { type FoundRow, findRowById, findSharedRowById } from '#operating/search/search.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { type Lease, newLease } from '#platform/database/due-work.sql.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { CollectDeps } from '#purchases/instalments/collect-instalments.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { approvePayout, payPayout } from '#purchases/payouts/review-payout.ts';
import type { ReviewDeps } from '#purchases/refunds/review-refund.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import { OperatorError, SessionEnded } from '#record/actions/operate.ts';
import { hasActedOn } from '#record/actions/operator-action.sql.ts';
import {
  claimBulkAction,
  listCallbacksToRetry,
  moveProgress,
  type Progress,
  releaseBulkAction,
} from './bulk-action.sql.ts';
import type { BulkAction, BulkActionKind } from './bulk-action.ts';
import { problemsMax, readApproval, readReview } from './bulk-action.ts';

export type BulkActionDeps = DeliveryDeps &
  ReviewDeps &
  CollectDeps &
  QueueDeps &
  MerchantMailDeps &
  SecondPersonSettings & { money: MoneyGuard };

/** One item takes less time than this. The claim is extended after each item. */
const leaseSeconds = 120;
/** A bulk action that failed because of an internal error is retried after this time. */
const retrySeconds = 15;
const batchSize = 100;
const reasons = {
  'signed out': 'The session that began this has ended.',
  narrowed: 'The person who began this has lost a merchant.',
};
/** After this time a bulk action is released, so that the others get their turn. */
const turnSeconds = 3;

/**
 * Continues the bulk action that has been due longest, until it is finished or its turn is over. If
 * the turn ends first, it is due again, behind the others that were due. Returns 1 after a turn.
 * Returns 0 if access is closed, if no bulk action is due, if this process is stopping or lost the
 * claim, and after an error.
 */
export async function runBulkActions(
  deps: BulkActionDeps,
  stopping?: AbortSignal,
): Promise<number> {
  // In a database that was restored, the session that began the action may look open although it
  // ended after the backup was made (decision 0097).
  if ((await deps.money.accessProblem()) !== null) return 0;
  const { db } = deps.database;
  const lease = newLease(deps, leaseSeconds);
  const bulkAction = await claimBulkAction(db, lease);
  if (!bulkAction) return 0;
  try {
    const end = await goOn(deps, bulkAction, lease, stopping).catch((error: unknown) => {
      // The session ended while an item waited for a lock. The item was not changed.
      if (error instanceof SessionEnded) return 'signed out' as const;
      throw error;
    });
    const now = timestamp(deps.clock.now());
    const why = end === 'signed out' || end === 'narrowed' ? { stopped: reasons[end] } : null;
    const isOver = end === 'finished' || why !== null;
    const to = isOver ? { due_at: null, finished_at: now } : { due_at: now, finished_at: null };
    await releaseBulkAction(db, { id: bulkAction.id, lease: lease.lease }, { ...to, ...why });
    return end === 'stopped' ? 0 : 1;
  } catch (error) {
    deps.log.error({ err: error, bulk_action_id: bulkAction.id }, 'a bulk action was interrupted');
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
 * Acts on one item after another, and records the progress after each. A turn handles at least one
 * item. Returns `stopped` if this process is stopping or lost the claim, and `signed out` if the
 * session that began the bulk action has ended. Returns `narrowed` if the person who began it has
 * lost a merchant, because they can then neither read nor stop it.
 */
async function goOn(
  deps: BulkActionDeps,
  bulkAction: BulkAction,
  { lease }: Lease,
  stopping?: AbortSignal,
): Promise<'finished' | 'turn over' | 'stopped' | keyof typeof reasons> {
  const turnEnds = secondsAfter(deps.clock.now(), turnSeconds);
  const { operator, session_id, address, merchant_ids: begunWith } = bulkAction.actor;
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
      // If the process dies during an item, the next claim begins by repeating that item. A
      // repeated approval is refused, and a callback is delivered once more, which every receiver
      // has to expect.
      const isFirst = progress.position === bulkAction.position;
      const now = timestamp(deps.clock.now());
      const recognised = await findOpenSession(deps.database.db, session_id, now);
      // A person may have removed the session's passkey from within that session. The session stays
      // open, but its bulk actions end.
      const isGone = recognised?.session.passkey_id != null && recognised.passkey_since === null;
      if (!recognised || isGone) return 'signed out';
      const { merchant_ids: left } = recognised.person;
      if (left !== null && !begunWith?.every((one) => left.includes(one))) return 'narrowed';
      const acting = { ...deps, origin: originOf(deps, recognised, address) };
      const found = await findAllowed(deps, bulkAction, recognised.person, id);
      const problem =
        'problem' in found
          ? found.problem
          : await attempt(acting, operator, bulkAction, { ...found, item: id, isFirst });
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

/** The next items, each with the position to record once that item is done. */
async function nextItems(
  deps: BulkActionDeps,
  { wanted }: BulkAction,
  position: string | null,
): Promise<{ id: string; position: string }[]> {
  if ('ids' in wanted) {
    const start = position === null ? 0 : Number(position);
    return wanted.ids
      .slice(start, start + batchSize)
      .map((id, index) => ({ id, position: String(start + index + 1) }));
  }
  const ids = await listCallbacksToRetry(deps.database.db, wanted, position, batchSize);
  return ids.map((id) => ({ id, position: id }));
}

/** Returns the row of an item, or why the person may no longer act on it. */
async function findAllowed(
  deps: BulkActionDeps,
  { kind }: BulkAction,
  person: Person,
  id: string,
): Promise<Row | { problem: string }> {
  const hasAll = person.merchant_ids === null;
  const { needs, find } = kinds[kind];
  if (!permissionsOf(person.roles, hasAll).includes(needs))
    return { problem: 'The person who began this is no longer allowed to do it.' };
  const scope: Scope = hasAll ? 'all merchants' : { merchant_ids: person.merchant_ids ?? [] };
  const row = await find(deps.database.db, scope, id);
  return row ?? { problem: 'This no longer exists.' };
}

/**
 * Acts on one item. Returns why the action did not succeed, or null. The first item of a claim may
 * have been done by a process that died, which is not a failure.
 */
async function attempt(
  deps: BulkActionDeps,
  operator: string,
  { kind, wanted, actor: { session_id }, created_at }: BulkAction,
  { item: id, isFirst, ...row }: Row & { item: string; isFirst: boolean },
): Promise<string | null> {
  try {
    return await kinds[kind].run(deps, operator, row, { id, wanted });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    const acted = { session_id, action: kind, subject_id: row.id, since: created_at };
    // A checkout may have several payments to retry, and the audit names the checkout.
    const mayBeDone = isFirst && kind !== 'instalments retry';
    return mayBeDone && (await hasActedOn(deps.database.db, acted)) ? null : error.message;
  }
}

type Row = FoundRow<string | null>;
type Item = { id: string; wanted: BulkAction['wanted'] };
type Kind = {
  needs: Permission;
  find(db: Handle, scope: Scope, id: string): Promise<Row | null>;
  /** Returns why the action did not succeed, or null. */
  run(deps: BulkActionDeps, operator: string, row: Row, item: Item): Promise<string | null>;
};

const findPayout: Kind['find'] = async (db, scope, id) => {
  const row = await findSharedRowById(db, scope, 'payouts', id.split(':')[0] ?? '');
  return row && { merchant_id: row.merchant_id as string, id: row.id, checkout_id: null };
};

/**
 * Each kind of bulk action: the permission for one item, how it is found, and how it is carried
 * out.
 */
const kinds: Record<BulkActionKind, Kind> = {
  'callbacks retry': {
    needs: 'callbacks.retry',
    find: (db, scope, id) => findRowById(db, scope, 'callbacks', id),
    async run(deps, operator, { id }) {
      const { status } = await retriggerCallback(deps, operator, id);
      return status === 'delivered' ? null : 'The delivery failed. Retries have begun.';
    },
  },
  'refunds approve': {
    needs: 'refunds.review',
    find: (db, scope, item) => findRowById(db, scope, 'refund_requests', readReview(item).id),
    async run(deps, operator, row, item) {
      await approveRefund(deps, operator, row, readReview(item.id).asFirst);
      return null;
    },
  },
  'payouts approve': {
    needs: 'payouts.approve',
    find: findPayout,
    async run(deps, operator, { id }, item) {
      await approvePayout(deps, operator, id, readApproval(item.id).account);
      return null;
    },
  },
  'payouts paid': {
    needs: 'payouts.settle',
    find: findPayout,
    async run(deps, operator, { id }, { wanted }) {
      const bank_reference = ('ids' in wanted && wanted.bank_reference) || '';
      await payPayout(deps, operator, id, bank_reference);
      return null;
    },
  },
  'instalments retry': {
    needs: 'instalments.retry',
    find: (db, scope, id) => findRowById(db, scope, 'checkouts', id.split(':')[0] ?? ''),
    async run(deps, operator, row, { id }) {
      const { status, number } = await retryInstalment(deps, operator, id);
      if (status === 'collected') return null;
      const checkout = await findCheckout(deps.database.db, row.merchant_id, row.id);
      const payment = `${checkout?.client_reference_id}: payment ${number}`;
      return status === 'overdue' ? `${payment} was declined again.` : `${payment} is ${status}.`;
    },
  },
};
