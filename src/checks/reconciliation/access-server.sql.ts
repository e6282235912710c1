import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * The database server on which access was opened last, and the one that is answering now (decision
 * 0097).
 */
export type AccessServer = {
  /** Null in a new database, where nothing has been revoked yet. */
  access_server: string | null;
  access_at: Timestamp | null;
  current_server: string;
};

/** Whether access was opened on the server that is answering. */
export const isOpenHere = ({ access_server, current_server }: AccessServer): boolean =>
  access_server === null || access_server === current_server;

/**
 * The identity of the database server that answers. A restored cluster begins a new timeline, and
 * so does a standby that takes over. A dump that is restored into another server, or under another
 * name, has another system identifier or database. This is a separate statement, because Citus may
 * run other statements on any node.
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

export async function readAccessServer(db: Handle): Promise<AccessServer> {
  const current_server = await readServer(db);
  const row = await db
    .selectFrom('gateway_heartbeat')
    .select(['access_server', 'access_at'])
    .executeTakeFirstOrThrow();
  return { ...row, current_server };
}

/** Opens access on a server. */
export async function moveAccessServer(
  db: Handle,
  access: { server: string; at: Timestamp },
): Promise<void> {
  await db
    .updateTable('gateway_heartbeat')
    .set({ access_server: access.server, access_at: access.at })
    .execute();
}
