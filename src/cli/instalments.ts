import { type ListedInstalment, listInstalments } from '#operating/operations/lists.ts';
import { showMoney } from '#platform/shared/money.ts';
import {
  type Instalment,
  instalmentId,
  instalmentStatuses,
} from '#purchases/instalments/instalment.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { type CommandGroup, command, oneOf } from './command.ts';
import { withMigrated } from './connect.ts';
import { moneyOf } from './money.ts';
import {
  nextPage,
  pagingHelp,
  pagingOptions,
  pagingUsage,
  readPage,
  readScope,
  refuseBadCursor,
  whoseOf,
} from './paging.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fields, fill, showDate, showTime, table } from './terminal.ts';

const list = command({
  name: 'instalments list',
  summary: 'payments that could not be collected',
  usage: [`[--status STATUS] ${pagingUsage}`],
  help: `Lists payments with one status, with the merchant, the order, the shopper and why the card was
declined last. Overdue payments come the longest due first. --status may also be
${instalmentStatuses.filter((status) => status !== 'overdue').join(', ')}; those come by their checkout, the newest first.

The service does not retry an overdue payment: its last retry was declined, or the card may not be
charged again. An ID is the checkout's ID and the payment's number.

${pagingHelp}

  tranche instalments list --status overdue`,
  options: { status: { type: 'string' }, ...pagingOptions },
  async run(context) {
    const status = oneOf(context.values.status ?? 'overdue', instalmentStatuses, 'status');
    const scope = readScope(context.values);
    const page = readPage(context.values);
    const { data, next } = await withMigrated(context, (connection) =>
      listInstalments(connection, scope, status, page),
    ).catch(refuseBadCursor);
    const present = (row: ListedInstalment) => {
      const { merchant_name, client_reference_id, email, name, reason } = row;
      return {
        ...presentInstalment(row),
        ...{ merchant_name, client_reference_id, email, name, reason },
      };
    };
    context.print({ data: data.map(present), next }, () =>
      data.length === 0
        ? 'There are none.'
        : `${table(
            context.terminal,
            ['ID', 'Due', 'Amount'],
            data.map((row) => ({
              cells: [
                instalmentId(row),
                showDate(row.due_on),
                showMoney(row.amount - row.reduced, row),
              ],
              below: [...whoseOf(row), row.reason],
            })),
          )}${nextPage(context, 'instalments list', next)}`,
    );
  },
});

const retry = command({
  name: 'instalments retry',
  summary: 'charge an overdue payment once more',
  usage: ['ID'],
  help: `Charges the stored card for an overdue payment once more, now. If the card is declined, the
payment stays overdue and the service does not retry it. An ID is the checkout's ID and the
payment's number.

  tranche instalments retry 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11:2`,
  positionals: ['ID'],
  options: {},
  async run(context) {
    const [id = ''] = context.positionals;
    const { payment, money } = await withGateway(context, async (deps) => {
      const payment = await retryInstalment(deps, deps.operator, id);
      return { payment, money: await moneyOf(deps.database.db, [payment]) };
    });
    context.print(presentInstalment(payment), () =>
      [
        fill(explain(payment)),
        fields(context.terminal, [
          ['ID', instalmentId(payment)],
          ['Status', payment.status],
          ['Amount', money(payment, payment.amount - payment.reduced)],
          ['Due', showDate(payment.due_on)],
          ['Next attempt', payment.due_at === null ? 'none' : showTime(payment.due_at)],
        ]),
      ].join('\n\n'),
    );
  },
});

/** The outcome of the retry, as a sentence. */
function explain({ status }: Instalment): string {
  if (status === 'collected') return 'Collected.';
  if (status === 'overdue') return 'The card was declined again. The payment stays overdue.';
  return 'The outcome is not known yet. The service will ask the gateway again.';
}

export function presentInstalment(payment: Instalment) {
  const { merchant_id, checkout_id, number, status, amount, reduced, currency } = payment;
  const { due_on, due_at, payment_ref, collected_at, declines, paused } = payment;
  return {
    id: instalmentId(payment),
    merchant_id,
    checkout_id,
    number,
    status,
    amount,
    reduced,
    currency,
    due_on,
    due_at,
    payment_ref,
    collected_at,
    declines,
    paused,
  };
}

export const instalments: CommandGroup = {
  name: 'instalments',
  summary: 'the payments of successful checkouts',
  commands: [list, retry],
};
