import { logoPath } from '#merchants/logo-path.ts';
import { advanceClock, findNextEvent } from '#operating/clock/advance-clock.ts';
import { integrationList } from '#operating/operations/integrations.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { MerchantDetails, MoveClock, MovedClock } from '#operating/operations/merchant.schema.ts';
import { merchantActions, merchantList, mustSeeMerchant } from '#operating/operations/merchants.ts';
import { readTerms, termsActions } from '#operating/operations/terms.ts';
import { listRoutes } from './pages.ts';
import { presentPayee } from './payee-routes.ts';
import { actionRoute, actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const merchantRoutes: ConsoleRoute[] = [
  ...listRoutes(merchantList),
  detailRoute('merchants', 'merchants.read', MerchantDetails, async (context, id) => {
    const merchant = await mustSeeMerchant(context, id);
    const { deps, may } = context;
    const query = { merchant: merchant.id };
    const page = { after: null, limit: 100 };
    const integrations = may('integrations.read')
      ? (await integrationList.read(context, query, page)).data
      : [];
    return {
      ...merchant,
      integrations,
      logo_url: merchant.logo && `${deps.baseUrl}${logoPath(merchant.logo)}`,
      next_event_at: await findNextEvent(deps, merchant.id),
      payee: may('payouts.read') ? await presentPayee(context, merchant.id) : null,
      terms: may('payouts.read') ? await readTerms(context, merchant.id) : null,
    };
  }),
  ...actionRoutes(merchantActions),
  ...actionRoutes(termsActions),
  actionRoute({
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
