import { alertActions, alertList } from '#operating/operations/alerts.ts';
import type { Alert, AlertHandling } from '#record/alerts/alert.sql.ts';
import { actionCommand } from './action-command.ts';
import type { CommandGroup } from './command.ts';
import { withMigrated } from './connect.ts';
import { listCommand } from './list-command.ts';
import { pick } from './schema-options.ts';
import { fields, showShortTime, showTime, type Terminal, table } from './terminal.ts';

const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

/** The members of an alert in --json. */
const members = [
  'id',
  'at',
  'kind',
  'integration_id',
  'merchant_id',
  'subject_id',
  'detail',
  'posted_at',
  'attempts',
  'due_at',
  'caused_by',
  'caused_person_id',
  'taken_at',
  'taken_by',
  'taken_person_id',
  'closed_at',
  'closed_by',
  'closed_person_id',
  'close_reason',
] as const;

const list = listCommand(alertList, {
  name: 'alerts list',
  summary: 'what an operator must look at',
  help: `Lists alerts, the newest first: callbacks that were given up, destinations that keep failing,
integrations that keep sending wrong signatures, books that differ. An alert is open until an
operator takes it, and ends when it is closed. Without --status it lists all that are not closed.
Times are in UTC.`,
  example: 'tranche alerts list --status open',
  rename: { state: 'status' },
  json: members,
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'When', 'Kind'],
      rows.map((row) => ({
        cells: [row.id, showShortTime(row.at), row.kind],
        below: [row.detail, handlingOf(row)],
      })),
    ),
});

const handled = {
  open: withMigrated,
  json: (alert: Alert & AlertHandling) => pick(alert, members),
  show: describe,
};

const take = actionCommand(alertActions.take, {
  name: 'alerts take',
  summary: 'tell others that you are handling an alert',
  help: `Records that you are handling an alert. Another operator cannot take it then, but can still
close it.

  tranche alerts take ${example}`,
  ...handled,
});

const close = actionCommand(alertActions.close, {
  name: 'alerts close',
  summary: 'close an alert, with a reason',
  help: `Closes an alert and keeps the reason. A closed alert stays in the list of closed ones. If the
same thing happens again, the service raises a new alert.

  tranche alerts close ${example} \\
    --reason 'The receiver is back; its callbacks were retried.'`,
  ...handled,
});

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
