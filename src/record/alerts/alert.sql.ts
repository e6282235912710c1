import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { claimDueOfAll } from '#platform/database/due-work.sql.ts';
import type { AlertKind } from '#platform/shared/alert-kinds.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type Alert = {
  id: string;
  at: Timestamp;
  /** When the alert was raised, on the merchant's clock; null without a merchant. */
  merchant_at: Timestamp | null;
  kind: string;
  integration_id: string | null;
  merchant_id: string | null;
  subject_id: string | null;
  detail: string;
  /** Whether the detail quotes a shopper or a mail server. */
  is_private: boolean;
  posted_at: Timestamp | null;
  attempts: number;
  due_at: Timestamp | null;
  /** The operator whose action raised it; null if the service itself did. */
  caused_by: string | null;
  caused_person_id: string | null;
};

/**
 * Which operator handles an alert. An alert is open until an operator takes it, and ends when it is
 * closed. The ids are those of people at the console. A name without an id was only stated at the
 * command line.
 */
export type AlertHandling = {
  taken_at: Timestamp | null;
  taken_by: string | null;
  taken_person_id: string | null;
  closed_at: Timestamp | null;
  closed_by: string | null;
  closed_person_id: string | null;
  close_reason: string | null;
};

export const alertStates = ['open', 'taken', 'closed'] as const;
export type AlertState = (typeof alertStates)[number];

export async function insertAlert(
  db: Handle,
  alert: Omit<Alert, 'merchant_at'> & Partial<AlertHandling>,
): Promise<void> {
  const merchant_at = await findMerchantTime(db, alert);
  await db
    .insertInto('alerts')
    .values({ ...alert, merchant_at })
    .execute();
}

/**
 * The time of an alert on its merchant's clock. It is read separately, because Citus refuses a
 * subquery among the values of an insert.
 */
async function findMerchantTime(
  db: Handle,
  { at, merchant_id }: Pick<Alert, 'at' | 'merchant_id'>,
): Promise<Timestamp | null> {
  if (merchant_id === null) return null;
  const { rows } = await sql<{ merchant_at: Timestamp }>`
    select ${at}::timestamptz + clock_ahead_ms * interval '1 millisecond' as merchant_at
    from merchants where id = ${merchant_id}::uuid`.execute(db);
  return rows[0]?.merchant_at ?? null;
}

/** The columns of an alert that no operator has to close. */
export const closedByService = (closed_at: Timestamp, close_reason: string) => ({
  closed_at,
  closed_by: 'the service',
  close_reason,
});

/** Writes an alert that is already closed but still posted. */
export async function insertNotice(
  db: Handle,
  {
    at,
    ...notice
  }: Pick<Alert, 'id' | 'at' | 'kind' | 'subject_id' | 'detail' | 'caused_by' | 'caused_person_id'>,
): Promise<void> {
  const closed = closedByService(at, 'Nothing is left to do.');
  await db
    .insertInto('alerts')
    .values({ ...notice, at, due_at: at, ...closed })
    .execute();
}

