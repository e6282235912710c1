import assert from 'node:assert/strict';
import type { Gateways } from '#gateway/gateways.ts';
import {
  acceptSignatures,
  needsAcceptance,
  refuseUnsigned,
  type SignedPost,
} from '#merchants/integrations/accept-signatures.ts';
import { mustSign } from '#merchants/integrations/check-signature.ts';
import { findRule, type Merchant, offeredTerms } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { noteCommit } from '#platform/database/deadline.ts';
import { type GroupCommit, groupCommit } from '#platform/database/group-commit.ts';
import { advanceListTotals } from '#platform/database/merchant-lists.sql.ts';
import { type Transaction, transaction } from '#platform/database/transaction.ts';
import { type KeyedRequest, orderOf } from '#platform/http/idempotency.sql.ts';
import { KeyTaken, recordAnswers } from '#platform/http/idempotency.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { beginCheckout } from '#platform/tracing/trace.ts';
import { verifyContext } from '#purchases/callbacks/delivery/legacy-form.ts';
import type { CreateCheckoutBody } from './checkout.schema.ts';
import { insertCheckouts, listExisting, type NewCheckout } from './checkout.sql.ts';
import type { Customer } from './checkout.ts';

/** The ids of a new checkout. The payment URL is derived from them. */
export type CreatedCheckout = { id: string; merchant_id: string };

export type CreateDeps = {
  clock: Clock;
  random: Random;
  sealing: Sealing;
  gateways: Pick<Gateways, 'choose'>;
  commitCheckout: CommitCheckout;
};

/**
 * Creates a checkout. One with a `transaction_verify` comes from v1, and gets a v1 callback
 * (decision 0040).
 */
export async function createCheckout(
  deps: CreateDeps,
  post: SignedPost & { keyed: KeyedRequest | null },
  merchant: Merchant,
  { checkout }: CreateCheckoutBody,
  transaction_verify: string | null = null,
): Promise<CreatedCheckout> {
  const id = deps.random.uuid();
  beginCheckout(id);
  const outcome = await deps.commitCheckout({
    ...post,
    at: timestamp(merchant.now()),
    checkout: newCheckout(merchant, checkout, {
      id,
      integration_id: post.caller.id,
      signed: post.key !== null,
      payment_link_id: null,
      gateway: deps.gateways.choose(merchant),
      sealed_verify:
        transaction_verify === null
          ? null
          : deps.sealing.seal(transaction_verify, verifyContext(merchant.id, id)),
    }),
  });
  if (outcome === 'key taken') throw new KeyTaken();
  if (outcome === 'must sign') throw mustSign();
  noteCommit();
  return outcome;
}

/** The row of a new checkout, from a validated body or from a payment link. */
export function newCheckout(
  merchant: Merchant,
  checkout: Omit<CreateCheckoutBody['checkout'], 'notify_url' | 'success_url'> &
    Pick<NewCheckout, 'notify_url' | 'success_url'>,
  made: Pick<
    NewCheckout,
    'id' | 'integration_id' | 'signed' | 'payment_link_id' | 'sealed_verify' | 'gateway'
  >,
): NewCheckout {
  const rule = findRule(merchant.rules, checkout.amount);
  assert(rule, 'the body was validated');
  return {
    // The statement picks the columns by their names, so other members of the body are not stored.
    ...checkout,
    ...made,
    merchant_id: merchant.id,
    customer: pickCustomer(checkout.customer),
    line_items: (checkout.line_items ?? []).map(({ name, amount, quantity }) => ({
      name,
      amount,
      quantity,
    })),
    terms: offeredTerms(rule, checkout.amount, merchant.territory.payment_min),
  };
}

/** Creates a checkout as the last step of the caller's transaction, and commits the transaction. */
export async function commitCheckoutIn(
  { client, commit }: Transaction,
  checkout: NewCheckout,
  at: Timestamp,
): Promise<void> {
  // The statements are sent without waiting for each other's answers, as in a batch.
  await Promise.all([
    advanceListTotals(client, 'checkouts', new Map([[checkout.merchant_id, { count: 1, at }]])),
    insertCheckouts(client, [{ ...checkout, behind: 0 }]),
    commit(),
  ]);
}

export function pickCustomer(customer: Customer): Customer {
  const { email, first_name, last_name, phone_number, billing_address } = customer;
  return {
    email,
    ...(first_name !== undefined && { first_name }),
    ...(last_name !== undefined && { last_name }),
    ...(phone_number !== undefined && { phone_number }),
    ...(billing_address !== undefined && { billing_address }),
  };
}

/** A checkout that is waiting for its commit. `at` is the merchant's time. */
type Waiting = SignedPost & {
  keyed: KeyedRequest | null;
  checkout: NewCheckout;
  at: Timestamp;
};
type Outcome = CreatedCheckout | 'key taken' | 'must sign';
export type CommitCheckout = GroupCommit<Waiting, Outcome>;

const commitBatchSize = 200;

