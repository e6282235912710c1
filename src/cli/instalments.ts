import { listInstalmentsByStatus } from '../instalments/instalment.sql.ts';
import { type Instalment, instalmentId, instalmentStatuses } from '../instalments/instalment.ts';
import { retryInstalment } from '../instalments/retry-instalment.ts';
import { type CommandGroup, command, mustBeId, oneOf } from './command.ts';
import { withMigrated } from './connect.ts';
import { moneyOf } from './money.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fields, fill, showDate, showTime, table } from './terminal.ts';

const most = 100;

const list = command({
  name: 'instalments list',
  summary: 'payments that could not be collected',
  usage: ['[--status STATUS] [--merchant ID]'],
  help: `Lists up to ${most} payments with one status, the longest due first: overdue ones, unless
--status is ${instalmentStatuses.filter((status) => status !== 'overdue').join(', ')}. Overdue
ones were tried until the last retry was declined, or may not be tried again, and wait for somebody.
\`checkouts show\` says why. An ID is the checkout's and the payment's number.

  tranche instalments list --status overdue`,
  options: { status: { type: 'string' }, merchant: { type: 'string' } },
  async run(context) {
    const { status = 'overdue', merchant } = context.values;
    const filter = {
      status: oneOf(status, instalmentStatuses, 'status'),
      ...(merchant !== undefined && { merchant_id: mustBeId(merchant, 'merchant') }),
    };
    const { rows, money } = await withMigrated(context, async ({ database: { db } }) => {
      const rows = await listInstalmentsByStatus(db, filter, most);
      return { rows, money: await moneyOf(db, rows) };
    });
    context.print({ data: rows.map(presentInstalment) }, () =>
      rows.length === 0
        ? 'There are none.'
        : table(
            context.terminal,
            ['ID', 'Due', 'Amount'],
            rows.map((row) => [
              instalmentId(row),
              showDate(row.due_on),
              money(row, row.amount - row.reduced),
            ]),
          ),
    );
  },
});

const retry = command({
  name: 'instalments retry',
  summary: 'one more try at an overdue payment',
  usage: ['ID'],
  help: `Charges the stored card for an overdue payment once more, at once. If the card is declined
the payment stays overdue, and nothing tries again by itself. An ID is the checkout's and the
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
          ['Next try', payment.due_at === null ? 'none' : showTime(payment.due_at)],
        ]),
      ].join('\n\n'),
    );
  },
});

/** What became of one more try. */
function explain({ status }: Instalment): string {
  if (status === 'collected') return 'Collected.';
  if (status === 'overdue') return 'The card was declined again. The payment stays overdue.';
  return 'The gateway has not said yet what became of it. The service finds out by itself.';
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
