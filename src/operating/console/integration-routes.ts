import { IntegrationRow, RefusedRequests } from '#operating/operations/integration.schema.ts';
import {
  integrationActions,
  integrationList,
  managedMerchantList,
  mustOwnIntegration,
  mustSeeIntegration,
  readRefusedRequests,
} from '#operating/operations/integrations.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { listRoutes } from './pages.ts';
import {
  actionRoute,
  actionRoutes,
  type ConsoleRoute,
  consoleRoute,
  countOfDay,
  detailRoute,
} from './route.ts';

const { rotate, testCallback, ...actions } = integrationActions;

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes(integrationList),
  ...listRoutes(managedMerchantList),
  detailRoute('integrations', 'integrations.read', IntegrationRow, mustSeeIntegration),
  consoleRoute({
    method: 'GET',
    url: '/api/integrations/:id/refused-requests',
    permission: 'integrations.read',
    schema: { params: IdParams, response: RefusedRequests },
    handle: async (context, { params }) => ({
      ...(await readRefusedRequests(context, params.id)),
      doctor_url: `${context.deps.baseUrl}/docs/signature`,
    }),
  }),
  ...actionRoutes(actions),
  actionRoute({
    ...rotate,
    async run(context, input) {
      const { merchant_id } = await mustOwnIntegration(context, input.params.id);
      await countOfDay(context, 'rotation', merchant_id === null ? null : [merchant_id]);
      return await rotate.run(context, input);
    },
  }),
  actionRoute({
    ...testCallback,
    async run(context, input) {
      const { id, merchant_id } = await mustOwnIntegration(context, input.params.id);
      await context.deps.rateLimits.testCallback(context.person.id, merchant_id ?? id);
      return await testCallback.run(context, input);
    },
  }),
];
