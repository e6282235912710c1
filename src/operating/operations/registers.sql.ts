import { type SelectQueryBuilder, sql } from 'kysely';
import type { Integration } from '#merchants/integrations/integration.ts';
import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Payout, PayoutStatus } from '#purchases/payouts/payout.ts';
import type { OperatorAction } from '#record/actions/operator-action.sql.ts';
import type { Alert, AlertHandling, AlertState } from '#record/alerts/alert.sql.ts';
import { BadKey, type Key, type Page, type PageOf } from './lists.sql.ts';

// Pages of what belongs to no checkout: merchants, integrations, alerts, acts, receivers. Each is a
// range of an index, as the lists of checkouts are.

/** The console lists the newest rows first, the command line the oldest merchants first. */
export type Order = 'newest first' | 'oldest first';

/** The rows after a key of two columns, of which the first is a time. */
function byAge<Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  page: PageOf,
  columns: readonly [string, string],
  order: Order = 'newest first',
): SelectQueryBuilder<Tables, Table, Row> {
  const [first, second] = [sql.ref(columns[0]), sql.ref(columns[1])];
  const direction = order === 'newest first' ? 'desc' : 'asc';
  const ordered = query.orderBy(first, direction).orderBy(second, direction).limit(page.limit);
  if (page.after === null) return ordered;
  if (page.after.length !== 2) throw new BadKey();
  const [one, other] = page.after;
  return ordered.where(
    direction === 'desc'
      ? sql<boolean>`(${first}, ${second}) < (${one}, ${other})`
      : sql<boolean>`(${first}, ${second}) > (${one}, ${other})`,
  );
}

function pageFrom<Row>(rows: Row[], limit: number, keyOf: (row: Row) => Key): Page<Row> {
  const last = rows.at(-1);
  return { rows, last: last === undefined || rows.length < limit ? null : keyOf(last) };
}

