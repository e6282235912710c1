import { IntegrationRow } from '#operating/operations/integration.schema.ts';
import {
  integrationActions,
  integrationList,
  managedMerchantList,
  mustSeeIntegration,
} from '#operating/operations/integrations.ts';
import { listRoutes } from './pages.ts';
import { actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes(integrationList),
  ...listRoutes(managedMerchantList),
  detailRoute('integrations', 'integrations.read', IntegrationRow, mustSeeIntegration),
  ...actionRoutes(integrationActions),
];
