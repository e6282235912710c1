import type { Static, TSchema, TUndefined } from 'typebox';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { manageMerchants } from '#merchants/integrations/manage-merchants.ts';
import { requireSigning } from '#merchants/integrations/require-signing.ts';
import { revokeIntegration } from '#merchants/integrations/revoke-integration.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { setLimit } from '#merchants/integrations/set-limit.ts';
import { setRefundMode } from '#merchants/integrations/set-refund-mode.ts';
import type { Column } from '#operating/operations/csv.ts';
import {
  CreateIntegration,
  DisabledV1,
  IntegrationRow,
  IntegrationsPage,
  IntegrationsQuery,
  IssuedCredentials,
  IssuedV1Credentials,
  LimitSet,
  ManagedMerchants,
  ManageMerchants,
  RefundModeSet,
  RequiredSigning,
  RevokedIntegration,
  RotateCredential,
  RotatedCredential,
  SetLimit,
  SetRefundMode,
} from '#operating/operations/integration.schema.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  type ListedIntegration,
  listIntegrationsWithin,
  readIntegrationWithin,
} from '#operating/operations/registers.ts';
import type { Permission } from '#operating/people/permission.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import { disableLegacy } from '#purchases/legacy/disable-legacy.ts';
import { enableLegacy } from '#purchases/legacy/enable-legacy.ts';
import { liftRefused } from '#record/alerts/lift-review.ts';
import { forbidden, invalid, notFound } from './errors.ts';
import { listRoutes, scopeOf } from './pages.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Page = { after: string | null; limit: number };

export const readIntegrations =
  (context: Context, query: { merchant?: string }) => async (page: Page) => {
    const scope = scopeOf(context, query);
    const { data, next } = await listIntegrationsWithin(context.deps, scope, page);
    return { data: data.map(presentIntegration), next };
  };

const integrationColumns: Column<IntegrationRow>[] = [
  ['Merchant', (row) => row.merchant_name ?? 'intermediary'],
  ['Created', (row) => row.created_at],
  ['Refunds', (row) => row.refund_mode],
  ['Signing since', (row) => row.signing_required_at],
  ['Revoked', (row) => row.revoked_at],
  ['v1 checkouts, 30 days', (row) => (row.v1 === null ? 0 : row.v1.checkouts)],
  ['ID', (row) => row.id],
];

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'integrations',
    permission: 'integrations.read',
    query: IntegrationsQuery,
    page: IntegrationsPage,
    columns: integrationColumns,
    read: readIntegrations,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/integrations/:id',
    permission: 'integrations.read',
    schema: { params: IdParams, response: IntegrationRow },
    async handle({ deps, person }, { params }) {
      const integration = await readIntegrationWithin(deps, person.scope, params.id);
      if (!integration) throw notFound();
      return presentIntegration(integration);
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/integrations',
    permission: 'integrations.change',
    mayNeed: 'review.lift',
    fresh: true,
    schema: { body: CreateIntegration, response: IssuedCredentials },
    async act({ deps, person, operator }, { body }) {
      const { merchant_id, managed_merchant_ids, refund_mode } = body;
      if ((merchant_id === undefined) === (managed_merchant_ids === undefined)) {
        const problem = 'is for a shop, managed_merchant_ids for an intermediary: name one of them';
        throw invalid([{ path: 'merchant_id', problem }]);
      }
      if (merchant_id !== undefined) {
        if (!isWithin(person.scope, merchant_id.toLowerCase())) throw notFound();
        if (refund_mode === 'auto' && !mayLift(person)) throw forbidden(liftRefused);
        const created = await createIntegration(deps, operator, { refund_mode, merchant_id });
        return () => created;
      }
      // An intermediary is not of one merchant.
      if (person.scope !== 'all merchants') throw notFound();
      const managed = managed_merchant_ids ?? [];
      const wanted = { refund_mode, managed_merchant_ids: managed };
      const created = await createIntegration(deps, operator, wanted);
      return () => created;
    },
  }),
  actOn('rotate', 'credentials.rotate', {
    body: RotateCredential,
    response: RotatedCredential,
    async act(deps, operator, id, { credential, overlap_seconds: overlapSeconds }) {
      const rotated = await rotateCredential(deps, operator, { id, credential, overlapSeconds });
      return { ...rotated, credential };
    },
  }),
  actOn('revoke', 'credentials.rotate', { response: RevokedIntegration, act: revokeIntegration }),
  actOn('limit', 'integrations.change', {
    body: SetLimit,
    response: LimitSet,
    mayNeed: 'limits.raise',
    act: (deps, operator, id, limit, person) =>
      setLimit(deps, operator, {
        id,
        ...limit,
        mayRaiseLimits: person.permissions.includes('limits.raise'),
      }),
  }),
  actOn('refund-mode', 'integrations.change', {
    body: SetRefundMode,
    response: RefundModeSet,
    mayNeed: 'review.lift',
    act: (deps, operator, id, wanted, person) =>
      setRefundMode(deps, operator, { id, ...wanted, mayLiftReview: mayLift(person) }),
  }),
  actOn('require-signing', 'integrations.change', {
    response: RequiredSigning,
    act: requireSigning,
  }),
  actOn('enable-v1', 'credentials.rotate', { response: IssuedV1Credentials, act: enableLegacy }),
  actOn('disable-v1', 'credentials.rotate', { response: DisabledV1, act: disableLegacy }),
  actOn('managed-merchants', 'integrations.change', {
    body: ManageMerchants,
    response: ManagedMerchants,
    async act(deps, operator, id, wanted) {
      const managed = await manageMerchants(deps, operator, { id, ...wanted });
      return { id, managed_merchant_ids: managed };
    },
  }),
];

