import type { Integration } from '#merchants/integrations/integration.ts';
import { requireSigning } from '#merchants/integrations/require-signing.ts';
import { revokeIntegration } from '#merchants/integrations/revoke-integration.ts';
import { setLimit } from '#merchants/integrations/set-limit.ts';
import { setRefundMode } from '#merchants/integrations/set-refund-mode.ts';
import { recentDays } from '#operating/search/overview.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { LiftDeps } from '#record/alerts/lift-review.ts';
import { defineAction } from './action.ts';
import { dayBefore } from './destinations.ts';
import {
  IntegrationRow,
  IntegrationsQuery,
  LimitSet,
  RefundModeSet,
  RequiredSigning,
  RevokedIntegration,
  SetLimit,
  SetRefundMode,
} from './integration.schema.ts';
import {
  findIntegrationWithin,
  listCredentialsOf,
  listLegacyOf,
  listLegacyUsage,
  listLimitsOf,
  listManagedWithin,
  pageIntegrations,
} from './integrations.sql.ts';
import { IdParams } from './list.schema.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames } from './owner.sql.ts';
import { NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

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
      (db, range) => pageIntegrations(db, seen.scope, range, query.order),
      (db, rows) => presentIntegrations(seen, db, rows),
    );
  },
  columns: [
    ['Merchant', (row) => row.merchant_name ?? 'intermediary'],
    ['Created', (row) => row.created_at],
    ['Refunds', (row) => row.refund_mode],
    ['Signing since', (row) => row.signing_required_at],
    ['Revoked', (row) => row.revoked_at],
    ['v1 checkouts, 30 days', (row) => (row.v1 === null ? 0 : row.v1.checkouts)],
    ['ID', (row) => row.id],
  ],
});

export type ListedIntegration = Awaited<ReturnType<typeof presentIntegrations>>[number];

/** An integration of the viewer's scope, or an intermediary that manages a merchant of it. */
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

async function presentIntegrations({ deps, scope }: Viewer, db: Handle, rows: Integration[]) {
  const ids = rows.map(({ id }) => id);
  const owners = rows.flatMap(({ merchant_id }) => merchant_id ?? []);
  const now = deps.clock.now();
  const names = await listMerchantNames(db, scope, owners);
  const managed = await listManagedWithin(db, scope, ids);
  const limits = await listLimitsOf(db, ids);
  const { client_secrets, signing_keys } = await listCredentialsOf(db, ids, timestamp(now));
  const legacy = await listLegacyOf(db, ids);
  // An intermediary may be used for other merchants, so its use is shown with all merchants only.
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
    return {
      ...row,
      merchant_name: names.get(row.merchant_id ?? '')?.name ?? null,
      managed_merchants: of(managed),
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
 * An integration that the viewer may change: one of a merchant of their scope. An intermediary also
 * acts for merchants outside of a scope, so it needs the scope of all.
 */
export async function mustChangeIntegration(viewer: Viewer, id: string): Promise<string> {
  const integration = await mustSeeIntegration(viewer, id);
  const isShared = integration.merchant_id === null;
  if (isShared && viewer.scope !== 'all merchants') throw noIntegration(id);
  return integration.id;
}

/** Actions on one integration. They need a fresh proof. */
export const integrationActions = {
  revoke: defineAction({
    method: 'POST',
    url: '/api/integrations/:id/revoke',
    permission: 'credentials.rotate',
    fresh: true,
    schema: { params: IdParams, response: RevokedIntegration },
    async run(viewer: Viewer, { params }) {
      const id = await mustChangeIntegration(viewer, params.id);
      const revoked = await revokeIntegration(viewer.deps, viewer.operator, id);
      return () => revoked;
    },
  }),
  setLimit: defineAction({
    method: 'POST',
    url: '/api/integrations/:id/limit',
    permission: 'integrations.change',
    mayNeed: 'limits.raise',
    fresh: true,
    schema: { params: IdParams, body: SetLimit, response: LimitSet },
    async run(viewer: Viewer, { params, body }) {
      const id = await mustChangeIntegration(viewer, params.id);
      const wanted = { id, ...body, mayRaiseLimits: viewer.may('limits.raise') };
      const set = await setLimit(viewer.deps, viewer.operator, wanted);
      return () => set;
    },
  }),
  setRefundMode: defineAction({
    method: 'POST',
    url: '/api/integrations/:id/refund-mode',
    permission: 'integrations.change',
    mayNeed: 'review.lift',
    fresh: true,
    schema: { params: IdParams, body: SetRefundMode, response: RefundModeSet },
    async run(viewer: Viewer<ViewerDeps & LiftDeps>, { params, body }) {
      const id = await mustChangeIntegration(viewer, params.id);
      const wanted = { id, ...body, mayLiftReview: viewer.may('review.lift') };
      const set = await setRefundMode(viewer.deps, viewer.operator, wanted);
      return () => set;
    },
  }),
  requireSigning: defineAction({
    method: 'POST',
    url: '/api/integrations/:id/require-signing',
    permission: 'integrations.change',
    fresh: true,
    schema: { params: IdParams, response: RequiredSigning },
    async run(viewer: Viewer, { params }) {
      const id = await mustChangeIntegration(viewer, params.id);
      const required = await requireSigning(viewer.deps, viewer.operator, id);
      return () => required;
    },
  }),
};
