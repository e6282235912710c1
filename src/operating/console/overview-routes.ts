import { listMerchantNames } from '#operating/operations/owner.sql.ts';
import { scopeOf } from '#operating/operations/viewer.ts';
import type { Permission } from '#operating/people/permission.ts';
import { countWaiting, readOverview } from '#operating/search/overview.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import { search } from '#operating/search/search.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from './errors.ts';
import { Counts, Overview, OverviewQuery, SearchAnswer, SearchQuery } from './overview.schema.ts';
import { type ConsoleRoute, type Context, consoleRoute } from './route.ts';

const hitsMax = 50;

/** The permission that a count or a hit of a kind needs, besides the route's own. */
const needed: Record<string, Permission> = {
  refunds_to_review: 'refunds.read',
  overdue: 'instalments.read',
  callbacks_exhausted: 'callbacks.read',
  alerts: 'alerts.read',
  disputes_to_answer: 'disputes.read',
  payouts_to_approve: 'payouts.read',
  alert: 'alerts.read',
  integration: 'integrations.read',
  dispute: 'disputes.read',
  payout: 'payouts.read',
  person: 'people.read',
  // A person sees their own actions beside the page. The audit shows those of others.
  bulk_action: 'audit.read',
};

function maySee({ may }: Context, what: string): boolean {
  const permission = needed[what];
  return permission === undefined || may(permission);
}

/** A count that the person may not read is null, because a zero would say that nothing waits. */
function readable(context: Context, counts: Counts): Counts {
  const entries = Object.entries(counts).map(([name, count]) => [
    name,
    maySee(context, name) ? count : null,
  ]);
  return Object.fromEntries(entries);
}

export const overviewRoutes: ConsoleRoute[] = [
  consoleRoute({
    method: 'GET',
    url: '/api/counts',
    permission: 'overview.read',
    schema: { response: Counts },
    handle: async (context) => readable(context, await countWaiting(context.deps, context.scope)),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/overview',
    permission: 'overview.read',
    schema: { query: OverviewQuery, response: Overview },
    async handle(context, { query }) {
      const { deps, scope } = context;
      if (query.merchant && !isWithin(scope, query.merchant)) throw notFound();
      const overview = await readOverview(deps, scopeOf(context, query));
      return {
        ...overview,
        counts: readable(context, overview.counts),
        oldest_refund_at: maySee(context, 'refunds_to_review') ? overview.oldest_refund_at : null,
        overdue_amount: maySee(context, 'overdue') ? overview.overdue_amount : null,
      };
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/search',
    permission: 'checkouts.read',
    schema: { query: SearchQuery, response: SearchAnswer },
    async handle(context, { query }) {
      const { deps, scope } = context;
      const hits = await search(deps, scope, query.q, hitsMax);
      const ids = hits.flatMap(({ merchant_id }) => (merchant_id === null ? [] : [merchant_id]));
      const names = await reading(deps, (db) => listMerchantNames(db, scope, ids));
      const data = hits
        .filter(({ kind }) => maySee(context, kind))
        .map((hit) => ({
          ...hit,
          merchant_name: names.get(hit.merchant_id ?? '')?.name ?? null,
        }));
      return { data };
    },
  }),
];