export async function pageMerchants(
  db: Handle,
  scope: Scope,
  page: PageOf,
  order?: Order,
): Promise<Page<{ id: string; created_at: Timestamp }>> {
  const query = scoped(db.selectFrom('merchants').select(['id', 'created_at']), scope, 'id');
  const rows = await byAge(query, page, ['created_at', 'id'], order).execute();
  return pageFrom(rows, page.limit, ({ created_at, id }) => [created_at, id]);
}

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
  order?: Order,
): Promise<Page<Integration>> {
  const query = withinScope(db.selectFrom('integrations').selectAll(), scope);
  const rows = await byAge(query, page, ['created_at', 'id'], order).execute();
  return pageFrom(rows, page.limit, ({ created_at, id }) => [created_at, id]);
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

/** The newest alerts first: those that are not closed, or those in one state. */
export async function pageAlerts(
  db: Handle,
  scope: Scope,
  state: AlertState | null,
  page: PageOf,
  kinds: string[] | null = null,
): Promise<Page<Alert & AlertHandling>> {
  let query = scoped(db.selectFrom('alerts').selectAll(), scope);
  if (kinds !== null) query = query.where('kind', 'in', kinds);
  query = query.where('closed_at', state === 'closed' ? 'is not' : 'is', null);
  if (state === 'open') query = query.where('taken_at', 'is', null);
  if (state === 'taken') query = query.where('taken_at', 'is not', null);
  const rows = await byAge(query, page, ['at', 'id']).execute();
  return pageFrom(rows, page.limit, ({ at, id }) => [at, id]);
}

/** One alert of the scope. */
export async function findAlertWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<(Alert & AlertHandling) | null> {
  const query = scoped(db.selectFrom('alerts').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** The newest payouts first. */
export async function pagePayouts(
  db: Handle,
  scope: Scope,
  status: PayoutStatus | null,
  page: PageOf,
): Promise<Page<Payout>> {
  let query = scoped(db.selectFrom('payouts').selectAll(), scope);
  if (status !== null) query = query.where('status', '=', status);
  const rows = await byAge(query, page, ['created_at', 'id']).execute();
  return pageFrom(rows, page.limit, ({ created_at, id }) => [created_at, id]);
}

/** One payout of the scope. */
export async function findPayoutWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<Payout | null> {
  const query = scoped(db.selectFrom('payouts').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** The sum of a payout's lines. The database adds them up, because there may be very many. */
export async function sumPayoutLines(
  db: Handle,
  { merchant_id, id }: Pick<Payout, 'merchant_id' | 'id'>,
): Promise<{ gross: number; fee: number; vat: number; net: number }> {
  const { rows } = await sql<{ gross: number; fee: number; vat: number; net: number }>`
    select coalesce(sum(gross), 0)::bigint as gross, coalesce(sum(fee), 0)::bigint as fee,
      coalesce(sum(vat), 0)::bigint as vat, coalesce(sum(net), 0)::bigint as net
    from settlement_entries where merchant_id = ${merchant_id} and payout_id = ${id}`.execute(db);
  return rows[0] as { gross: number; fee: number; vat: number; net: number };
}

/** The newest actions first. They belong to no merchant: only a scope of all merchants has them. */
export async function pageActions(
  db: Handle,
  scope: Scope,
  filter: { id?: string; subject_id: string | null; person_id: string | null; operator?: string },
  page: PageOf,
): Promise<Page<OperatorAction & { number: number | null }>> {
  if (scope !== 'all merchants') return { rows: [], last: null };
  let query = db
    .selectFrom('operator_actions')
    .select([
      'id',
      'number',
      'at',
      'operator',
      'action',
      'subject_id',
      'details',
      'os_user',
      'host',
      'person_id',
      'roles',
      'address',
      'session_id',
    ]);
  if (filter.id !== undefined) query = query.where('id', '=', filter.id);
  if (filter.subject_id !== null) query = query.where('subject_id', '=', filter.subject_id);
  if (filter.person_id !== null) query = query.where('person_id', '=', filter.person_id);
  if (filter.operator !== undefined) query = query.where('operator', '=', filter.operator);
  const rows = await byAge(query, page, ['at', 'id']).execute();
  return pageFrom(rows, page.limit, ({ at, id }) => [at, id]);
}

export type DestinationState = {
  merchant_id: string;
  host: string;
  last_attempt_at: Timestamp;
  last_error: string | null;
  last_error_at: Timestamp | null;
};

/** Receivers in the order of merchants and hosts. */
export async function pageDestinations(
  db: Handle,
  scope: Scope,
  page: PageOf,
): Promise<Page<DestinationState>> {
  let query = scoped(db.selectFrom('destination_states').selectAll(), scope)
    .orderBy('merchant_id')
    .orderBy('host')
    .limit(page.limit);
  if (page.after !== null) {
    if (page.after.length !== 2) throw new BadKey();
    const [merchant_id, host] = page.after;
    query = query.where(sql<boolean>`(merchant_id, host) > (${merchant_id}, ${host})`);
  }
  const rows = await query.execute();
  return pageFrom(rows, page.limit, ({ merchant_id, host }) => [merchant_id, host]);
}

export type DestinationDay = {
  merchant_id: string;
  host: string;
  attempts: number;
  delivered: number;
  buckets: number[];
};

/** How receivers did since a day. */
export async function listDestinationDays(
  db: Handle,
  scope: Scope,
  states: DestinationState[],
  since: string,
): Promise<DestinationDay[]> {
  if (states.length === 0) return [];
  return await scoped(
    db
      .selectFrom('destination_days')
      .select(['merchant_id', 'host', 'attempts', 'delivered', 'buckets']),
    scope,
  )
    .where('merchant_id', 'in', [...new Set(states.map(({ merchant_id }) => merchant_id))])
    .where('host', 'in', [...new Set(states.map(({ host }) => host))])
    .where('day', '>=', since)
    .execute();
}

/** The failures in a row of receivers. */
export async function listFailures(
  db: Handle,
  scope: Scope,
  states: DestinationState[],
): Promise<{ merchant_id: string; host: string; failures: number }[]> {
  if (states.length === 0) return [];
  return await scoped(
    db.selectFrom('destinations').select(['merchant_id', 'host', 'failures']),
    scope,
  )
    .where('merchant_id', 'in', [...new Set(states.map(({ merchant_id }) => merchant_id))])
    .where('host', 'in', [...new Set(states.map(({ host }) => host))])
    .execute();
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
