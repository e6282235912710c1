import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** This database's heartbeat, and whether money may move (decision 0097). */
export type DatabaseHeartbeat = {
  id: string | null;
  heartbeat: number;
  heartbeat_at: Timestamp | null;
  server: string | null;
  stopped_at: Timestamp | null;
  stopped_reason: string | null;
  /** The server that answered now. */
  current_server: string;
};

/**
 * A separate statement asks for the server, because Citus may answer the other statement on any
 * node. A restored cluster begins a new timeline, and so does a standby that takes over. A dump
 * that is read into another server, or under another name, has another system identifier or
 * database.
 */
export async function readHeartbeat(db: Handle): Promise<DatabaseHeartbeat> {
  const { rows } = await sql<{ current_server: string }>`
    select (select system_identifier from pg_control_system()) || '/' ||
      left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
      (select oid from pg_database where datname = current_database()) as current_server`.execute(
    db,
  );
  const row = await db
    .selectFrom('gateway_heartbeat')
    .select(['id', 'heartbeat', 'heartbeat_at', 'server', 'stopped_at', 'stopped_reason'])
    .executeTakeFirstOrThrow();
  const [server] = rows;
  if (!server) throw new Error('the database server did not identify itself');
  return { ...row, ...server };
}

/** Names the database once, at its first start. */
export async function nameDatabase(db: Handle, id: string): Promise<void> {
  await db.updateTable('gateway_heartbeat').set({ id }).where('id', 'is', null).execute();
}

/** Claims the next heartbeat. Returns false if it is not due, or another process makes it. */
export async function claimHeartbeat(
  db: Handle,
  now: Timestamp,
  next: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('gateway_heartbeat')
    .set({ due_at: next })
    .where((where) => where.or([where('due_at', 'is', null), where('due_at', '<=', now)]))
    .where('stopped_at', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Returns null if money was stopped meanwhile. */
export async function raiseHeartbeat(
  db: Handle,
  now: Timestamp,
  server: string,
): Promise<number | null> {
  const row = await db
    .updateTable('gateway_heartbeat')
    .set((set) => ({ heartbeat: set('heartbeat', '+', 1), heartbeat_at: now, server }))
    .where('stopped_at', 'is', null)
    .returning('heartbeat')
    .executeTakeFirst();
  return row?.heartbeat ?? null;
}

/** The database runs on another server and has lost nothing. */
export async function moveServer(db: Handle, server: string): Promise<void> {
  await db.updateTable('gateway_heartbeat').set({ server }).execute();
}

/** Stops money, and sign-ins. Returns false if money is stopped already. */
export async function stopMoney(db: Handle, at: Timestamp, reason: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('gateway_heartbeat')
    .set({ stopped_at: at, stopped_reason: reason, access_stopped_at: at })
    .where('stopped_at', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Money may move again. The next heartbeat is higher than any that the gateway has seen. */
export async function resumeMoney(
  db: Handle,
  row: { heartbeat: number; at: Timestamp; server: string },
): Promise<void> {
  await db
    .updateTable('gateway_heartbeat')
    .set({
      heartbeat: row.heartbeat,
      heartbeat_at: row.at,
      server: row.server,
      stopped_at: null,
      stopped_reason: null,
      due_at: null,
    })
    .execute();
}

/** Since when no one signs in. Null if people can. */
export async function findAccessStop(db: Handle): Promise<Timestamp | null> {
  const row = await db
    .selectFrom('gateway_heartbeat')
    .select('access_stopped_at')
    .executeTakeFirst();
  return row?.access_stopped_at ?? null;
}

export async function moveAccessConfirmed(db: Handle): Promise<void> {
  await db.updateTable('gateway_heartbeat').set({ access_stopped_at: null }).execute();
}
