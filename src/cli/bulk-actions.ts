import { bulkActionActions } from '#operating/operations/bulk-actions.ts';
import { actionCommand } from './action-command.ts';
import type { Command } from './command.ts';
import { withMigrated } from './connect.ts';
import { pick } from './schema-options.ts';
import { fields, showTime } from './terminal.ts';

const members = [
  ...['id', 'kind', 'by', 'created_at', 'finished_at', 'total', 'done', 'failed', 'stopped'],
  'problems',
] as const;

const stop = actionCommand(bulkActionActions.stop, {
  name: 'bulk-actions stop',
  help: `Stops anyone's bulk action, such as the approval of many refunds. What it has already
done stays done. To find its ID, look in \`tranche audit list\` for an action such as
\`refunds approve many\`.

  tranche bulk-actions stop 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  open: withMigrated,
  json: (action) => pick(action, members as readonly (keyof typeof action)[]),
  show: (terminal, action) =>
    fields(terminal, [
      ['ID', action.id],
      ['Kind', action.kind],
      ['By', action.by],
      ['Begun', showTime(action.created_at)],
      ['Done', `${action.done}${action.total === null ? '' : ` of ${action.total}`}`],
      ['Stopped', action.stopped ?? ''],
    ]),
});

export const commands: Command[] = [stop];
