import type { Static, TSchema, TUndefined } from 'typebox';
import {
  createIntegration,
  type IntegrationDeps,
} from '#merchants/integrations/create-integration.ts';
import type { Integration } from '#merchants/integrations/integration.ts';
import { manageMerchants } from '#merchants/integrations/manage-merchants.ts';
import { listRefusedRequests } from '#merchants/integrations/refused-request.sql.ts';
import { requireSigning } from '#merchants/integrations/require-signing.ts';
import { revokeIntegration } from '#merchants/integrations/revoke-integration.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { setLimit } from '#merchants/integrations/set-limit.ts';
import { setRefundMode } from '#merchants/integrations/set-refund-mode.ts';
import type { Permission } from '#operating/people/permission.ts';
import { recentDays } from '#operating/search/overview.sql.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { chooseEvents, type EventDeps } from '#purchases/callbacks/choose-events.ts';
import {
  sendTestCallback,
  type TestCallbackDeps,
} from '#purchases/callbacks/send-test-callback.ts';
import { disableLegacy } from '#purchases/legacy/disable-legacy.ts';
import { enableLegacy } from '#purchases/legacy/enable-legacy.ts';
import type { LiftDeps } from '#record/alerts/lift-review.ts';
import { defineAction } from './action.ts';
import { dayBefore } from './destinations.ts';
import {
  CreateIntegration,
  DisabledV1,
  EventsSet,
  IntegrationRow,
  IntegrationsQuery,
  IssuedCredentials,
  IssuedV1Credentials,
  LimitSet,
  ManagedMerchant,
  ManagedMerchants,
  ManagedMerchantsQuery,
  ManageMerchants,
  RefundModeSet,
  type RefusedRequests,
  RequiredSigning,
  RevokedIntegration,
  RotateCredential,
  RotatedCredential,
  SetEvents,
  SetLimit,
  SetRefundMode,
  TestCallback,
  TestedCallback,
} from './integration.schema.ts';
import {
  findIntegrationWithin,
  listCredentialsOf,
  listFirstManaged,
  listIntegrationsPage,
  listLegacyOf,
  listLegacyUsage,
  listLimitsOf,
  listManagedPage,
} from './integrations.sql.ts';
import { IdParams } from './list.schema.ts';
import { defineList, readList } from './list.ts';
import { noMerchant } from './merchants.ts';
import { listMerchantNames } from './owner.sql.ts';
import { BadInput, NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** Integrations with everything about them except their secrets. */
export const integrationList = defineList({
  name: 'integrations',
  permission: 'integrations.read',
  query: IntegrationsQuery,
  row: IntegrationRow,
  read(viewer, query, page) {
    const seen = { ...viewer, scope: scopeOf(viewer, query) };
    return readList(
      viewer.deps,
      page,
      (db, range) => listIntegrationsPage(db, seen.scope, range, query.order),
      (db, rows) => presentIntegrations(seen, db, rows),
    );
  },
  columns: [
    ['Merchant', (row) => row.merchant_name ?? 'intermediary'],
    ['Created', (row) => row.created_at],
    ['Refunds', (row) => row.refund_mode],
    ['Events', (row) => row.events.join(' ')],
    ['Signing since', (row) => row.signing_required_at],
    ['Revoked', (row) => row.revoked_at],
    ['v1 checkouts, 30 days', (row) => (row.v1 === null ? 0 : row.v1.checkouts)],
    ['ID', (row) => row.id],
  ],
});

/** The merchants that an intermediary manages. There may be thousands. */
export const managedMerchantList = defineList({
  name: 'managed-merchants',
  permission: 'integrations.read',
  query: ManagedMerchantsQuery,
  row: ManagedMerchant,
  read: ({ deps, scope }, { integration }, page) =>
    readList(
      deps,
      page,
      async (db, range) => {
        const found = isUuid(integration)
          ? await findIntegrationWithin(db, scope, integration)
          : null;
        if (!found) throw noIntegration(integration);
        return await listManagedPage(db, scope, found.id, range);
      },
      async (_, rows) => rows,
    ),
  columns: [
    ['Name', (row) => row.name],
    ['Added', (row) => row.added_at],
    ['ID', (row) => row.id],
  ],
});

export type ListedIntegration = Awaited<ReturnType<typeof presentIntegrations>>[number];

/** An integration in the viewer's scope, or an intermediary that manages a merchant in it. */
export async function mustSeeIntegration(viewer: Viewer, id: string): Promise<ListedIntegration> {
  const [integration] = await reading(viewer.deps, async (db) => {
    const found = isUuid(id) ? await findIntegrationWithin(db, viewer.scope, id) : null;
    return found ? await presentIntegrations(viewer, db, [found]) : [];
  });
  if (!integration) throw noIntegration(id);
  return integration;
}

const noIntegration = (id: string) =>
  new NotFound(`There is no integration ${id}. \`tranche integrations list\` lists them.`);

/** An integration's row lists at most this many of the merchants that it manages. */
const firstManagedMax = 10;

async function presentIntegrations({ deps, scope }: Viewer, db: Handle, rows: Integration[]) {
  const ids = rows.map(({ id }) => id);
  const owners = rows.flatMap(({ merchant_id }) => merchant_id ?? []);
  const now = deps.clock.now();
  const names = await listMerchantNames(db, scope, owners);
  const managed = await listFirstManaged(db, scope, ids, firstManagedMax + 1);
  const limits = await listLimitsOf(db, ids);
  const { client_secrets, signing_keys } = await listCredentialsOf(db, ids, timestamp(now));
  const legacy = await listLegacyOf(db, ids);
  // An intermediary may also act for other merchants, so only viewers of all merchants see how much
  // it uses v1.
  const showsUse = (row: Integration) => scope === 'all merchants' || row.merchant_id !== null;
  const shown = rows.filter(showsUse).map(({ id }) => id);
  const usage = await listLegacyUsage(db, shown, dayBefore(now, recentDays));
  return rows.map((row) => {
    const of = <Part extends { integration_id: string }>(parts: Part[]) =>
      parts
        .filter(({ integration_id }) => integration_id === row.id)
        .map(({ integration_id: _, ...part }) => part);
    const [v1] = of(legacy);
    const none = showsUse(row) ? 0 : null;
    const [used = { logins: none, checkouts: none }] = of(usage);
    const own_limits = of(limits);
    const first = of(managed);
    return {
      ...row,
      merchant_name: names.get(row.merchant_id ?? '')?.name ?? null,
      managed_merchants: first.slice(0, firstManagedMax),
      manages_more: first.length > firstManagedMax,
      own_limits,
      limits: withContract(own_limits),
      client_secrets: of(client_secrets),
      signing_keys: of(signing_keys).map(({ first_used_at, ...key }) =>
        showsUse(row) ? { ...key, first_used_at } : key,
      ),
      v1: v1 ? { ...v1, ...used } : null,
    };
  });
}

type Limit = { endpoint: string; max_requests: number; window_seconds: number };

/** Every endpoint with its limit: the integration's own, or the contract's. */
function withContract(limits: Limit[]): IntegrationRow['limits'] {
  return Object.entries(endpointLimits).map(([endpoint, { max_requests, window_seconds }]) => {
    const own = limits.find((limit) => limit.endpoint === endpoint);
    if (own) return { ...own, is_own: true };
    return { endpoint, max_requests, window_seconds, is_own: false };
  });
}

/**
 * An integration of a merchant in the viewer's scope. An intermediary may also act for merchants
 * outside the scope, so it is found only in the scope of all merchants.
 */
export async function mustOwnIntegration(viewer: Viewer, id: string): Promise<ListedIntegration> {
  const integration = await mustSeeIntegration(viewer, id);
  const isShared = integration.merchant_id === null;
  if (isShared && viewer.scope !== 'all merchants') throw noIntegration(id);
  return integration;
}

/**
 * The requests of an integration that were refused for their signature, for the signature doctor.
 */
export async function readRefusedRequests(
  viewer: Viewer,
  id: string,
): Promise<Pick<RefusedRequests, 'data'> & { merchant_id: string | null }> {
  const { id: integration_id, merchant_id } = await mustOwnIntegration(viewer, id);
  const data = await reading(viewer.deps, (db) => listRefusedRequests(db, integration_id));
  return { data, merchant_id };
}

/**
 * Makes an action on one integration. The action requires re-authentication, and its use case makes
 * the answer.
 */
function on<
  const Response extends TSchema,
  Deps extends ViewerDeps = ViewerDeps,
  const Body extends TSchema = TUndefined,
>(
  verb: string,
  permission: Permission,
  action: {
    mayNeed?: readonly Permission[];
    body?: Body;
    response: Response;
    run(viewer: Viewer<Deps>, id: string, body: Static<Body>): Promise<Static<Response>>;
  },
) {
  const { mayNeed, body, response, run } = action;
  return defineAction({
    url: `/api/integrations/:id/${verb}`,
    permission,
    ...(mayNeed && { mayNeed }),
    fresh: true,
    schema: { params: IdParams, ...(body && { body }), response },
    async run(viewer: Viewer<Deps>, input) {
      const { id } = await mustOwnIntegration(viewer, input.params.id);
      const result = await run(viewer, id, input.body as Static<Body>);
      return () => result;
    },
  });
}

type Issue = Viewer<ViewerDeps & IntegrationDeps>;

export const integrationActions = {
  create: defineAction({
    url: '/api/integrations',
    permission: 'integrations.change',
    mayNeed: ['review.lift'],
    fresh: true,
    schema: { body: CreateIntegration, response: IssuedCredentials },
    async run({ deps, scope, may, operator }: Issue, { body }) {
      const { merchant_id, managed_merchant_ids = [], refund_mode } = body;
      if ((merchant_id === undefined) === (body.managed_merchant_ids === undefined)) {
        const problem = 'is for a shop, managed_merchant_ids for an intermediary: name one of them';
        throw new BadInput('merchant_id', problem);
      }
      // An intermediary does not belong to one merchant.
      const isSeen =
        merchant_id === undefined
          ? scope === 'all merchants'
          : isWithin(scope, merchant_id.toLowerCase());
      if (!isSeen) throw noMerchant(merchant_id ?? '');
      const wanted = merchant_id === undefined ? { managed_merchant_ids } : { merchant_id };
      const created = await createIntegration(deps, operator, {
        refund_mode,
        mayLiftReview: may('review.lift'),
        mayRaiseLimits: may('limits.raise'),
        ...wanted,
      });
      return () => created;
    },
  }),
  rotate: on('rotate', 'credentials.rotate', {
    mayNeed: ['review.lift'],
    body: RotateCredential,
    response: RotatedCredential,
    async run({ deps, operator, may }: Issue, id, { credential, overlap_seconds }) {
      const mayLiftReview = may('review.lift');
      const wanted = { id, credential, overlapSeconds: overlap_seconds, mayLiftReview };
      const rotated = await rotateCredential(deps, operator, wanted);
      return { ...rotated, credential };
    },
  }),
  revoke: on('revoke', 'credentials.rotate', {
    response: RevokedIntegration,
    run: ({ deps, operator }, id) => revokeIntegration(deps, operator, id),
  }),
  setLimit: on('limit', 'integrations.change', {
    mayNeed: ['limits.raise'],
    body: SetLimit,
    response: LimitSet,
    run: ({ deps, operator, may }, id, body) =>
      setLimit(deps, operator, { id, ...body, mayRaiseLimits: may('limits.raise') }),
  }),
  setRefundMode: on('refund-mode', 'integrations.change', {
    mayNeed: ['review.lift'],
    body: SetRefundMode,
    response: RefundModeSet,
    run: ({ deps, operator, may }: Viewer<ViewerDeps & LiftDeps>, id, body) =>
      setRefundMode(deps, operator, { id, ...body, mayLiftReview: may('review.lift') }),
  }),
  setEvents: on('events', 'integrations.change', {
    body: SetEvents,
    response: EventsSet,
    async run({ deps, operator }: Viewer<ViewerDeps & EventDeps>, id, body) {
      const { enable = [], disable = [], url } = body;
      if (enable.length + disable.length === 0 && url === undefined) {
        throw new BadInput(
          'enable',
          'is missing: name events to enable, to disable, or an address',
        );
      }
      return await chooseEvents(deps, operator, {
        id,
        enable,
        disable,
        url: url === 'none' ? null : url,
      });
    },
  }),
  /** Sends a test callback to a URL, and shows the answer. Writes nothing but the audit row. */
  testCallback: on('test-callback', 'integrations.change', {
    body: TestCallback,
    response: TestedCallback,
    run: ({ deps, operator }: Viewer<ViewerDeps & TestCallbackDeps>, id, { url }) =>
      sendTestCallback(deps, operator, { id, url }),
  }),
  requireSigning: on('require-signing', 'integrations.change', {
    response: RequiredSigning,
    run: ({ deps, operator }, id) => requireSigning(deps, operator, id),
  }),
  enableV1: on('enable-v1', 'credentials.rotate', {
    response: IssuedV1Credentials,
    run: ({ deps, operator }: Viewer<ViewerDeps & Omit<IntegrationDeps, 'sealing'>>, id) =>
      enableLegacy(deps, operator, id),
  }),
  disableV1: on('disable-v1', 'credentials.rotate', {
    response: DisabledV1,
    run: ({ deps, operator }, id) => disableLegacy(deps, operator, id),
  }),
  manage: on('managed-merchants', 'integrations.change', {
    mayNeed: ['review.lift'],
    body: ManageMerchants,
    response: ManagedMerchants,
    async run({ deps, operator, may }: Viewer<ViewerDeps & LiftDeps>, id, body) {
      const wanted = { id, ...body, mayLiftReview: may('review.lift') };
      return { id, ...(await manageMerchants(deps, operator, wanted)) };
    },
  }),
};
