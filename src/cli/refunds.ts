import { snapshot } from '../database/transaction.ts';
import { listLastCollections } from '../instalments/instalment.sql.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import type { Merchant } from '../merchants/merchant.ts';
import { OperatorError } from '../operators/operate.ts';
import { listOperatorActions, type OperatorAction } from '../operators/operator-action.sql.ts';
import { previewRefund } from '../refunds/preview-refund.ts';
import {
  findRefund,
  findRefundMerchant,
  listParts,
  listRefundsByStatus,
} from '../refunds/refund.sql.ts';
import {
  type PlannedPart,
  type RefundPart,
  type RefundRequest,
  refundStatuses,
} from '../refunds/refund.ts';
import { approveRefund, declineRefund, retryRefund } from '../refunds/review-refund.ts';
import { planRefund } from '../refunds/start-refund.ts';
import { showMoney } from '../shared/money.ts';
import { isUuid } from '../shared/uuid.ts';
import { type CommandGroup, type Context, command, mustBeId, oneOf, required } from './command.ts';
import { type Connection, withMigrated } from './connect.ts';
import { moneyOf, readCents } from './money.ts';
import { withGateway } from './sandbox-gateway.ts';
import { fields, fill, printable, showDate, showTime, type Terminal, table } from './terminal.ts';

const most = 100;
const example = '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11';

