import type { Viewer } from '#operating/operations/viewer.ts';
import { type Command, command } from './command.ts';
import { type Connection, viewerOf, withMigrated } from './connect.ts';
import type { Terminal } from './terminal.ts';

/** Makes the command that shows one row. */
export function showCommand<Found>(shown: {
  name: string;
  summary: string;
  help: string;
  read(viewer: Viewer<Connection>, id: string): Promise<Found>;
  json(found: NoInfer<Found>): object;
  show(terminal: Terminal, found: NoInfer<Found>): string;
}): Command {
  const { read, json, show, ...texts } = shown;
  return command({
    ...texts,
    usage: ['ID'],
    positionals: ['ID'],
    async run(context) {
      const [id = ''] = context.positionals;
      const found = await withMigrated(context, (connection) => read(viewerOf(connection), id));
      context.print(json(found), () => show(context.terminal, found));
    },
  });
}
