import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type MoneyDay = {
  merchant_id: string;
  merchant_name: string;
  currency: string;
  sold: number;
  collected: number;
  refunded: number;
  disputed: number;
  fees: number;
  vat: number;
  paid_out: number;
};

/** The territories, whose days begin at their own midnights. */
export async function listTimeZones(
  db: Handle,
): Promise<{ code: string; time_zone: string; locale: string; currency: string }[]> {
  return await db
    .selectFrom('territories')
    .select(['code', 'time_zone', 'locale', 'currency'])
    .orderBy('code')
    .execute();
}

/**
 * The movements in a range of time, by merchant. Both tables have an index on the time, so the cost
 * depends on the range and not on the history before it.
 */
export async function sumMovements(
  db: Handle,
  territory: string,
  from: Timestamp,
  to: Timestamp,
): Promise<MoneyDay[]> {
  const { rows } = await sql<MoneyDay>`
    with moved as (
      select merchant_id,
        sum(case kind when 'sold' then amount else 0 end) as sold,
        sum(case when kind in ('captured', 'collected') then amount else 0 end) as collected,
        sum(case kind when 'refunded' then amount when 'returned' then -amount else 0 end)
          as refunded,
        sum(case kind when 'withdrawn' then amount when 'reinstated' then -amount else 0 end)
          as disputed,
        0 as fees, 0 as vat, 0 as paid_out
      from postings where at >= ${from} and at < ${to}
      group by merchant_id
      union all
      select merchant_id, 0, 0, 0, 0,
        sum(fee), sum(vat),
        sum(case when kind in ('paid_out', 'payout_returned') then -net else 0 end)
      from settlement_entries where at >= ${from} and at < ${to}
      group by merchant_id
    )
    select m.id as merchant_id, m.name as merchant_name, t.currency,
      sum(sold)::bigint as sold, sum(collected)::bigint as collected,
      sum(refunded)::bigint as refunded, sum(disputed)::bigint as disputed,
      sum(fees)::bigint as fees, sum(vat)::bigint as vat, sum(paid_out)::bigint as paid_out
    from moved
    join merchants m on m.id = moved.merchant_id
    join territories t on t.code = m.territory
    where t.code = ${territory}
    group by m.id, m.name, t.currency
    order by m.name, m.id`.execute(db);
  return rows;
}

/** The gateway's charges to the account without a payment in a range of time, by currency. */
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
