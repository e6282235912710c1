import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Limit } from '#platform/shared/limit.ts';
import { isInForce } from './credential.sql.ts';
import type { EventKind, Integration, RefundMode } from './integration.ts';

export type IntegrationWithLimits = Integration & { limits: Record<string, Limit> };

/** An integration found by its client secret, with everything that serving a request needs. */
export type FoundCaller = IntegrationWithLimits & {
  sealed_keys: { id: string; sealed_key: string; first_used_at: string | null }[];
};

/** The limits that an operator has set for the integration `i`, by endpoint. */
export const limitsOfIntegration = sql<Record<string, Limit>>`coalesce((
  select jsonb_object_agg(l.endpoint, jsonb_build_object(
    'max_requests', l.max_requests, 'window_seconds', l.window_seconds))
  from integration_limits l where l.integration_id = i.id
), '{}')`;

export async function findCaller(
  db: Handle,
  secret_hash: Buffer,
  now: Timestamp,
): Promise<FoundCaller | null> {
  const { rows } = await sql<FoundCaller>`
    select i.*,
      coalesce((
        select jsonb_agg(jsonb_build_object('id', k.id, 'sealed_key', encode(k.sealed_key, 'base64'),
          'first_used_at', k.first_used_at) order by k.created_at desc, k.id desc)
        from signing_keys k
        where k.integration_id = i.id and ${isInForce(now)}
      ), '[]') as sealed_keys,
      ${limitsOfIntegration} as limits
    from client_secrets s
    join integrations i on i.id = s.integration_id
    where s.secret_hash = ${secret_hash}
      and ${isInForce(now)}
      and i.revoked_at is null`.execute(db);
  return rows[0] ?? null;
}

