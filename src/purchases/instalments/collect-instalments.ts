import assert from 'node:assert/strict';
import { OutcomeUnknown } from '#gateway/gateway.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { isKeyRemembered, leaseSeconds, nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Database } from '#platform/database/database.ts';
import { releaseDue } from '#platform/database/due-work.sql.ts';
import { groupCommit } from '#platform/database/group-commit.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Tracer } from '#platform/tracing/trace.ts';
import { lockCheckouts } from '#purchases/checkouts/checkout.sql.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import { type Answer, type AskedCollection, askGateway } from './ask-gateway.ts';
import { insertCollections, moveAsked, readOpening } from './collection.sql.ts';
import {
  dueInstalments,
  lockLeased,
  moveSettled,
  type Settled,
  type StoredCard,
} from './instalment.sql.ts';
import {
  type CardDecline,
  type Collection,
  collectionId,
  findForbidding,
  type Instalment,
  notAsked,
  waitsUntil,
} from './instalment.ts';
import { type Answered, recordAnswers, recordCollections } from './record-collections.ts';

export type CollectDeps = QueueDeps & {
  database: Database;
  clock: Clock;
  log: Logger;
  gateways: Gateways;
  tracer: Tracer | null;
  metrics?: { countCollection(kind: string, outcome: string): void };
};

const work: MerchantDueWork<'instalments', CollectDeps> = {
  due: dueInstalments,
  leaseSeconds,
  // The calls to the gateway for one batch go out together.
  batchSize: 32,
  merchantsMax: 200,
  // While one loop writes answers, the other waits for the gateway.
  concurrency: 2,
  roundMilliseconds: 10_000,
  run: collectInstalments,
};

/** Collects payments that are due: captures holds and charges stored cards (decision 0027). */
export async function collectDueInstalments(
  deps: CollectDeps,
  stopping?: AbortSignal,
): Promise<number> {
  const payments = await runDueWork(deps, work, stopping);
  if (payments > 0) deps.log.info({ payments }, 'payments were collected or attempted');
  return payments;
}

