import {
  findCallback,
  findCallbackMerchant,
  listCallbackAttempts,
  listCallbacks,
} from '../callbacks/callback.sql.ts';
import { type Callback, type CallbackAttempt, callbackStatuses } from '../callbacks/callback.ts';
import type { DeliveryDeps } from '../callbacks/delivery/deliver-callback.ts';
import { retriggerCallback } from '../callbacks/retrigger-callback.ts';
import { OperatorError } from '../operators/operate.ts';
import { isUuid } from '../shared/uuid.ts';
import { type CommandGroup, command, mustBeId, oneOf, required, UsageError } from './command.ts';
import { withMigrated } from './connect.ts';
import { withDelivery } from './sandbox-gateway.ts';
import { fields, printable, showTime, type Terminal, table } from './terminal.ts';

const rowsMax = 100;

const list = command({
  name: 'callbacks list',
  summary: 'callbacks, the newest first',
  usage: ['[--status exhausted|pending|delivered] [--merchant ID]'],
  help: `Lists up to ${rowsMax} callbacks. Exhausted callbacks were given up after 19 attempts; only an
operator can retry them.

  tranche callbacks list --status exhausted`,
  options: { status: { type: 'string' }, merchant: { type: 'string' } },
  async run(context) {
    const { status, merchant } = context.values;
    const filter = {
      ...(status !== undefined && { status: oneOf(status, callbackStatuses, 'status') }),
      ...(merchant !== undefined && { merchant_id: mustBeId(merchant, 'merchant') }),
    };
    const rows = await withMigrated(context, ({ database }) =>
      listCallbacks(database.db, filter, rowsMax),
    );
    context.print({ data: rows.map(presentCallback) }, () =>
      rows.length === 0
        ? 'There are none.'
        : table(
            context.terminal,
            ['ID', 'Status', 'Attempts', 'To'],
            rows.map((row) => [row.id, row.status, String(row.attempts), row.notify_url]),
            'To',
          ),
    );
  },
});

const show = command({
  name: 'callbacks show',
  summary: 'one callback with all its attempts',
  usage: ['ID'],
  help: `Shows what a callback says, where it is sent, and the outcome of every attempt.

  tranche callbacks show 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  positionals: ['ID'],
  options: {},
  async run(context) {
    const [id = ''] = context.positionals;
    const { callback, attempts } = await withMigrated(context, async ({ database: { db } }) => {
      const merchant_id = isUuid(id) ? await findCallbackMerchant(db, id) : null;
      const callback = merchant_id && (await findCallback(db, { merchant_id, id }));
      if (!callback) throw new OperatorError(`There is no callback ${id}.`);
      return { callback, attempts: await listCallbackAttempts(db, callback) };
    });
    const payload = callback.payload.toString('utf8');
    context.print(
      { ...presentCallback(callback), payload, history: attempts.map(presentAttempt) },
      () => describe(context.terminal, callback, payload, attempts),
    );
  },
});

const retry = command({
  name: 'callbacks retry',
  summary: 'deliver one callback now, or all exhausted ones',
  usage: ['ID', '--status exhausted --merchant ID [--dry-run]'],
  help: `Delivers one callback now, or all exhausted callbacks of a merchant, one after another. If a
delivery fails, a new run of retries begins. --dry-run lists the callbacks and sends nothing.

  tranche callbacks retry --status exhausted \\
    --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  optionalPositionals: ['ID'],
  options: {
    status: { type: 'string' },
    merchant: { type: 'string' },
    'dry-run': { type: 'boolean' },
  },
  async run(context) {
    const [id] = context.positionals;
    const { status, merchant, 'dry-run': dryRun } = context.values;
    if ((id === undefined) === (status === undefined)) {
      throw new UsageError('Give either a callback ID or --status exhausted --merchant ID.');
    }
    if (id !== undefined && (merchant !== undefined || dryRun)) {
      throw new UsageError('--merchant and --dry-run go with --status exhausted, not with an ID.');
    }
    if (id !== undefined) {
      const callback = await withDelivery(context, (deps) =>
        retriggerCallback(deps, deps.operator, id),
      );
      context.print(presentCallback(callback), () =>
        fields(context.terminal, [['Status', callback.status]]),
      );
      return;
    }
    oneOf(status ?? '', ['exhausted'] as const, 'status');
    const merchant_id = mustBeId(required(merchant, 'merchant'), 'merchant');
    const done = await withDelivery(context, async (deps) => {
      const { db } = deps.database;
      const exhausted = await listCallbacks(db, { status: 'exhausted', merchant_id }, 10_000);
      if (dryRun) return exhausted.map((row) => ({ id: row.id, status: row.status }));
      const results: { id: string; status: string }[] = [];
      for (const [index, row] of exhausted.entries()) {
        context.terminal.progress(`${index} of ${exhausted.length} delivered`);
        results.push({ id: row.id, status: await retrigger(deps, row.id) });
      }
      context.terminal.endProgress();
      return results;
    });
    context.print({ data: done }, () =>
      done.length === 0
        ? 'There are none.'
        : table(
            context.terminal,
            ['ID', 'Status'],
            done.map((row) => [row.id, row.status]),
          ),
    );
  },
});

