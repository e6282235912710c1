import { createHash } from 'node:crypto';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Origin } from '#record/actions/operate.ts';
import {
  type ConsoleSession,
  endConsoleSession,
  findLiveSession,
  insertConsoleSession,
  listLiveSessions,
  type Recognised,
  replaceToken,
  type SessionMethod,
  touchSession,
} from './console-session.sql.ts';

export type SessionDeps = { database: Database; clock: Clock; random: Random };

const idleMinutes = 30;
const sessionHours = 12;
export const reauthenticationMinutes = 5;
/** While a person is active, the session's `seen_at` is written at most once in this time. */
const touchSeconds = 60;
const userAgentMax = 300;

export const newToken = (random: Random) => random.bytes(32).toString('base64url');
export const hashToken = (token: string) => createHash('sha256').update(token).digest();

/**
 * Replaces the token of a browser's session at each authentication, and returns the new one.
 * Returns null if there was no session, or if another request has already replaced the token.
 */
export async function renewToken(
  { random }: Pick<SessionDeps, 'random'>,
  db: Handle,
  { token: from }: { token: string | null },
): Promise<string | null> {
  if (from === null) return null;
  const token = newToken(random);
  return (await replaceToken(db, hashToken(from), hashToken(token))) ? token : null;
}

/** Opens a session in the caller's transaction, under a token that the caller chose. */
export async function openConsoleSession(
  deps: SessionDeps,
  db: Handle,
  session: {
    id: string;
    token: string;
    person_id: string;
    access_id: string;
    method: SessionMethod;
    address: string;
    user_agent: string;
    isFresh: boolean;
    passkey_id: string | null;
    /** The latest time at which it ends, if it continues another session. */
    expires_at?: Timestamp;
  },
): Promise<void> {
  const { token, isFresh, user_agent, expires_at, ...rest } = session;
  const now = deps.clock.now();
  const at = timestamp(now);
  await insertConsoleSession(db, {
    ...rest,
    user_agent: user_agent.slice(0, userAgentMax),
    token_hash: hashToken(token),
    created_at: at,
    seen_at: at,
    expires_at: expires_at ?? timestamp(now.add({ hours: sessionHours })),
    proof_at: isFresh ? at : null,
    ended_at: null,
  });
}

/**
 * Returns the session that a cookie names and its person, or null. `isActive` means that the person
 * did something: a page that refreshes itself does not keep a session alive.
 */
export async function recogniseSession(
  deps: Pick<SessionDeps, 'database' | 'clock'>,
  token: string,
  isActive: boolean,
): Promise<Recognised | null> {
  const now = deps.clock.now();
  const found = await reading(deps, (db) =>
    findLiveSession(db, hashToken(token), timestamp(now), idleSince(deps.clock)),
  );
  if (!found || !isActive) return found;
  const touchedBefore = timestamp(now.subtract({ seconds: touchSeconds }));
  if (found.session.seen_at < touchedBefore) {
    await touchSession(deps.database.db, found.session.id, timestamp(now));
  }
  return found;
}

/**
 * How long a person's passkey and access must have been unchanged before the person can be the
 * second approver.
 */
export type SecondPersonSettings = { secondPersonHours: number };

/**
 * The origin of a person's actions in a session, for the audit and for the rules about two people.
 */
export function originOf(
  { secondPersonHours }: SecondPersonSettings,
  { session, person, passkey_since }: Recognised,
  address: string,
): Extract<Origin, { person_id: string }> {
  const { access_since } = person;
  const later = passkey_since && (access_since > passkey_since ? access_since : passkey_since);
  const since = secondPersonHours === 0 ? session.created_at : later;
  const aged = since && timestamp(Temporal.Instant.from(since).add({ hours: secondPersonHours }));
  const counts_from = person.unconfirmed_since === null ? aged : 'unconfirmed';
  const { id: person_id, roles, merchant_ids } = person;
  const { id: session_id, access_id } = session;
  return { person_id, access_id, roles, merchant_ids, address, session_id, counts_from };
}

/**
 * When the person signed in. A session that continues another one ends at the same time, so it has
 * the same sign-in.
 */
export const signedInAt = ({ expires_at }: Pick<ConsoleSession, 'expires_at'>): Temporal.Instant =>
  Temporal.Instant.from(expires_at).subtract({ hours: sessionHours });

export function idleSince(clock: Clock): Timestamp {
  return timestamp(clock.now().subtract({ minutes: idleMinutes }));
}

/** When the re-authentication of a session expires. Null if there is none, or if it has expired. */
export function reauthenticatedUntil(
  session: ConsoleSession,
  now: Temporal.Instant,
): Timestamp | null {
  if (session.proof_at === null) return null;
  const until = Temporal.Instant.from(session.proof_at).add({ minutes: reauthenticationMinutes });
  return Temporal.Instant.compare(until, now) > 0 ? timestamp(until) : null;
}

export async function listSessions(
  deps: Pick<SessionDeps, 'database' | 'clock'>,
  of: { person_id: string } | { access_id: string },
): Promise<ConsoleSession[]> {
  const now = timestamp(deps.clock.now());
  return await reading(deps, (db) => listLiveSessions(db, of, now, idleSince(deps.clock)));
}

export async function closeConsoleSession(
  deps: Pick<SessionDeps, 'database' | 'clock'>,
  id: string,
): Promise<void> {
  await endConsoleSession(deps.database.db, id, timestamp(deps.clock.now()));
}