/** An action on one integration, which needs a fresh proof: the use case of the command line. */
function actOn<const Response extends TSchema, const Body extends TSchema = TUndefined>(
  name: string,
  permission: Permission,
  route: {
    body?: Body;
    response: Response;
    mayNeed?: Permission;
    act(
      deps: Context['deps'],
      operator: string,
      id: string,
      body: Static<Body>,
      person: Context['person'],
    ): Promise<Static<Response>>;
  },
): ConsoleRoute {
  const { body, response, mayNeed, act } = route;
  return actRoute({
    method: 'POST',
    url: `/api/integrations/:id/${name}`,
    permission,
    ...(mayNeed && { mayNeed }),
    fresh: true,
    schema: { params: IdParams, ...(body && { body }), response },
    async act(context, input) {
      const { deps, operator, person } = context;
      const id = await mustChange(context, input.params.id);
      const result = await act(deps, operator, id, input.body as Static<Body>, person);
      return () => result;
    },
  });
}

const mayLift = ({ permissions }: Context['person']) => permissions.includes('review.lift');

/**
 * The id of an integration that the person may change: one of a merchant of their scope. An
 * intermediary also acts for merchants outside of a scope, so it needs the scope of all.
 */
async function mustChange({ deps, person }: Context, id: string): Promise<string> {
  const integration = await readIntegrationWithin(deps, person.scope, id);
  const isOwn = integration?.merchant_id != null || person.scope === 'all merchants';
  if (!integration || !isOwn) throw notFound();
  return integration.id;
}

/** Every endpoint with its limit: the integration's own, or the contract's. */
function limitsOf({ limits }: ListedIntegration): IntegrationRow['limits'] {
  return Object.entries(endpointLimits).map(([endpoint, { max_requests, window_seconds }]) => {
    const own = limits.find((limit) => limit.endpoint === endpoint);
    if (own) return { ...own, is_own: true };
    return { endpoint, max_requests, window_seconds, is_own: false };
  });
}

function presentIntegration(integration: ListedIntegration): IntegrationRow {
  return {
    id: integration.id,
    merchant_id: integration.merchant_id,
    merchant_name: integration.merchant_name,
    intermediary: integration.intermediary,
    refund_mode: integration.refund_mode,
    signing_required_at: integration.signing_required_at,
    revoked_at: integration.revoked_at,
    created_at: integration.created_at,
    managed_merchants: integration.managed_merchants,
    limits: limitsOf(integration),
    client_secrets: integration.client_secrets,
    signing_keys: integration.signing_keys,
    v1: integration.v1,
  };
}
