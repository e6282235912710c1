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

type Owned = Awaited<ReturnType<typeof mustOwnIntegration>>;

/** Counts an action at the console towards a limit before it runs. */
const counted =
  <Input extends { params: { id: string } }, Done>(
    count: (context: Context, integration: Owned) => Promise<void>,
    run: (context: Context, input: Input) => Done | Promise<Done>,
  ) =>
  async (context: Context, input: Input): Promise<Done> => {
    await count(context, await mustOwnIntegration(context, input.params.id));
    return await run(context, input);
  };

/** The number of new credentials for a merchant in a day is limited. */
const countRotation = (context: Context, { merchant_id }: Owned) =>
  countOfDay(context, 'rotation', merchant_id === null ? null : [merchant_id]);

const countTest = ({ deps, person }: Context, { id, merchant_id }: Owned) =>
  deps.rateLimits.testCallback(person.id, merchant_id ?? id);

export const integrationRoutes: ConsoleRoute[] = [
  ...listRoutes(integrationList),
  ...listRoutes(managedMerchantList),
  detailRoute('integrations', 'integrations.read', IntegrationRow, mustSeeIntegration),
  consoleRoute({
    url: '/api/integrations/:id/refused-requests',
    permission: 'integrations.read',
    schema: { params: IdParams, response: RefusedRequests },
    async handle(context, { params }) {
      const { data, merchant_id } = await readRefusedRequests(context, params.id);
      const about = {
        integration: params.id,
        ...(merchant_id !== null && { merchant: merchant_id }),
      };
      // The bodies name shoppers, so these rows count as a page that names people.
      const shown = data.map(({ id }) => id);
      if (shown.length > 0) await countPage(context, 'refused-requests', about, shown);
      return { data, doctor_url: `${context.deps.baseUrl}/docs/signature` };
    },
  }),
  ...actionRoutes(actions),
  actionRoute({ ...rotate, run: counted(countRotation, rotate.run) }),
  actionRoute({ ...enableV1, run: counted(countRotation, enableV1.run) }),
  actionRoute({ ...testCallback, run: counted(countTest, testCallback.run) }),
];
