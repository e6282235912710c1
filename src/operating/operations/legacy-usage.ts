import Type from 'typebox';
import { dayBefore } from './destinations.ts';
import { listLegacyIntegrationsPage, listLegacyOf, listLegacyUsage } from './integrations.sql.ts';
import { Id, paging } from './list.schema.ts';
import { type PageRequest, readList } from './list.ts';
import { listMerchantNames } from './owner.sql.ts';
import { scopeOf, type Viewer } from './viewer.ts';

type Query = { merchant?: string; integration?: string; days?: number };

/**
 * The first day of the period in which the use of v1 is counted. The period includes today, in UTC.
 */
export const usedSince = (now: Temporal.Instant, { days = 30 }: Query) => dayBefore(now, days - 1);

/** Integrations that have or had v1 credentials, with their use of v1, for the command line. */
export const legacyUsageList = {
  query: Type.Object({
    ...paging,
    integration: Type.Optional(Id),
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: 3660 })),
  }),
  read(viewer: Viewer, query: Query, page: PageRequest) {
    const { deps, scope } = viewer;
    return readList(
      deps,
      page,
      (db, range) =>
        listLegacyIntegrationsPage(db, scopeOf(viewer, query), query.integration, range),
      async (db, rows) => {
        const ids = rows.map(({ id }) => id);
        const owners = rows.flatMap(({ merchant_id }) => merchant_id ?? []);
        const names = await listMerchantNames(db, scope, owners);
        const credentials = await listLegacyOf(db, ids);
        const usage = await listLegacyUsage(db, ids, usedSince(deps.clock.now(), query));
        return rows.map(({ id, merchant_id, revoked_at }) => {
          const own = credentials.find(({ integration_id }) => integration_id === id);
          const isOn = revoked_at === null && own?.disabled_at === null;
          const used = usage.find(({ integration_id }) => integration_id === id);
          return {
            integration_id: id,
            merchant_id,
            merchant_name: names.get(merchant_id ?? '')?.name ?? null,
            /** Null if v1 is off. */
            enabled_at: isOn ? own.created_at : null,
            ...(used ?? { logins: 0, checkouts: 0, last_used_on: null }),
          };
        });
      },
    );
  },
};
