import type { Viewer } from '#operating/operations/viewer.ts';
import { type Command, command } from './command.ts';
import { type Connection, viewerOf, withMigrated } from './connect.ts';
import { idOf, type Named } from './reference.ts';
import type { Terminal } from './terminal.ts';

export function showCommand<Found>(shown: {
  name: string;
  help: string;
  /**
   * The kind of row. If it is set, the command takes an order number or another reference too
   * (`idOf`), not only an ID.
   */
  of?: Named;
  read(viewer: Viewer<Connection>, id: string, isJson: boolean): Promise<Found>;
  json(found: NoInfer<Found>): object;
  show(terminal: Terminal, found: NoInfer<Found>): string;
}): Command {
  const { read, json, show, of, ...texts } = shown;
  return command({
    ...texts,
    usage: ['ID'],
    positionals: ['ID'],
    async run(context) {
      const [id = ''] = context.positionals;
      const found = await withMigrated(context, async (connection) =>
        read(viewerOf(connection), of ? await idOf(connection, of, id) : id, context.json),
      );
      context.print(json(found), () => show(context.terminal, found));
    },
  });
}
