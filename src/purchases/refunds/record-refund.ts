import assert from 'node:assert/strict';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { writeAndCommit, writeTogether } from '#platform/database/write-together.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { endPause } from '#purchases/disputes/answer-dispute.ts';
import { listInstalments } from '#purchases/instalments/instalment.sql.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { resumeCollecting, resumedAfter } from '#purchases/instalments/pause-collecting.ts';
import {
  cancelHeldInstalment,
  restoreInstalment,
} from '#purchases/instalments/reduce-instalment.ts';
import { aboutRefund } from '#purchases/messages/message.ts';
import { messagesOf, type QueueDeps } from '#purchases/messages/queue-messages.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { type Movement, postMovements, reversalsOf } from '#record/ledger/post-movements.ts';
import { announceRefund } from './announce-refund.ts';
import {
  listParts,
  lockWithCheckout,
  movePart,
  moveRefund,
  updatePartStates,
  updateState,
} from './refund.sql.ts';
import { nextWatch, type RefundPart, type RefundRequest } from './refund.ts';
import { readProgress } from './refund-sources.sql.ts';
import { sumOf } from './start-refund.ts';

export type PartAnswer =
  | { outcome: 'done' | 'pending' | 'failed'; refund_ref: string | null }
  /**
   * The request never arrived and its key is too old to be sent again. A request with a new key may
   * be sent.
   */
  | { outcome: 'lost' };

type RecordDeps = QueueDeps & { database: Database; clock: Clock; log: Logger };

/**
 * Writes the outcomes of parts of a pending refund, and their consequences, in one transaction. An
 * outcome counts only under the lease under which it was obtained. The refund completes once no
 * part is open and none failed. It fails once a part has failed and no card part is open: what can
 * be undone is then put back. Returns the refund if it has ended or another process has claimed it,
 * and otherwise what the caller has to do next.
 */
export async function recordParts(
  deps: RecordDeps,
  merchant: Merchant,
  refund: RefundRequest,
  partAnswers: { part: RefundPart; answer: PartAnswer }[],
): Promise<RefundRequest | 'continues' | 'waits'> {
  return await transaction(deps, async (tx) => {
    const { db } = tx;
    const now = merchant.now();
    const at = timestamp(now);
    const isHeld = partAnswers.some(({ part }) => part.kind === 'hold');
    const [current, { instalments, parts: before, books, losses }] = await Promise.all([
      lockWithCheckout(db, refund),
      readProgress(db, refund, at, isHeld),
    ]);
    // Another process claimed the refund, or an earlier run of this transaction was committed.
    if (current.lease !== refund.lease || current.status !== 'pending') return current;
    const moved = movePartsBy(before, partAnswers, at);
    const parts = before.map((part) => moved.find(({ id }) => id === part.id) ?? part);
    const round = Math.max(...parts.map((part) => part.round));
    const latest = parts.filter((part) => part.round === round);
    const open = latest.filter(({ status }) => status === 'open');
    const done = moved.filter(({ status }) => status === 'done');
    const { movements, cancelled } = effectsOf(refund, done, instalments);
    const isComplete = open.length === 0 && !latest.some(({ status }) => status === 'failed');
    const ending = isComplete ? completionOf(deps, current, parts, latest, now) : null;
    if (ending) movements.push(ending.movement);
    const writes = {
      ...(moved.length > 0 && { parts: updatePartStates(refund, moved) }),
      ...reversalsOf(deps, at, books, movements),
      ...ending?.writes,
    };
    if (ending) {
      if (losses.length > 0) await decideRest(db, refund, losses, done);
      await announceRefund(deps, db, merchant, ending.refund);
      // One statement cannot write a payment twice, so collecting is resumed in a second one if a
      // payment was cancelled.
      await (cancelled
        ? Promise.all([
            writeTogether(db, { ...writes, cancelled }),
            resumeCollecting(db, refund),
            tx.commit(),
          ])
        : writeAndCommit(tx, { ...writes, resumed: resumedAfter(refund) }));
      return ending.refund;
    }
    await writeTogether(db, { ...writes, ...(cancelled && { cancelled }) });
    const isAsked = open.some(({ kind }) => kind === 'card');
    const hasFailed = latest.some(({ status }) => status === 'failed');
    if (hasFailed && !isAsked) return await failPending(deps, db, merchant, refund, latest, now);
    const isWaiting = partAnswers.some(({ answer }) => answer.outcome === 'pending');
    return isWaiting ? 'waits' : 'continues';
  });
}

