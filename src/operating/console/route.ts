import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { AppDeps } from '#app.ts';
import type { ActionDefinition, Input, Schemas } from '#operating/operations/action.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import type { Viewer } from '#operating/operations/viewer.ts';
import type { ConsoleSession } from '#operating/people/console-session.sql.ts';
import type { Permission } from '#operating/people/permission.ts';
import type { Browser } from '#operating/people/sign-in.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { BankFileDeps } from '#purchases/payouts/bank-file.ts';
import type { NewAccountWait } from '#purchases/payouts/payout.ts';
import type { Origin } from '#record/actions/operate.ts';
import type { MerchantWork, WorkerDeps } from '#worker.ts';
import { sessionTokenOf } from './cookie.ts';
import { afterAction } from './errors.ts';
import type { ConsoleSettings } from './settings.ts';

export type ConsoleDeps = AppDeps &
  WorkerDeps &
  NewAccountWait &
  BankFileDeps &
  MerchantMailDeps & { console: ConsoleSettings; merchantWork: readonly MerchantWork[] };

type SignedIn = {
  id: string;
  name: string;
  email: string;
  roles: string[];
  permissions: Permission[];
};

export type PublicContext = {
  deps: ConsoleDeps;
  /** The network address of the browser. */
  address: string;
  request: FastifyRequest;
  /** Use it to set a header or a cookie. To send a stream, return the reply. */
  reply: FastifyReply;
};

/**
 * `deps` contains the origin that `operate` writes into the audit. `operator` is the person's
 * e-mail address.
 */
export type Context = Omit<PublicContext, 'deps'> &
  Viewer<ConsoleDeps & { origin: Origin }> & { person: SignedIn; session: ConsoleSession };

export const browserOf = ({
  deps,
  address,
  request,
}: Pick<PublicContext, 'deps' | 'address' | 'request'>): Browser => ({
  address,
  user_agent: String(request.headers['user-agent'] ?? ''),
  token: sessionTokenOf(request, deps.console.url),
});

type Answer<S extends Schemas> = Promise<Static<S['response']> | FastifyReply>;

type Definition = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
};

/** A route in the console's list. `handle` is typed where the route is defined. */
export type ConsoleRoute = Definition & {
  permission: Permission | 'signed-in' | 'public';
  mayNeed: readonly Permission[];
  fresh: boolean;
  /** Whether a request counts as an attempt to sign in. */
  isSignIn: boolean;
  /** Whether `actionRoute` made it. */
  isAction: boolean;
  schema: Schemas;
  bodyBytesMax?: number;
  // biome-ignore lint/suspicious/noExplicitAny: the functions below check it.
  handle(context: any, input: any): Promise<unknown>;
};

/**
 * Defines a route that changes nothing, for people who are signed in. The server checks, in this
 * order: session, origin, permission, re-authentication, input. A parameter of format `uuid` that
 * is not a UUID is answered with 404. `handle` must pass `context.scope` to its queries itself.
 */
export function consoleRoute<const S extends Schemas>(
  route: Pick<ActionDefinition<S, Context>, 'url' | 'permission' | 'fresh' | 'schema'> &
    ({ method?: 'GET' } | { method: 'POST'; changesNothing: true }) & {
      handle(context: Context, input: Input<S>): Answer<S>;
    },
): ConsoleRoute {
  const { method = 'GET', url, permission, fresh = false, schema, handle } = route;
  const kind = { mayNeed: [], isSignIn: false, isAction: false };
  return { method, url, permission, fresh, schema, handle, ...kind };
}

/** Makes the route of an action, with the same checks. */
export function actionRoute<const S extends Schemas>(
  action: ActionDefinition<S, Context>,
): ConsoleRoute {
  const { method = 'POST', url, permission, mayNeed = [], fresh = false, schema } = action;
  const { bodyBytesMax } = action;
  const handle = async (context: Context, input: Input<S>) =>
    await afterAction(await action.run(context, input));
  const kind = { mayNeed, isSignIn: false, isAction: true, ...(bodyBytesMax && { bodyBytesMax }) };
  return { method, url, permission, fresh, schema, handle, ...kind };
}

/**
 * Counts an action about these merchants towards their daily limits, if one of their own people
 * takes it. Nothing is counted for a merchant that this person does not belong to.
 */
export async function countOfDay(
  { deps, scope }: Context,
  what: Parameters<ConsoleDeps['rateLimits']['ofMerchant']>[1],
  merchant_ids: string[] | null,
): Promise<void> {
  if (scope === 'all merchants') return;
  const named = new Set(merchant_ids?.map((id) => id.toLowerCase()));
  const own = scope.merchant_ids.filter((id) => named.has(id));
  await Promise.all(own.map((id) => deps.rateLimits.ofMerchant(id, what)));
}

export const actionRoutes = (
  // biome-ignore lint/suspicious/noExplicitAny: `defineAction` checks each.
  actions: Record<string, ActionDefinition<any, Context, any>>,
): ConsoleRoute[] => Object.values(actions).map((action) => actionRoute(action));

/** Makes the route of one row: `GET /api/NAME/:id`. */
export const detailRoute = <const Response extends TSchema>(
  name: string,
  permission: Permission | 'signed-in',
  response: Response,
  read: (context: Context, id: string) => Promise<Static<Response>>,
): ConsoleRoute =>
  consoleRoute({
    url: `/api/${name}/:id`,
    permission,
    schema: { params: IdParams, response },
    handle: (context, { params }) => read(context, params.id),
  });

/**
 * Defines a route that needs no session. It counts as an attempt to sign in, unless `isSignIn` is
 * false.
 */
export function publicRoute<const S extends Schemas>(
  route: Definition & {
    isSignIn?: false;
    schema: S;
    handle(context: PublicContext, input: Input<S>): Answer<S>;
  },
): ConsoleRoute {
  const kind = { permission: 'public', mayNeed: [], fresh: false, isAction: false } as const;
  return { isSignIn: true, ...route, ...kind };
}
