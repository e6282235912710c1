import { listOperatorActions } from '../operators/operator-action.sql.ts';
import { type CommandGroup, command, mustBeId } from './command.ts';
import { withMigrated } from './connect.ts';
import { byDay, printable } from './terminal.ts';

const rowsMax = 100;

const list = command({
  name: 'audit list',
  summary: 'who changed what',
  usage: ['[--subject ID] [--operator NAME]'],
  help: `Lists the newest ${rowsMax} changes by operators, with times in UTC. --subject selects one
merchant, integration, checkout or refund, --operator one operator. --json has the details of
each change.

  tranche audit list --subject 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  options: { subject: { type: 'string' }, operator: { type: 'string' } },
  async run(context) {
    const { subject, operator } = context.values;
    const filter = {
      ...(subject !== undefined && { subject_ids: [mustBeId(subject, 'subject')] }),
      ...(operator !== undefined && { operator }),
    };
    const rows = await withMigrated(context, ({ database }) =>
      listOperatorActions(database.db, filter, rowsMax),
    );
    context.print({ data: rows }, () =>
      rows.length === 0
        ? 'There are none.'
        : byDay(
            context.terminal,
            rows.map(({ at, operator, action, subject_id }) => ({
              at,
              cells: [subject_id ?? '', printable(`${action} by ${operator}`)],
            })),
          ),
    );
  },
});

export const audit: CommandGroup = {
  name: 'audit',
  summary: 'who changed what',
  commands: [list],
};
