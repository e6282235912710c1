import { sql } from 'kysely';
import type { Evidence } from '#gateway/gateway.ts';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Dispute } from './dispute.ts';

export const dueDisputes: DueWork<'disputes'> = { table: 'disputes', due: 'due_at' };

export async function insertDispute(
  db: Handle,
  dispute: Dispute & { staged_evidence: null },
): Promise<void> {
  await db.insertInto('disputes').values(dispute).execute();
}

/** The checkout whose payment has this ID at the gateway. Null if it is not ours. */
export async function findDisputedCheckout(
  db: Handle,
  payment_ref: string,
): Promise<{ merchant_id: string; checkout_id: string } | null> {
  const row = await db
    .selectFrom('collections')
    .select(['merchant_id', 'checkout_id'])
    .where('payment_ref', '=', payment_ref)
    .where('status', '=', 'collected')
    .executeTakeFirst();
  return row ?? null;
}

/** The newest dispute of the last poll that recorded all it found. Null if there was none. */
export async function findReached(db: Handle): Promise<string | null> {
  const row = await db.selectFrom('dispute_poll').select('reached').executeTakeFirst();
  return row?.reached ?? null;
}

export async function moveReached(db: Handle, reached: string): Promise<void> {
  await db.updateTable('dispute_poll').set({ reached }).execute();
}

/** Which of these disputes are known. */
export async function listKnownRefs(db: Handle, refs: string[]): Promise<Set<string>> {
  if (refs.length === 0) return new Set();
  const rows = await db
    .selectFrom('disputes')
    .select('dispute_ref')
    .where('dispute_ref', 'in', refs)
    .execute();
  return new Set(rows.map(({ dispute_ref }) => dispute_ref));
}

export async function findDisputeByRef(
  db: Handle,
  merchant_id: string,
  dispute_ref: string,
): Promise<Dispute | null> {
  const row = await db
    .selectFrom('disputes')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('dispute_ref', '=', dispute_ref)
    .executeTakeFirst();
  return row ?? null;
}

/** Finds a dispute by our id or the gateway's, for an operator. */
export async function findDisputeOfAny(
  db: Handle,
  by: { id: string } | { dispute_ref: string },
): Promise<Dispute | null> {
  const query = db.selectFrom('disputes').selectAll();
  const found =
    'id' in by ? query.where('id', '=', by.id) : query.where('dispute_ref', '=', by.dispute_ref);
  return (await found.executeTakeFirst()) ?? null;
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
    | 'is_pausing'
    | 'warned_at'
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

/** Locks a dispute whose evidence is about to be staged or submitted. */
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
  { evidence, ...staged }: { evidence: Evidence; staged_hash: string; staged_at: Timestamp },
): Promise<void> {
  await db
    .updateTable('disputes')
    .set({ ...staged, staged_evidence: JSON.stringify(evidence) })
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .execute();
}

/** Notes whether the evidence is being submitted. */
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

/** The disputes of all merchants that are open, oldest first. */
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

/** Whether nothing of a checkout may move because a dispute of it is open. */
export async function isDisputed(
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
): Promise<boolean> {
  const row = await db
    .selectFrom('disputes')
    .select('id')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('closed_at', 'is', null)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * The amounts that disputes of a checkout hold or took: the whole amount of open ones, the loss of
 * others.
 */
export async function sumDisputed(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<number> {
  const { rows } = await sql<{ sum: number }>`
    select coalesce(sum(case when closed_at is null then amount else withdrawn end), 0)::bigint
      as sum
    from disputes
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`.execute(db);
  return rows[0]?.sum ?? 0;
}