/** The parts that the gateway's answers change, in their new states. */
function movePartsBy(
  current: RefundPart[],
  partAnswers: { part: RefundPart; answer: PartAnswer }[],
  at: Timestamp,
): RefundPart[] {
  return partAnswers.flatMap(({ part: asked, answer }) => {
    const part = current.find(({ id }) => id === asked.id);
    // An earlier run wrote this answer.
    if (part?.status !== asked.status || part.key_number !== asked.key_number) return [];
    if (answer.outcome === 'lost') {
      return [{ ...part, key_number: part.key_number + 1, keyed_at: at }];
    }
    const { refund_ref, outcome } = answer;
    if (outcome === 'pending') return [{ ...part, refund_ref }];
    return [{ ...part, refund_ref, status: outcome, settled_at: at }];
  });
}

/** The effects of the finished parts on the books and on the plan. */
function effectsOf(refund: RefundRequest, done: RefundPart[], instalments: Instalment[]) {
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const of = { merchant_id, checkout_id, currency, refund_id };
  const movements = done.map(({ kind, amount, instalment }): Movement => {
    if (kind === 'card') return { ...of, instalment, kind: 'refunded', amount };
    return { ...of, instalment, kind: 'voided', amount: paymentOf(instalments, instalment).amount };
  });
  // A checkout has only one hold, that of its first payment.
  const held = done.find(({ kind }) => kind === 'hold');
  const cancelled = held && cancelHeldInstalment(paymentOf(instalments, held.instalment));
  return { movements, cancelled };
}

function paymentOf(instalments: Instalment[], number: number): Instalment {
  const payment = instalments.find((one) => one.number === number);
  assert(payment);
  return payment;
}

/**
 * After a lost dispute the plan stays paused until it is decided whether the rest of it stays due.
 * A refund that leaves nothing to collect decides that.
 */
async function decideRest(
  db: Handle,
  { merchant_id, checkout_id }: RefundRequest,
  losses: { id: string }[],
  done: RefundPart[],
): Promise<void> {
  const key = { merchant_id, checkout_id };
  const isLeft = ({ number, status }: Instalment) =>
    status !== 'collected' &&
    status !== 'cancelled' &&
    // A payment whose hold was just voided is cancelled in a later statement.
    !done.some(({ kind, instalment }) => kind === 'hold' && instalment === number);
  if ((await listInstalments(db, key)).some(isLeft)) return;
  for (const { id } of losses) await endPause(db, { ...key, id });
}

function completionOf(
  deps: RecordDeps,
  current: RefundRequest,
  parts: RefundPart[],
  round: RefundPart[],
  now: Temporal.Instant,
) {
  const at = timestamp(now);
  const { merchant_id, checkout_id, id, amount } = current;
  const to = {
    ...released,
    status: 'complete' as const,
    completed_at: at,
    due_at: watchesAt(parts, at, now),
    attempts: 0,
  };
  const about = aboutRefund({ id, round: round[0]?.round ?? 1 });
  const messages = messagesOf(deps, [
    { merchant_id, checkout_id, kind: 'refunded', about, facts: { amount }, at },
  ]);
  return {
    refund: { ...current, ...to },
    movement: releaseOf(current, round),
    writes: { refund: updateState(current, ['pending'], to), messages },
  };
}

/**
 * When to check an ended refund next, or null. Only a refund with a part that went to a card is
 * checked (decision 0014).
 */
function watchesAt(parts: RefundPart[], ended_at: Timestamp, now: Temporal.Instant) {
  const look = parts.some(isOnCard) ? nextWatch(ended_at, now) : null;
  return look && timestamp(look);
}

export const isOnCard = ({ kind, status }: RefundPart) => kind === 'card' && status === 'done';

/**
 * Fails a refund after the gateway refused a part of it, and undoes what can be undone (decision
 * 0014).
 */
