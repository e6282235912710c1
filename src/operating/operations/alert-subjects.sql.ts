import { sql } from 'kysely';
import type { Scope } from '#operating/search/scope.sql.ts';
import { scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { unique } from './owner.sql.ts';

export type OfAlert = { merchant_id: string | null; subject_id: string | null };

export type Subject = {
  table: 'refund_requests' | 'callbacks' | 'disputes';
  merchant_id: string;
  id: string;
  checkout_id: string;
  /** The amount of the refund or the dispute itself. */
  amount: number | null;
  /** The event that a callback reports. Null for the callback that reports how a checkout ended. */
  event: string | null;
};

/** The refunds, callbacks and disputes that alerts are about, by their ids. */
export async function listSubjects(
  db: Handle,
  scope: Scope,
  alerts: OfAlert[],
): Promise<Map<string, Subject>> {
  const { ids, merchants } = keysOf(alerts);
  if (ids.length === 0) return new Map();
  const tables = ['refund_requests', 'callbacks', 'disputes'] as const;
  const found = await Promise.all(
    tables.map(async (table) => {
      const query = scoped(
        db
          .selectFrom(table as 'refund_requests')
          .select(['merchant_id', 'id', 'checkout_id'])
          .$if(table !== 'callbacks', (select) => select.select('amount'))
          .$if(table === 'callbacks', (select) =>
            select.select(sql<string | null>`event`.as('event')),
          ),
        scope,
      );
      const rows = await query
        .where('id', 'in', ids)
        .where('merchant_id', 'in', merchants)
        .execute();
      return rows.map((row) => ({
        table,
        ...row,
        amount: row.amount ?? null,
        event: row.event ?? null,
      }));
    }),
  );
  return new Map(found.flat().map((row) => [row.id, row]));
}

/** The overdue payments of the alerts' checkouts, ordered by number. */
export async function listOverdueOf(
  db: Handle,
  scope: Scope,
  alerts: OfAlert[],
): Promise<Instalment[]> {
  const { ids, merchants } = keysOf(alerts);
  if (ids.length === 0) return [];
  return await scoped(db.selectFrom('instalments').selectAll(), scope)
    .where('checkout_id', 'in', ids)
    .where('merchant_id', 'in', merchants)
    .where('status', '=', 'overdue')
    .orderBy('number')
    .execute();
}

export function keysOf(alerts: OfAlert[]) {
  const about = alerts.filter((alert) => alert.merchant_id !== null && alert.subject_id !== null);
  return {
    ids: unique(about.map((alert) => alert.subject_id as string)),
    merchants: unique(about.map((alert) => alert.merchant_id as string)),
  };
}
