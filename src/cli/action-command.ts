import type { TObject } from 'typebox';
import type { Action, Input, Schemas } from '#operating/operations/action.ts';
import type { Viewer } from '#operating/operations/viewer.ts';
import { type Command, type Context, command } from './command.ts';
import { type Connection, viewerOf } from './connect.ts';
import { idOf, type Named } from './reference.ts';
import { optionsOf, readOptions, usageOf } from './schema-options.ts';
import type { Terminal } from './terminal.ts';

/** Opens what an action needs, such as `withMigrated` or `withGateway`. */
type Open<Deps> = <T>(context: Context, work: (deps: Deps) => Promise<T>) => Promise<T>;

type Shown<Deps, Read, Answer> = {
  name: string;
  help: string;
  open: Open<Connection & Deps>;
  /**
   * The kind of row. If it is set, the command takes an order number or another reference too
   * (`idOf`), not only an ID.
   */
  of?: Named;
  /** Option names that differ from the names of the body's members, by member. */
  rename?: Record<string, string>;
  /** Members of the body that only the console sends: what the person read. */
  without?: string[];
  /** Reads more facts for the answer, some perhaps only for --json. */
  complete?(viewer: Viewer<Connection & Deps>, answer: Read, isJson: boolean): Promise<Answer>;
  json(answer: Answer): object;
  show(terminal: Terminal, answer: Answer): string;
};

/** Makes the command for an action on one row: `ID`, and an option for each member of the body. */
export function actionCommand<S extends Schemas, Deps, Read, Answer = Read>(
  action: Action<S, Deps, Read>,
  shown: Shown<Deps, Read, Answer>,
): Command {
  const { rename = {}, without = [], complete, of } = shown;
  const { properties: all = {} } = (action.schema.body ?? {}) as Partial<TObject>;
  const properties = Object.fromEntries(
    Object.entries(all).filter(([member]) => !without.includes(member)),
  );
  return command({
    name: shown.name,
    usage: [`ID ${usageOf(properties, rename)}`.trimEnd()],
    help: shown.help,
    positionals: ['ID'],
    options: optionsOf(properties, rename),
    async run(context) {
      const [text = ''] = context.positionals;
      const values = context.values as Record<string, string | string[] | undefined>;
      const body = readOptions(properties, values, rename);
      const answer = await shown.open(context, async (deps) => {
        const id = of ? await idOf(deps, of, text) : text;
        const answer = await runAction(deps, action, { params: { id }, body } as Partial<Input<S>>);
        return complete
          ? await complete(viewerOf(deps), answer, context.json)
          : (answer as unknown as Answer);
      });
      context.print(shown.json(answer), () => shown.show(context.terminal, answer));
    },
  });
}

/** Runs an action of the console for a command, and reads its answer. */
export async function runAction<S extends Schemas, Deps, Read>(
  deps: Connection & Deps,
  action: Action<S, Deps, Read>,
  input: Partial<Input<S>>,
): Promise<Read> {
  const read = await action.run(viewerOf(deps), input as Input<S>);
  return await read();
}
