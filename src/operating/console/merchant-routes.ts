import { changePage } from '#merchants/change-page.ts';
import { changeRules } from '#merchants/change-rules.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import { explainBadShortName } from '#merchants/merchant.ts';
import { advanceClock, findNextEvent } from '#operating/clock/advance-clock.ts';
import { type Column, decimal } from '#operating/operations/csv.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  ChangeMerchant,
  CreateMerchant,
  MerchantDetails,
  MerchantRow,
  MerchantsPage,
  MerchantsQuery,
  MoveClock,
  MovedClock,
} from '#operating/operations/merchant.schema.ts';
import { type ListedMerchant, listMerchantsWithin } from '#operating/operations/registers.ts';
import { conflict, invalid } from './errors.ts';
import { readIntegrations } from './integration-routes.ts';
import { listRoutes, mustSeeMerchant } from './pages.ts';
import { presentPayee } from './payee-routes.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Page = { after: string | null; limit: number };

const readMerchants =
  ({ deps, person }: Context) =>
  async (page: Page) => {
    const { data, next } = await listMerchantsWithin(deps, person.scope, page);
    return { data: data.map(presentMerchant), next };
  };

const merchantColumns: Column<MerchantRow>[] = [
  ['Name', (row) => row.name],
  ['Created', (row) => row.created_at],
  ['Sold, 30 days', (row) => Number(decimal(row.sold))],
  ['Collected, 30 days', (row) => Number(decimal(row.collected))],
  ['Refunded, 30 days', (row) => Number(decimal(row.refunded))],
  ['Currency', (row) => row.currency],
  ['ID', (row) => row.id],
];

export const merchantRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'merchants',
    permission: 'merchants.read',
    query: MerchantsQuery,
    page: MerchantsPage,
    columns: merchantColumns,
    read: readMerchants,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/merchants/:id',
    permission: 'merchants.read',
    schema: { params: IdParams, response: MerchantDetails },
    async handle(context, { params }) {
      const merchant = await mustSeeMerchant(context, params.id);
      const query = { merchant: merchant.id };
      const may = context.person.permissions;
      const integrations = may.includes('integrations.read')
        ? (await readIntegrations(context, query)({ after: null, limit: 100 })).data
        : [];
      return {
        ...presentMerchant(merchant),
        integrations,
        next_event_at: await findNextEvent(context.deps, merchant.id),
        payee: may.includes('payouts.read') ? await presentPayee(context, merchant.id) : null,
      };
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/merchants',
    permission: 'merchants.create',
    fresh: true,
    schema: { body: CreateMerchant, response: MerchantRow },
    async act(context, { body }) {
      const { deps, operator } = context;
      const { name, territory = 'ZA', rules, preselected_term, four_eyes_above } = body;
      const { id } = await createMerchant(deps, operator, {
        name,
        territory,
        rules,
        preselected_term: preselected_term ?? null,
        four_eyes_above: four_eyes_above ?? null,
      });
      return async () => presentMerchant(await mustSeeMerchant(context, id));
    },
  }),
  actRoute({
    method: 'PATCH',
    url: '/api/merchants/:id',
    permission: 'merchants.change',
    mayNeed: 'review.lift',
    fresh: true,
    schema: { params: IdParams, body: ChangeMerchant, response: MerchantRow },
    async act(context, { params, body }) {
      const { deps, operator, person } = context;
      const { id } = await mustSeeMerchant(context, params.id);
      const mayLiftReview = person.permissions.includes('review.lift');
      const { short_name, no_fees, was, ...rules } = body;
      const page = { ...pick({ short_name }), ...pick({ no_fees }) };
      if (Object.keys(rules).length + Object.keys(page).length === 0) {
        throw invalid([{ path: '', problem: 'Name something to change' }]);
      }
      // These are two actions. Refuse a bad name before the first of them.
      const problem = explainBadShortName(short_name ?? null);
      if (problem !== null) throw conflict(problem, 'refused');
      if (Object.keys(rules).length > 0) {
        const wanted = { id, ...rules, ...(was && { was }), mayLiftReview };
        await changeRules(deps, operator, wanted);
      }
      if (Object.keys(page).length > 0) await changePage(deps, operator, { id, ...page });
      return async () => presentMerchant(await mustSeeMerchant(context, id));
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/merchants/:id/clock',
    permission: 'clock.move',
    schema: { params: IdParams, body: MoveClock, response: MovedClock },
    async act(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeeMerchant(context, params.id);
      const wanted =
        body.by_seconds === undefined
          ? ('next event' as const)
          : { by: Temporal.Duration.from({ seconds: body.by_seconds }) };
      const moved = await advanceClock(deps, operator, id, wanted);
      return () => moved;
    },
  }),
];

/** The members of an object that are given. */
const pick = <T extends Record<string, unknown>>(members: T) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };

function presentMerchant(merchant: ListedMerchant): MerchantRow {
  const { id, name, territory, rules, created_at, sold, collected, refunded } = merchant;
  return {
    id,
    name,
    territory: territory.code,
    currency: territory.currency,
    time_zone: territory.time_zone,
    locale: territory.locale,
    rules: rules.map(({ from_amount, to_amount, terms }) => ({ from_amount, to_amount, terms })),
    preselected_term: merchant.preselected_term,
    four_eyes_above: merchant.four_eyes_above,
    short_name: merchant.short_name,
    no_fees: merchant.no_fees,
    created_at,
    clock_ahead_ms: merchant.clock_ahead_ms,
    now: merchant.now,
    sold,
    collected,
    refunded,
    refund_rate: merchant.refund_rate,
  };
}
