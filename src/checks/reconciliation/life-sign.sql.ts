import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** The last sign of life of a process with open access (decision 0097). */
export type LifeSign = {
  /** Null in a new database, where nothing was ended yet. */
  alive_at: Timestamp | null;
  alive_server: string | null;
  /** The server that is answering now. */
  current_server: string;
};

/** A service that is stopped for longer asks the gateway at its start. */
const aliveMinutes = 5;

/**
 * Whether the database is no old backup. A restore to a time begins a new timeline, and so another
 * server. A sign of life in the future comes from a wrong clock, and says nothing.
 */
export function isAlive(sign: LifeSign, now: Temporal.Instant): boolean {
  const { alive_at, alive_server, current_server } = sign;
  if (alive_at === null) return true;
  const age = Temporal.Instant.from(alive_at).until(now).total('minutes');
  return alive_server === current_server && Math.abs(age) < aliveMinutes;
}

/**
 * The server that answers. A restored cluster begins a new timeline, and so does a standby that takes
 * over. A dump that is restored into another server, or under another name, has another system
 * identifier or database. This is a statement of its own, because Citus may answer others on any node.
 */
export async function readServer(db: Handle): Promise<string> {
  const { rows } = await sql<{ current_server: string }>`
    select (select system_identifier from pg_control_system()) || '/' ||
      left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
      (select oid from pg_database where datname = current_database()) as current_server`.execute(
    db,
  );
  const [server] = rows;
  if (!server) throw new Error('the database server did not identify itself');
  return server.current_server;
}

export async function readLifeSign(db: Handle): Promise<LifeSign> {
  const current_server = await readServer(db);
  const row = await db
    .selectFrom('gateway_heartbeat')
    .select(['alive_at', 'alive_server'])
    .executeTakeFirstOrThrow();
  return { ...row, current_server };
}

/** Leaves a sign of life. With `before`, only if the last one is older or in the future. */
export async function moveAlive(
  db: Handle,
  sign: { at: Timestamp; server: string },
  before?: Timestamp,
): Promise<void> {
  const { at, server } = sign;
  let query = db.updateTable('gateway_heartbeat').set({ alive_at: at, alive_server: server });
  if (before !== undefined) {
    query = query.where(sql<boolean>`(alive_at is null or alive_at not between ${before} and ${at}
      or alive_server <> ${server})`);
  }
  await query.execute();
}
