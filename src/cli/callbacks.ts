import {
  callbackActions,
  callbackList,
  type ReadCallback,
  readCallback,
} from '#operating/operations/callbacks.ts';
import { plural } from '#platform/shared/plural.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { runAction } from './action-command.ts';
import { type Command, command, mustBeId, oneOf, required, UsageError } from './command.ts';
import { type Connection, viewerOf } from './connect.ts';
import { listCommand, ownerFacts, readWhole } from './list-command.ts';
import { idOf } from './reference.ts';
import { withDelivery } from './sandbox-gateway.ts';
import { pick } from './schema-options.ts';
import { showCommand } from './show-command.ts';
import { fields, showShortTime, showTime, type Terminal, table } from './terminal.ts';

/** The members of a callback in --json. */
const members = [
  'id',
  'merchant_id',
  'checkout_id',
  'status',
  'notify_url',
  'attempts',
  'created_at',
  'due_at',
  'delivered_at',
  'redirect_url',
  'event',
] as const satisfies (keyof Callback)[];

const list = listCommand(callbackList, {
  name: 'callbacks list',
  help: `Lists callbacks with the merchant, the order, the shopper and why the last attempt failed:
pending ones by their next attempt, all others the newest first. Exhausted callbacks were given up
after 19 attempts; only an operator can retry them. --host selects the callbacks to one receiver,
among exhausted ones or a merchant's pending ones. Times are in UTC, on the merchant's clock.`,
  example: 'tranche callbacks list --status exhausted',
  json: [
    ...members,
    'merchant_name',
    'client_reference_id',
    'email',
    'name',
    'reason',
    'response_status',
  ],
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Created', 'Status', '#'],
      rows.map((row) => ({
        cells: [row.id, showShortTime(row.created_at), row.status, String(row.attempts)],
        below: [...ownerFacts(row), row.notify_url, whyFailed(row)],
      })),
    ),
});

/** Why an attempt failed: the status of the response, or what happened instead. */
function whyFailed(attempt: { reason: string | null; response_status: number | null }): string {
  const { reason, response_status } = attempt;
  if (reason === null) return '';
  return response_status === null || reason.includes(String(response_status))
    ? reason
    : `${reason}, answered ${response_status}`;
}

const show = showCommand({
  name: 'callbacks show',
  of: 'callback',
  help: `Shows what a callback says, where it is sent, and the outcome of every attempt.

  tranche callbacks show 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  read: readCallback,
  json: ({ callback, attempts }) => ({
    ...presentCallback(callback),
    payload: callback.payload.toString('utf8'),
    history: attempts.map(presentAttempt),
  }),
  show: describe,
});

const retry = command({
  name: 'callbacks retry',
  usage: ['ID', '--status exhausted --merchant ID [--dry-run]'],
  help: `Delivers one callback now, or all exhausted callbacks of a merchant, one after another. If
a delivery fails, a new run of retries begins. --dry-run lists the callbacks and sends nothing.

  tranche callbacks retry --status exhausted \\
    --merchant 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11`,
  optionalPositionals: ['ID'],
  options: {
    status: { type: 'string' },
    merchant: { type: 'string' },
    'dry-run': { type: 'boolean' },
  },
  async run(context) {
    const [text] = context.positionals;
    const { status, merchant, 'dry-run': dryRun } = context.values;
    if ((text === undefined) === (status === undefined)) {
      throw new UsageError('Give either a callback ID or --status exhausted --merchant ID.');
    }
    if (text !== undefined && (merchant !== undefined || dryRun)) {
      throw new UsageError('--merchant and --dry-run go with --status exhausted, not with an ID.');
    }
    if (text !== undefined) {
      const done = await withDelivery(context, async (deps) =>
        retrigger(deps, await idOf(deps, 'callback', text)),
      );
      context.print({ ...presentCallback(done.callback), reason: done.reason }, () =>
        fields(context.terminal, [
          ['Status', done.callback.status],
          ['Failed', done.reason],
          ['Next attempt', showTime(done.callback.due_at)],
        ]),
      );
      return;
    }
    oneOf(status ?? '', ['exhausted'] as const, 'status');
    const merchant_id = mustBeId(required(merchant, 'merchant'), 'merchant');
    const done = await withDelivery(context, async (deps) => {
      const exhausted = await listExhausted(deps, merchant_id);
      if (dryRun) return exhausted;
      const results: Retried[] = [];
      for (const [index, { id }] of exhausted.entries()) {
        context.terminal.progress(`${index} of ${exhausted.length} delivered`);
        results.push(await retriggerOneOfMany(deps, id));
      }
      context.terminal.endProgress();
      return results;
    });
    context.print({ data: done }, () =>
      done.length === 0
        ? 'There are none.'
        : table(
            context.terminal,
            ['ID', 'Status', 'Failed'],
            done.map((row) => [row.id, row.status, row.reason ?? '']),
            'Failed',
          ),
    );
  },
});

type Retried = { id: string; status: string; reason: string | null };

/**
 * Reads the whole list before the first callback is sent. A callback whose delivery fails again
 * becomes pending and would leave the list while it is being read.
 */
async function listExhausted(deps: Retrigger, merchant: string): Promise<Retried[]> {
  const query = { merchant, status: 'exhausted' } as const;
  const found = await readWhole(callbackList, viewerOf(deps), query);
  return found.map(({ id, status, reason }) => ({ id, status, reason }));
}

type Retrigger = Connection & DeliveryDeps;

/** Delivers a callback now. `reason` says why that failed, and is null if it did not. */
async function retrigger(deps: Retrigger, id: string) {
  const retried = await runAction(deps, callbackActions.retry, { params: { id } });
  return { callback: retried, reason: whyFailed(retried) || null };
}

/** A callback that another process is delivering does not stop the rest of the batch. */
async function retriggerOneOfMany(deps: Retrigger, id: string): Promise<Retried> {
  try {
    const { callback, reason } = await retrigger(deps, id);
    return { id, status: callback.status, reason };
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return { id, status: 'claimed by another process', reason: null };
  }
}

export const presentCallback = (callback: Callback) => pick(callback, members);

export function presentAttempt(attempt: CallbackAttempt) {
  const { merchant_id, callback_id, response_body, ...rest } = attempt;
  return { ...rest, response_body: response_body?.toString('utf8') ?? null };
}

function describe(terminal: Terminal, { callback, attempts }: ReadCallback): string {
  const last = attempts.at(-1);
  const expired = callback.attempts_expired;
  return [
    fields(terminal, [
      ['ID', callback.id],
      ['Checkout', callback.checkout_id],
      ['Event', callback.event],
      ['Status', callback.status],
      ['To', callback.notify_url],
      ['Sends', callback.payload.toString('utf8')],
      ['Next attempt', showTime(callback.due_at) ?? 'none'],
      ['Last answer', last && describeAnswer(last)],
      ['Expired', expired === 0 ? null : `the first ${plural(expired, 'attempt')}`],
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
    return `${response_status} ${body}`.trimEnd();
  }
  return `${response_status} ${body.slice(0, answerWidth)}… of ${bytes} bytes`;
}

export const commands: Command[] = [list, show, retry];
