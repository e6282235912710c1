import { changePage } from '#merchants/change-page.ts';
import { changeRules } from '#merchants/change-rules.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import { explainBadShortName } from '#merchants/merchant.ts';
import { advanceClock, findNextEvent } from '#operating/clock/advance-clock.ts';
import { integrationList } from '#operating/operations/integrations.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  ChangeMerchant,
  CreateMerchant,
  MerchantDetails,
  MerchantRow,
  MoveClock,
  MovedClock,
} from '#operating/operations/merchant.schema.ts';
import { merchantList, mustSeeMerchant } from '#operating/operations/merchants.ts';
import { conflict, invalid } from './errors.ts';
import { listRoutes } from './pages.ts';
import { presentPayee } from './payee-routes.ts';
import { actionRoute, type ConsoleRoute, consoleRoute } from './route.ts';

export const merchantRoutes: ConsoleRoute[] = [
  ...listRoutes(merchantList),
  consoleRoute({
    method: 'GET',
    url: '/api/merchants/:id',
    permission: 'merchants.read',
    schema: { params: IdParams, response: MerchantDetails },
    async handle(context, { params }) {
      const merchant = await mustSeeMerchant(context, params.id);
      const { deps, may } = context;
      const query = { merchant: merchant.id };
      const page = { after: null, limit: 100 };
      const integrations = may('integrations.read')
        ? (await integrationList.read(context, query, page)).data
        : [];
      return {
        ...merchant,
        integrations,
        next_event_at: await findNextEvent(deps, merchant.id),
        payee: may('payouts.read') ? await presentPayee(context, merchant.id) : null,
      };
    },
  }),
  actionRoute({
    method: 'POST',
    url: '/api/merchants',
    permission: 'merchants.create',
    fresh: true,
    schema: { body: CreateMerchant, response: MerchantRow },
    async run(context, { body }) {
      const { deps, operator, may } = context;
      const { name, territory = 'ZA', rules, preselected_term, four_eyes_above } = body;
      const { id } = await createMerchant(deps, operator, {
        name,
        territory,
        rules,
        preselected_term: preselected_term ?? null,
        four_eyes_above: four_eyes_above ?? null,
        mayLiftReview: may('review.lift'),
      });
      return () => mustSeeMerchant(context, id);
    },
  }),
  actionRoute({
    method: 'PATCH',
    url: '/api/merchants/:id',
    permission: 'merchants.change',
    mayNeed: 'review.lift',
    fresh: true,
    schema: { params: IdParams, body: ChangeMerchant, response: MerchantRow },
    async run(context, { params, body }) {
      const { deps, operator, may } = context;
      const { id } = await mustSeeMerchant(context, params.id);
      const mayLiftReview = may('review.lift');
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
      return () => mustSeeMerchant(context, id);
    },
  }),
  actionRoute({
    method: 'POST',
    url: '/api/merchants/:id/clock',
    permission: 'clock.move',
    schema: { params: IdParams, body: MoveClock, response: MovedClock },
    async run(context, { params, body }) {
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
