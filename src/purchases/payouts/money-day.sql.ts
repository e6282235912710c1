import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** The territories. In each of them, a day begins at the local midnight. */
export async function listTerritories(
  db: Handle,
): Promise<{ code: string; time_zone: string; locale: string; currency: string }[]> {
  return await db
    .selectFrom('territories')
    .select(['code', 'time_zone', 'locale', 'currency'])
    .orderBy('code')
    .execute();
}

/**
 * The fees that the gateway charged in a period to the account rather than for a payment, by
 * currency.
 */
export async function sumAccountFees(
  db: Handle,
  from: Timestamp,
  to: Timestamp,
): Promise<{ currency: string; amount: number }[]> {
  const { rows } = await sql<{ currency: string; amount: number }>`
    select currency, sum(fee)::bigint as amount
    from gateway_account_fees where at >= ${from} and at < ${to}
    group by currency order by currency`.execute(db);
  return rows;
}
