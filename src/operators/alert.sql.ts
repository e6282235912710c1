import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

export type Alert = {
  id: string;
  at: Timestamp;
  kind: string;
  integration_id: string | null;
  merchant_id: string | null;
  detail: string;
  posted_at: Timestamp | null;
  tries: number;
  due_at: Timestamp | null;
};

export async function insertAlert(db: Handle, alert: Alert): Promise<void> {
  await db.insertInto('alerts').values(alert).execute();
}

/** Whether the operator was told of such a thing of a merchant's since then. */
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

/** Whether the operator was told these very words before. */
export async function hasAlert(db: Handle, kind: string, detail: string): Promise<boolean> {
  const row = await db
    .selectFrom('alerts')
    .select('id')
    .where('kind', '=', kind)
    .where('detail', '=', detail)
    .executeTakeFirst();
  return row !== undefined;
}

export async function listAlerts(db: Handle, most: number): Promise<Alert[]> {
  return await db
    .selectFrom('alerts')
    .selectAll()
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(most)
    .execute();
}

/** Takes some alerts in hand that are to be posted, until `until`. */
export async function claimDueAlerts(
  db: Handle,
  now: Timestamp,
  until: Timestamp,
  most: number,
): Promise<Alert[]> {
  // Chosen before anything is changed, as in `claimDue`; but alerts are nobody's in particular.
  return await db
    .with(
      (name) => name('chosen').materialized(),
      (from) =>
        from
          .selectFrom('alerts')
          .select('id')
          .where('due_at', '<=', now)
          .orderBy('due_at')
          // On Citus every node has a copy of this table and chooses for itself: they must agree.
          .orderBy('id')
          .limit(most)
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

export async function moveAlertPutOff(
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
