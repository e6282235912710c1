import { Home, HomeQuery } from '#operating/operations/home.schema.ts';
import { readHome } from '#operating/operations/home.ts';
import { listMerchantNames } from '#operating/operations/owner.sql.ts';
import { scopeOf } from '#operating/operations/viewer.ts';
import type { Permission } from '#operating/people/permission.ts';
import { hasCheckouts } from '#operating/search/overview.sql.ts';
import { readCounts, readOverview } from '#operating/search/overview.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import { search } from '#operating/search/search.ts';
import { withoutDeadline } from '#platform/database/deadline.ts';
import { reading } from '#platform/database/transaction.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { notFound } from './errors.ts';
import {
  Counts,
  CountsQuery,
  Overview,
  OverviewQuery,
  SearchAnswer,
  SearchQuery,
  StoryBegun,
} from './overview.schema.ts';
import { countPage } from './pages.ts';
import { actionRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

const hitsMax = 50;

/** The permission that a kind of count or search hit needs, besides the route's own. */
const needed: Record<string, Permission> = {
  refunds_to_review: 'refunds.read',
  overdue: 'instalments.read',
  callbacks_exhausted: 'callbacks.read',
  alerts: 'alerts.read',
  disputes_to_answer: 'disputes.read',
  payouts_to_approve: 'payouts.approve',
  messages_to_answer: 'messages.read',
  merchant: 'merchants.read',
  callback: 'callbacks.read',
  alert: 'alerts.read',
  integration: 'integrations.read',
  dispute: 'disputes.read',
  payout: 'payouts.read',
  person: 'people.read',
  // People see their own bulk actions on every page, without a search. A search also finds those of
  // others, which are part of the audit.
  bulk_action: 'audit.read',
};

function maySee({ may }: Context, what: string): boolean {
  const permission = needed[what];
  return permission === undefined || may(permission);
}

/**
 * A count that the person may not read is null, because a zero would mean that nothing is waiting.
 */
function readable(context: Context, counts: Counts): Counts {
  const entries = Object.entries(counts).map(([name, count]) => [
    name,
    maySee(context, name) ? count : null,
  ]);
  return Object.fromEntries(entries);
}

/** Only a person who sees all merchants and may move clocks can fill a sandbox. */
async function presentStory({ deps, scope, may }: Context): Promise<Overview['story']> {
  const { story } = deps.console;
  if (!story || scope !== 'all merchants' || !may('clock.move')) return null;
  if (story.isPlaying()) return { is_playing: true };
  return (await reading(deps, hasCheckouts)) ? null : { is_playing: false };
}

export const overviewRoutes: ConsoleRoute[] = [
  consoleRoute({
    url: '/api/counts',
    permission: 'overview.read',
    schema: { query: CountsQuery, response: Counts },
    async handle(context, { query }) {
      const scope = scopeOf(context, query);
      return readable(context, await readCounts(context.deps, scope));
    },
  }),
  consoleRoute({
    url: '/api/overview',
    permission: 'overview.read',
    schema: { query: OverviewQuery, response: Overview },
    async handle(context, { query }) {
      const { deps, scope } = context;
      if (query.merchant && !isWithin(scope, query.merchant)) throw notFound();
      const { days = '30', month } = query;
      const period = month === undefined ? { days: Number(days) } : { month };
      const overview = await readOverview(deps, scopeOf(context, query), period);
      return {
        ...overview,
        counts: readable(context, overview.counts),
        books: context.may('differences.read') ? overview.books : null,
        oldest_refund_at: maySee(context, 'refunds_to_review') ? overview.oldest_refund_at : null,
        overdue_amount: maySee(context, 'overdue') ? overview.overdue_amount : null,
        story: await presentStory(context),
      };
    },
  }),
  consoleRoute({
    url: '/api/home',
    permission: 'overview.read',
    schema: { query: HomeQuery, response: Home },
    handle: (context, { query }) => readHome(context, query.merchant.toLowerCase()),
  }),
  actionRoute({
    url: '/api/sandbox/story',
    permission: 'clock.move',
    schema: { response: StoryBegun },
    async run(context) {
      const story = await presentStory(context);
      if (story === null) {
        throw new OperatorError('A story can be played only in a sandbox that has no orders yet.');
      }
      if (!story.is_playing) {
        // A story takes longer than the request.
        withoutDeadline(() => context.deps.console.story?.play(context.operator));
      }
      return () => ({ is_playing: true });
    },
  }),
  consoleRoute({
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
        .map((hit) => {
          const merchant = names.get(hit.merchant_id ?? '');
          // Orders and payouts have times on the merchant's clock, all other hits real times.
          const isOnClock = hit.checkout_id !== null || hit.kind === 'payout';
          return {
            ...hit,
            merchant_name: merchant?.name ?? null,
            clock_ahead_ms: isOnClock ? (merchant?.clock_ahead_ms ?? 0) : 0,
            time_zone: merchant?.time_zone ?? null,
          };
        });
      // Searches run while a person types, so a search that finds the same people as before is not
      // counted again.
      const people = data.filter(({ email, name }) => email !== null || name !== null);
      const shown = people.map(({ id }) => id);
      const merchants = people.map(({ merchant_id }) => merchant_id);
      if (shown.length > 0) await countPage(context, 'search', query, shown, merchants);
      return { data, more: hits.length === hitsMax };
    },
  }),
];
