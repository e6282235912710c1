import { listAlerts } from '../operators/alert.sql.ts';
import { type CommandGroup, command } from './command.ts';
import { withMigrated } from './connect.ts';
import { showTime, table } from './terminal.ts';

const rowsMax = 100;

const list = command({
  name: 'alerts list',
  summary: 'what an operator must look at',
  usage: [''],
  help: `Lists the newest ${rowsMax} alerts, for example callbacks that were given up, destinations that
keep failing, and integrations that keep sending wrong signatures.

  tranche alerts list`,
  options: {},
  async run(context) {
    const rows = await withMigrated(context, ({ database }) => listAlerts(database.db, rowsMax));
    context.print({ data: rows }, () =>
      rows.length === 0
        ? 'There are none.'
        : table(
            context.terminal,
            ['When', 'Kind', 'Detail'],
            rows.map((row) => [showTime(row.at), row.kind, row.detail]),
            'Detail',
          ),
    );
  },
});

export const alerts: CommandGroup = {
  name: 'alerts',
  summary: 'what an operator must look at',
  commands: [list],
};
