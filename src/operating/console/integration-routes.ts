import { IntegrationRow } from '#operating/operations/integration.schema.ts';
import {
  integrationActions,
  integrationList,
  managedMerchantList,
  mustChangeIntegration,
  mustSeeIntegration,
} from '#operating/operations/integrations.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

const { testCallback, ...actions } = integrationActions;

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes(integrationList),
  ...listRoutes(managedMerchantList),
  detailRoute('integrations', 'integrations.read', IntegrationRow, mustSeeIntegration),
  ...actionRoutes(actions),
  actionRoute({
    ...testCallback,
    async run(context, input) {
      const { id, merchant_id } = await mustChangeIntegration(context, input.params.id);
      await context.deps.rateLimits.testCallback(context.person.id, merchant_id ?? id);
      return await testCallback.run(context, input);
    },
  }),
];