/** Checkouts that arrive while a commit is in flight share the next commit. */
export function checkoutCommits(deps: {
  database: Database;
  clock: Clock;
  observeBatch?: (items: number) => void;
}): CommitCheckout {
  return groupCommit(
    deps,
    (group: Waiting[], lockMilliseconds) => commitCheckouts(deps, group, lockMilliseconds),
    commitBatchSize,
    ({ checkout }) => checkout.merchant_id,
  );
}

/**
 * A batch and its transaction. Each step decides the outcome of some checkouts, and the last one
 * creates the rest.
 */
type Batch = {
  tx: Transaction;
  /** The real time. */
  now: Timestamp;
  /** The checkouts without an outcome, in the order of their arrival. */
  open: Waiting[];
  outcomes: Map<Waiting, Outcome>;
};

async function commitCheckouts(
  deps: { database: Database; clock: Clock },
  group: Waiting[],
  lockMilliseconds?: number,
): Promise<Outcome[]> {
  const write = async (tx: Transaction, maybeCommitted: boolean) => {
    const outcomes = new Map<Waiting, Outcome>();
    const batch: Batch = { tx, now: timestamp(deps.clock.now()), open: group, outcomes };
    if (maybeCommitted) await findCommitted(batch);
    if (needsAcceptance(signable(batch.open))) await refuseUnsignedPosts(batch);
    await takeKeys(batch);
    if (batch.open.length > 0) await createOpen(batch);
    return group.map((one) => outcomes.get(one) as Outcome);
  };
  return await transaction(deps, write, lockMilliseconds === undefined ? {} : { lockMilliseconds });
}

function leaveDecided(batch: Batch): void {
  batch.open = batch.open.filter((one) => !batch.outcomes.has(one));
}

async function findCommitted(batch: Batch): Promise<void> {
  const { tx, open, outcomes } = batch;
  // If the COMMIT whose answer was lost is still in flight, its transaction holds these locks. Once
  // we have them, its fate is known.
  await advanceListTotals(tx.client, 'checkouts', roomFor(open, 0));
  const existing = await listExisting(
    tx.db,
    open.map((one) => one.checkout),
  );
  for (const one of open) {
    if (existing.has(one.checkout.id)) outcomes.set(one, created(one));
  }
  leaveDecided(batch);
}

async function refuseUnsignedPosts(batch: Batch): Promise<void> {
  const posts = signable(batch.open);
  const refused = await refuseUnsigned(batch.tx.db, posts);
  for (const one of posts) {
    if (one.key === null && refused.has(one.caller.id)) batch.outcomes.set(one, 'must sign');
  }
  leaveDecided(batch);
}

/**
 * Records the answers to requests with an Idempotency-Key. A request whose key is taken gets the
 * stored answer.
 */
async function takeKeys(batch: Batch): Promise<void> {
  const { tx, now, open, outcomes } = batch;
  const byKey = new Map<string, Waiting & { keyed: KeyedRequest }>();
  for (const one of open) {
    if (!one.keyed) continue;
    // If two requests in one batch share a key, the first one wins.
    if (byKey.has(orderOf(one.keyed))) outcomes.set(one, 'key taken');
    else byKey.set(orderOf(one.keyed), one as Waiting & { keyed: KeyedRequest });
  }
  if (byKey.size === 0) return;
  const keyed = [...byKey.values()];
  const answers = keyed.map((one) => ({
    ...one.keyed,
    status: 200 as const,
    answer: created(one),
  }));
  const isFirst = await recordAnswers(tx.db, answers, now);
  keyed.forEach((one, index) => {
    if (!isFirst[index]) outcomes.set(one, 'key taken');
  });
  leaveDecided(batch);
}

async function createOpen({ tx, now, open, outcomes }: Batch): Promise<void> {
  const { db, client, commit } = tx;
  if (needsAcceptance(signable(open))) await acceptSignatures(db, signable(open), now);
  const room = roomFor(open, 1);
  const behind = new Map([...room].map(([merchant_id, { count }]) => [merchant_id, count]));
  const rows = open.map(({ checkout }) => {
    const left = (behind.get(checkout.merchant_id) ?? 0) - 1;
    behind.set(checkout.merchant_id, left);
    return { ...checkout, behind: left };
  });
  // The statements are sent without waiting for each other's answers, so that the locks on the
  // lists are held only as long as the commit takes.
  await Promise.all([
    advanceListTotals(client, 'checkouts', room),
    insertCheckouts(client, rows),
    commit(),
  ]);
  for (const one of open) outcomes.set(one, created(one));
}

/** v1 requests carry no signatures, so mandatory signing does not apply to them (decision 0040). */
const signable = (group: Waiting[]) =>
  group.filter(({ checkout }) => checkout.sealed_verify === null);

const created = ({ checkout }: Waiting): CreatedCheckout => ({
  id: checkout.id,
  merchant_id: checkout.merchant_id,
});

/** The number of rows to add for each merchant, and the latest time of its checkouts. */
function roomFor(group: Waiting[], each: number): Map<string, { count: number; at: Timestamp }> {
  const room = new Map<string, { count: number; at: Timestamp }>();
  for (const { checkout, at } of group) {
    const same = room.get(checkout.merchant_id);
    const count = (same?.count ?? 0) + each;
    room.set(checkout.merchant_id, { count, at: same && same.at > at ? same.at : at });
  }
  return room;
}
