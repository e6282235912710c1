import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Person } from './person.sql.ts';

export type SessionMethod = Tables['console_sessions']['method']['__select__'];

export type ConsoleSession = {
  id: string;
  person_id: string;
  method: SessionMethod;
  address: string;
  user_agent: string;
  created_at: Timestamp;
  seen_at: Timestamp;
  expires_at: Timestamp;
  proof_at: Timestamp | null;
  ended_at: Timestamp | null;
};

const columns = [
  'id',
  'person_id',
  'method',
  'address',
  'user_agent',
  'created_at',
  'seen_at',
  'expires_at',
  'proof_at',
  'ended_at',
] as const;

export async function insertConsoleSession(
  db: Handle,
  session: ConsoleSession & { token_hash: Buffer },
): Promise<void> {
  await db.insertInto('console_sessions').values(session).execute();
}

/** The live session of a token, with its person. */
export async function findLiveSession(
  db: Handle,
  token_hash: Buffer,
  now: Timestamp,
  idleSince: Timestamp,
): Promise<{ session: ConsoleSession; person: Person } | null> {
  const session = await db
    .selectFrom('console_sessions')
    .select(columns)
    .where('token_hash', '=', token_hash)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where('seen_at', '>', idleSince)
    .executeTakeFirst();
  if (!session) return null;
  const person = await db
    .selectFrom('people')
    .selectAll()
    .where('id', '=', session.person_id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return person ? { session, person } : null;
}

export async function findConsoleSession(db: Handle, id: string): Promise<ConsoleSession | null> {
  const query = db.selectFrom('console_sessions').select(columns).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** The person's sessions that are live, the newest first. */
export async function listLiveSessions(
  db: Handle,
  person_id: string,
  now: Timestamp,
  idleSince: Timestamp,
): Promise<ConsoleSession[]> {
  return await db
    .selectFrom('console_sessions')
    .select(columns)
    .where('person_id', '=', person_id)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where('seen_at', '>', idleSince)
    .orderBy('created_at', 'desc')
    .limit(100)
    .execute();
}

export async function touchSession(db: Handle, id: string, seen_at: Timestamp): Promise<void> {
  await db.updateTable('console_sessions').set({ seen_at }).where('id', '=', id).execute();
}

export async function recordProof(db: Handle, id: string, proof_at: Timestamp): Promise<void> {
  await db.updateTable('console_sessions').set({ proof_at }).where('id', '=', id).execute();
}

/** Whether it was live. */
export async function endConsoleSession(
  db: Handle,
  id: string,
  ended_at: Timestamp,
): Promise<boolean> {
  const result = await db
    .updateTable('console_sessions')
    .set({ ended_at })
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  return Number(result.numUpdatedRows) === 1;
}

/** Ends all of a person's sessions and returns how many. */
export async function endSessionsOf(
  db: Handle,
  person_id: string,
  ended_at: Timestamp,
): Promise<number> {
  const result = await db
    .updateTable('console_sessions')
    .set({ ended_at })
    .where('person_id', '=', person_id)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}