/** The ids among these that belong to alerts. */
export async function listKnownAlerts(db: Handle, ids: string[]): Promise<Set<string>> {
  const { rows } = await sql<{ id: string }>`
    select id from alerts where id = any(${ids}::uuid[])`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/**
 * Whether a merchant has an alert of this kind that was raised after `since`, is not closed and has
 * `said` in its text.
 */
export async function hasAlertSince(
  db: Handle,
  kind: AlertKind,
  merchant_id: string,
  since: Timestamp,
  said = '',
): Promise<boolean> {
  const row = await db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where('merchant_id', '=', merchant_id)
    .where('at', '>', since)
    .where('closed_at', 'is', null)
    .where(sql<boolean>`position(${said} in detail) > 0`)
    .executeTakeFirst();
  return row !== undefined;
}

/** The id of the alert of this kind with exactly this text, or null. */
async function findAlert(db: Handle, kind: AlertKind, detail: string): Promise<string | null> {
  const row = await db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where('detail', '=', detail)
    .executeTakeFirst();
  return row?.id ?? null;
}

/** The id of the newest alert of this kind whose text starts with one of these, or null. */
export async function findAlertThatStarts(
  db: Handle,
  kind: AlertKind,
  starts: string[],
  { isOpen, since = null }: { isOpen: boolean; since?: Timestamp | null },
): Promise<string | null> {
  let query = db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where((where) =>
      where.or(starts.map((start) => sql<boolean>`starts_with(detail, ${start}::text)`)),
    );
  if (isOpen) query = query.where('closed_at', 'is', null);
  if (since !== null) query = query.where('at', '>', since);
  const row = await query.orderBy('at', 'desc').orderBy('id', 'desc').limit(1).executeTakeFirst();
  return row?.id ?? null;
}

/** Whether there is an alert of this kind with exactly this text. */
export async function hasAlert(db: Handle, kind: AlertKind, detail: string): Promise<boolean> {
  return (await findAlert(db, kind, detail)) !== null;
}

/** Makes alerts due now if a node with a wrong clock dated them in the future. Returns how many. */
export async function advanceLateAlerts(db: Handle, now: Timestamp): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('alerts')
    .set({ due_at: now })
    .where('due_at', '>', now)
    .where(sql<boolean>`at > ${now}::timestamptz + interval '1 minute'`)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

/** Locks an alert, so that two operators who handle it wait for each other. */
export async function lockAlert(db: Handle, id: string): Promise<(Alert & AlertHandling) | null> {
  const row = await db
    .selectFrom('alerts')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

export async function moveAlertTaken(
  db: Handle,
  id: string,
  taken: { taken_by: string; taken_person_id: string | null; taken_at: Timestamp },
): Promise<void> {
  await db.updateTable('alerts').set(taken).where('id', '=', id).execute();
}

/**
 * A closed alert need not be posted any more, unless an operator caused it: two operators together
 * must not hide an action from the others (decision 0074).
 */
const dueOnceClosed = sql<Timestamp | null>`case when caused_by is not null then due_at end`;

/** Closes an alert that is open or taken. */
export async function moveAlertClosed(
  db: Handle,
  id: string,
  closed: {
    closed_by: string;
    closed_person_id: string | null;
    closed_at: Timestamp;
    close_reason: string;
  },
): Promise<void> {
  await db
    .updateTable('alerts')
    .set({ ...closed, due_at: dueOnceClosed })
    .where('id', '=', id)
    .execute();
}

/** Alerts of some kinds that are not closed and follow a given alert, the oldest first. */
export async function listOpenAlerts(
  db: Handle,
  kinds: AlertKind[],
  after: string | null,
  limit: number,
): Promise<Alert[]> {
  let query = db.selectFrom('alerts').selectAll().where('closed_at', 'is', null);
  if (after !== null) query = query.where('id', '>', after);
  return await query.where('kind', 'in', kinds).orderBy('id').limit(limit).execute();
}

/**
 * Closes alerts that are open or taken, because their causes have ended. Returns how many were
 * closed.
 */
export async function moveAlertsEnded(
  db: Handle,
  ids: string[],
  now: Timestamp,
  reason: string,
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('alerts')
    .set({ ...closedByService(now, reason), due_at: dueOnceClosed })
    .where('id', 'in', ids)
    .where('closed_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

/**
 * Locks those of some alerts that are not closed, in order to close them. Leaves out those on which
 * a transaction in flight relies (`lockOpenAlert`).
 */
export const lockAlertsToEnd = (db: Handle, ids: string[]): Promise<Alert[]> =>
  db
    .selectFrom('alerts')
    .selectAll()
    .where('id', 'in', ids)
    .where('closed_at', 'is', null)
    .orderBy('id')
    .forUpdate()
    .skipLocked()
    .execute();

/**
 * Whether a merchant has an alert of this kind, about a row if one is given, that is not closed.
 * The alert stays so until the caller's transaction ends, because its cause must not seem to have
 * ended meanwhile.
 */
export async function lockOpenAlert(
  db: Handle,
  kind: AlertKind,
  about: { merchant_id: string; subject_id?: string },
): Promise<boolean> {
  let query = db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where('merchant_id', '=', about.merchant_id)
    .where('closed_at', 'is', null);
  if (about.subject_id !== undefined) query = query.where('subject_id', '=', about.subject_id);
  return (await query.forShare().executeTakeFirst()) !== undefined;
}

/** Claims alerts that are due to be posted. The claim lasts until `until`. */
export const claimDueAlerts = (
  db: Handle,
  now: Timestamp,
  until: Timestamp,
  batchSize: number,
): Promise<Alert[]> => claimDueOfAll(db, 'alerts', now, until, batchSize);

/**
 * Returns the due alerts that were raised after `since` at the command line, which has no log.
 * Returns each only once.
 */
export async function moveAlertsTold(
  db: Handle,
  since: Timestamp,
  batchSize: number,
): Promise<Alert[]> {
  return await db
    .updateTable('alerts')
    .set((set) => ({ attempts: set('attempts', '+', 1) }))
    .where('id', 'in', (from) =>
      from
        .selectFrom('alerts')
        .select('id')
        .where('at', '>', since)
        .where('due_at', 'is not', null)
        .where('attempts', '=', 0)
        .where('caused_by', 'is not', null)
        .where('caused_person_id', 'is', null)
        .orderBy('at')
        .limit(batchSize)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute();
}

export async function moveAlertPosted(db: Handle, id: string, posted_at: Timestamp): Promise<void> {
  await db.updateTable('alerts').set({ posted_at, due_at: null }).where('id', '=', id).execute();
}

/** Releases an alert that could not be posted, with its next due time or null for never. */
export async function releaseAlert(
  db: Handle,
  id: string,
  due_at: Timestamp | null,
): Promise<void> {
  await db
    .updateTable('alerts')
    .set((set) => ({ due_at, attempts: set('attempts', '+', 1) }))
    .where('id', '=', id)
    .execute();
}
