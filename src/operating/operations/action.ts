import type { Static, TSchema } from 'typebox';
import type { Permission } from '#operating/people/permission.ts';
import type { Viewer } from './viewer.ts';

export type Schemas = { params?: TSchema; query?: TSchema; body?: TSchema; response: TSchema };
type Part<S extends Schemas, Name extends 'params' | 'query' | 'body'> = S extends {
  [name in Name]: infer Schema extends TSchema;
}
  ? Static<Schema>
  : undefined;
export type Input<S extends Schemas> = {
  params: Part<S, 'params'>;
  query: Part<S, 'query'>;
  body: Part<S, 'body'>;
};

/**
 * An action of an operator. The console makes a route from it, and where an operator can act
 * without the console, the command line makes a command.
 */
export type ActionDefinition<S extends Schemas, V> = {
  method: 'POST' | 'PATCH' | 'DELETE';
  url: string;
  permission: Permission | 'signed-in';
  /** With some inputs the action needs this permission too. Its use case knows which. */
  mayNeed?: Permission;
  /** Needs a proof of presence that is at most five minutes old. */
  fresh?: true;
  schema: S;
  /**
   * Returns when the action is done. It returns a function that makes the answer, and all reading for
   * the answer belongs there: when that fails, the person is told that the action was done.
   */
  run(
    viewer: V,
    input: Input<S>,
  ): Promise<() => Promise<Static<S['response']>> | Static<S['response']>>;
};

export type Action<S extends Schemas, Deps> = ActionDefinition<S, Viewer<Deps>>;

export function defineAction<const S extends Schemas, Deps>(
  action: Action<S, Deps>,
): Action<S, Deps> {
  return action;
}
