import { listAlerts } from '../operators/alert.sql.ts';
import { type CommandGroup, command } from './command.ts';
import { withMigrated } from './connect.ts';
import { showTime, table } from './terminal.ts';

const most = 100;

const list = command({
  name: 'alerts list',
  summary: 'what somebody has to look at',
  usage: [''],
  help: `Lists the newest ${most} alerts: callbacks that were given up, destinations that keep
failing, integrations that keep sending wrong signatures.

  tranche alerts list`,
  options: {},
  async run(context) {
    const rows = await withMigrated(context, ({ database }) => listAlerts(database.db, most));
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
  summary: 'what the operator is told',
  commands: [list],
};
