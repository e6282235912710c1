import { sql } from 'kysely';
import type { Evidence } from '#gateway/evidence.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Dispute } from './dispute.ts';
import type { Supplied } from './supplied.ts';

export const dueDisputes: DueWork<'disputes'> = { table: 'disputes', due: 'due_at' };

export async function insertDispute(
  db: Handle,
  dispute: Dispute & { staged_evidence: null; supplied: null },
): Promise<void> {
  await db.insertInto('disputes').values(dispute).execute();
}

/** The checkout that collected the payment with this reference at the gateway. Null if none did. */
export async function findDisputedCheckout(
  db: Handle,
  gateway: GatewayName,
  payment_ref: string,
): Promise<Pick<Dispute, 'merchant_id' | 'checkout_id' | 'gateway'> | null> {
  const row = await db
    .selectFrom('collections as k')
    .innerJoin('checkouts as c', (on) =>
      on.onRef('c.id', '=', 'k.checkout_id').onRef('c.merchant_id', '=', 'k.merchant_id'),
    )
    .select(['k.merchant_id', 'k.checkout_id', 'c.gateway'])
    .where('k.payment_ref', '=', payment_ref)
    .where('k.status', '=', 'collected')
    .where('c.gateway', '=', gateway)
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Whether a request is in flight that may have made a payment that was disputed at `opened_at`.
 * Allows an hour, because the gateway's clock may differ from ours.
 */
export async function hasOpenCollections(db: Handle, opened_at: string): Promise<boolean> {
  const row = await db
    .selectFrom('collections')
    .select('id')
    .where('status', '=', 'open')
    .where(sql<boolean>`created_at <= ${opened_at}::timestamptz + interval '1 hour'`)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * The reference of the newest dispute in the last complete poll that found any. Null if there was
 * no such poll.
 */
export async function findReached(db: Handle, gateway: GatewayName): Promise<string | null> {
  const row = await db
    .selectFrom('dispute_poll')
    .select('reached')
    .where('gateway', '=', gateway)
    .executeTakeFirst();
  return row?.reached ?? null;
}

export async function moveReached(
  db: Handle,
  gateway: GatewayName,
  reached: string,
): Promise<void> {
  await db
    .insertInto('dispute_poll')
    .values({ gateway, reached })
    .onConflict((conflict) => conflict.column('gateway').doUpdateSet({ reached }))
    .execute();
}

/**
 * The states of those disputes that we know, by the gateway's reference. If `gateway` is null, the
 * disputes may be at any gateway.
 */
export async function listKnownRefs(
  db: Handle,
  gateway: GatewayName | null,
  refs: string[],
): Promise<Map<string, Pick<Dispute, 'status' | 'withdrawn'>>> {
  if (refs.length === 0) return new Map();
  const rows = await db
    .selectFrom('disputes')
    .select(['dispute_ref', 'status', 'withdrawn'])
    .where('dispute_ref', 'in', refs)
    .$if(gateway !== null, (query) => query.where('gateway', '=', gateway as GatewayName))
    .execute();
  return new Map(rows.map(({ dispute_ref, ...state }) => [dispute_ref, state]));
}

export async function findDisputeByRef(
  db: Handle,
  merchant_id: string,
  gateway: GatewayName,
  dispute_ref: string,
): Promise<Dispute | null> {
  const row = await db
    .selectFrom('disputes')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('gateway', '=', gateway)
    .where('dispute_ref', '=', dispute_ref)
    .executeTakeFirst();
  return row ?? null;
}

/** A dispute of any merchant, by the gateway's reference. */
export async function findDisputeOfAny(
  db: Handle,
  by: { gateway: GatewayName; dispute_ref: string },
): Promise<Dispute | null> {
  const row = await db
    .selectFrom('disputes')
    .selectAll()
    .where('dispute_ref', '=', by.dispute_ref)
    .where('gateway', '=', by.gateway)
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Finds a dispute by our id or a gateway's, for an operator. Returns two if the reference is
 * ambiguous.
 */
export async function listDisputesOfAny(
  db: Handle,
  by: { id: string } | { dispute_ref: string },
): Promise<Dispute[]> {
  const query = db.selectFrom('disputes').selectAll().limit(2);
  return await ('id' in by
    ? query.where('id', '=', by.id)
    : query.where('dispute_ref', '=', by.dispute_ref)
  ).execute();
}

type Moved = Partial<
  Pick<
    Dispute,
    | 'amount'
    | 'reason'
    | 'network_reason_code'
    | 'status'
    | 'due_by'
    | 'withdrawn'
    | 'fee'
    | 'reads'
    | 'is_pausing'
    | 'warned_at'
    | 'supplied_at'
    | 'asked_at'
    | 'asked_until'
    | 'submitting_at'
    | 'submitting_until'
    | 'submitted_at'
    | 'closed_at'
    | 'due_at'
    | 'attempts'
    | 'lease'
    | 'leased_until'
  >
>;

export async function moveDispute(
  db: Handle,
  { merchant_id, id }: Pick<Dispute, 'merchant_id' | 'id'>,
  to: Moved,
): Promise<Dispute> {
  return await db
    .updateTable('disputes')
    .set(to)
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

export async function lockDispute(
  db: Handle,
  { merchant_id, id }: Pick<Dispute, 'merchant_id' | 'id'>,
): Promise<Dispute> {
  return await db
    .selectFrom('disputes')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow();
}

export async function updateStagedEvidence(
  db: Handle,
  { merchant_id, id }: Pick<Dispute, 'merchant_id' | 'id'>,
  {
    evidence,
    ...staged
  }: { evidence: Evidence; staged_files: string[]; staged_hash: string; staged_at: Timestamp },
): Promise<void> {
  await db
    .updateTable('disputes')
    .set({ ...staged, staged_evidence: JSON.stringify(evidence) })
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .execute();
}

export async function updateSupplied(
  db: Handle,
  { merchant_id, id }: Pick<Dispute, 'merchant_id' | 'id'>,
  supplied: Supplied,
  supplied_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('disputes')
    .set({ supplied: JSON.stringify(supplied), supplied_at })
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .execute();
}

export async function updateSubmitting(
  db: Handle,
  { merchant_id, id }: Pick<Dispute, 'merchant_id' | 'id'>,
  to: Partial<Pick<Dispute, 'submitting_at' | 'submitting_until'>>,
): Promise<void> {
  await db
    .updateTable('disputes')
    .set(to)
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .execute();
}

/** The disputes of all merchants that are open or whose money is not booked, oldest first. */
export async function listOpenDisputes(db: Handle): Promise<Dispute[]> {
  return await db
    .selectFrom('disputes')
    .selectAll()
    .where('due_at', 'is not', null)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

export async function listCheckoutDisputes(
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
): Promise<Dispute[]> {
  return await db
    .selectFrom('disputes')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/**
 * For each payment and each state of its disputes, the one that opened or closed last. These are
 * enough to know the state of every payment.
 */
export const selectDisputeStates = (
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
) =>
  db
    .selectFrom('disputes')
    .selectAll()
    .distinctOn(['payment_ref', 'status', 'is_pausing', isDisputeOpen])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('payment_ref')
    .orderBy('status')
    .orderBy('is_pausing')
    .orderBy(isDisputeOpen)
    .orderBy(sql`coalesce(closed_at, created_at)`, 'desc');

const isDisputeOpen = sql<boolean>`(closed_at is null)`;

export async function listDisputeStates(
  db: Handle,
  key: { merchant_id: string; checkout_id: string },
): Promise<Dispute[]> {
  return await selectDisputeStates(db, key).execute();
}

const selectIds = (
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
) =>
  db
    .selectFrom('disputes')
    .select('id')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id);

/** The open disputes of a checkout. While there is one, none of the checkout's money may move. */
export const selectOpenDisputes = (db: Handle, key: Parameters<typeof selectIds>[1]) =>
  selectIds(db, key).where('closed_at', 'is', null);

/** The lost disputes that pause a checkout until the rest of its plan is decided. */
export const selectPausingLosses = (db: Handle, key: Parameters<typeof selectIds>[1]) =>
  selectIds(db, key).where('is_pausing', '=', true).where('closed_at', 'is not', null);

/** A lost dispute whose money the gateway has not withdrawn yet. */
const isUnbookedLoss = sql<boolean>`(status = 'lost' and withdrawn = 0)`;

/** The amounts of lost disputes that the gateway has yet to withdraw from a checkout's payments. */
export const selectUnbookedLosses = (db: Handle, key: Parameters<typeof selectIds>[1]) =>
  selectIds(db, key).clearSelect().select(['payment_ref', 'amount']).where(isUnbookedLoss);

/**
 * The sum that the disputes of a checkout hold or have taken: the whole amount of each one that is
 * open, or lost before the gateway has withdrawn the money, and what the others withdrew.
 */
export async function sumDisputed(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<number> {
  const { rows } = await sql<{ sum: number }>`
    select coalesce(sum(
      case when closed_at is null or ${isUnbookedLoss} then amount else withdrawn end), 0)::bigint
      as sum
    from disputes
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  return rows[0]?.sum ?? 0;
}

/** Whether a refund of the checkout was requested and has not ended. */
export async function hasOpenRefund(
  db: Handle,
  { merchant_id, checkout_id }: Pick<Dispute, 'merchant_id' | 'checkout_id'>,
): Promise<boolean> {
  const row = await db
    .selectFrom('refund_requests')
    .select('id')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('status', 'in', ['requested', 'pending'])
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
