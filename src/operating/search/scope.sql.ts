import { type SelectQueryBuilder, sql } from 'kysely';

/** The merchants whose rows a reader may see. */
export type Scope = 'all merchants' | { merchant_ids: string[] };

/**
 * Applies a scope to a query, so that no row outside of the scope leaves the database. Lists and
 * searches for people at the console use it.
 */
// biome-ignore lint/suspicious/noExplicitAny: it adds a condition to queries of any shape.
export function scoped<Query extends SelectQueryBuilder<any, any, any>>(
  query: Query,
  scope: Scope,
  column = 'merchant_id',
): Query {
  if (scope === 'all merchants') return query;
  const { merchant_ids } = scope;
  // One merchant becomes an equality: Citus asks one node, and an index returns sorted rows.
  const [only] = merchant_ids;
  return (
    merchant_ids.length === 1
      ? query.where(sql.ref(column), '=', only)
      : query.where(sql<boolean>`${sql.ref(column)} = any(${merchant_ids}::uuid[])`)
  ) as Query;
}

/** A scope that contains no merchant, so that a query in it finds nothing. */
const nothing: Scope = { merchant_ids: [] };

/** The scope narrowed to one of its merchants. A merchant outside it gives an empty scope. */
export function narrowed(scope: Scope, merchant_id: string | undefined): Scope {
  if (merchant_id === undefined) return scope;
  const wanted = merchant_id.toLowerCase();
  return isWithin(scope, wanted) ? { merchant_ids: [wanted] } : nothing;
}

export const isWithin = (scope: Scope, merchant_id: string) =>
  scope === 'all merchants' || scope.merchant_ids.includes(merchant_id);

/** Whether the scope is one merchant. Its lists use the indexes that begin with the merchant. */
export const isOne = (scope: Scope): scope is { merchant_ids: [string] } =>
  scope !== 'all merchants' && scope.merchant_ids.length === 1;
