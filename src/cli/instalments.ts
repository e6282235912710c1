import { instalmentList } from '#operating/operations/instalments.ts';
import { showMoney } from '#platform/shared/money.ts';
import {
  type Instalment,
  instalmentId,
  instalmentStatuses,
} from '#purchases/instalments/instalment.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { type Command, command } from './command.ts';
import { listCommand, ownerFacts } from './list-command.ts';
import { moneyOf } from './money.ts';
import { withGateway } from './sandbox-gateway.ts';
import { pick } from './schema-options.ts';
import { fields, fill, showDate, showTime, table } from './terminal.ts';

/** The members of a payment in --json. */
const members = [
  'merchant_id',
  'checkout_id',
  'number',
  'status',
  'amount',
  'reduced',
  'currency',
  'due_on',
  'due_at',
  'payment_ref',
  'collected_at',
  'declines',
  'paused',
] as const satisfies (keyof Instalment)[];

const list = listCommand(instalmentList, {
  name: 'instalments list',
  help: `Lists the payments that have one status, with the merchant, the order, the shopper and why
the card was last declined, the longest overdue first. --status may also be
${instalmentStatuses.filter((status) => status !== 'overdue').join(', ')}; then payments of the
newest checkouts come first.

The service does not retry an overdue payment: its last retry was declined, or the card may not be
charged again. An ID is the checkout's ID and the payment's number.`,
  example: 'tranche instalments list --status overdue',
  json: ['id', ...members, 'merchant_name', 'client_reference_id', 'email', 'name', 'reason'],
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Due', 'Amount'],
      rows.map((row) => ({
        cells: [row.id, showDate(row.due_on), showMoney(row.amount - row.reduced, row)],
        below: [...ownerFacts(row), row.reason],
      })),
    ),
});

const retry = command({
  name: 'instalments retry',
  usage: ['ID'],
  help: `Charges the stored card for an overdue payment once more, now. If the card is declined, the
payment stays overdue and the service does not retry it. An ID is the checkout's ID and the
payment's number.

  tranche instalments retry 0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11:2`,
  positionals: ['ID'],
  async run(context) {
    const [id = ''] = context.positionals;
    const { payment, money } = await withGateway(context, async (deps) => {
      const payment = await retryInstalment(deps, deps.operator, id);
      return { payment, money: await moneyOf(deps.database.db, payment) };
    });
    context.print(presentInstalment(payment), () =>
      [
        fill(explain(payment)),
        fields(context.terminal, [
          ['ID', instalmentId(payment)],
          ['Status', payment.status],
          ['Amount', money(payment.amount - payment.reduced)],
          ['Due', showDate(payment.due_on)],
          ['Next attempt', showTime(payment.due_at) ?? 'none'],
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

export const presentInstalment = (payment: Instalment) => ({
  id: instalmentId(payment),
  ...pick(payment, members),
});

export const commands: Command[] = [list, retry];
