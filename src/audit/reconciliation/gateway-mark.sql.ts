import type pg from 'pg';
import type { Handle } from '../../database/database.ts';
import type { Timestamp } from '../../shared/clock.ts';

type Client = Pick<pg.ClientBase, 'query'>;

/** How far this database is, and whether money may move (decision 0097). */
export type Mark = {
  id: string | null;
  beat: number;
  beat_at: Timestamp | null;
  server: string | null;
  stopped_at: Timestamp | null;
  stopped_reason: string | null;
  /** The server that answered now. */
  current_server: string;
};

// A restored cluster begins a new timeline, as a standby does that takes over. A dump that is read
// into another server, or under another name, has another system identifier or database.
const currentServer = `
  select (select system_identifier from pg_control_system()) || '/' ||
    left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
    (select oid from pg_database where datname = current_database()) as current_server`;

/** The server is asked in a statement of its own: Citus may answer the other one on any node. */
export async function readMark(client: Client): Promise<Mark> {
  const { rows: servers } = await client.query<{ current_server: string }>(currentServer);
  const { rows } = await client.query<Omit<Mark, 'current_server'>>(
    'select id, beat, beat_at, server, stopped_at, stopped_reason from gateway_mark',
  );
  const [[mark], [server]] = [rows, servers];
  if (!mark || !server) throw new Error('the row of gateway_mark is missing');
  return { ...mark, ...server };
}

/** Names the database once, at its first start. */
export async function nameDatabase(client: Client, id: string): Promise<void> {
  await client.query('update gateway_mark set id = $1 where id is null', [id]);
}

/** Claims the next beat. False: it is not due, or another process makes it. */
export async function claimBeat(client: Client, now: Timestamp, next: Timestamp): Promise<boolean> {
  const { rowCount } = await client.query(
    `update gateway_mark set due_at = $2
     where (due_at is null or due_at <= $1) and stopped_at is null`,
    [now, next],
  );
  return rowCount === 1;
}

/** Null: money was stopped meanwhile. */
export async function raiseBeat(
  client: Client,
  now: Timestamp,
  server: string,
): Promise<number | null> {
  const { rows } = await client.query<{ beat: number }>(
    `update gateway_mark set beat = beat + 1, beat_at = $1, server = $2
     where stopped_at is null returning beat`,
    [now, server],
  );
  return rows[0]?.beat ?? null;
}

/** The database runs on another server and has lost nothing. */
export async function moveServer(client: Client, server: string): Promise<void> {
  await client.query('update gateway_mark set server = $1', [server]);
}

/** False: money is stopped already. */
export async function stopMoney(db: Handle, at: Timestamp, reason: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('gateway_mark')
    .set({ stopped_at: at, stopped_reason: reason })
    .where('stopped_at', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Money may move again. The next beat is higher than any that the gateway has seen. */
export async function resumeMoney(
  db: Handle,
  mark: { beat: number; at: Timestamp; server: string },
): Promise<void> {
  await db
    .updateTable('gateway_mark')
    .set({
      beat: mark.beat,
      beat_at: mark.at,
      server: mark.server,
      stopped_at: null,
      stopped_reason: null,
      due_at: null,
    })
    .execute();
}
