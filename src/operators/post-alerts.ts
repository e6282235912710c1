import type { Database } from '../database/database.ts';
import { type Clock, secondsAfter, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import { type Alert, claimDueAlerts, moveAlertPosted, moveAlertPutOff } from './alert.sql.ts';

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
const claimSeconds = 60;

/** Posts alerts to the operator's own address, again and again until it takes them. */
export async function postAlerts(deps: AlertDeps): Promise<number> {
  const url = deps.alertWebhookUrl;
  if (url === null) return 0;
  const now = deps.clock.now();
  // While one is posted nobody else takes it; a crash lets it go after a while.
  const until = timestamp(secondsAfter(now, claimSeconds));
  const due = await claimDueAlerts(deps.database.db, timestamp(now), until, handful);
  await Promise.all(due.map((alert) => postAlert(deps, url, alert)));
  return due.length;
}

async function postAlert(
  deps: AlertDeps,
  url: string,
  { tries, due_at, posted_at, ...alert }: Alert,
): Promise<void> {
  const { db } = deps.database;
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Tranche-Alert/1' },
      body: JSON.stringify(alert),
      signal: AbortSignal.timeout(postSeconds * 1000),
      redirect: 'error',
    });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    await moveAlertPosted(db, alert.id, timestamp(deps.clock.now()));
  } catch (error) {
    const pause = Math.min(10 * 2 ** tries, 3600);
    const again = tries + 1 < mostTries ? timestamp(secondsAfter(deps.clock.now(), pause)) : null;
    await moveAlertPutOff(db, alert.id, again);
    deps.log.warn({ err: error, alert_id: alert.id }, 'an alert could not be posted');
  }
}
