import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type ChallengePurpose = 'register' | 'sign_in' | 'proof' | 'oidc';

export type Challenge = {
  challenge_hash: Buffer;
  purpose: ChallengePurpose;
  person_id: string | null;
  session_id: string | null;
  sealed_oidc: Buffer | null;
  expires_at: Timestamp;
};

export async function insertChallenge(db: Handle, challenge: Challenge): Promise<void> {
  await db.insertInto('console_challenges').values(challenge).execute();
}

/**
 * Deletes a challenge and returns it. If a challenge is answered twice, only one answer gets it.
 */
export async function takeChallenge(
  db: Handle,
  challenge_hash: Buffer,
  purpose: ChallengePurpose,
  now: Timestamp,
): Promise<Challenge | null> {
  const row = await db
    .deleteFrom('console_challenges')
    .where('challenge_hash', '=', challenge_hash)
    .where('purpose', '=', purpose)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Deletes expired challenges, links and sessions that expired before `keptSince`, and mails that
 * were settled before then.
 */
export async function deleteEndedIdentities(
  db: Handle,
  now: Timestamp,
  keptSince: Timestamp,
): Promise<void> {
  // Challenges are deleted first, because they refer to sessions.
  await db.deleteFrom('console_challenges').where('expires_at', '<', now).execute();
  await db.deleteFrom('person_links').where('expires_at', '<', keptSince).execute();
  await db.deleteFrom('person_mails').where('settled_at', '<', keptSince).execute();
  await db.deleteFrom('console_sessions').where('expires_at', '<', keptSince).execute();
}

export async function deleteAllChallenges(db: Handle): Promise<void> {
  await db.deleteFrom('console_challenges').execute();
}
