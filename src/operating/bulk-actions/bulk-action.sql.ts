import { sql } from 'kysely';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { isFree, type Lease } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { BulkAction, BulkActionProblem } from './bulk-action.ts';

export async function insertBulkAction(
  db: Handle,
  bulkAction: Pick<BulkAction, 'id' | 'kind' | 'actor' | 'wanted' | 'created_at' | 'total'>,
): Promise<void> {
  await db
    .insertInto('bulk_actions')
    .values({
      ...bulkAction,
      actor: JSON.stringify(bulkAction.actor),
      wanted: JSON.stringify(bulkAction.wanted),
      problems: '[]',
      due_at: bulkAction.created_at,
    })
    .execute();
}

/** A person's access, and the merchants that it has now. */
type Reader = { access_id: string; scope: Scope };

/**
 * The bulk actions that a person began with this access. If the access has lost a merchant since
 * then, the bulk action is not shown, because its problems may name that merchant's rows. The
 * worker ends such a bulk action.
 */
function selectOwn(db: Handle, { access_id, scope }: Reader) {
  const query = db
    .selectFrom('bulk_actions')
    .selectAll()
    .where(sql<boolean>`actor ->> 'access_id' = ${access_id}`);
  if (scope === 'all merchants') return query;
  const own = JSON.stringify(scope.merchant_ids);
  return query.where(sql<boolean>`actor -> 'merchant_ids' <@ ${own}::jsonb`);
}

export async function findBulkAction(
  db: Handle,
  reader: Reader,
  id: string,
): Promise<BulkAction | null> {
  const row = await selectOwn(db, reader).where('id', '=', id).executeTakeFirst();
  return row ?? null;
}

export async function findBulkActionOfAny(db: Handle, id: string): Promise<BulkAction | null> {
  const query = db.selectFrom('bulk_actions').selectAll().where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

export async function lockBulkAction(db: Handle, id: string): Promise<BulkAction | null> {
  const query = db.selectFrom('bulk_actions').selectAll().where('id', '=', id).forUpdate();
  return (await query.executeTakeFirst()) ?? null;
}

/** Ends a bulk action, even if a process has claimed it: that process loses its claim. */
export async function moveStopped(
  db: Handle,
  id: string,
  to: { finished_at: Timestamp; stopped: string },
): Promise<void> {
  await db
    .updateTable('bulk_actions')
    .set({ ...to, due_at: null, lease: null, leased_until: null })
    .where('id', '=', id)
    .execute();
}

export async function listBulkActions(
  db: Handle,
  reader: Reader,
  limit: number,
): Promise<BulkAction[]> {
  return await selectOwn(db, reader).orderBy('id', 'desc').limit(limit).execute();
}

/** Claims the bulk action that has been due longest. Returns null if none is due. */
export async function claimBulkAction(
  db: Handle,
  { lease, leased_until, now }: Lease,
): Promise<BulkAction | null> {
  const row = await db
    .with(
      (name) => name('chosen').materialized(),
      (from) =>
        from
          .selectFrom('bulk_actions')
          .select('id')
          .where('due_at', '<=', now)
          .where(isFree(now))
          .orderBy('due_at')
          .orderBy('id')
          .limit(1)
          .forUpdate()
          .skipLocked(),
    )
    .updateTable('bulk_actions')
    .from('chosen')
    .set({ lease, leased_until })
    .whereRef('bulk_actions.id', '=', 'chosen.id')
    .returningAll('bulk_actions')
    .executeTakeFirst();
  return row ?? null;
}

export type Progress = {
  position: string | null;
  done: number;
  failed: number;
  problems: BulkActionProblem[];
};

/**
 * Records how far a bulk action has come, and extends the claim. Returns false if the claim was
 * lost.
 */
export async function moveProgress(
  db: Handle,
  { id, lease }: { id: string; lease: string },
  { problems, ...progress }: Progress,
  leased_until: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('bulk_actions')
    .set({ ...progress, problems: JSON.stringify(problems), leased_until })
    .where('id', '=', id)
    .where('lease', '=', lease)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Ends a claim: the action is finished, or due again. */
export async function releaseBulkAction(
  db: Handle,
  { id, lease }: { id: string; lease: string },
  to: { due_at: Timestamp | null; finished_at: Timestamp | null; stopped?: string },
): Promise<void> {
  await db
    .updateTable('bulk_actions')
    .set({ ...to, lease: null, leased_until: null })
    .where('id', '=', id)
    .where('lease', '=', lease)
    .execute();
}

type WantedCallbacks = { merchant_ids: string[] | null; host: string | null; until_id: string };

/** The exhausted callbacks that a bulk action retries: those that existed when it began. */
function selectCallbacksToRetry(db: Handle, wanted: WantedCallbacks) {
  let query = db
    .selectFrom('callbacks')
    .select('id')
    .where('status', '=', 'exhausted')
    .where('id', '<=', wanted.until_id);
  const { merchant_ids, host } = wanted;
  if (merchant_ids !== null) {
    query = query.where(sql<boolean>`merchant_id = any(${merchant_ids}::uuid[])`);
  }
  return host === null ? query : query.where('host', '=', host);
}

/** The next callbacks that a bulk action retries, after an id and in the order of ids. */
export async function listCallbacksToRetry(
  db: Handle,
  wanted: WantedCallbacks,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const query = selectCallbacksToRetry(db, wanted).orderBy('id').limit(limit);
  const rest = after === null ? query : query.where('id', '>', after);
  return (await rest.execute()).map(({ id }) => id);
}

/** Counts the callbacks that a bulk action would retry, up to a maximum. */
export async function countCallbacksToRetry(
  db: Handle,
  wanted: WantedCallbacks,
  max: number,
): Promise<number> {
  const { count } = await db
    .selectFrom(selectCallbacksToRetry(db, wanted).limit(max).as('found'))
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}
