import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Person } from './person.sql.ts';

export type SessionMethod = Tables['console_sessions']['method']['__select__'];

export type ConsoleSession = {
  id: string;
  /** The row of the person that has their passkeys. */
  person_id: string;
  /** The row of the person whose roles and merchants the session has. */
  access_id: string;
  method: SessionMethod;
  address: string;
  user_agent: string;
  created_at: Timestamp;
  seen_at: Timestamp;
  expires_at: Timestamp;
  proof_at: Timestamp | null;
  /** The passkey used for the last sign-in or re-authentication. */
  passkey_id: string | null;
  ended_at: Timestamp | null;
};

const columns = [
  'id',
  'person_id',
  'access_id',
  'method',
  'address',
  'user_agent',
  'created_at',
  'seen_at',
  'expires_at',
  'proof_at',
  'passkey_id',
  'ended_at',
] as const;

export async function insertConsoleSession(
  db: Handle,
  session: ConsoleSession & { token_hash: Buffer },
): Promise<void> {
  await db.insertInto('console_sessions').values(session).execute();
}

/**
 * A session, its person with the access that the session has, and the time since which the person
 * has had the passkey of the last sign-in or re-authentication. The person's id is the id of the
 * row with their passkeys. It is the same in all of their accesses, so it identifies the human
 * where two people must agree.
 */
export type Recognised = {
  session: ConsoleSession;
  person: Person;
  passkey_since: Timestamp | null;
};

/** Returns the live session with this token, and its person. */
export async function findLiveSession(
  db: Handle,
  token_hash: Buffer,
  now: Timestamp,
  idleSince: Timestamp,
): Promise<Recognised | null> {
  const session = await db
    .selectFrom('console_sessions')
    .select(columns)
    .where('token_hash', '=', token_hash)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where('seen_at', '>', idleSince)
    .executeTakeFirst();
  return session ? await withPerson(db, session) : null;
}

/**
 * A session that has not ended, with its person. It may be idle, because a bulk action continues
 * under it after the person has closed the browser.
 */
export async function findOpenSession(
  db: Handle,
  id: string,
  now: Timestamp,
): Promise<Recognised | null> {
  const session = await findConsoleSession(db, id);
  const isOpen = session !== null && session.ended_at === null && session.expires_at > now;
  return isOpen ? await withPerson(db, session) : null;
}

async function withPerson(db: Handle, session: ConsoleSession): Promise<Recognised | null> {
  const access = await db
    .selectFrom('people')
    .selectAll()
    .where('id', '=', session.access_id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  if (!access) return null;
  const person = { ...access, id: session.person_id };
  const passkey = await db
    .selectFrom('passkeys')
    .select('created_at')
    .where('id', '=', session.passkey_id)
    .where('person_id', '=', person.id)
    .executeTakeFirst();
  return { session, person, passkey_since: passkey?.created_at ?? null };
}

export async function findConsoleSession(db: Handle, id: string): Promise<ConsoleSession | null> {
  const query = db.selectFrom('console_sessions').select(columns).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** The live sessions of a person, or of one of their accesses, the newest first. */
export async function listLiveSessions(
  db: Handle,
  of: { person_id: string } | { access_id: string },
  now: Timestamp,
  idleSince: Timestamp,
): Promise<ConsoleSession[]> {
  return await db
    .selectFrom('console_sessions')
    .select(columns)
    .where((where) => where.and(of))
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

export async function recordReauthentication(
  db: Handle,
  id: string,
  proof: { proof_at: Timestamp; passkey_id: string | null },
): Promise<void> {
  await db.updateTable('console_sessions').set(proof).where('id', '=', id).execute();
}

/** Replaces the token of a session. Returns false if no session has the first token. */
export async function replaceToken(db: Handle, from: Buffer, to: Buffer): Promise<boolean> {
  const result = await db
    .updateTable('console_sessions')
    .set({ token_hash: to })
    .where('token_hash', '=', from)
    .executeTakeFirst();
  return Number(result.numUpdatedRows) === 1;
}

/** Ends a session. Returns false if it had already ended. */
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

/**
 * Ends the sessions whose last authentication used this passkey, except one. Returns how many it
 * ended.
 */
export async function endSessionsOfPasskey(
  db: Handle,
  passkey_id: string,
  ended_at: Timestamp,
  but: string,
): Promise<number> {
  const result = await db
    .updateTable('console_sessions')
    .set({ ended_at })
    .where('passkey_id', '=', passkey_id)
    .where('id', '<>', but)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/**
 * Ends the sessions of a person or of one of their accesses, except `but`. Returns how many it
 * ended.
 */
export async function endSessionsOf(
  db: Handle,
  of: { person_id: string } | { access_id: string },
  ended_at: Timestamp,
  but: string | null = null,
): Promise<number> {
  let query = db
    .updateTable('console_sessions')
    .set({ ended_at })
    .where((where) => where.and(of))
    .where('ended_at', 'is', null);
  if (but !== null) query = query.where('id', '<>', but);
  const result = await query.executeTakeFirst();
  return Number(result.numUpdatedRows);
}

export async function endAllSessions(db: Handle, ended_at: Timestamp): Promise<void> {
  await db
    .updateTable('console_sessions')
    .set({ ended_at })
    .where('ended_at', 'is', null)
    .execute();
}
