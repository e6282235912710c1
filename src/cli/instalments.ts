import { listInstalmentsByStatus } from '../instalments/instalment.sql.ts';
import { type Instalment, instalmentId, instalmentStatuses } from '../instalments/instalment.ts';
import { retryInstalment } from '../instalments/retry-instalment.ts';
import { type CommandGroup, command, mustBeId, oneOf } from './command.ts';
import { withMigrated } from './connect.ts';
import { moneyOf } from './money.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fields, fill, showDate, showTime, table } from './terminal.ts';

const rowsMax = 100;

const list = command({
  name: 'instalments list',
  summary: 'payments that could not be collected',
  usage: ['[--status STATUS] [--merchant ID]'],
  help: `Lists up to ${rowsMax} payments with one status, the longest due first. The status is overdue
unless --status is ${instalmentStatuses.filter((status) => status !== 'overdue').join(', ')}.

The service does not retry an overdue payment: its last retry was declined, or the card may not be
charged again. \`checkouts show\` says why. An ID is the checkout's ID and the payment's number.

  tranche instalments list --status overdue`,
  options: { status: { type: 'string' }, merchant: { type: 'string' } },
  async run(context) {
    const { status = 'overdue', merchant } = context.values;
    const filter = {
      status: oneOf(status, instalmentStatuses, 'status'),
      ...(merchant !== undefined && { merchant_id: mustBeId(merchant, 'merchant') }),
    };
    const { rows, money } = await withMigrated(context, async ({ database: { db } }) => {
      const rows = await listInstalmentsByStatus(db, filter, rowsMax);
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
