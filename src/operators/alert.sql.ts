import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

export type Alert = {
  id: string;
  at: Timestamp;
  kind: string;
  integration_id: string | null;
  merchant_id: string | null;
  detail: string;
};

export async function insertAlert(db: Handle, alert: Alert): Promise<void> {
  await db.insertInto('alerts').values(alert).execute();
}
