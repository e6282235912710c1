import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type Alert = {
  id: string;
  at: Timestamp;
  kind: string;
  integration_id: string | null;
  merchant_id: string | null;
  subject_id: string | null;
  detail: string;
  /** The detail quotes a shopper or a mail server. */
  is_private: boolean;
  posted_at: Timestamp | null;
  attempts: number;
  due_at: Timestamp | null;
  /** The operator whose action raised it; null if the service itself did. */
  caused_by: string | null;
  caused_person_id: string | null;
};

/**
 * Who is dealing with an alert. It is open until an operator takes it, and ends when it is closed.
 * The ids are those of people at the console. A name without an id was only stated at the command
 * line.
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

export async function insertAlert(db: Handle, alert: Alert): Promise<void> {
  await db.insertInto('alerts').values(alert).execute();
}

/** An alert that is posted, and closed already. */
export async function insertNotice(
  db: Handle,
  { at, ...notice }: Pick<Alert, 'id' | 'at' | 'kind' | 'subject_id' | 'detail'>,
): Promise<void> {
  const closed = { closed_at: at, closed_by: 'the service', close_reason: 'Nothing is to do.' };
  await db
    .insertInto('alerts')
    .values({ ...notice, at, due_at: at, ...closed })
    .execute();
}

/** Whether a merchant has an alert of this kind from after `since` that no operator has closed. */
export async function hasAlertSince(
  db: Handle,
  kind: string,
  merchant_id: string,
  since: Timestamp,
): Promise<boolean> {
  const row = await db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where('merchant_id', '=', merchant_id)
    .where('at', '>', since)
    .where('closed_at', 'is', null)
    .executeTakeFirst();
  return row !== undefined;
}

/** The id of the alert of this kind with exactly this text, or null. */
async function findAlert(db: Handle, kind: string, detail: string): Promise<string | null> {
  const row = await db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where('detail', '=', detail)
    .executeTakeFirst();
  return row?.id ?? null;
}

/** The newest alert of this kind whose text starts with one of these, or null. */
export async function findAlertThatStarts(
  db: Handle,
  kind: string,
  starts: string[],
  { isOpen }: { isOpen: boolean },
): Promise<string | null> {
  let query = db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where((where) =>
      where.or(starts.map((start) => sql<boolean>`starts_with(detail, ${start}::text)`)),
    );
  if (isOpen) query = query.where('closed_at', 'is', null);
  const row = await query.orderBy('at', 'desc').orderBy('id', 'desc').limit(1).executeTakeFirst();
  return row?.id ?? null;
}

/** Whether there is an alert of this kind with exactly this text. */
export async function hasAlert(db: Handle, kind: string, detail: string): Promise<boolean> {
  return (await findAlert(db, kind, detail)) !== null;
}

/** Makes alerts due that a node with a wrong clock raised in the future. Returns how many. */
export async function advanceLateAlerts(db: Handle, now: Timestamp): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('alerts')
    .set({ due_at: now })
    .where('due_at', '>', now)
    .where(sql<boolean>`at > ${now}::timestamptz + interval '1 minute'`)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

/** Two operators who handle one alert wait for each other. */
export async function lockAlert(db: Handle, id: string): Promise<(Alert & AlertHandling) | null> {
  const row = await db
    .selectFrom('alerts')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

/** open → taken */
export async function moveAlertTaken(
  db: Handle,
  id: string,
  taken: { taken_by: string; taken_person_id: string | null; taken_at: Timestamp },
): Promise<void> {
  await db.updateTable('alerts').set(taken).where('id', '=', id).execute();
}

/** open or taken → closed. An alert that is closed need not be posted any more. */
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
    .set({ ...closed, due_at: null })
    .where('id', '=', id)
    .execute();
}

/** Claims alerts that are due to be posted, until `until`. */
export async function claimDueAlerts(
  db: Handle,
  now: Timestamp,
  until: Timestamp,
  batchSize: number,
): Promise<Alert[]> {
  // The rows are chosen before any is changed, as in `claimDue`. Alerts belong to no merchant, so
  // `claimDue` itself does not fit.
  return await db
    .with(
      (name) => name('chosen').materialized(),
      (from) =>
        from
          .selectFrom('alerts')
          .select('id')
          .where('due_at', '<=', now)
          .orderBy('due_at')
          // On Citus every node has a copy of this table and makes the choice itself. The copies
          // must agree, so the order has no ties.
          .orderBy('id')
          .limit(batchSize)
          .forUpdate()
          .skipLocked(),
    )
    .updateTable('alerts')
    .from('chosen')
    .set({ due_at: until })
    .whereRef('alerts.id', '=', 'chosen.id')
    .returningAll('alerts')
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
