import {
  type Alert,
  type AlertHandling,
  alertStates,
  listAlerts,
} from '#record/alerts/alert.sql.ts';
import { closeAlert, takeAlert } from '#record/alerts/handle-alert.ts';
import { type CommandGroup, command, oneOf, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { nextPage, pagingHelp, pagingOptions, readPage } from './paging.ts';
import { fields, showShortTime, showTime, type Terminal, table } from './terminal.ts';

const { limit, after } = pagingOptions;
const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

const list = command({
  name: 'alerts list',
  summary: 'what an operator must look at',
  usage: ['[--status open|taken|closed] [--limit N] [--after CURSOR]'],
  help: `Lists alerts, the newest first: callbacks that were given up, destinations that keep failing,
integrations that keep sending wrong signatures, books that differ. An alert is open until an
operator takes it, and ends when it is closed. Without --status it lists all that are not closed.
Times are in UTC.

${pagingHelp}

  tranche alerts list --status open`,
  options: { status: { type: 'string' }, limit, after },
  async run(context) {
    const { status } = context.values;
    const state = status === undefined ? null : oneOf(status, alertStates, 'status');
    const page = readPage(context.values);
    const from = page.after === null ? null : readCursor(page.after);
    const rows = await withMigrated(context, ({ database }) =>
      listAlerts(database.db, state, from, page.limit),
    );
    const last = rows.length < page.limit ? undefined : rows.at(-1);
    const next = last ? `${last.at}_${last.id}` : null;
    context.print({ data: rows, next }, () =>
      rows.length === 0
        ? 'There are none.'
        : `${table(
            context.terminal,
            ['ID', 'When', 'Kind'],
            rows.map((row) => ({
              cells: [row.id, showShortTime(row.at), row.kind],
              below: [row.detail, handlingOf(row)],
            })),
          )}${nextPage(context, 'alerts list', next)}`,
    );
  },
});

const take = command({
  name: 'alerts take',
  summary: 'tell others that you look after an alert',
  usage: ['ID'],
  help: `Records that you look after an alert. Another operator who takes it is refused, and can still
close it.

  tranche alerts take ${example}`,
  positionals: ['ID'],
  options: {},
  async run(context) {
    const [id = ''] = context.positionals;
    const alert = await withMigrated(context, (connection) =>
      takeAlert(connection, connection.operator, id),
    );
    context.print(alert, () => describe(context.terminal, alert));
  },
});

const close = command({
  name: 'alerts close',
  summary: 'close an alert, with a reason',
  usage: ['ID --reason TEXT'],
  help: `Closes an alert and keeps the reason. A closed alert stays in the list of closed ones. If the
same thing happens again, the service raises a new alert.

  tranche alerts close ${example} \\
    --reason 'The receiver is back; its callbacks were retried.'`,
  positionals: ['ID'],
  options: { reason: { type: 'string' } },
  async run(context) {
    const [id = ''] = context.positionals;
    const reason = required(context.values.reason, 'reason');
    const alert = await withMigrated(context, (connection) =>
      closeAlert(connection, connection.operator, id, reason),
    );
    context.print(alert, () => describe(context.terminal, alert));
  },
});

function readCursor(text: string): { at: string; id: string } {
  const [, at, id] = /^(\d{4}-\d\d-\d\dT[\d:.]+Z)_([0-9a-f-]{36})$/.exec(text) ?? [];
  if (at === undefined || id === undefined) {
    throw new UsageError('--after is not a cursor of this list. Copy it from the page before.');
  }
  return { at, id };
}

function handlingOf(alert: AlertHandling): string {
  if (alert.closed_at !== null) return `closed by ${alert.closed_by}: ${alert.close_reason}`;
  return alert.taken_at === null ? '' : `taken by ${alert.taken_by}`;
}

function describe(terminal: Terminal, alert: Alert & AlertHandling): string {
  return fields(terminal, [
    ['ID', alert.id],
    ['Kind', alert.kind],
    ['When', showTime(alert.at)],
    ['Detail', alert.detail],
    ['State', handlingOf(alert) || 'open'],
  ]);
}

export const alerts: CommandGroup = {
  name: 'alerts',
  summary: 'what an operator must look at',
  commands: [list, take, close],
};