export const collectMerchantInstalments = (deps: CollectDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

/** Collects claimed payments, all of one merchant and one lease, and records the outcomes. */
export async function collectInstalments(
  deps: CollectDeps,
  merchant: Merchant,
  claimed: Instalment[],
): Promise<void> {
  const opened = await openCollections(deps, merchant, claimed);
  const record = groupCommit(
    deps,
    (answers: Answered[]) => recordCollections(deps, merchant, answers),
    work.batchSize,
  );
  await Promise.all(
    opened.map((asked) => {
      const collect = async () => {
        const { kind } = asked.collection;
        try {
          const answer = await askGateway(deps, merchant, asked);
          await record({ ...asked, answer });
          deps.metrics?.countCollection(kind, answer.outcome);
        } catch (error) {
          deps.metrics?.countCollection(
            kind,
            error instanceof OutcomeUnknown ? 'unknown' : 'failed',
          );
          await releaseForRetry(deps, merchant, asked, error);
        }
      };
      const { checkout_id } = asked.instalment;
      return deps.tracer ? deps.tracer.inCheckout(checkout_id, 'collection', collect) : collect();
    }),
  );
}

/**
 * Commits each request before it is sent, so that another process can settle it if this one dies.
 * `askGateway` sends a request without a known outcome again under the same key, or looks it up.
 */
async function openCollections(
  deps: CollectDeps,
  merchant: Merchant,
  claimed: Instalment[],
): Promise<AskedCollection[]> {
  const lease = claimed[0]?.lease;
  assert(lease != null);
  const checkout_ids = [...new Set(claimed.map(({ checkout_id }) => checkout_id))];
  return await transaction(deps, async ({ db }) => {
    const now = merchant.now();
    // A refund holds this lock while it changes what is still to be collected. The statements are
    // sent together, and each begins after the previous one has its locks.
    const [checkouts, instalments, known] = await Promise.all([
      lockCheckouts(db, merchant.id, checkout_ids),
      lockLeased(db, merchant.id, lease, checkout_ids),
      readOpening(db, merchant.id, checkout_ids, now),
    ]);
    if (instalments.length === 0) return [];
    const terms = new Map(checkouts.map((one) => [one.id, one.number_of_payments ?? 1]));
    const last = new Map(known.last.map((one) => [`${one.checkout_id}:${one.instalment}`, one]));
    const cards = new Map(known.cards.map((card) => [card.checkout_id, card]));
    const at = timestamp(now);
    const asked_at = timestamp(deps.clock.now());
    const fresh: Collection[] = [];
    const again: Collection[] = [];
    const refused: Answered[] = [];
    const waiting: Settled[] = [];
    const asked = instalments.flatMap((instalment) => {
      const before = last.get(`${instalment.checkout_id}:${instalment.number}`);
      const card = cards.get(instalment.checkout_id) ?? null;
      const number_of_payments = terms.get(instalment.checkout_id) ?? 1;
      if (before?.status === 'open') {
        if (isKeyRemembered(before.created_at, at)) again.push(before);
        const pinned = pinnedCard(before) ?? card;
        return [{ instalment, collection: before, card: pinned, number_of_payments }];
      }
      const until =
        card && instalment.status !== 'authorised' && waitsUntil(known.declines, card, now);
      if (until) {
        // The bank was not asked, so this does not count as an attempt.
        waiting.push({ ...instalment, due_at: timestamp(until) });
        return [];
      }
      const number = (before?.number ?? 0) + 1;
      const collection = newCollection(instalment, number, card, { created_at: at, asked_at });
      fresh.push(collection);
      const asking = { instalment, collection, card, number_of_payments };
      const answer = answerUnasked(known.declines, asking, now);
      if (answer === null) return [asking];
      refused.push({ ...asking, answer });
      return [];
    });
    if (fresh.length > 0) await insertCollections(db, fresh);
    if (waiting.length > 0) await moveSettled(db, merchant.id, waiting);
    if (refused.length > 0) await recordAnswers(deps, db, merchant, refused);
    for (const collection of again) await moveAsked(db, collection, asked_at);
    return asked;
  });
}

/**
 * The decline that is recorded, without asking the bank, for a charge that an earlier decline
 * forbids. Null if none does.
 */
function answerUnasked(
  declines: CardDecline[],
  { instalment, collection: { kind }, card }: AskedCollection,
  now: Temporal.Instant,
): Answer | null {
  const forbidding =
    kind === 'charge' && card && findForbidding(declines, card, [instalment.number], now);
  if (!forbidding) return null;
  const { decline, isForGood } = forbidding;
  return {
    outcome: 'declined',
    payment_ref: null,
    decline: {
      reason: isForGood ? (decline.decline_reason ?? 'generic') : 'velocity_exceeded',
      may_retry: !isForGood,
      code: notAsked,
      ...(isForGood && { card_key: decline.card_key }),
    },
  };
}

function newCollection(
  instalment: Instalment,
  number: number,
  card: StoredCard | null,
  times: { created_at: Timestamp; asked_at: Timestamp },
): Collection {
  const { merchant_id, checkout_id } = instalment;
  const isHeld = instalment.status === 'authorised';
  return {
    merchant_id,
    id: collectionId(checkout_id, instalment.number, number),
    checkout_id,
    instalment: instalment.number,
    number,
    kind: isHeld ? 'capture' : 'charge',
    status: 'open',
    amount: instalment.amount - instalment.reduced,
    currency: instalment.currency,
    card_ref: isHeld ? null : (card?.card_ref ?? null),
    customer_ref: isHeld ? null : (card?.customer_ref ?? null),
    card_key: isHeld ? null : (card?.card_key ?? null),
    payment_ref: null,
    decline_reason: null,
    may_retry: null,
    decline_code: null,
    network_decline_code: null,
    wait_hours: null,
    scheme: null,
    ...times,
    settled_at: null,
  };
}

/**
 * The card that a request was opened with, which the shopper may have replaced since. Null if the
 * request was opened without a card.
 */
function pinnedCard(collection: Collection): StoredCard | null {
  const { checkout_id, customer_ref, card_ref, card_key } = collection;
  return customer_ref !== null && card_ref !== null
    ? { checkout_id, customer_ref, card_ref, card_key }
    : null;
}

/** The collection stays open until a later claim settles it. */
async function releaseForRetry(
  deps: CollectDeps,
  merchant: Merchant,
  { instalment, collection }: AskedCollection,
  error: unknown,
): Promise<void> {
  const { merchant_id, checkout_id, number, lease, attempts } = instalment;
  const about = { err: error, checkout_id, instalment: number };
  if (error instanceof OutcomeUnknown) {
    deps.log.warn(about, `the outcome of a ${collection.kind} is not known yet`);
  } else {
    deps.log.error(about, `a ${collection.kind} could not be settled`);
  }
  try {
    assert(lease !== null);
    const retryAt = timestamp(nextRetryAt(merchant.now(), attempts));
    const key = { merchant_id, checkout_id, number };
    await releaseDue(deps.database.db, 'instalments', key, lease, retryAt);
    await raiseGatewayAlert(deps, merchant, {
      what: `Payment ${number}`,
      subject_id: checkout_id,
      error,
      isOutcomeUnknown: error instanceof OutcomeUnknown,
      retries: attempts,
    });
  } catch (failure) {
    // If the release fails too, the lease runs out.
    deps.log.error({ ...about, err: failure }, 'the lease of a payment could not be released');
  }
}