/** A callback that another process is delivering does not stop the rest of the batch. */
async function retrigger(deps: DeliveryDeps & { operator: string }, id: string): Promise<string> {
  try {
    return (await retriggerCallback(deps, deps.operator, id)).status;
  } catch (error) {
    if (error instanceof OperatorError) return 'claimed by another process';
    throw error;
  }
}

export function presentCallback(callback: Omit<Callback, 'payload' | 'sealed_verify'>) {
  const { id, merchant_id, checkout_id, status, notify_url, attempts } = callback;
  const { created_at, due_at, delivered_at, redirect_url } = callback;
  return {
    id,
    merchant_id,
    checkout_id,
    status,
    notify_url,
    attempts,
    created_at,
    due_at,
    delivered_at,
    redirect_url,
  };
}

export function presentAttempt(attempt: CallbackAttempt) {
  const { merchant_id, callback_id, response_body, ...rest } = attempt;
  return { ...rest, response_body: response_body?.toString('utf8') ?? null };
}

function describe(
  terminal: Terminal,
  callback: Callback,
  payload: string,
  attempts: CallbackAttempt[],
): string {
  return [
    fields(terminal, [
      ['ID', callback.id],
      ['Checkout', callback.checkout_id],
      ['Status', callback.status],
      ['To', callback.notify_url],
      ['Says', payload],
      ['Next attempt', callback.due_at === null ? 'none' : showTime(callback.due_at)],
      ...attempts.slice(-1).map((last): [string, string] => ['Last answer', describeAnswer(last)]),
      ...(callback.attempts_expired === 0
        ? []
        : [['Expired', `the first ${callback.attempts_expired} attempts`] as [string, string]]),
    ]),
    attempts.length === 0
      ? callback.attempts === 0
        ? 'There are no attempts yet.'
        : 'All attempts have expired.'
      : table(
          terminal,
          ['#', 'When', 'Trigger', 'Outcome', 'Reason'],
          attempts.map((one) => [
            String(one.number),
            showTime(one.started_at),
            one.operator === null ? one.trigger : `${one.trigger} ${one.operator}`,
            one.outcome,
            one.reason ?? '',
          ]),
          'Reason',
        ),
  ].join('\n\n');
}

const answerWidth = 60;

/** `500 no such table: orders… of 9018 bytes` */
function describeAnswer(attempt: CallbackAttempt): string {
  const { response_status, response_body, response_body_bytes } = attempt;
  if (response_status === null) return 'none';
  const body = response_body?.toString('utf8').trim() ?? '';
  const stored = response_body?.length ?? 0;
  const bytes = response_body_bytes ?? stored;
  if (body.length <= answerWidth && bytes === stored) {
    return `${response_status} ${printable(body)}`.trimEnd();
  }
  return `${response_status} ${printable(body.slice(0, answerWidth))}… of ${bytes} bytes`;
}

export const callbacks: CommandGroup = {
  name: 'callbacks',
  summary: 'notifications of outcomes to merchants',
  commands: [list, show, retry],
};
