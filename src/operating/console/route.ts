import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { AppDeps } from '#app.ts';
import type { ConsoleSession } from '#operating/people/console-session.sql.ts';
import type { Permission } from '#operating/people/permission.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Origin } from '#record/actions/operate.ts';
import type { MerchantWork, WorkerDeps } from '#worker.ts';
import { afterAct } from './errors.ts';
import type { ConsoleSettings } from './settings.ts';

export type ConsoleDeps = AppDeps &
  WorkerDeps & { console: ConsoleSettings; merchantWork: readonly MerchantWork[] };

/** The person who makes the request, as the session proves them. */
export type SignedIn = {
  id: string;
  name: string;
  email: string;
  roles: string[];
  permissions: Permission[];
  /** For `scoped` in every query. */
  scope: Scope;
};

export type PublicContext = {
  deps: ConsoleDeps;
  /** The network address of the browser. */
  address: string;
  request: FastifyRequest;
  /** To set a header or a cookie, or to send a stream: then return the reply. */
  reply: FastifyReply;
};

export type Context = Omit<PublicContext, 'deps'> & {
  /** With the origin that `operate` writes into the audit. */
  deps: ConsoleDeps & { origin: Origin };
  person: SignedIn;
  /** The operator's name for use cases: the person's address. */
  operator: string;
  session: ConsoleSession;
};

type Schemas = { params?: TSchema; query?: TSchema; body?: TSchema; response: TSchema };
type Part<S extends Schemas, Name extends 'params' | 'query' | 'body'> = S extends {
  [name in Name]: infer Schema extends TSchema;
}
  ? Static<Schema>
  : undefined;
type Input<S extends Schemas> = {
  params: Part<S, 'params'>;
  query: Part<S, 'query'>;
  body: Part<S, 'body'>;
};
type Answer<S extends Schemas> = Promise<Static<S['response']> | FastifyReply>;

type Definition = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
};

/** A route in the console's list. `handle` is typed where the route is defined. */
export type ConsoleRoute = Definition & {
  permission: Permission | 'signed-in' | 'public';
  /** With some inputs the action needs this permission too. Its use case knows which. */
  mayNeed: Permission | null;
  /** Needs a proof of presence that is at most five minutes old. */
  fresh: boolean;
  /** Counted as an attempt to get in. */
  isSignIn: boolean;
  /** Defined by `actRoute`. */
  isAct: boolean;
  schema: Schemas;
  // biome-ignore lint/suspicious/noExplicitAny: `consoleRoute` and `publicRoute` check it.
  handle(context: any, input: any): Promise<unknown>;
};

type GuardedRoute<S extends Schemas> = {
  url: string;
  permission: Permission | 'signed-in';
  fresh?: true;
  schema: S;
};

/**
 * Defines a route that changes nothing, for people who are signed in. The server checks, in this
 * order: session, origin, permission, fresh proof, input. A parameter of format `uuid` that is not
 * one is answered with 404. Only `handle` knows the scope: it passes `context.person.scope` to its
 * queries.
 */
export function consoleRoute<const S extends Schemas>(
  route: GuardedRoute<S> &
    ({ method: 'GET' } | { method: 'POST'; changesNothing: true }) & {
      handle(context: Context, input: Input<S>): Answer<S>;
    },
): ConsoleRoute {
  const { method, url, permission, fresh = false, schema, handle } = route;
  const kind = { mayNeed: null, isSignIn: false, isAct: false };
  return { method, url, permission, fresh, schema, handle, ...kind };
}

/**
 * Defines a route that acts, with the same checks. `act` returns when the action is done. It
 * returns a function that makes the answer, and all reading for the answer belongs there: when that
 * fails, the person is told that the action was done.
 */
export function actRoute<const S extends Schemas>(
  route: GuardedRoute<S> & {
    method: 'POST' | 'PATCH' | 'DELETE';
    mayNeed?: Permission;
    act(context: Context, input: Input<S>): Promise<() => Answer<S> | Static<S['response']>>;
  },
): ConsoleRoute {
  const { method, url, permission, mayNeed = null, fresh = false, schema } = route;
  const handle = async (context: Context, input: Input<S>) =>
    await afterAct(await route.act(context, input));
  const kind = { mayNeed, isSignIn: false, isAct: true };
  return { method, url, permission, fresh, schema, handle, ...kind };
}

/** Defines a route that needs no session: the ways to get one. */
export function publicRoute<const S extends Schemas>(
  route: Definition & {
    isSignIn: boolean;
    schema: S;
    handle(context: PublicContext, input: Input<S>): Answer<S>;
  },
): ConsoleRoute {
  return { ...route, permission: 'public', mayNeed: null, fresh: false, isAct: false };
}
