import { reading } from '../database/transaction.ts';
import { listMerchantNames } from '../search/lists.sql.ts';
import { countWaiting, readOverview } from '../search/overview.ts';
import { isWithin } from '../search/scope.sql.ts';
import { search } from '../search/search.ts';
import { notFound } from './errors.ts';
import { Counts, Overview, OverviewQuery, SearchAnswer, SearchQuery } from './overview.schema.ts';
import { scopeOf } from './pages.ts';
import { type ConsoleRoute, type Context, consoleRoute } from './route.ts';

const hitsMax = 50;

/** Alerts are not for everyone. */
function withoutAlerts<Answer extends Counts>({ person }: Context, counts: Answer): Answer {
  if (person.permissions.includes('alerts.read')) return counts;
  return { ...counts, alerts: { count: 0, more: false } };
}

export const overviewRoutes: ConsoleRoute[] = [
  consoleRoute({
    method: 'GET',
    url: '/api/counts',
    permission: 'overview.read',
    schema: { response: Counts },
    handle: async (context) =>
      withoutAlerts(context, await countWaiting(context.deps, context.person.scope)),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/overview',
    permission: 'overview.read',
    schema: { query: OverviewQuery, response: Overview },
    async handle(context, { query }) {
      const { deps, person } = context;
      if (query.merchant && !isWithin(person.scope, query.merchant)) throw notFound();
      const overview = await readOverview(deps, scopeOf(context, query));
      return { ...overview, counts: withoutAlerts(context, overview.counts) };
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/search',
    permission: 'checkouts.read',
    schema: { query: SearchQuery, response: SearchAnswer },
    async handle({ deps, person }, { query }) {
      const { scope } = person;
      const hits = await search(deps, scope, query.q, hitsMax);
      const ids = hits.flatMap(({ merchant_id }) => (merchant_id === null ? [] : [merchant_id]));
      const names = await reading(deps, (db) => listMerchantNames(db, scope, ids));
      const may = (kind: string) =>
        (kind !== 'alert' || person.permissions.includes('alerts.read')) &&
        (kind !== 'integration' || person.permissions.includes('integrations.read'));
      const data = hits
        .filter(({ kind }) => may(kind))
        .map((hit) => ({
          ...hit,
          merchant_name: names.get(hit.merchant_id ?? '')?.name ?? null,
        }));
      return { data };
    },
  }),
];
