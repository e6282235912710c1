import { listActionsOn } from '#operating/operations/audit.ts';
import {
  type ListedRefund,
  readRefund,
  refundActions,
  refundList,
} from '#operating/operations/refunds.ts';
import { mustSee, type Viewer } from '#operating/operations/viewer.ts';
import { reading } from '#platform/database/transaction.ts';
import { showMoney } from '#platform/shared/money.ts';
import { previewRefund } from '#purchases/refunds/preview-refund.ts';
import { actionCommand } from './action-command.ts';
import { type Command, command, required } from './command.ts';
import { withMigrated } from './connect.ts';
import { listCommand, ownerFacts } from './list-command.ts';
import { moneyOf, readCents } from './money.ts';
import { idOf } from './reference.ts';
import {
  describePlan,
  describeRefund,
  type FoundRefund,
  presentFound,
  refundMembers,
  statusOf,
} from './refund-details.ts';
import { findCapabilities, withGateway } from './sandbox-gateway.ts';
import { showCommand } from './show-command.ts';
import { fields, fill, showShortTime, type Terminal, table } from './terminal.ts';

const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

const list = listCommand(refundList, {
  name: 'refunds list',
  help: `Lists refund requests with the merchant, the order, the shopper and why they failed, the
newest first. Those that have not begun (requested, review, approved) come with the oldest first.
An "approved" refund is past its review, or needs none, and has not begun yet: \`refunds show\` says
why. Times are in UTC, on the merchant's clock.`,
  example: 'tranche refunds list --status requested',
  rename: { view: 'status' },
  json: [...refundMembers, 'merchant_name', 'client_reference_id', 'email', 'name'],
  show: (terminal, rows) =>
    table(
      terminal,
      ['ID', 'Requested', 'Status', 'Amount'],
      rows.map((row) => ({
        cells: [row.id, showShortTime(row.created_at), statusOf(row), showMoney(row.amount, row)],
        below: [...ownerFacts(row), row.reason],
      })),
    ),
});

async function withActions(viewer: Viewer, refund: ListedRefund): Promise<FoundRefund> {
  return { refund, actions: await reading(viewer.deps, (db) => listActionsOn(db, refund.id)) };
}

const show = showCommand({
  name: 'refunds show',
  of: 'refund',
  help: `Shows a refund request, who reviewed it, and which payments it is taken from, with the
gateway's references. If it has not begun, it shows the payments that it would be taken from now.
Every retry of a failed refund is a new round, which splits the rest anew.

  tranche refunds show ${example}`,
  read: async (viewer, id) => {
    const row = await mustSee(viewer, 'refund_requests', id);
    return await withActions(viewer, await readRefund(viewer, row));
  },
  json: presentFound,
  show: describeRefund,
});

/** Prints an operator's decision and its result. */
const carriedOut = (done: string) => ({
  open: withGateway,
  complete: withActions,
  json: presentFound,
  show: (terminal: Terminal, found: FoundRefund) =>
    [fill(`${done} ${explain(found)}`), describeRefund(terminal, found)].join('\n\n'),
});

const approve = actionCommand(refundActions.approve, {
  name: 'refunds approve',
  of: 'refund',
  without: ['as_first'],
  help: `Approves a refund that is waiting for review, and starts it. If the gateway does not settle
all of it at once, the service keeps asking. \`tranche refunds show ID\` shows beforehand which
payments it will be taken from.

  tranche refunds approve ${example}`,
  ...carriedOut('Approved.'),
});

const retry = actionCommand(refundActions.retry, {
  name: 'refunds retry',
  of: 'refund',
  help: `Makes a failed refund pending again and carries it out, if enough of the checkout is still
refundable. This also works after day 100. Money that an earlier round moved is not moved again. A
refund that was declined cannot be retried: ask for a new one, in the console or through the
merchant API.

  tranche refunds retry ${example}`,
  ...carriedOut('Retried.'),
});

const decline = actionCommand(refundActions.decline, {
  name: 'refunds decline',
  of: 'refund',
  help: `Declines a refund that is waiting for review. The refund fails, its amount becomes
refundable again, and no money is moved. The merchant reads the reason in the API: write it for
them.

  tranche refunds decline ${example} \\
    --reason 'The goods were kept.'`,
  open: withMigrated,
  complete: withActions,
  json: presentFound,
  show: describeRefund,
});

const preview = command({
  name: 'refunds preview',
  usage: ['CHECKOUT_ID --amount CENTS'],
  help: `Shows which payments a new refund of CENTS would be taken from if it began now. It changes
nothing. CHECKOUT_ID may be the order number. A refund is taken first from payments that are not
collected, the last one first; then from the hold; then from collected payments, the newest first,
back to the card. If no refund is possible, the command says why.

  tranche refunds preview ${example} --amount 50000`,
  positionals: ['CHECKOUT_ID'],
  options: { amount: { type: 'string' } },
  async run(context) {
    const [id = ''] = context.positionals;
    const amount = readCents(required(context.values.amount, 'amount'), 'amount');
    const { answer, show } = await withMigrated(context, async (connection) => {
      const checkout = await idOf(connection, 'checkout', id);
      const gateways = await findCapabilities(connection.config);
      const answer = await previewRefund({ ...connection, gateways }, checkout, amount);
      return { answer, show: await moneyOf(connection.database.db, answer) };
    });
    context.print(answer, () => {
      const { terminal } = context;
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

/** The state of a refund that has just begun, as a sentence. */
function explain({ refund }: FoundRefund): string {
  switch (refund.status) {
    case 'complete':
      return 'The refund is complete.';
    case 'failed':
      return `The refund failed. ${refund.reason ?? ''}`.trimEnd();
    case 'pending':
      return 'The gateway has not settled all of it yet. The service keeps asking.';
    case 'requested':
      if (refund.approved_at === null) {
        return 'Together with earlier refunds that one person approved alone, it is above the merchant’s threshold. Another person has to approve it too.';
      }
      return refund.waits_for === null
        ? 'It has not begun yet. The service will start it.'
        : `It has to wait: payment ${refund.waits_for} of this checkout is being collected. The service starts the refund when the outcome is known.`;
  }
}

export const commands: Command[] = [list, show, approve, decline, retry, preview];
