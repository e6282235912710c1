import { alertActions, alertList, type readAlert } from '#operating/operations/alerts.ts';
import type { AlertHandling } from '#record/alerts/alert.sql.ts';
import { actionCommand } from './action-command.ts';
import type { Command } from './command.ts';
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
  'client_reference_id',
  'text',
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
  help: `Lists alerts, the newest first: callbacks that were given up, destinations that keep
failing, integrations that keep sending wrong signatures, books that differ, and others, each with
the command that shows more. An alert is open until an operator takes it, and ends when it is closed
or when its cause ends. Without --status the command lists all alerts that are not closed. Times are
in UTC.`,
  example: 'tranche alerts list --status open',
  rename: { state: 'status' },
  json: members,
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'When', 'Kind'],
      rows.map((row) => ({
        cells: [row.id, showShortTime(row.at), row.kind],
        below: [
          row.text,
          row.text.endsWith(row.detail) ? null : row.detail,
          nextOf(row),
          handlingOf(row),
        ],
      })),
    ),
});

type ListedAlert = Awaited<ReturnType<typeof readAlert>>;

const handled = {
  open: withMigrated,
  json: (alert: ListedAlert) => pick(alert, members),
  show: describe,
};

const take = actionCommand(alertActions.take, {
  name: 'alerts take',
  help: `Records that you are handling an alert. Another operator cannot take it then, but can still
close it.

  tranche alerts take ${example}`,
  ...handled,
});

const close = actionCommand(alertActions.close, {
  name: 'alerts close',
  help: `Closes an alert and keeps the reason. A closed alert stays in the list of closed ones. If
the same thing happens again, the service raises a new alert.

  tranche alerts close ${example} \\
    --reason 'The receiver is back; its callbacks were retried.'`,
  ...handled,
});

/**
 * The command that shows the subject of an alert, or that retries a callback. Null if there is
 * none.
 */
function nextOf({ kind, subject_id, checkout_id, merchant_id }: ListedAlert): string | null {
  if (subject_id === null) return null;
  if (kind === 'refund_failed') return `\`tranche refunds show ${subject_id}\``;
  if (kind === 'callback_exhausted') return `\`tranche callbacks retry ${subject_id}\``;
  if (kind === 'bank_account_proposed') return `\`tranche merchants bank ${merchant_id}\``;
  if (kind.startsWith('dispute_')) return `\`tranche disputes show ${subject_id}\``;
  return checkout_id === null ? null : `\`tranche checkouts show ${checkout_id}\``;
}

function handlingOf(alert: AlertHandling): string {
  if (alert.closed_at !== null) return `closed by ${alert.closed_by}: ${alert.close_reason}`;
  return alert.taken_at === null ? '' : `taken by ${alert.taken_by}`;
}

function describe(terminal: Terminal, alert: ListedAlert): string {
  return fields(terminal, [
    ['ID', alert.id],
    ['Kind', alert.kind],
    ['When', showTime(alert.at)],
    ['Text', alert.text],
    ['Detail', alert.detail],
    ['State', handlingOf(alert) || 'open'],
  ]);
}

export const commands: Command[] = [list, take, close];
