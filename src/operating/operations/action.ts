import type { Static, TSchema, TUndefined } from 'typebox';
import type { Permission } from '#operating/people/permission.ts';
import { IdParams } from './list.schema.ts';
import type { Viewer, ViewerDeps } from './viewer.ts';

export type Schemas = { params?: TSchema; query?: TSchema; body?: TSchema; response: TSchema };
type Part<S extends Schemas, Name extends 'params' | 'query' | 'body'> = S extends {
  [name in Name]?: infer Schema extends TSchema;
}
  ? Static<Schema>
  : undefined;
export type Input<S extends Schemas> = {
  params: Part<S, 'params'>;
  query: Part<S, 'query'>;
  body: Part<S, 'body'>;
};

/**
 * An operator's action. The console makes a route from it. Where an operator can act without the
 * console, the command line makes a command from it.
 */
export type ActionDefinition<S extends Schemas, V, Answer = Static<S['response']>> = {
  /** `POST` unless it is given. */
  method?: 'PATCH' | 'DELETE';
  url: string;
  permission: Permission | 'signed-in';
  /** With some inputs the action also needs one of these permissions. The use case checks this. */
  mayNeed?: readonly Permission[];
  /** Requires that the person has re-authenticated recently (`reauthenticatedUntil`). */
  fresh?: true;
  schema: S;
  /** The limit for a body that may be larger than others. */
  bodyBytesMax?: number;
  /**
   * Performs the action and returns a function that makes the answer. All reading for the answer
   * belongs in that function: if it fails, the person is still told that the action was done.
   */
  run(viewer: V, input: Input<S>): Promise<() => Promise<Answer> | Answer>;
};

/** The answer may have members that the console leaves out and a command prints. */
export type Action<S extends Schemas, Deps, Answer = Static<S['response']>> = ActionDefinition<
  S,
  Viewer<Deps>,
  Answer
>;

export function defineAction<const S extends Schemas, Deps, Answer extends Static<S['response']>>(
  action: Action<S, Deps, Answer>,
): Action<S, Deps, Answer> {
  return action;
}

/**
 * Makes the actions on one row: `POST /api/NAME/:id/VERB`. `see` finds the row in the viewer's
 * scope, and `read` makes the answer, which is the changed row.
 */
export const actionsOn =
  <Row, Response extends TSchema, Answer extends Static<Response>>(kind: {
    name: string;
    response: Response;
    see(viewer: Viewer, id: string): Promise<Row>;
    read(viewer: Viewer, row: Row): Promise<Answer>;
  }) =>
  <Deps extends ViewerDeps = ViewerDeps, const Body extends TSchema = TUndefined>(
    verb: string,
    action: Pick<ActionDefinition<Schemas, Viewer>, 'permission' | 'fresh' | 'bodyBytesMax'> & {
      body?: Body;
      change(viewer: Viewer<Deps>, row: Row, body: Static<Body>): Promise<unknown>;
    },
  ) => {
    const { permission, fresh, bodyBytesMax, body, change } = action;
    return defineAction({
      url: `/api/${kind.name}/:id/${verb}`,
      permission,
      ...(fresh && { fresh }),
      ...(bodyBytesMax && { bodyBytesMax }),
      schema: { params: IdParams, ...(body && { body }), response: kind.response },
      async run(viewer: Viewer<Deps>, input) {
        const row = await kind.see(viewer, input.params.id);
        await change(viewer, row, input.body as Static<Body>);
        return () => kind.read(viewer, row);
      },
    });
  };
