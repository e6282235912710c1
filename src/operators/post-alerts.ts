import type { Database } from '../database/database.ts';
import { type Clock, secondsAfter, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import { claimDueAlerts, moveAlertPosted, moveAlertPutOff } from './alert.sql.ts';

export type AlertDeps = {
  database: Database;
  clock: Clock;
  log: Logger;
  /** Where the operator wants to hear of alerts; null when only the log and the list tell. */
  alertWebhookUrl: string | null;
};

const handful = 20;
const mostTries = 30;
const postSeconds = 10;

/** Posts alerts to the operator's own address, again and again until it takes them. */
export async function postAlerts(deps: AlertDeps): Promise<number> {
  const url = deps.alertWebhookUrl;
  if (url === null) return 0;
  const { db } = deps.database;
  const now = deps.clock.now();
  // While one is posted nobody else takes it; a crash lets it go after a minute.
  const due = await claimDueAlerts(db, timestamp(now), timestamp(secondsAfter(now, 60)), handful);
  for (const { tries, due_at, posted_at, ...alert } of due) {
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'user-agent': 'Tranche-Alert/1' },
        body: JSON.stringify(alert),
        signal: AbortSignal.timeout(postSeconds * 1000),
        redirect: 'error',
      });
      if (!answer.ok) throw new Error(`it answered ${answer.status}`);
      await moveAlertPosted(db, alert.id, timestamp(deps.clock.now()));
    } catch (error) {
      const pause = Math.min(10 * 2 ** tries, 3600);
      const again = tries + 1 < mostTries ? timestamp(secondsAfter(deps.clock.now(), pause)) : null;
      await moveAlertPutOff(db, alert.id, again);
      deps.log.warn({ err: error, alert_id: alert.id }, 'an alert could not be posted');
    }
  }
  return due.length;
}
