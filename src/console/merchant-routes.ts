import { createIntegration } from '../integrations/create-integration.ts';
import { manageMerchants } from '../integrations/manage-merchants.ts';
import { requireSigning } from '../integrations/require-signing.ts';
import { revokeIntegration } from '../integrations/revoke-integration.ts';
import { rotateCredential } from '../integrations/rotate-credential.ts';
import { setLimit } from '../integrations/set-limit.ts';
import { disableLegacy } from '../legacy/disable-legacy.ts';
import { enableLegacy } from '../legacy/enable-legacy.ts';
import { changePage } from '../merchants/change-page.ts';
import { changeRules } from '../merchants/change-rules.ts';
import { createMerchant } from '../merchants/create-merchant.ts';
import { advanceClock, findNextEvent } from '../sandbox/advance-clock.ts';
import {
  findMerchantWithin,
  type ListedIntegration,
  type ListedMerchant,
  listIntegrationsWithin,
  listMerchantsWithin,
  readIntegrationWithin,
} from '../search/registers.ts';
import { isWithin } from '../search/scope.sql.ts';
import { type Column, decimal } from './csv.ts';
import { invalid, notFound } from './errors.ts';
import { IdParams } from './list.schema.ts';
import {
  ChangeMerchant,
  CreateIntegration,
  CreateMerchant,
  DisabledV1,
  IntegrationRow,
  IntegrationsPage,
  IntegrationsQuery,
  IssuedCredentials,
  IssuedV1Credentials,
  LimitSet,
  ManagedMerchants,
  ManageMerchants,
  MerchantDetails,
  MerchantRow,
  MerchantsPage,
  MerchantsQuery,
  MoveClock,
  MovedClock,
  RequiredSigning,
  RevokedIntegration,
  RotateCredential,
  RotatedCredential,
  SetLimit,
} from './merchant.schema.ts';
import { listRoutes, scopeOf } from './pages.ts';
import { type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Page = { after: string | null; limit: number };

const readMerchants =
  ({ deps, person }: Context) =>
  async (page: Page) => {
    const { data, next } = await listMerchantsWithin(deps, person.scope, page);
    return { data: data.map(presentMerchant), next };
  };

const merchantColumns: Column<MerchantRow>[] = [
  ['Name', (row) => row.name],
  ['Created', (row) => row.created_at],
  ['Sold, 30 days', (row) => Number(decimal(row.sold))],
  ['Collected, 30 days', (row) => Number(decimal(row.collected))],
  ['Refunded, 30 days', (row) => Number(decimal(row.refunded))],
  ['Currency', (row) => row.currency],
  ['ID', (row) => row.id],
];

const readIntegrations = (context: Context, query: { merchant?: string }) => async (page: Page) => {
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
  ['v1 checkouts, 30 days', (row) => row.v1?.checkouts ?? 0],
  ['ID', (row) => row.id],
];

export const merchantRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'merchants',
    permission: 'merchants.read',
    query: MerchantsQuery,
    page: MerchantsPage,
    columns: merchantColumns,
    read: readMerchants,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/merchants/:id',
    permission: 'merchants.read',
    schema: { params: IdParams, response: MerchantDetails },
    async handle(context, { params }) {
      const merchant = await mustSeeMerchant(context, params.id);
      const query = { merchant: merchant.id };
      const mayRead = context.person.permissions.includes('integrations.read');
      const integrations = mayRead
        ? (await readIntegrations(context, query)({ after: null, limit: 100 })).data
        : [];
      return {
        ...presentMerchant(merchant),
        integrations,
        next_event_at: await findNextEvent(context.deps, merchant.id),
      };
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/merchants',
    permission: 'merchants.create',
    fresh: true,
    schema: { body: CreateMerchant, response: MerchantRow },
    async handle(context, { body }) {
      const { deps, operator } = context;
      const { name, territory = 'ZA', rules, preselected_term, four_eyes_above } = body;
      const { id } = await createMerchant(deps, operator, {
        name,
        territory,
        rules,
        preselected_term: preselected_term ?? null,
        four_eyes_above: four_eyes_above ?? null,
      });
      return presentMerchant(await mustSeeMerchant(context, id));
    },
  }),
  consoleRoute({
    method: 'PATCH',
    url: '/api/merchants/:id',
    permission: 'merchants.change',
    fresh: true,
    schema: { params: IdParams, body: ChangeMerchant, response: MerchantRow },
    async handle(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeeMerchant(context, params.id);
      const { short_name, no_fees, ...rules } = body;
      const page = { ...pick({ short_name }), ...pick({ no_fees }) };
      if (Object.keys(rules).length + Object.keys(page).length === 0) {
        throw invalid([{ path: '', problem: 'Name something to change' }]);
      }
      if (Object.keys(rules).length > 0) await changeRules(deps, operator, { id, ...rules });
      if (Object.keys(page).length > 0) await changePage(deps, operator, { id, ...page });
      return presentMerchant(await mustSeeMerchant(context, id));
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/merchants/:id/clock',
    permission: 'clock.move',
    schema: { params: IdParams, body: MoveClock, response: MovedClock },
    async handle(context, { params, body }) {
      const { deps, operator } = context;
      const { id } = await mustSeeMerchant(context, params.id);
      const wanted =
        body.by_seconds === undefined
          ? ('next event' as const)
          : { by: Temporal.Duration.from({ seconds: body.by_seconds }) };
      return await advanceClock(deps, operator, id, wanted);
    },
  }),
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
  consoleRoute({
    method: 'POST',
    url: '/api/integrations',
    permission: 'integrations.change',
    fresh: true,
    schema: { body: CreateIntegration, response: IssuedCredentials },
    async handle({ deps, person, operator }, { body }) {
      const { merchant_id, managed_merchant_ids, refund_mode } = body;
      if ((merchant_id === undefined) === (managed_merchant_ids === undefined)) {
        const problem = 'is for a shop, managed_merchant_ids for an intermediary: name one of them';
        throw invalid([{ path: 'merchant_id', problem }]);
      }
      if (merchant_id !== undefined) {
        if (!isWithin(person.scope, merchant_id.toLowerCase())) throw notFound();
        return await createIntegration(deps, operator, { refund_mode, merchant_id });
      }
      // An intermediary is not of one merchant.
      if (person.scope !== 'all merchants') throw notFound();
      const managed = managed_merchant_ids ?? [];
      return await createIntegration(deps, operator, {
        refund_mode,
        managed_merchant_ids: managed,
      });
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/integrations/:id/rotate',
    permission: 'credentials.rotate',
    fresh: true,
    schema: { params: IdParams, body: RotateCredential, response: RotatedCredential },
    async handle(context, { params, body }) {
      const { credential, overlap_seconds: overlapSeconds } = body;
      const id = await mustChange(context, params.id);
      const wanted = { id, credential, overlapSeconds };
      const rotated = await rotateCredential(context.deps, context.operator, wanted);
      return { ...rotated, credential };
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/integrations/:id/revoke',
    permission: 'credentials.rotate',
    fresh: true,
    schema: { params: IdParams, response: RevokedIntegration },
    async handle(context, { params }) {
      const id = await mustChange(context, params.id);
      return await revokeIntegration(context.deps, context.operator, id);
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/integrations/:id/limit',
    permission: 'integrations.change',
    fresh: true,
    schema: { params: IdParams, body: SetLimit, response: LimitSet },
    async handle(context, { params, body }) {
      const id = await mustChange(context, params.id);
      return await setLimit(context.deps, context.operator, { id, ...body });
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/integrations/:id/require-signing',
    permission: 'integrations.change',
    fresh: true,
    schema: { params: IdParams, response: RequiredSigning },
    async handle(context, { params }) {
      const id = await mustChange(context, params.id);
      return await requireSigning(context.deps, context.operator, id);
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/integrations/:id/enable-v1',
    permission: 'credentials.rotate',
    fresh: true,
    schema: { params: IdParams, response: IssuedV1Credentials },
    async handle(context, { params }) {
      const id = await mustChange(context, params.id);
      return await enableLegacy(context.deps, context.operator, id);
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/integrations/:id/disable-v1',
    permission: 'credentials.rotate',
    fresh: true,
    schema: { params: IdParams, response: DisabledV1 },
    async handle(context, { params }) {
      const id = await mustChange(context, params.id);
      return await disableLegacy(context.deps, context.operator, id);
    },
  }),
  consoleRoute({
    method: 'POST',
    url: '/api/integrations/:id/managed-merchants',
    permission: 'integrations.change',
    fresh: true,
    schema: { params: IdParams, body: ManageMerchants, response: ManagedMerchants },
    async handle(context, { params, body }) {
      const id = await mustChange(context, params.id);
      const managed = await manageMerchants(context.deps, context.operator, { id, ...body });
      return { id, managed_merchant_ids: managed };
    },
  }),
];

/** The members of an object that are given. */
const pick = <T extends Record<string, unknown>>(members: T) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };

async function mustSeeMerchant({ deps, person }: Context, id: string): Promise<ListedMerchant> {
  const merchant = await findMerchantWithin(deps, person.scope, id);
  if (!merchant) throw notFound();
  return merchant;
}

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

function presentMerchant(merchant: ListedMerchant): MerchantRow {
  const { id, name, territory, rules, created_at, sold, collected, refunded } = merchant;
  return {
    id,
    name,
    territory: territory.code,
    currency: territory.currency,
    time_zone: territory.time_zone,
    locale: territory.locale,
    rules: rules.map(({ from_amount, to_amount, terms }) => ({ from_amount, to_amount, terms })),
    preselected_term: merchant.preselected_term,
    four_eyes_above: merchant.four_eyes_above,
    short_name: merchant.short_name,
    no_fees: merchant.no_fees,
    created_at,
    clock_ahead_ms: merchant.clock_ahead_ms,
    now: merchant.now,
    sold,
    collected,
    refunded,
    refund_rate: merchant.refund_rate,
  };
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
    limits: integration.limits,
    client_secrets: integration.client_secrets,
    signing_keys: integration.signing_keys,
    v1: integration.v1,
  };
}
