import { type SelectQueryBuilder, sql } from 'kysely';
import { isInForce } from '#merchants/integrations/credential.sql.ts';
import type { Integration } from '#merchants/integrations/integration.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { directionOf, type Page, type PageOf, readRange, type SortOrder } from './range.sql.ts';

/**
 * Selects the integrations of the scope's merchants, and the intermediaries that manage one of
 * them.
 */
function withinScope<Row>(
  query: SelectQueryBuilder<Tables, 'integrations', Row>,
  scope: Scope,
): SelectQueryBuilder<Tables, 'integrations', Row> {
  if (scope === 'all merchants') return query;
  const { merchant_ids } = scope;
  return query.where(
    sql<boolean>`(merchant_id = any(${merchant_ids}::uuid[]) or id = any(array(
      select integration_id from managed_merchants
      where merchant_id = any(${merchant_ids}::uuid[]))))`,
  );
}

export async function listIntegrationsPage(
  db: Handle,
  scope: Scope,
  page: PageOf,
  order: SortOrder = 'newest first',
): Promise<Page<Integration>> {
  const query = withinScope(db.selectFrom('integrations').selectAll(), scope);
  return await readRange(query, page, ['created_at', 'id'], directionOf(order));
}

/** Integrations that have or had v1 credentials, the oldest first; with an id, only that one. */
export async function listLegacyIntegrationsPage(
  db: Handle,
  scope: Scope,
  id: string | undefined,
  page: PageOf,
): Promise<Page<Integration>> {
  const query = withinScope(db.selectFrom('integrations').selectAll(), scope)
    .where(
      sql<boolean>`exists (select from legacy_credentials where integration_id = integrations.id)`,
    )
    .$if(id !== undefined, (found) => found.where('id', '=', id as string));
  return await readRange(query, page, ['created_at', 'id'], 'asc');
}

/** An integration in the scope, or an intermediary that manages a merchant in it. */
export async function findIntegrationWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<Integration | null> {
  const query = withinScope(db.selectFrom('integrations').selectAll(), scope);
  return (await query.where('id', '=', id).executeTakeFirst()) ?? null;
}

/** Whether the merchant in a row of `managed_merchants` is in the scope. */
const isManagedWithin = (scope: Scope) =>
  scope === 'all merchants' ? sql`true` : sql`merchant_id = any(${scope.merchant_ids}::uuid[])`;

/** The first merchants that each intermediary manages, among those in the scope. */
export async function listFirstManaged(
  db: Handle,
  scope: Scope,
  integration_ids: string[],
  limit: number,
): Promise<{ integration_id: string; id: string; name: string }[]> {
  // `between` makes the planner search the index by integration. With `=` it could drop the
  // integration from the order and read the index by merchant to its end for each integration:
  // 84 ms each, if another intermediary has 100,000 merchants.
  const { rows } = await sql<{ integration_id: string; id: string; name: string }>`
    select i.id as integration_id, m.id, m.name
    from unnest(${integration_ids}::uuid[]) as i (id)
    cross join lateral (
      select merchant_id from managed_merchants
      where integration_id between i.id and i.id and ${isManagedWithin(scope)}
      order by integration_id, merchant_id limit ${limit}) first
    join merchants m on m.id = first.merchant_id
    order by i.id, m.id`.execute(db);
  return rows;
}

/** The merchants that an intermediary manages, among those in the scope, the oldest first. */
export async function listManagedPage(
  db: Handle,
  scope: Scope,
  integration_id: string,
  page: PageOf,
): Promise<Page<{ id: string; name: string; added_at: Timestamp }>> {
  const query = db
    .selectFrom('managed_merchants')
    .innerJoin('merchants', 'merchants.id', 'managed_merchants.merchant_id')
    .select(['merchants.id', 'merchants.name', 'managed_merchants.added_at'])
    .where('managed_merchants.integration_id', '=', integration_id)
    .where(sql<boolean>`${isManagedWithin(scope)}`);
  return await readRange(query, page, ['managed_merchants.merchant_id'], 'asc', ['id']);
}

export async function listLimitsOf(
  db: Handle,
  integration_ids: string[],
): Promise<
  { integration_id: string; endpoint: string; max_requests: number; window_seconds: number }[]
> {
  if (integration_ids.length === 0) return [];
  return await db
    .selectFrom('integration_limits')
    .select(['integration_id', 'endpoint', 'max_requests', 'window_seconds'])
    .where('integration_id', 'in', integration_ids)
    .orderBy('endpoint')
    .execute();
}

type Life = { integration_id: string; created_at: Timestamp; expires_at: Timestamp | null };

/** Credentials in force, the newest first. Neither a hash nor a key leaves the database. */
export async function listCredentialsOf(
  db: Handle,
  integration_ids: string[],
  now: Timestamp,
): Promise<{
  client_secrets: Life[];
  signing_keys: (Life & { id: string; first_used_at: Timestamp | null })[];
}> {
  if (integration_ids.length === 0) return { client_secrets: [], signing_keys: [] };
  const client_secrets = await db
    .selectFrom('client_secrets')
    .select(['integration_id', 'created_at', 'expires_at'])
    .where('integration_id', 'in', integration_ids)
    .where(isInForce(now))
    .orderBy('created_at', 'desc')
    .execute();
  const signing_keys = await db
    .selectFrom('signing_keys')
    .select(['id', 'integration_id', 'created_at', 'expires_at', 'first_used_at'])
    .where('integration_id', 'in', integration_ids)
    .where(isInForce(now))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return { client_secrets, signing_keys };
}

export type LegacyState = {
  integration_id: string;
  client_id: string;
  created_at: Timestamp;
  disabled_at: Timestamp | null;
};

/** The v1 credentials of integrations, those in force first. */
export async function listLegacyOf(db: Handle, integration_ids: string[]): Promise<LegacyState[]> {
  if (integration_ids.length === 0) return [];
  return await db
    .selectFrom('legacy_credentials')
    .select(['integration_id', 'client_id', 'created_at', 'disabled_at'])
    .where('integration_id', 'in', integration_ids)
    .orderBy('disabled_at', (order) => order.desc().nullsFirst())
    .execute();
}

/** How integrations have used v1 since the given day, and the last day on which they used it. */
export async function listLegacyUsage(
  db: Handle,
  integration_ids: string[],
  since: string,
): Promise<{ integration_id: string; logins: number; checkouts: number; last_used_on: string }[]> {
  const { rows } = await sql<Awaited<ReturnType<typeof listLegacyUsage>>[number]>`
    select integration_id, max(day) as last_used_on,
      coalesce(sum(logins) filter (where day >= ${since}::date), 0) as logins,
      coalesce(sum(checkouts) filter (where day >= ${since}::date), 0) as checkouts
    from legacy_usage where integration_id = any (${integration_ids}::uuid[])
    group by integration_id`.execute(db);
  return rows;
}
