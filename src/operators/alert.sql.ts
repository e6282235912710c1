import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

export type Alert = {
  id: string;
  at: Timestamp;
  kind: string;
  integration_id: string | null;
  merchant_id: string | null;
  subject_id: string | null;
  detail: string;
  posted_at: Timestamp | null;
  tries: number;
  due_at: Timestamp | null;
};

export async function insertAlert(db: Handle, alert: Alert): Promise<void> {
  await db.insertInto('alerts').values(alert).execute();
}

/** Whether a merchant has an alert of this kind from after `since`. */
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
    .executeTakeFirst();
  return row !== undefined;
}

/** Whether there is an alert of this kind with exactly this text. */
export async function hasAlert(db: Handle, kind: string, detail: string): Promise<boolean> {
  const row = await db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where('detail', '=', detail)
    .executeTakeFirst();
  return row !== undefined;
}

/** The newest alerts, newest first. */
export async function listAlerts(db: Handle, limit: number): Promise<Alert[]> {
  return await db
    .selectFrom('alerts')
    .selectAll()
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
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
    .set((set) => ({ due_at, tries: set('tries', '+', 1) }))
    .where('id', '=', id)
    .execute();
}
