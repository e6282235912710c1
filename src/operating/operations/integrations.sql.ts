import { type SelectQueryBuilder, sql } from 'kysely';
import type { Integration } from '#merchants/integrations/integration.ts';
import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { directionOf, type Order, type Page, type PageOf, readRange } from './range.sql.ts';

/** Integrations of merchants, with the intermediaries that manage one of them. */
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

export async function pageIntegrations(
  db: Handle,
  scope: Scope,
  page: PageOf,
  order: Order = 'newest first',
): Promise<Page<Integration>> {
  const query = withinScope(db.selectFrom('integrations').selectAll(), scope);
  return await readRange(query, page, ['created_at', 'id'], directionOf(order));
}

/** An integration of the scope, or an intermediary that manages a merchant of it. */
export async function findIntegrationWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<Integration | null> {
  const query = withinScope(db.selectFrom('integrations').selectAll(), scope);
  return (await query.where('id', '=', id).executeTakeFirst()) ?? null;
}

/** The merchants that intermediaries manage, of those that the scope contains. */
export async function listManagedWithin(
  db: Handle,
  scope: Scope,
  integration_ids: string[],
): Promise<{ integration_id: string; id: string; name: string }[]> {
  if (integration_ids.length === 0) return [];
  return await scoped(
    db
      .selectFrom('managed_merchants')
      .innerJoin('merchants', 'merchants.id', 'managed_merchants.merchant_id')
      .select(['managed_merchants.integration_id', 'merchants.id', 'merchants.name']),
    scope,
    'merchants.id',
  )
    .where('managed_merchants.integration_id', 'in', integration_ids)
    .orderBy('merchants.name')
    .orderBy('merchants.id')
    .execute();
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
  const isInForce = sql<boolean>`(expires_at is null or expires_at > ${now}::timestamptz)`;
  const client_secrets = await db
    .selectFrom('client_secrets')
    .select(['integration_id', 'created_at', 'expires_at'])
    .where('integration_id', 'in', integration_ids)
    .where(isInForce)
    .orderBy('created_at', 'desc')
    .execute();
  const signing_keys = await db
    .selectFrom('signing_keys')
    .select(['id', 'integration_id', 'created_at', 'expires_at', 'first_used_at'])
    .where('integration_id', 'in', integration_ids)
    .where(isInForce)
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

/** The v1 credentials of integrations, the ones in force first. */
export async function listLegacyOf(db: Handle, integration_ids: string[]): Promise<LegacyState[]> {
  if (integration_ids.length === 0) return [];
  return await db
    .selectFrom('legacy_credentials')
    .select(['integration_id', 'client_id', 'created_at', 'disabled_at'])
    .where('integration_id', 'in', integration_ids)
    .orderBy('disabled_at', (order) => order.desc().nullsFirst())
    .execute();
}

export async function listLegacyUsage(
  db: Handle,
  integration_ids: string[],
  since: string,
): Promise<{ integration_id: string; logins: number; checkouts: number }[]> {
  if (integration_ids.length === 0) return [];
  const rows = await db
    .selectFrom('legacy_usage')
    .select((select) => [
      'integration_id',
      select.fn.sum<number>('logins').as('logins'),
      select.fn.sum<number>('checkouts').as('checkouts'),
    ])
    .where('integration_id', 'in', integration_ids)
    .where('day', '>=', since)
    .groupBy('integration_id')
    .execute();
  return rows.map(({ integration_id, logins, checkouts }) => ({
    integration_id,
    logins: Number(logins),
    checkouts: Number(checkouts),
  }));
}
