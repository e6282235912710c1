import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type AccessDeps, mustBeOpen } from '#platform/http/open-access.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isLateLink } from './late-link.ts';
import {
  deletePlanSession,
  findPlanSession,
  insertPlanSession,
  movePlanLinkUsed,
  type PlanKey,
} from './plan-access.sql.ts';
import type { SessionScope } from './plan-attempt.ts';
import { hashToken } from './send-link.ts';

export type SessionDeps = AccessDeps & {
  database: Database;
  clock: Clock;
  random: Random;
  sealing: Sealing;
};

export const sessionMinutes = 30;

/**
 * Exchanges the token of a link for the token of a session. A one-time link gives full access,
 * once. The link in the last mail about a late payment only allows paying what is late, but works
 * every time: programs that scan mails may open it before the shopper does. Returns null if the
 * link is unknown, used or expired, or if it only allows paying what is late and nothing is late
 * any more.
 */
export async function openSession(
  deps: SessionDeps,
  merchant: Merchant,
  key: PlanKey,
  linkToken: string,
  isLate: boolean,
): Promise<string | null> {
  await mustBeOpen(deps);
  const session = deps.random.bytes(32).toString('base64url');
  const session_hash = hashToken(session);
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const now = merchant.now();
    const at = timestamp(now);
    const scope = await scopeOf(deps, db, key, hashToken(linkToken), now);
    // After a COMMIT of unknown fate, this very request may have used the link. Using it again has
    // waited for its row, so a COMMIT that was still in flight has ended.
    if (maybeCommitted && (await findPlanSession(db, key, session_hash, at))) return session;
    if (scope === null || (scope === 'late' && !isLate)) return null;
    const expires_at = timestamp(now.add({ minutes: sessionMinutes }));
    await insertPlanSession(db, { ...key, session_hash, scope, created_at: at, expires_at });
    return session;
  });
}

/** The scope of the session that a link opens, or null. Marks a one-time link as used. */
async function scopeOf(
  deps: Pick<SessionDeps, 'sealing'>,
  db: Handle,
  key: PlanKey,
  token_hash: Buffer,
  now: Temporal.Instant,
): Promise<SessionScope | null> {
  if (await movePlanLinkUsed(db, key, token_hash, timestamp(now))) return 'plan';
  return (await isLateLink(deps, db, key, token_hash, now)) ? 'late' : null;
}

/** When the session ends, and what it allows; null without a session. */
export async function findSession(
  deps: Pick<SessionDeps, 'database' | 'clock' | 'money'>,
  merchant: Merchant,
  key: PlanKey,
  session: string,
): Promise<{ expires_at: string; scope: SessionScope } | null> {
  await mustBeOpen(deps);
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