const list = command({
  name: 'refunds list',
  summary: 'refund requests, those that wait first',
  usage: ['[--status requested|pending|complete|failed] [--merchant ID]'],
  help: `Lists up to ${most} refund requests, the newest first; with --status requested those that
wait the longest first. "approved" are those that were reviewed, or need no review, and have not
begun yet: \`refunds show\` says what they wait for.

  tranche refunds list --status requested`,
  options: { status: { type: 'string' }, merchant: { type: 'string' } },
  async run(context) {
    const { status, merchant } = context.values;
    const filter = {
      ...(status !== undefined && { status: oneOf(status, refundStatuses, 'status') }),
      ...(merchant !== undefined && { merchant_id: mustBeId(merchant, 'merchant') }),
    };
    const { rows, money } = await withMigrated(context, async ({ database: { db } }) => {
      const rows = await listRefundsByStatus(db, filter, most);
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
  help: `Shows a refund request, who reviewed it, and payment by payment what it is taken from, with
the gateway's references. For one that has not begun it shows what it would be taken from now.
A split belongs to a round: every retry after a failure splits anew what is left.

  tranche refunds show ${example}`,
  positionals: ['ID'],
  options: {},
  async run(context) {
    const [id = ''] = context.positionals;
    const found = await withMigrated(context, (connection) => readRefund(connection, id));
    context.print(presentAll(found), () => describe(context.terminal, found));
  },
});

const approve = command({
  name: 'refunds approve',
  summary: 'approve a refund and carry it out',
  usage: ['ID'],
  help: `Approves a refund that waits for review and carries it out at once, as far as the gateway
goes along. What the gateway has not settled yet the service goes on with by itself.
\`tranche refunds show ID\` says before what it will be taken from.

  tranche refunds approve ${example}`,
  positionals: ['ID'],
  options: {},
  run: (context) => carryOut(context, approveRefund, 'Approved.'),
});

const retry = command({
  name: 'refunds retry',
  summary: 'try a failed refund again',
  usage: ['ID'],
  help: `Makes a failed refund pending again and carries it out, while the checkout's remainder
allows it; also after day 100. What it moved for good before is not moved again.

  tranche refunds retry ${example}`,
  positionals: ['ID'],
  options: {},
  run: (context) => carryOut(context, retryRefund, 'Trying again.'),
});

const decline = command({
  name: 'refunds decline',
  summary: 'decline a refund, with a reason',
  usage: ['ID --reason TEXT'],
  help: `Declines a refund that waits for review. It fails, its amount goes back to the refundable
remainder, and nothing is moved. The reason is kept for whoever asks later; the merchant's API shows
the status only.

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
    context.print(presentAll(found), () => describe(context.terminal, found));
  },
});

const preview = command({
  name: 'refunds preview',
  summary: 'what a refund would be taken from',
  usage: ['CHECKOUT_ID --amount CENTS'],
  help: `Shows what a new refund of so many cents would be taken from if it began now, and changes
nothing: first payments that were not collected, from the last backwards; then the hold; then
collected payments, the newest first, back to the card. It says why where a refund cannot be.

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

type FoundRefund = {
  refund: RefundRequest;
  merchant: Merchant;
  parts: RefundPart[];
  /** What it would be taken from if it began now; null when it has begun, or could not begin. */
  planned: PlannedPart[] | null;
  /** The payment that is being collected: nobody knows yet what could be taken from it. */
  waits_for: number | null;
  actions: OperatorAction[];
};

async function readRefund(connection: Connection, id: string): Promise<FoundRefund> {
  return await snapshot(connection, async (db) => {
    const merchant_id = isUuid(id) ? await findRefundMerchant(db, id) : null;
    const merchant = merchant_id && (await findMerchant(db, merchant_id));
    const refund = merchant && (await findRefund(db, merchant.id, id));
    if (!refund) throw new OperatorError(`There is no refund ${id}.`);
    const parts = await listParts(db, refund.merchant_id, refund.checkout_id);
    const collections = await listLastCollections(db, refund.merchant_id, [refund.checkout_id]);
    const open = collections.find(({ status }) => status === 'open');
    const isWaiting = refund.status === 'requested' && open !== undefined;
    const isPlanned = refund.status === 'requested' && open === undefined;
    return {
      refund,
      merchant,
      parts: parts.filter((part) => part.refund_id === refund.id),
      planned: isPlanned ? (await planRefund(db, refund, refund.amount)).parts : null,
      waits_for: isWaiting ? open.instalment : null,
      actions: (await listOperatorActions(db, { subject_ids: [refund.id] }, most)).reverse(),
    };
  });
}

/** An operator's word, and what became of it. */
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
  context.print(presentAll(found), () =>
    [fill(`${done} ${explain(found)}`), describe(context.terminal, found)].join('\n\n'),
  );
}

/** What became of a refund that was just begun. */
function explain({ refund, waits_for }: FoundRefund): string {
  switch (refund.status) {
    case 'complete':
      return 'The refund is complete.';
    case 'failed':
      return `The refund failed. ${refund.reason ?? ''}`.trimEnd();
    case 'pending':
      return 'The gateway has not settled all of it yet. The service goes on by itself.';
    case 'requested':
      return waits_for === null
        ? 'It has not begun yet. The service goes on by itself.'
        : `It has to wait: payment ${waits_for} of this checkout is being collected right now. It begins by itself as soon as that is known.`;
  }
}

/** The status, and whether one that has not begun is past its review. */
function statusOf({ status, approved_at }: RefundRequest): string {
  return status === 'requested' && approved_at !== null ? 'approved' : status;
}

export function presentRefund(refund: RefundRequest) {
  const { id, merchant_id, checkout_id, integration_id, status, amount, currency } = refund;
  const { created_at, approved_at, completed_at, reason, kept, due_at } = refund;
  return {
    id,
    merchant_id,
    checkout_id,
    integration_id,
    status,
    amount,
    currency,
    created_at,
    approved_at,
    completed_at,
    reason,
    kept,
    due_at,
  };
}

export function presentPart(part: RefundPart) {
  const { round, number, instalment, kind, status, amount } = part;
  const { payment_ref, refund_ref, settled_at } = part;
  return {
    round,
    number,
    instalment,
    kind,
    status,
    amount,
    payment_ref,
    refund_ref,
    settled_at,
  };
}

function presentAll({ refund, parts, planned, waits_for, actions }: FoundRefund) {
  return {
    ...presentRefund(refund),
    waits_for,
    parts: parts.map(presentPart),
    planned,
    actions: actions.map(({ at, operator, action }) => ({ at, operator, action })),
  };
}

function describe(terminal: Terminal, found: FoundRefund): string {
  const { refund, merchant, parts, planned, waits_for, actions } = found;
  const show = (cents: number) => showMoney(cents, { ...merchant.territory, ...refund });
  const by = (action: string) => actions.find((one) => one.action === action)?.operator;
  const { approved_at, completed_at, due_at } = refund;
  const pairs: [string, string][] = [
    ['ID', refund.id],
    ['Checkout', refund.checkout_id],
    ['Merchant', printable(merchant.name, 69)],
    ['Status', statusOf(refund)],
    ['Amount', show(refund.amount)],
    ['Requested', showTime(refund.created_at)],
  ];
  if (approved_at !== null) {
    const operator = by('refunds approve');
    const how = operator === undefined ? 'by itself' : `by ${operator}`;
    pairs.push(['Approved', `${showTime(approved_at)}, ${how}`]);
  }
  const declined = by('refunds decline');
  if (declined !== undefined) pairs.push(['Declined', `by ${declined}`]);
  const retries = actions.filter(({ action }) => action === 'refunds retry');
  if (retries.length > 0) {
    pairs.push(['Retried', `by ${retries.map(({ operator }) => operator).join(', ')}`]);
  }
  if (completed_at !== null) pairs.push(['Completed', showTime(completed_at)]);
  if (refund.reason !== null) pairs.push(['Reason', fill(refund.reason, 66)]);
  if (refund.kept > 0) {
    pairs.push(['Moved', `${show(refund.kept)} for good; it counts as refunded`]);
  }
  if (waits_for !== null) pairs.push(['Waits for', `payment ${waits_for}, being collected`]);
  if (due_at !== null) pairs.push(['Next look', showTime(due_at)]);
  const sections = [fields(terminal, pairs)];
  if (parts.length > 0) sections.push(describeParts(terminal, parts, show));
  if (planned) sections.push(describePlan(terminal, planned, show));
  return sections.join('\n\n');
}

function describeParts(
  terminal: Terminal,
  parts: RefundPart[],
  show: (cents: number) => string,
): string {
  return table(
    terminal,
    ['Round', 'Payment', 'From', 'Amount', 'Status', 'Gateway'],
    parts.map((part) => [
      String(part.round),
      String(part.instalment),
      sources[part.kind],
      show(part.amount),
      part.status.replace('_', ' '),
      part.refund_ref ?? part.payment_ref ?? '',
    ]),
    'Gateway',
  );
}

function describePlan(
  terminal: Terminal,
  parts: PlannedPart[],
  show: (cents: number) => string,
): string {
  const rows = parts.map((part) => [
    String(part.instalment),
    sources[part.kind],
    show(part.amount),
  ]);
  return `If it began now, it would be taken from\n\n${table(terminal, ['Payment', 'From', 'Amount'], rows)}`;
}

const sources: Record<RefundPart['kind'], string> = {
  cancel: 'not collected',
  hold: 'the hold',
  card: 'the card',
};

export const refunds: CommandGroup = {
  name: 'refunds',
  summary: 'refund requests: review, retry, preview',
  commands: [list, show, approve, decline, retry, preview],
};
