import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';

export type LegacyUse = 'logins' | 'checkouts';

/** Counts one use of v1 by an integration on a day. */
export async function advanceUsage(
  db: Handle,
  integration_id: string,
  day: string,
  use: LegacyUse,
): Promise<void> {
  await db
    .insertInto('legacy_usage')
    .values({ integration_id, day, [use]: 1 })
    .onConflict((conflict) =>
      conflict
        .columns(['integration_id', 'day'])
        .doUpdateSet((now) => ({ [use]: now(`legacy_usage.${use}`, '+', 1) })),
    )
    .execute();
}

export type LegacyTraffic = {
  integration_id: string;
  created_at: string;
  merchant_id: string | null;
  /** Null if it was withdrawn. */
  enabled_at: string | null;
  logins: number;
  checkouts: number;
  /** Null if it was never used. */
  last_used_on: string | null;
};

/**
 * The integrations that have or had v1 credentials, the oldest first, with their use of v1 since a
 * day. `after` names the last one of the page before.
 */
export async function listTraffic(
  db: Handle,
  since: string,
  filter: { integration_id?: string; merchant_id?: string },
  page: { after: { created_at: string; id: string } | null; limit: number },
): Promise<LegacyTraffic[]> {
  const { created_at = null, id = null } = page.after ?? {};
  const { rows: integrations } = await sql<
    Pick<LegacyTraffic, 'integration_id' | 'created_at' | 'merchant_id' | 'enabled_at'>
  >`
    select i.id as integration_id, i.created_at, i.merchant_id,
      max(c.created_at) filter (where c.disabled_at is null and i.revoked_at is null) as enabled_at
    from legacy_credentials c join integrations i on i.id = c.integration_id
    where (${filter.integration_id ?? null}::uuid is null or i.id = ${filter.integration_id ?? null})
      and (${filter.merchant_id ?? null}::uuid is null or i.merchant_id = ${filter.merchant_id ?? null}
        or exists (select from managed_merchants m
          where m.integration_id = i.id and m.merchant_id = ${filter.merchant_id ?? null}))
      and (${id}::uuid is null or (i.created_at, i.id) > (${created_at}::timestamptz, ${id}::uuid))
    group by i.id
    order by i.created_at, i.id
    limit ${page.limit}`.execute(db);
  // There is one row for each integration and day, so this reads few rows.
  const ids = integrations.map(({ integration_id }) => integration_id);
  const { rows: used } = await sql<
    Pick<LegacyTraffic, 'integration_id' | 'logins' | 'checkouts' | 'last_used_on'>
  >`
    select integration_id, max(day) as last_used_on,
      coalesce(sum(logins) filter (where day >= ${since}::date), 0) as logins,
      coalesce(sum(checkouts) filter (where day >= ${since}::date), 0) as checkouts
    from legacy_usage where integration_id = any (${ids}::uuid[])
    group by integration_id`.execute(db);
  const byId = new Map(used.map((one) => [one.integration_id, one]));
  const nothing = { logins: 0, checkouts: 0, last_used_on: null };
  return integrations.map((one) => ({ ...one, ...nothing, ...byId.get(one.integration_id) }));
}
