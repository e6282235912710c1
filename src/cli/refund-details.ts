import { RefundPart as PartSchema } from '#operating/operations/refund.schema.ts';
import type { ListedRefund } from '#operating/operations/refunds.ts';
import { showMoney } from '#platform/shared/money.ts';
import type { PlannedPart, RefundPart, RefundRequest } from '#purchases/refunds/refund.ts';
import type { OperatorAction } from '#record/actions/operator-action.sql.ts';
import { pick } from './schema-options.ts';
import { fields, fill, showTime, type Terminal, table } from './terminal.ts';

export type FoundRefund = { refund: ListedRefund; actions: OperatorAction[] };

/** The status; `approved` for a request that was approved but has not begun. */
export function statusOf({ status, approved_at }: Pick<RefundRequest, 'status' | 'approved_at'>) {
  return status === 'requested' && approved_at !== null ? 'approved' : status;
}

/** The members of a refund in --json. */
export const refundMembers = [
  'id',
  'merchant_id',
  'checkout_id',
  'integration_id',
  'status',
  'amount',
  'currency',
  'created_at',
  'approved_at',
  'completed_at',
  'reason',
  'kept',
  'due_at',
] as const satisfies (keyof RefundRequest)[];

const partMembers = Object.keys(PartSchema.properties) as (keyof RefundPart)[];
export const presentPart = (part: RefundPart) => pick(part, partMembers);

export function presentFound({ refund, actions }: FoundRefund) {
  return {
    ...pick(refund, refundMembers),
    waits_for: refund.waits_for,
    parts: refund.parts.map(presentPart),
    planned: refund.planned,
    actions: actions.map(({ at, operator, action }) => ({ at, operator, action })),
  };
}

export function describeRefund(terminal: Terminal, found: FoundRefund): string {
  const { refund, actions } = found;
  const { parts, planned, waits_for } = refund;
  const show = (cents: number) => showMoney(cents, refund);
  const by = (action: string) => actions.find((one) => one.action === action)?.operator;
  const { approved_at, reason } = refund;
  const approver = by('refunds approve');
  const declined = by('refunds decline');
  const retries = actions.filter(({ action }) => action === 'refunds retry');
  const sections = [
    fields(terminal, [
      ['ID', refund.id],
      ['Checkout', refund.checkout_id],
      ['Merchant', refund.merchant_name],
      ['Status', statusOf(refund)],
      ['Amount', show(refund.amount)],
      ['Requested', showTime(refund.created_at)],
      [
        'Approved',
        approved_at && `${showTime(approved_at)}, ${approver ? `by ${approver}` : 'automatically'}`,
      ],
      ['Declined', declined && `by ${declined}`],
      [
        'Retried',
        retries.length > 0 ? `by ${retries.map(({ operator }) => operator).join(', ')}` : null,
      ],
      ['Completed', showTime(refund.completed_at)],
      ['Reason', reason === null ? null : fill(reason, terminal.width - 14).split('\n')],
      [
        'Moved',
        refund.kept > 0 ? `${show(refund.kept)} in earlier rounds; it counts as refunded` : null,
      ],
      ['Waits for', waits_for === null ? null : `payment ${waits_for}, being collected`],
      ['Due', showTime(refund.due_at)],
    ]),
  ];
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

export function describePlan(
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
