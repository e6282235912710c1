import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

export type DestinationState = {
  merchant_id: string;
  host: string;
  last_attempt_at: Timestamp;
  last_error: string | null;
  last_error_at: Timestamp | null;
};

/** Receivers, ordered by merchant and host. */
export async function listDestinationsPage(
  db: Handle,
  scope: Scope,
  page: PageOf,
): Promise<Page<DestinationState>> {
  const query = scoped(db.selectFrom('destination_states').selectAll(), scope);
  return await readRange(query, page, ['merchant_id', 'host'], 'asc');
}

export type DestinationDay = {
  merchant_id: string;
  host: string;
  attempts: number;
  delivered: number;
  buckets: number[];
};

/** The receivers' daily results since the given day. */
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

/** How many deliveries in a row have failed, by receiver. */
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
