import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { SessionScope } from './plan-attempt.ts';

export type PlanKey = { merchant_id: string; checkout_id: string };

export async function insertPlanLink(
  db: Handle,
  link: PlanKey & { token_hash: Buffer; created_at: Timestamp; expires_at: Timestamp },
): Promise<void> {
  await db
    .insertInto('plan_links')
    .values({ ...link, used_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Marks a link as used. Returns false if the link does not exist, was used before, or has expired.
 */
export async function movePlanLinkUsed(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  token_hash: Buffer,
  now: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('plan_links')
    .set({ used_at: now })
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('token_hash', '=', token_hash)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

export type LateLink = PlanKey & {
  token_hash: Buffer;
  created_at: Timestamp;
  expires_at: Timestamp;
};

/**
 * Inserts the links of mails about late payments. A plan has only one such link, so a new one
 * replaces it.
 */
export async function insertLateLinks(db: Handle, links: LateLink[]): Promise<void> {
  await db
    .insertInto('late_links')
    .values(links)
    .onConflict((conflict) =>
      conflict.columns(['checkout_id', 'merchant_id']).doUpdateSet((eb) => ({
        token_hash: eb.ref('excluded.token_hash'),
        created_at: eb.ref('excluded.created_at'),
        expires_at: eb.ref('excluded.expires_at'),
      })),
    )
    .execute();
}

/** The hash of the link if it has not expired, or null. */
export async function findLateLink(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  now: Timestamp,
): Promise<Buffer | null> {
  const row = await db
    .selectFrom('late_links')
    .select('token_hash')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row?.token_hash ?? null;
}

export async function insertPlanSession(
  db: Handle,
  session: PlanKey & {
    session_hash: Buffer;
    scope: SessionScope;
    created_at: Timestamp;
    expires_at: Timestamp;
  },
): Promise<void> {
  // The session may exist if the fate of an earlier COMMIT of this request was unknown.
  await db
    .insertInto('plan_sessions')
    .values(session)
    .onConflict((on) => on.doNothing())
    .execute();
}

export async function findPlanSession(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  session_hash: Buffer,
  now: Timestamp,
): Promise<{ expires_at: Timestamp; scope: SessionScope } | null> {
  const row = await db
    .selectFrom('plan_sessions')
    .select(['expires_at', 'scope'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('session_hash', '=', session_hash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row ?? null;
}

export async function deletePlanSession(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  session_hash: Buffer,
): Promise<void> {
  await db
    .deleteFrom('plan_sessions')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('session_hash', '=', session_hash)
    .execute();
}

/**
 * Deletes links and sessions that expired before `before`, at most `batchSize` of each table.
 * Returns how many rows the table with the most deleted rows lost.
 */
export async function deleteEndedPlanAccess(
  db: Handle,
  before: Timestamp,
  batchSize: number,
): Promise<number> {
  let deleted = 0;
  const keys = {
    plan_links: 'token_hash',
    late_links: 'token_hash',
    plan_sessions: 'session_hash',
  };
  for (const [table, hash] of Object.entries(keys)) {
    const key = sql`merchant_id, checkout_id, ${sql.ref(hash)}`;
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)} where (${key}) in (
        select ${key} from ${sql.table(table)}
        where expires_at < ${before} order by expires_at limit ${batchSize})`.execute(db);
    deleted = Math.max(deleted, Number(numAffectedRows));
  }
  return deleted;
}

export async function deleteAllPlanAccess(db: Handle): Promise<void> {
  await db.deleteFrom('plan_links').execute();
  await db.deleteFrom('late_links').execute();
  await db.deleteFrom('plan_sessions').execute();
}
