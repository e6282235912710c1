import { sql } from 'kysely';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { isOpenHere, readAccessServer, readServer } from './access-server.sql.ts';

/** This database's heartbeat at a gateway, and whether money may move (decision 0097). */
export type DatabaseHeartbeat = {
  id: string | null;
  /** Whether the database has used the gateway before. */
  is_known: boolean;
  heartbeat: number;
  heartbeat_at: Timestamp | null;
  /** When the next heartbeat is due; null before the first. */
  due_at: Timestamp | null;
  server: string | null;
  stopped_at: Timestamp | null;
  stopped_reason: string | null;
  /** The database server that is answering now. */
  current_server: string;
  /** Whether one of the gateways that were asked for was last compared on another server. */
  has_moved: boolean;
};

export async function readHeartbeat(
  db: Handle,
  gateway: GatewayName,
  all: readonly GatewayName[] = [gateway],
): Promise<DatabaseHeartbeat> {
  const current_server = await readServer(db);
  const row = await db
    .selectFrom('gateway_heartbeat')
    .leftJoin('gateway_heartbeats as at', (join) => join.on('at.gateway', '=', gateway))
    .leftJoin('gateway_heartbeats as moved', (join) =>
      join.on('moved.gateway', 'in', all).on('moved.server', '<>', current_server),
    )
    .select(['id', 'stopped_at', 'stopped_reason', 'at.gateway'])
    .select(['at.heartbeat_at', 'at.due_at', 'at.server', 'at.heartbeat'])
    .select('moved.gateway as moved')
    .limit(1)
    .executeTakeFirstOrThrow();
  const { gateway: known, heartbeat, moved, ...rest } = row;
  const has_moved = moved !== null;
  return {
    ...rest,
    ...{ heartbeat: heartbeat ?? 0, is_known: known !== null, has_moved, current_server },
  };
}

/**
 * Names the database at its first start, and inserts its heartbeat at a gateway that is new to it.
 */
export async function nameDatabase(db: Handle, id: string, gateway: GatewayName): Promise<void> {
  await db.updateTable('gateway_heartbeat').set({ id }).where('id', 'is', null).execute();
  await db
    .insertInto('gateway_heartbeats')
    .values({ gateway })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** The gateways that this database has used, and when each had its last heartbeat. */
export async function listUsedGateways(
  db: Handle,
): Promise<{ gateway: GatewayName; heartbeat_at: Timestamp | null }[]> {
  return await db
    .selectFrom('gateway_heartbeats')
    .select(['gateway', 'heartbeat_at'])
    .orderBy('gateway')
    .execute();
}

/**
 * Claims the next heartbeat. Returns false if it is not due, if another process has claimed it, or
 * if money is stopped.
 */
export async function claimHeartbeat(
  db: Handle,
  gateway: GatewayName,
  now: Timestamp,
  next: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('gateway_heartbeats')
    .set({ due_at: next })
    .where('gateway', '=', gateway)
    .where((where) => where.or([where('due_at', 'is', null), where('due_at', '<=', now)]))
    .where(isMoving)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

const isMoving = sql<boolean>`exists (select from gateway_heartbeat where stopped_at is null)`;

/** Returns null if money was stopped in the meantime. */
export async function raiseHeartbeat(
  db: Handle,
  gateway: GatewayName,
  now: Timestamp,
  server: string,
): Promise<number | null> {
  const row = await db
    .updateTable('gateway_heartbeats')
    .set((set) => ({ heartbeat: set('heartbeat', '+', 1), heartbeat_at: now, server }))
    .where('gateway', '=', gateway)
    .where(isMoving)
    .returning('heartbeat')
    .executeTakeFirst();
  return row?.heartbeat ?? null;
}

/** Records that the database runs on another server and has lost nothing that the gateway knows. */
export async function moveServer(db: Handle, gateway: GatewayName, server: string): Promise<void> {
  await db
    .updateTable('gateway_heartbeats')
    .set({ server })
    .where('gateway', '=', gateway)
    .execute();
}

/** Stops money and sign-ins. Returns false if money is already stopped. */
export async function stopMoney(db: Handle, at: Timestamp, reason: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('gateway_heartbeat')
    .set({ stopped_at: at, stopped_reason: reason, access_stopped_at: at })
    .where('stopped_at', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Sets the heartbeat at a gateway after a stop, higher than any that the gateway has seen. */
export async function moveHeartbeat(
  db: Handle,
  gateway: GatewayName,
  to: { heartbeat: number; at: Timestamp; server: string },
): Promise<void> {
  const { heartbeat, at: heartbeat_at, server } = to;
  await db
    .updateTable('gateway_heartbeats')
    .set({ heartbeat, heartbeat_at, server, due_at: null })
    .where('gateway', '=', gateway)
    .execute();
}

export async function resumeMoney(db: Handle): Promise<void> {
  await db
    .updateTable('gateway_heartbeat')
    .set({ stopped_at: null, stopped_reason: null })
    .execute();
}

/** When sign-ins were stopped. Null if people can sign in. */
export async function findAccessStop(db: Handle): Promise<Timestamp | null> {
  const row = await db
    .selectFrom('gateway_heartbeat')
    .select('access_stopped_at')
    .executeTakeFirst();
  return row?.access_stopped_at ?? null;
}

/**
 * The time since which an operator can confirm access, because sign-ins are stopped or access was
 * opened on another server. Null if there is nothing to confirm.
 */
export async function findAccessWait(db: Handle): Promise<Timestamp | null> {
  const stopped_at = await findAccessStop(db);
  if (stopped_at !== null) return stopped_at;
  const access = await readAccessServer(db);
  return isOpenHere(access) ? null : access.access_at;
}

export async function moveAccessConfirmed(db: Handle): Promise<void> {
  await db.updateTable('gateway_heartbeat').set({ access_stopped_at: null }).execute();
}
