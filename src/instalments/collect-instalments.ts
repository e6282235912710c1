import assert from 'node:assert/strict';
import { lockCheckouts } from '../checkouts/checkout.sql.ts';
import type { Database } from '../database/database.ts';
import { claimDue, listMerchantsWithDue, newLease } from '../database/due-work.sql.ts';
import { groupCommit } from '../database/group-commit.ts';
import { transaction } from '../database/transaction.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { OutcomeUnknown } from '../gateway/gateway.ts';
import { isKeyKnown, leaseSeconds, nextLook } from '../gateway/patience.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { raiseGatewayAlert } from '../operators/raise-gateway-alert.ts';
import { type Clock, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { type AskedCollection, askGateway } from './ask-gateway.ts';
import {
  dueInstalments,
  insertCollections,
  listLastCollections,
  listStoredCards,
  lockLeased,
  moveAsked,
  movePutDown,
} from './instalment.sql.ts';
import type { Collection, Instalment } from './instalment.ts';
import { type Answered, recordCollections } from './record-collections.ts';

export type CollectDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateway: Gateway;
};

const mostMerchants = 200;
/** In hand at once: in one lane, whose calls to the gateway go out together. */
const mostInLane = 32;
/** While one lane writes down what it heard, the other one asks. */
const lanes = 2;
/** Who else has something due by now is asked after so long, however much there still is. */
const roundMilliseconds = 10_000;

/**
 * Takes the payments that are due: captures of holds and charges of stored cards (D23). Merchants
 * take turns, a handful each; one that is alone has all lanes.
 */
export async function collectDueInstalments(
  deps: CollectDeps,
  stopping?: AbortSignal,
): Promise<number> {
  const { db } = deps.database;
  const now = timestamp(deps.clock.now());
  const due = await listMerchantsWithDue(db, dueInstalments, now, mostMerchants);
  const waiting = new Set(due);
  const served = new Set<string>();
  const end = deps.clock.monotonic() + roundMilliseconds;
  let payments = 0;

  /** Whose turn it is; they are the last in the queue then. */
  function next(): string | undefined {
    const [id] = waiting;
    if (id === undefined || stopping?.aborted) return undefined;
    // Nobody comes twice after the end, so everybody has come once.
    if (served.has(id) && deps.clock.monotonic() > end) return undefined;
    waiting.delete(id);
    waiting.add(id);
    served.add(id);
    return id;
  }

  async function lane(): Promise<void> {
    for (let id = next(); id !== undefined; id = next()) {
      const merchant = await findMerchant(db, id);
      const count = merchant ? await collectSome(deps, merchant) : 0;
      payments += count;
      if (count < mostInLane) waiting.delete(id);
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane));
  if (payments > 0) deps.log.info({ payments }, 'payments were asked for');
  return payments;
}

export async function collectMerchantInstalments(
  deps: CollectDeps,
  merchant: Merchant,
): Promise<number> {
  const counts = await Promise.all(
    Array.from({ length: lanes }, () => collectSome(deps, merchant)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

async function collectSome(deps: CollectDeps, merchant: Merchant): Promise<number> {
  const merchantTime = timestamp(merchantNow(deps.clock, merchant));
  const claim = { ...newLease(deps, leaseSeconds), merchantNow: merchantTime };
  const claimed = await claimDue(deps.database.db, dueInstalments, merchant.id, claim, mostInLane);
  if (claimed.length > 0) await collectInstalments(deps, merchant, claimed);
  return claimed.length;
}

/** Asks the gateway for payments in hand, all of them under one lease, and writes what it said. */
export async function collectInstalments(
  deps: CollectDeps,
  merchant: Merchant,
  claimed: Instalment[],
): Promise<void> {
  const opened = await openCollections(deps, merchant, claimed);
  const record = groupCommit(
    (answers: Answered[]) => recordCollections(deps, merchant, answers),
    mostInLane,
  );
  await Promise.all(
    opened.map(async (asked) => {
      try {
        await record({ ...asked, finding: await askGateway(deps, merchant, asked) });
      } catch (error) {
        await putDown(deps, merchant, asked, error);
      }
    }),
  );
}

/**
 * Writes down what will be asked before it is asked, so that whatever happens to this process
 * somebody will find out what became of it. One that was asked before, and whose answer nobody
 * knows, is asked for again under the same key.
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
    // A refund decides under this lock what is still to be collected.
    await lockCheckouts(db, merchant.id, checkout_ids);
    const instalments = await lockLeased(db, merchant.id, lease, checkout_ids);
    if (instalments.length === 0) return [];
    const last = new Map(
      (await listLastCollections(db, merchant.id, checkout_ids)).map((one) => [
        `${one.checkout_id}:${one.instalment}`,
        one,
      ]),
    );
    const cards = new Map(
      (await listStoredCards(db, merchant.id, checkout_ids)).map((card) => [
        card.checkout_id,
        card,
      ]),
    );
    const at = timestamp(merchantNow(deps.clock, merchant));
    const asked_at = timestamp(deps.clock.now());
    const fresh: Collection[] = [];
    const again: Collection[] = [];
    const asked = instalments.map((instalment) => {
      const before = last.get(`${instalment.checkout_id}:${instalment.number}`);
      const card = cards.get(instalment.checkout_id) ?? null;
      if (before?.status === 'open') {
        if (isKeyKnown(before.created_at, at)) again.push(before);
        return { instalment, collection: before, card };
      }
      const collection: Collection = {
        merchant_id: merchant.id,
        id: deps.random.uuid(),
        checkout_id: instalment.checkout_id,
        instalment: instalment.number,
        number: (before?.number ?? 0) + 1,
        kind: instalment.status === 'authorised' ? 'capture' : 'charge',
        status: 'open',
        amount: instalment.amount - instalment.reduced,
        currency: instalment.currency,
        payment_ref: null,
        decline_reason: null,
        may_retry: null,
        created_at: at,
        asked_at,
        settled_at: null,
      };
      fresh.push(collection);
      return { instalment, collection, card };
    });
    if (fresh.length > 0) await insertCollections(db, fresh);
    for (const collection of again) await moveAsked(db, collection, asked_at);
    return asked;
  });
}

/** It stays open; whoever looks at it next finds out. */
async function putDown(
  deps: CollectDeps,
  merchant: Merchant,
  { instalment, collection }: AskedCollection,
  error: unknown,
): Promise<void> {
  const about = { err: error, checkout_id: instalment.checkout_id, instalment: instalment.number };
  if (error instanceof OutcomeUnknown) {
    deps.log.warn(about, `the outcome of a ${collection.kind} is not known yet`);
  } else {
    deps.log.error(about, `a ${collection.kind} could not be settled`);
  }
  try {
    const again = nextLook(merchantNow(deps.clock, merchant), instalment.tries);
    await movePutDown(deps.database.db, instalment, timestamp(again));
    await raiseGatewayAlert(deps, merchant, {
      what: `Payment ${instalment.number} of checkout ${instalment.checkout_id}`,
      subject_id: instalment.checkout_id,
      error,
      isOutcomeUnknown: error instanceof OutcomeUnknown,
      retries: instalment.tries,
    });
  } catch (failure) {
    // Its lease will run out all the same.
    deps.log.error({ ...about, err: failure }, 'a payment was not put down');
  }
}
