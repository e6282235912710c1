import { previewRefund } from '../refunds/preview-refund.ts';
import { listRefundsByStatus } from '../refunds/refund.sql.ts';
import { refundStatuses } from '../refunds/refund.ts';
import { approveRefund, declineRefund, retryRefund } from '../refunds/review-refund.ts';
import { type CommandGroup, type Context, command, mustBeId, oneOf, required } from './command.ts';
import { withMigrated } from './connect.ts';
import { moneyOf, readCents } from './money.ts';
import {
  describePlan,
  describeRefund,
  type FoundRefund,
  presentFound,
  presentRefund,
  readRefund,
  statusOf,
} from './refund-details.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fields, fill, showDate, table } from './terminal.ts';

const rowsMax = 100;
const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

const list = command({
  name: 'refunds list',
  summary: 'refund requests',
  usage: ['[--status requested|pending|complete|failed] [--merchant ID]'],
  help: `Lists up to ${rowsMax} refund requests, the newest first. With --status requested the oldest
comes first. An "approved" refund is past its review, or needs none, and has not begun yet:
\`refunds show\` says why.

  tranche refunds list --status requested`,
  options: { status: { type: 'string' }, merchant: { type: 'string' } },
  async run(context) {
    const { status, merchant } = context.values;
    const filter = {
      ...(status !== undefined && { status: oneOf(status, refundStatuses, 'status') }),
      ...(merchant !== undefined && { merchant_id: mustBeId(merchant, 'merchant') }),
    };
    const { rows, money } = await withMigrated(context, async ({ database: { db } }) => {
      const rows = await listRefundsByStatus(db, filter, rowsMax);
      return { rows, money: await moneyOf(db, rows) };
    });
    context.print({ data: rows.map(presentRefund) }, () =>
      rows.length === 0
        ? 'There are none.'
        : table(
            context.terminal,
            ['ID', 'Status', 'Amount', 'Requested'],
            rows.map((row) => [
              row.id,
              statusOf(row),
              money(row, row.amount),
              showDate(row.created_at.slice(0, 10)),
            ]),
          ),
    );
  },
});

const show = command({
  name: 'refunds show',
  summary: 'one refund, and what it is taken from',
  usage: ['ID'],
  help: `Shows a refund request, who reviewed it, and which payments it is taken from, with the
gateway's references. If it has not begun, it shows the payments that it would be taken from now.
Every retry of a failed refund is a new round, which splits the rest anew.

  tranche refunds show ${example}`,
  positionals: ['ID'],
  options: {},
  async run(context) {
    const [id = ''] = context.positionals;
    const found = await withMigrated(context, (connection) => readRefund(connection, id));
    context.print(presentFound(found), () => describeRefund(context.terminal, found));
  },
});

const approve = command({
  name: 'refunds approve',
  summary: 'approve a refund and carry it out',
  usage: ['ID'],
  help: `Approves a refund that waits for review and starts it now. If the gateway does not settle
all of it at once, the service continues. \`tranche refunds show ID\` shows beforehand which
payments it will be taken from.

  tranche refunds approve ${example}`,
  positionals: ['ID'],
  options: {},
  run: (context) => carryOut(context, approveRefund, 'Approved.'),
});

const retry = command({
  name: 'refunds retry',
  summary: 'retry a failed refund',
  usage: ['ID'],
  help: `Makes a failed refund pending again and carries it out, if the checkout's remainder allows
it. This also works after day 100. Money that an earlier round moved is not moved again.

  tranche refunds retry ${example}`,
  positionals: ['ID'],
  options: {},
  run: (context) => carryOut(context, retryRefund, 'Retried.'),
});

const decline = command({
  name: 'refunds decline',
  summary: 'decline a refund, with a reason',
  usage: ['ID --reason TEXT'],
  help: `Declines a refund that waits for review. The refund fails, its amount becomes refundable
again, and no money is moved. The reason is kept for later; the merchant's API shows only the status.

  tranche refunds decline ${example} \\
    --reason 'The goods were kept.'`,
  positionals: ['ID'],
  options: { reason: { type: 'string' } },
  async run(context) {
    const [id = ''] = context.positionals;
    const reason = required(context.values.reason, 'reason');
    const found = await withMigrated(context, async (connection) => {
      await declineRefund(connection, connection.operator, id, reason);
      return await readRefund(connection, id);
    });
    context.print(presentFound(found), () => describeRefund(context.terminal, found));
  },
});

const preview = command({
  name: 'refunds preview',
  summary: 'which payments a refund would be taken from',
  usage: ['CHECKOUT_ID --amount CENTS'],
  help: `Shows which payments a new refund of CENTS would be taken from if it began now. It changes
nothing. A refund takes payments that are not collected first, the last one first; then the hold;
then collected payments, the newest first, back to the card. If a refund is not possible, it says
why.

  tranche refunds preview ${example} --amount 50000`,
  positionals: ['CHECKOUT_ID'],
  options: { amount: { type: 'string' } },
  async run(context) {
    const [id = ''] = context.positionals;
    const amount = readCents(required(context.values.amount, 'amount'), 'amount');
    const { answer, money } = await withMigrated(context, async (connection) => {
      const answer = await previewRefund(connection, id, amount);
      return { answer, money: await moneyOf(connection.database.db, [answer]) };
    });
    context.print(answer, () => {
      const { terminal } = context;
      const show = (cents: number) => money(answer, cents);
      return [
        fields(terminal, [
          ['Checkout', answer.checkout_id],
          ['Amount', show(answer.amount)],
          ['Refundable', show(answer.remainder)],
        ]),
        answer.refusal === null
          ? describePlan(terminal, answer.parts, show)
          : fill(`It cannot be refunded. ${answer.refusal}`),
        ...answer.warnings.map((warning) => fill(warning)),
      ].join('\n\n');
    });
  },
});

/** Records an operator's decision and prints what followed from it. */
async function carryOut(
  context: Context,
  review: typeof approveRefund,
  done: string,
): Promise<undefined> {
  const [id = ''] = context.positionals;
  const found = await withGateway(context, async (deps) => {
    await review(deps, deps.operator, id);
    return await readRefund(deps, id);
  });
  context.print(presentFound(found), () =>
    [fill(`${done} ${explain(found)}`), describeRefund(context.terminal, found)].join('\n\n'),
  );
}

/** The state of a refund that has just begun, as a sentence. */
function explain({ refund, waits_for }: FoundRefund): string {
  switch (refund.status) {
    case 'complete':
      return 'The refund is complete.';
    case 'failed':
      return `The refund failed. ${refund.reason ?? ''}`.trimEnd();
    case 'pending':
      return 'The gateway has not settled all of it yet. The service continues.';
    case 'requested':
      return waits_for === null
        ? 'It has not begun yet. The service will start it.'
        : `It has to wait: payment ${waits_for} of this checkout is being collected. The service starts it when the outcome is known.`;
  }
}

export const refunds: CommandGroup = {
  name: 'refunds',
  summary: 'refund requests: review, retry, preview',
  commands: [list, show, approve, decline, retry, preview],
};
