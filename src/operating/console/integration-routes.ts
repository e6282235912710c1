import { createIntegration } from '#merchants/integrations/create-integration.ts';
import {
  CreateIntegration,
  IntegrationRow,
  IssuedCredentials,
} from '#operating/operations/integration.schema.ts';
import {
  integrationActions,
  integrationList,
  mustSeeIntegration,
} from '#operating/operations/integrations.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import { liftRefused } from '#record/alerts/lift-review.ts';
import { forbidden, invalid, notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes(integrationList),
  detailRoute('integrations', 'integrations.read', IntegrationRow, mustSeeIntegration),
  actionRoute({
    method: 'POST',
    url: '/api/integrations',
    permission: 'integrations.change',
    mayNeed: 'review.lift',
    fresh: true,
    schema: { body: CreateIntegration, response: IssuedCredentials },
    async run({ deps, scope, may, operator }, { body }) {
      const { merchant_id, managed_merchant_ids, refund_mode } = body;
      if ((merchant_id === undefined) === (managed_merchant_ids === undefined)) {
        const problem = 'is for a shop, managed_merchant_ids for an intermediary: name one of them';
        throw invalid([{ path: 'merchant_id', problem }]);
      }
      if (merchant_id !== undefined) {
        if (!isWithin(scope, merchant_id.toLowerCase())) throw notFound();
        if (refund_mode === 'auto' && !may('review.lift')) throw forbidden(liftRefused);
        const created = await createIntegration(deps, operator, { refund_mode, merchant_id });
        return () => created;
      }
      // An intermediary does not belong to one merchant.
      if (scope !== 'all merchants') throw notFound();
      const managed = managed_merchant_ids ?? [];
      const wanted = { refund_mode, managed_merchant_ids: managed };
      const created = await createIntegration(deps, operator, wanted);
      return () => created;
    },
  }),
  ...actionRoutes(integrationActions),
];
