import assert from 'node:assert/strict';
import { lockCheckout } from '../checkouts/checkout.sql.ts';
import type { Database, Handle } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import { listInstalments, movePaused, moveReduced } from '../instalments/instalment.sql.ts';
import { collectsAt, type Instalment, nextCollectionTime } from '../instalments/instalment.ts';
import { type Movement, postMovements } from '../ledger/post-movements.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { raiseAlert } from '../operators/raise-alert.ts';
import { type Clock, type Timestamp, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { listCheckoutRefunds, listParts, lockRefund, movePart, moveRefund } from './refund.sql.ts';
import { nextWatch, type RefundPart, type RefundRequest } from './refund.ts';
import { sumOf } from './start-refund.ts';

export type PartFinding =
  | { outcome: 'done' | 'pending' | 'failed'; refund_ref: string | null }
  /** It never arrived, and its key is too old to be sent again: another one may be. */
  | { outcome: 'lost' };

type RecordDeps = { database: Database; clock: Clock; random: Random; log: Logger };

const putDown = { lease: null, leased_until: null };

/**
 * Writes what became of parts of a pending refund, and what follows from it, in one transaction.
 * It counts only under the lease that it was found out with. The refund ends once no part is open:
 * until the last answer is known nobody can say what would have to be put back.
 */
export async function recordParts(
  deps: RecordDeps,
  merchant: Merchant,
  refund: RefundRequest,
  findings: { part: RefundPart; finding: PartFinding }[],
): Promise<'ended' | 'goes on' | 'waits'> {
  return await transaction(deps, async ({ db }) => {
    await lockCheckout(db, refund.merchant_id, refund.checkout_id);
    const current = await lockRefund(db, refund);
    // Another actor took it over, or this very result is committed already.
    if (current?.lease !== refund.lease || current.status !== 'pending') return 'ended';
    const now = merchantNow(deps.clock, merchant);
    const at = timestamp(now);
    const movements: Movement[] = [];
    for (const { part, finding } of findings) {
      movements.push(...(await recordPart(db, refund, part, finding, at)));
    }
    await postMovements(deps, db, at, movements);
    const parts = await listOwnParts(db, refund);
    const round = Math.max(...parts.map((part) => part.round));
    const latest = parts.filter((part) => part.round === round);
    const open = latest.filter(({ status }) => status === 'open');
    const hasFailed = latest.some(({ status }) => status === 'failed');
    const isAsked = open.some(({ kind }) => kind === 'card');
    if (hasFailed && !isAsked) {
      await failPending(deps, db, merchant, refund, latest, now);
      return 'ended';
    }
    if (open.length === 0) {
      await moveRefund(db, refund, ['pending'], {
        ...putDown,
        status: 'complete',
        completed_at: at,
        due_at: watchesAt(parts, at, now),
        tries: 0,
      });
      await end(deps, db, refund, latest, at);
      return 'ended';
    }
    const isWaiting = findings.some(({ finding }) => finding.outcome === 'pending');
    return isWaiting ? 'waits' : 'goes on';
  });
}

/** When a refund that has ended is looked at next: while any of it is on a card (D29). */
function watchesAt(parts: RefundPart[], ended_at: Timestamp, now: Temporal.Instant) {
  const look = parts.some(isOnCard) ? nextWatch(ended_at, now) : null;
  return look && timestamp(look);
}

export const isOnCard = ({ kind, status }: RefundPart) => kind === 'card' && status === 'done';

async function recordPart(
  db: Handle,
  refund: RefundRequest,
  part: RefundPart,
  finding: PartFinding,
  at: string,
): Promise<Movement[]> {
  if (finding.outcome === 'lost') {
    await movePart(db, part, { key_number: part.key_number + 1, keyed_at: at });
    return [];
  }
  const { refund_ref } = finding;
  if (finding.outcome === 'pending') {
    await movePart(db, part, { refund_ref });
    return [];
  }
  const to = { status: finding.outcome, refund_ref, settled_at: at };
  const isNews = await movePart(db, part, to);
  if (!isNews || finding.outcome === 'failed') return [];
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const of = { merchant_id, checkout_id, currency, refund_id, instalment: part.instalment };
  if (part.kind === 'card') return [{ ...of, kind: 'refunded', amount: part.amount }];
  const payment = await findPayment(db, part);
  await moveReduced(db, payment, {
    status: 'cancelled',
    reduced: payment.reduced,
    due_at: null,
  });
  return [{ ...of, kind: 'voided', amount: payment.amount }];
}

async function listOwnParts(db: Handle, refund: RefundRequest): Promise<RefundPart[]> {
  const parts = await listParts(db, refund.merchant_id, refund.checkout_id);
  return parts.filter((part) => part.refund_id === refund.id);
}

async function findPayment(db: Handle, part: RefundPart): Promise<Instalment> {
  const payments = await listInstalments(db, part);
  const payment = payments.find(({ number }) => number === part.instalment);
  assert(payment);
  return payment;
}

/** The gateway refused for good: what was taken and can be put back is put back (D29). */
async function failPending(
  deps: RecordDeps,
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  round: RefundPart[],
  now: Temporal.Instant,
): Promise<void> {
  const at = timestamp(now);
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const movements: Movement[] = [];
  for (const part of round.filter(({ kind }) => kind !== 'card')) {
    const payment = await findPayment(db, part);
    const isBack = payment.status === 'cancelled';
    await moveReduced(db, payment, {
      status: isBack ? part.from_status : payment.status,
      reduced: payment.reduced - part.amount,
      due_at:
        isBack && part.from_status === 'scheduled'
          ? timestamp(collectsAgainAt(merchant, payment, now))
          : payment.due_at,
    });
    await movePart(db, part, { status: 'put_back', settled_at: at });
    const of = { merchant_id, checkout_id, currency, refund_id };
    const { amount, instalment } = part;
    movements.push({ ...of, kind: 'restored', amount, instalment });
  }
  await postMovements(deps, db, at, movements);
  const reason = 'The gateway refused to give the money back to the card.';
  await fail(deps, db, refund, 'pending', reason, now);
  await end(deps, db, refund, round, at);
}

/** On its date, or, if that has passed meanwhile, at the next time of day for it. */
function collectsAgainAt(
  { territory: { time_zone } }: Merchant,
  payment: Instalment,
  now: Temporal.Instant,
): Temporal.Instant {
  const planned = collectsAt(payment.due_on, time_zone);
  const isPast = Temporal.Instant.compare(planned, now) <= 0;
  return isPast ? nextCollectionTime(now, time_zone) : planned;
}

/**
 * What was moved for good counts as refunded: it is not asked for again, and what is left may be.
 * What of it is on a card is watched further, because the network may return that, too.
 */
async function fail(
  deps: RecordDeps,
  db: Handle,
  refund: RefundRequest,
  from: 'pending' | 'complete' | 'failed',
  reason: string,
  now: Temporal.Instant,
): Promise<void> {
  const parts = await listOwnParts(db, refund);
  await moveRefund(db, refund, [from], {
    ...putDown,
    status: 'failed',
    reason,
    kept: sumOf(parts.filter(({ status }) => status === 'done')),
    due_at: watchesAt(parts, timestamp(now), now),
    tries: 0,
  });
  await raiseAlert(deps, db, {
    kind: 'refund_failed',
    merchant_id: refund.merchant_id,
    subject_id: refund.id,
    detail: `Refund ${refund.id} of checkout ${refund.checkout_id} failed. ${reason} Look at it with \`tranche refunds show ${refund.id}\`.`,
  });
}

/** What the refund had reserved is free, and collecting goes on unless another one is at it. */
async function end(
  deps: { random: Random },
  db: Handle,
  refund: RefundRequest,
  round: RefundPart[],
  at: string,
): Promise<void> {
  const { merchant_id, checkout_id, currency, id: refund_id } = refund;
  const of = { merchant_id, checkout_id, currency, refund_id };
  await postMovements(deps, db, at, [{ ...of, kind: 'released', amount: sumOf(round) }]);
  const refunds = await listCheckoutRefunds(db, merchant_id, checkout_id);
  if (!refunds.some(({ status }) => status === 'pending')) {
    await movePaused(db, { merchant_id, checkout_id }, false);
  }
}

/**
 * Writes what a card network says of what an ended refund gave to the card. What it returned to us
 * is ours again, and the refund has failed; payments that were cancelled stay so, because the
 * shopper was told that they are (D29).
 */
export async function recordWatch(
  deps: RecordDeps,
  merchant: Merchant,
  refund: RefundRequest,
  returned: RefundPart[],
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    await lockCheckout(db, refund.merchant_id, refund.checkout_id);
    const current = await lockRefund(db, refund);
    if (current?.lease !== refund.lease) return;
    const { status } = current;
    if (status !== 'complete' && status !== 'failed') return;
    const now = merchantNow(deps.clock, merchant);
    const at = timestamp(now);
    if (returned.length === 0) {
      const parts = await listOwnParts(db, refund);
      // When it failed, the last of its parts was settled.
      const settled = parts.flatMap(({ settled_at }) => settled_at ?? []).sort();
      const ended_at = status === 'complete' ? current.completed_at : settled.at(-1);
      assert(ended_at);
      const due_at = watchesAt(parts, ended_at, now);
      await moveRefund(db, refund, [status], { ...putDown, due_at, tries: 0 });
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
    await fail(deps, db, refund, status, reason, now);
  });
}