export async function findIntegration(db: Handle, id: string): Promise<Integration | null> {
  const row = await db
    .selectFrom('integrations')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Locks in order of id, so that two transactions cannot deadlock. The lock is not FOR UPDATE, which
 * would block every insert that references the integration, and such an insert may hold locks that
 * we need next.
 */
export async function lockIntegrations(db: Handle, ids: string[]): Promise<Integration[]> {
  return await db
    .selectFrom('integrations')
    .selectAll()
    .where('id', 'in', ids)
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();
}

export async function listIntegrations(db: Handle, merchant_id?: string): Promise<Integration[]> {
  let query = db.selectFrom('integrations').selectAll().orderBy('created_at').orderBy('id');
  if (merchant_id !== undefined) {
    query = query.where((where) =>
      where.or([
        where('merchant_id', '=', merchant_id),
        where(
          'id',
          'in',
          where
            .selectFrom('managed_merchants')
            .select('integration_id')
            .where('merchant_id', '=', merchant_id),
        ),
      ]),
    );
  }
  return await query.execute();
}

export async function insertIntegration(db: Handle, integration: Integration): Promise<void> {
  await db.insertInto('integrations').values(integration).execute();
}

/** Makes signatures mandatory for integrations. Nothing ever undoes it. */
export async function moveSigningRequired(
  db: Handle,
  ids: string[],
  signing_required_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('integrations')
    .set({ signing_required_at })
    .where('id', 'in', ids)
    .where('signing_required_at', 'is', null)
    .execute();
}

export async function moveRefundMode(
  db: Handle,
  id: string,
  refund_mode: RefundMode,
): Promise<void> {
  await db.updateTable('integrations').set({ refund_mode }).where('id', '=', id).execute();
}

export async function moveEvents(
  db: Handle,
  id: string,
  to: Pick<Integration, 'events' | 'events_url'>,
): Promise<void> {
  await db.updateTable('integrations').set(to).where('id', '=', id).execute();
}

/** An integration that asked for events, and the merchant that it gets them for. */
export type EventReceiver = {
  integration_id: string;
  merchant_id: string;
  events_url: string | null;
};

/** The integrations in force that asked for this kind of event for these merchants. */
export async function listEventReceivers(
  db: Handle,
  kind: EventKind,
  merchant_ids: string[],
): Promise<EventReceiver[]> {
  const { rows } = await sql<EventReceiver>`
    select i.id as integration_id, i.merchant_id, i.events_url
    from integrations i
    where i.merchant_id = any(${merchant_ids}::uuid[]) and i.revoked_at is null
      and ${kind} = any(i.events)
    union all
    select i.id, m.merchant_id, i.events_url
    from managed_merchants m join integrations i on i.id = m.integration_id
    where m.merchant_id = any(${merchant_ids}::uuid[]) and i.revoked_at is null
      and ${kind} = any(i.events)
    order by 1`.execute(db);
  return rows;
}

export async function moveRevoked(db: Handle, id: string, revoked_at: Timestamp): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('integrations')
    .set({ revoked_at })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

export async function isManaged(
  db: Handle,
  integration_id: string,
  merchant_id: string,
): Promise<boolean> {
  return (await listManaged(db, integration_id, [merchant_id])).length > 0;
}

/** The merchants that an integration manages, as a subquery. */
export const selectManaged = (db: Handle, integration_id: string) =>
  db
    .selectFrom('managed_merchants')
    .select('merchant_id')
    .where('integration_id', '=', integration_id);

/** The merchants among these that the integration manages. */
export async function listManaged(
  db: Handle,
  integration_id: string,
  merchant_ids: string[],
): Promise<string[]> {
  const rows = await selectManaged(db, integration_id)
    .where(sql<boolean>`merchant_id = any(${merchant_ids}::uuid[])`)
    .execute();
  return rows.map((row) => row.merchant_id);
}

export async function insertManagedMerchants(
  db: Handle,
  integration_id: string,
  merchant_ids: string[],
  added_at: Timestamp,
): Promise<void> {
  if (merchant_ids.length === 0) return;
  await db
    .insertInto('managed_merchants')
    .values(merchant_ids.map((merchant_id) => ({ integration_id, merchant_id, added_at })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function deleteManagedMerchants(
  db: Handle,
  integration_id: string,
  merchant_ids: string[],
): Promise<void> {
  if (merchant_ids.length === 0) return;
  await db
    .deleteFrom('managed_merchants')
    .where('integration_id', '=', integration_id)
    .where('merchant_id', 'in', merchant_ids)
    .execute();
}

export async function listLimits(
  db: Handle,
  integration_id: string,
): Promise<(Limit & { endpoint: string })[]> {
  return await db
    .selectFrom('integration_limits')
    .select(['endpoint', 'max_requests', 'window_seconds'])
    .where('integration_id', '=', integration_id)
    .orderBy('endpoint')
    .execute();
}

export async function insertLimit(
  db: Handle,
  limit: Limit & { integration_id: string; endpoint: string },
): Promise<void> {
  await db
    .insertInto('integration_limits')
    .values(limit)
    .onConflict((conflict) =>
      conflict.columns(['integration_id', 'endpoint']).doUpdateSet({
        max_requests: limit.max_requests,
        window_seconds: limit.window_seconds,
      }),
    )
    .execute();
}

/**
 * Counts a merchant's own integrations that are in force or were created after `since`, up to
 * `max`.
 */
export async function countOwnIntegrations(
  db: Handle,
  merchant_id: string,
  since: Timestamp,
  max: number,
): Promise<number> {
  const rows = await db
    .selectFrom('integrations')
    .select('id')
    .where('merchant_id', '=', merchant_id)
    .where((where) => where.or([where('revoked_at', 'is', null), where('created_at', '>', since)]))
    .limit(max)
    .execute();
  return rows.length;
}

/** A merchant's own integrations that are in force, the newest first. */
export async function listOwnIntegrations(
  db: Handle,
  merchant_id: string,
  limit: number,
): Promise<Integration[]> {
  return await db
    .selectFrom('integrations')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}
