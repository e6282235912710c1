import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import {
  deletePlanSession,
  findPlanSession,
  insertPlanSession,
  movePlanLinkUsed,
  type PlanKey,
} from './plan-proof.sql.ts';
import { hashToken } from './send-link.ts';

export type SessionDeps = { database: Database; clock: Clock; random: Random };

export const sessionMinutes = 30;

/** Exchanges a link's token for a session's. Returns null if the link is unknown, used or ended. */
export async function openSession(
  deps: SessionDeps,
  merchant: Merchant,
  key: PlanKey,
  linkToken: string,
): Promise<string | null> {
  const session = deps.random.bytes(32).toString('base64url');
  const session_hash = hashToken(session);
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const now = merchant.now();
    const at = timestamp(now);
    // After a COMMIT of unknown fate the link may be used already, by this request.
    if (maybeCommitted && (await findPlanSession(db, key, session_hash, at))) return session;
    if (!(await movePlanLinkUsed(db, key, hashToken(linkToken), at))) return null;
    const expires_at = timestamp(now.add({ minutes: sessionMinutes }));
    await insertPlanSession(db, { ...key, session_hash, created_at: at, expires_at });
    return session;
  });
}

/** When the session ends; null without one. */
export async function findSession(
  deps: Pick<SessionDeps, 'database' | 'clock'>,
  merchant: Merchant,
  key: PlanKey,
  session: string,
): Promise<{ expires_at: string } | null> {
  const now = timestamp(merchant.now());
  return await findPlanSession(deps.database.db, key, hashToken(session), now);
}

export async function closeSession(
  deps: Pick<SessionDeps, 'database'>,
  key: PlanKey,
  session: string,
): Promise<void> {
  await deletePlanSession(deps.database.db, key, hashToken(session));
}