async function failPending(
  deps: RecordDeps,
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  round: RefundPart[],
  now: Temporal.Instant,
): Promise<RefundRequest> {
  const at = timestamp(now);
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const movements: Movement[] = [];
  const instalments = await listInstalments(db, refund);
  for (const part of round.filter(({ kind }) => kind !== 'card')) {
    const payment = paymentOf(instalments, part.instalment);
    const taken = { amount: part.amount, was: part.from_status };
    await restoreInstalment(db, merchant, payment, taken, now);
    await movePart(db, part, { status: 'put_back', settled_at: at });
    const of = { merchant_id, checkout_id, currency, refund_id };
    const { amount, instalment } = part;
    movements.push({ ...of, kind: 'restored', amount, instalment });
  }
  await postMovements(deps, db, at, movements);
  const reason = 'The gateway refused to give the money back to the card.';
  const failed = await fail(deps, db, merchant, refund, 'pending', reason);
  await end(deps, db, refund, round, at);
  return failed;
}

/**
 * Makes a refund `failed`. Parts that stay done count as refunded (`kept`), so a retry refunds only
 * the rest. Those that reached the card are still watched, because the card network may return them
 * too.
 */
async function fail(
  deps: RecordDeps,
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  from: 'requested' | 'pending' | 'complete' | 'failed',
  reason: string,
): Promise<RefundRequest> {
  const now = merchant.now();
  const parts = await listParts(db, refund);
  const failed = await moveRefund(db, refund, [from], {
    ...released,
    status: 'failed',
    reason,
    kept: sumOf(parts.filter(({ status }) => status === 'done')),
    due_at: watchesAt(parts, timestamp(now), now),
    attempts: 0,
  });
  await raiseAlert(deps, db, {
    kind: 'refund_failed',
    merchant_id: refund.merchant_id,
    subject_id: refund.id,
    detail: `The refund failed. ${reason}`,
  });
  assert(failed, 'the refund is locked');
  await announceRefund(deps, db, merchant, failed);
  return failed;
}

/** Releases what the refund reserved, and resumes collecting unless something else pauses it. */
async function end(
  deps: { random: Random },
  db: Handle,
  refund: RefundRequest,
  round: RefundPart[],
  at: string,
): Promise<void> {
  await postMovements(deps, db, at, [releaseOf(refund, round)]);
  await resumeCollecting(db, refund);
}

function releaseOf(refund: RefundRequest, round: RefundPart[]): Movement {
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const of = { merchant_id, checkout_id, currency, refund_id };
  return { ...of, kind: 'released', amount: sumOf(round) };
}

/**
 * Fails a refund that has not begun, in a transaction that holds the checkout's lock, because a
 * dispute or another refund took the money that it needed.
 */
export async function failRequested(
  deps: RecordDeps,
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  reason: string,
): Promise<RefundRequest> {
  const failed = await fail(deps, db, merchant, refund, 'requested', reason);
  const { merchant_id, checkout_id, currency, id: refund_id, amount } = refund;
  await postMovements(deps, db, timestamp(merchant.now()), [
    { merchant_id, checkout_id, currency, refund_id, kind: 'released', amount },
  ]);
  return failed;
}

/**
 * Records whether the money that an ended refund returned to the card is still there. If the card
 * network returned some of it, the refund has failed. Payments that the refund cancelled stay
 * cancelled, because the shopper may have read so in the mail or on the plan page (decision 0014).
 */
export async function recordWatch(
  deps: RecordDeps,
  merchant: Merchant,
  refund: RefundRequest,
  returned: RefundPart[],
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    const current = await lockWithCheckout(db, refund);
    if (current.lease !== refund.lease) return;
    const { status } = current;
    if (status !== 'complete' && status !== 'failed') return;
    const now = merchant.now();
    const at = timestamp(now);
    if (returned.length === 0) {
      const parts = await listParts(db, refund);
      // A refund fails when the last of its parts is settled.
      const settled = parts.flatMap(({ settled_at }) => settled_at ?? []).sort();
      const ended_at = status === 'complete' ? current.completed_at : settled.at(-1);
      assert(ended_at);
      const due_at = watchesAt(parts, ended_at, now);
      await moveRefund(db, refund, [status], { ...released, due_at, attempts: 0 });
      return;
    }
    const { merchant_id, checkout_id, currency, id: refund_id } = refund;
    const of = { merchant_id, checkout_id, currency, refund_id };
    for (const part of returned) await movePart(db, part, { status: 'failed', settled_at: at });
    await postMovements(
      deps,
      db,
      at,
      returned.map(({ amount, instalment }) => ({ ...of, kind: 'returned', amount, instalment })),
    );
    const reason = 'The card network returned money that was given back.';
    await fail(deps, db, merchant, refund, status, reason);
  });
}
