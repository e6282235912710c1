import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { listLastCollections } from '#purchases/instalments/instalment.sql.ts';
import { findRefund, findRefundMerchant, listParts } from '#purchases/refunds/refund.sql.ts';
import {
  NothingLeft,
  type PlannedPart,
  type RefundPart,
  type RefundRequest,
} from '#purchases/refunds/refund.ts';
import { planRefund } from '#purchases/refunds/start-refund.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { listOperatorActions, type OperatorAction } from '#record/actions/operator-action.sql.ts';
import type { Connection } from './connect.ts';
import { fields, fill, showTime, type Terminal, table } from './terminal.ts';

const actionsMax = 100;

export type FoundRefund = {
  refund: RefundRequest;
  merchant: MerchantRow;
  parts: RefundPart[];
  /**
   * The payments that it would be taken from if it began now. Null if it has begun or cannot begin.
   */
  planned: PlannedPart[] | null;
  /** The payment that is being collected. Until its outcome is known there is no split. */
  waits_for: number | null;
  actions: OperatorAction[];
};

export async function readRefund(connection: Connection, id: string): Promise<FoundRefund> {
  return await snapshot(connection, async (db) => {
    const merchant_id = isUuid(id) ? await findRefundMerchant(db, id) : null;
    const merchant = merchant_id && (await findMerchantRow(db, merchant_id));
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
      planned: isPlanned ? await planOf(db, refund) : null,
      waits_for: isWaiting ? open.instalment : null,
      actions: (await listOperatorActions(db, { subject_ids: [refund.id] }, actionsMax)).reverse(),
    };
  });
}

/** It is null if a dispute took what the refund would have been taken from. */
async function planOf(db: Handle, refund: RefundRequest): Promise<PlannedPart[] | null> {
  try {
    return (await planRefund(db, refund, refund.amount)).parts;
  } catch (error) {
    if (error instanceof NothingLeft) return null;
    throw error;
  }
}

/** The status; `approved` for a request that is past its review and has not begun. */
export function statusOf({ status, approved_at }: RefundRequest): string {
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

export function presentFound({ refund, parts, planned, waits_for, actions }: FoundRefund) {
  return {
    ...presentRefund(refund),
    waits_for,
    parts: parts.map(presentPart),
    planned,
    actions: actions.map(({ at, operator, action }) => ({ at, operator, action })),
  };
}

export function describeRefund(terminal: Terminal, found: FoundRefund): string {
  const { refund, merchant, parts, planned, waits_for, actions } = found;
  const show = (cents: number) => showMoney(cents, { ...merchant.territory, ...refund });
  const by = (action: string) => actions.find((one) => one.action === action)?.operator;
  const { approved_at, completed_at, due_at } = refund;
  const pairs: [string, string | string[]][] = [
    ['ID', refund.id],
    ['Checkout', refund.checkout_id],
    ['Merchant', merchant.name],
    ['Status', statusOf(refund)],
    ['Amount', show(refund.amount)],
    ['Requested', showTime(refund.created_at)],
  ];
  if (approved_at !== null) {
    const operator = by('refunds approve');
    const how = operator === undefined ? 'automatically' : `by ${operator}`;
    pairs.push(['Approved', `${showTime(approved_at)}, ${how}`]);
  }
  const declined = by('refunds decline');
  if (declined !== undefined) pairs.push(['Declined', `by ${declined}`]);
  const retries = actions.filter(({ action }) => action === 'refunds retry');
  if (retries.length > 0) {
    pairs.push(['Retried', `by ${retries.map(({ operator }) => operator).join(', ')}`]);
  }
  if (completed_at !== null) pairs.push(['Completed', showTime(completed_at)]);
  if (refund.reason !== null) {
    pairs.push(['Reason', fill(refund.reason, terminal.width - 14).split('\n')]);
  }
  if (refund.kept > 0) {
    pairs.push(['Moved', `${show(refund.kept)} in earlier rounds; it counts as refunded`]);
  }
  if (waits_for !== null) pairs.push(['Waits for', `payment ${waits_for}, being collected`]);
  if (due_at !== null) pairs.push(['Due', showTime(due_at)]);
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
