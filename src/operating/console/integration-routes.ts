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
import { countPage, listRoutes } from './pages.ts';
import {
  actionRoute,
  actionRoutes,
  type ConsoleRoute,
  type Context,
  consoleRoute,
  countOfDay,
  detailRoute,
} from './route.ts';

const { rotate, enableV1, testCallback, ...actions } = integrationActions;

/** Counts an action that gives out new credentials towards the limit of the day. */
const counted =
  <Input extends { params: { id: string } }, Done>(
    run: (context: Context, input: Input) => Done | Promise<Done>,
  ) =>
  async (context: Context, input: Input): Promise<Done> => {
    const { merchant_id } = await mustOwnIntegration(context, input.params.id);
    await countOfDay(context, 'rotation', merchant_id === null ? null : [merchant_id]);
    return await run(context, input);
  };

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes(integrationList),
  ...listRoutes(managedMerchantList),
  detailRoute('integrations', 'integrations.read', IntegrationRow, mustSeeIntegration),
  consoleRoute({
    method: 'GET',
    url: '/api/integrations/:id/refused-requests',
    permission: 'integrations.read',
    schema: { params: IdParams, response: RefusedRequests },
    async handle(context, { params }) {
      const { data, merchant_id } = await readRefusedRequests(context, params.id);
      const about = {
        integration: params.id,
        ...(merchant_id !== null && { merchant: merchant_id }),
      };
      // The bodies name shoppers.
      const shown = data.map(({ id }) => id);
      if (shown.length > 0) await countPage(context, 'refused-requests', about, shown);
      return { data, doctor_url: `${context.deps.baseUrl}/docs/signature` };
    },
  }),
  ...actionRoutes(actions),
  actionRoute({ ...rotate, run: counted(rotate.run) }),
  actionRoute({ ...enableV1, run: counted(enableV1.run) }),
  actionRoute({
    ...testCallback,
    async run(context, input) {
      const { id, merchant_id } = await mustOwnIntegration(context, input.params.id);
      await context.deps.rateLimits.testCallback(context.person.id, merchant_id ?? id);
      return await testCallback.run(context, input);
    },
  }),
];
