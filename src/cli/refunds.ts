import { type ListedRefund, listRefunds } from '#operating/operations/lists.ts';
import { showMoney } from '#platform/shared/money.ts';
import { previewRefund } from '#purchases/refunds/preview-refund.ts';
import { refundStatuses } from '#purchases/refunds/refund.ts';
import { approveRefund, declineRefund, retryRefund } from '#purchases/refunds/review-refund.ts';
import { type CommandGroup, type Context, command, oneOf, required } from './command.ts';
import { withMigrated } from './connect.ts';
import { moneyOf, readCents } from './money.ts';
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
import { fields, fill, showShortTime, table } from './terminal.ts';

const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

const list = command({
  name: 'refunds list',
  summary: 'refund requests',
  usage: [`[--status requested|pending|complete|failed] ${pagingUsage}`],
  help: `Lists refund requests with the merchant, the order, the shopper and why they failed, the newest
first. With --status requested the oldest comes first. An "approved" refund is past its review, or
needs none, and has not begun yet: \`refunds show\` says why. Times are in UTC, on the merchant's
clock.

${pagingHelp}

  tranche refunds list --status requested`,
  options: { status: { type: 'string' }, ...pagingOptions },
  async run(context) {
    const { status } = context.values;
    const wanted = status === undefined ? null : oneOf(status, refundStatuses, 'status');
    const scope = readScope(context.values);
    const page = readPage(context.values);
    const { data, next } = await withMigrated(context, (connection) =>
      listRefunds(connection, scope, wanted, page),
    ).catch(refuseBadCursor);
    const present = (row: ListedRefund) => {
      const { merchant_name, client_reference_id, email, name } = row;
      return { ...presentRefund(row), merchant_name, client_reference_id, email, name };
    };
    context.print({ data: data.map(present), next }, () =>
      data.length === 0
        ? 'There are none.'
        : `${table(
            context.terminal,
            ['ID', 'Requested', 'Status', 'Amount'],
            data.map((row) => ({
              cells: [
                row.id,
                showShortTime(row.created_at),
                statusOf(row),
                showMoney(row.amount, row),
              ],
              below: [...whoseOf(row), row.reason],
            })),
          )}${nextPage(context, 'refunds list', next)}`,
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
it. This also works after day 100. Money that an earlier round moved is not moved again. A refund
that was declined cannot be retried: ask for a new one, at the console or by the merchant's API.

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
again, and no money is moved. The merchant reads the reason in the API: write it for them.

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
      if (refund.approved_at === null) {
        return 'It is above the threshold of the merchant. Another person has to approve it too.';
      }
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
