import assert from 'node:assert/strict';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { isDisputed } from '#purchases/disputes/dispute.sql.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import { listInstalments, listLastCollections } from '#purchases/instalments/instalment.sql.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { pauseCollecting } from '#purchases/instalments/pause-collecting.ts';
import { reduceInstalment } from '#purchases/instalments/reduce-instalment.ts';
import { type Movement, postMovements } from '#record/ledger/post-movements.ts';
import { listDisputedAmounts } from '#record/ledger/posting.sql.ts';
import { insertParts, listParts, moveRefund } from './refund.sql.ts';
import {
  givenBackOf,
  type PlannedPart,
  partId,
  type RefundPart,
  type RefundRequest,
  type RefundStatus,
  splitRefund,
} from './refund.ts';

/**
 * Finds the payments that a refund of this amount would be taken from now, after the parts of
 * earlier refunds. `parts` is null if it must wait.
 */
export async function planRefund(
  db: Handle,
  merchant: Merchant,
  checkout_id: string,
  amount: number,
  earlier: RefundPart[],
): Promise<{ instalments: Instalment[]; parts: PlannedPart[] | null }> {
  const key = { merchant_id: merchant.id, checkout_id };
  const instalments = await listInstalments(db, key);
  const given = givenBackOf(earlier, await listDisputedAmounts(db, [key]));
  const parts = splitRefund(instalments, given, amount, merchant.territory.payment_min);
  return { instalments, parts };
}

/**
 * Why a refund cannot begin now. The split depends on the outcome of a payment that is being
 * collected.
 */
type Waiting = 'disputed' | 'blocked' | 'collecting';

/**
 * Makes an approved refund `pending`, in a transaction that holds the checkout's lock. Fixes which
 * payments it is taken from, reduces those that were not collected, and pauses collecting until the
 * refund has ended. It waits while the cardholder disputes a payment of it, while an operator must
 * look at it first, while a collection of the checkout is open, and while the hold must be captured
 * first (decision 0027).
 */
export async function startRefund(
  deps: { random: Random },
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  from: RefundStatus,
  claim: {
    at: Timestamp;
    lease: string | null;
    leased_until: Timestamp | null;
    /** The person who approves it now. */
    approved_by?: string | null;
    approved_by_name?: string;
  },
): Promise<RefundRequest | Waiting> {
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const key = { merchant_id, checkout_id };
  const { at, ...lease } = claim;
  if (await isDisputed(db, key)) return 'disputed';
  if (await isBlocked(db, key)) return 'blocked';
  const collections = await listLastCollections(db, merchant_id, [checkout_id]);
  if (collections.some(({ status }) => status === 'open')) return 'collecting';

  const given = await listParts(db, merchant_id, checkout_id);
  const earlier = given.filter((part) => part.refund_id === refund_id);
  // An earlier round may have refunded a part. Do not refund that twice.
  const moved = sumOf(earlier.filter(({ status }) => status === 'done'));
  const rest = refund.amount - moved;
  const { instalments, parts } = await planRefund(db, merchant, checkout_id, rest, given);
  if (parts === null) return 'collecting';
  const round = Math.max(0, ...earlier.map((part) => part.round)) + 1;
  const of = { merchant_id, checkout_id, currency, refund_id };
  const movements: Movement[] = [];
  const rows: RefundPart[] = [];
  for (const [index, part] of parts.entries()) {
    const payment = instalments.find(({ number }) => number === part.instalment) as Instalment;
    rows.push(newPart(refund, part, payment, { round, number: index + 1, at }));
    if (part.kind === 'card') continue;
    await reduceInstalment(db, payment, part.amount);
    movements.push({
      ...of,
      kind: 'cancelled',
      amount: part.amount,
      instalment: part.instalment,
    });
  }
  await insertParts(db, rows);
  await pauseCollecting(db, key);
  if (from === 'failed') {
    movements.push({ ...of, kind: 'reserved', amount: rest });
  }
  await postMovements(deps, db, at, movements);
  const started = await moveRefund(db, refund, [from], {
    ...lease,
    status: 'pending',
    approved_at: refund.approved_at ?? at,
    reason: null,
    kept: 0,
    due_at: at,
    attempts: 0,
  });
  assert(started, 'the refund is locked');
  return started;
}

export const sumOf = (parts: { amount: number }[]) =>
  parts.reduce((sum, { amount }) => sum + amount, 0);

function newPart(
  { merchant_id, checkout_id, id: refund_id }: RefundRequest,
  part: PlannedPart,
  payment: Instalment,
  { round, number, at }: { round: number; number: number; at: Timestamp },
): RefundPart {
  const isWhole = part.amount === payment.amount - payment.reduced;
  // The gateway must void a hold that is taken whole. Of a reduced hold, less is captured later.
  const isOpen = part.kind === 'card' || (part.kind === 'hold' && isWhole);
  return {
    ...part,
    merchant_id,
    id: partId(refund_id, round, part.instalment),
    checkout_id,
    refund_id,
    round,
    number,
    status: isOpen ? 'open' : 'done',
    from_status: payment.status,
    payment_ref: part.kind === 'cancel' ? null : payment.payment_ref,
    key_number: 1,
    keyed_at: at,
    asked_at: null,
    refund_ref: null,
    settled_at: isOpen ? null : at,
  };
}
