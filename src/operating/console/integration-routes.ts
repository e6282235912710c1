import type { Static, TSchema, TUndefined } from 'typebox';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { manageMerchants } from '#merchants/integrations/manage-merchants.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import {
  CreateIntegration,
  DisabledV1,
  IntegrationRow,
  IssuedCredentials,
  IssuedV1Credentials,
  ManagedMerchants,
  ManageMerchants,
  RotateCredential,
  RotatedCredential,
} from '#operating/operations/integration.schema.ts';
import {
  integrationActions,
  integrationList,
  mustChangeIntegration,
  mustSeeIntegration,
} from '#operating/operations/integrations.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import type { Permission } from '#operating/people/permission.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import { disableLegacy } from '#purchases/legacy/disable-legacy.ts';
import { enableLegacy } from '#purchases/legacy/enable-legacy.ts';
import { liftRefused } from '#record/alerts/lift-review.ts';
import { forbidden, invalid, notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes(integrationList),
  consoleRoute({
    method: 'GET',
    url: '/api/integrations/:id',
    permission: 'integrations.read',
    schema: { params: IdParams, response: IntegrationRow },
    handle: (context, { params }) => mustSeeIntegration(context, params.id),
  }),
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
  actionOn('rotate', 'credentials.rotate', {
    body: RotateCredential,
    response: RotatedCredential,
    async run(deps, operator, id, { credential, overlap_seconds: overlapSeconds }) {
      const rotated = await rotateCredential(deps, operator, { id, credential, overlapSeconds });
      return { ...rotated, credential };
    },
  }),
  actionRoute(integrationActions.revoke),
  actionRoute(integrationActions.setLimit),
  actionRoute(integrationActions.setRefundMode),
  actionRoute(integrationActions.requireSigning),
  actionOn('enable-v1', 'credentials.rotate', { response: IssuedV1Credentials, run: enableLegacy }),
  actionOn('disable-v1', 'credentials.rotate', { response: DisabledV1, run: disableLegacy }),
  actionOn('managed-merchants', 'integrations.change', {
    body: ManageMerchants,
    response: ManagedMerchants,
    async run(deps, operator, id, wanted) {
      const managed = await manageMerchants(deps, operator, { id, ...wanted });
      return { id, managed_merchant_ids: managed };
    },
  }),
];

/** An action on one integration, which needs a fresh proof: the use case of the command line. */
function actionOn<const Response extends TSchema, const Body extends TSchema = TUndefined>(
  name: string,
  permission: Permission,
  route: {
    body?: Body;
    response: Response;
    run(
      deps: Context['deps'],
      operator: string,
      id: string,
      body: Static<Body>,
    ): Promise<Static<Response>>;
  },
): ConsoleRoute {
  const { body, response, run } = route;
  return actionRoute({
    method: 'POST',
    url: `/api/integrations/:id/${name}`,
    permission,
    fresh: true,
    schema: { params: IdParams, ...(body && { body }), response },
    async run(context, input) {
      const { deps, operator } = context;
      const id = await mustChangeIntegration(context, input.params.id);
      const result = await run(deps, operator, id, input.body as Static<Body>);
      return () => result;
    },
  });
}
