import type { Database } from '#platform/database/database.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { webhookHeaders } from '#platform/signing/webhook-headers.ts';
import {
  type Alert,
  claimDueAlerts,
  moveAlertPosted,
  moveAlertsTold,
  releaseAlert,
} from './alert.sql.ts';

export type AlertDeps = {
  database: Database;
  clock: Clock;
  log: Logger;
  /** The operator's own URL for alerts; null when alerts are only logged and listed. */
  alertWebhookUrl: string | null;
  /** The key that signs posts. Null in a sandbox without one. */
  alertWebhookSecret: string | null;
};

const batchSize = 20;
const attemptsMax = 30;
const postSeconds = 10;
const leaseSeconds = 60;
const firstPauseSeconds = 10;
const pauseSecondsMax = 3600;
/**
 * Alerts from the command line that are older than this are not logged. They are that old only if
 * the service was not running.
 */
const unloggedHours = 7 * 24;

/**
 * Posts due alerts to the operator's own URL. An alert that is refused becomes due again, except
 * after its last attempt. Without a URL, logs the alerts that have no log line yet.
 */
export async function postAlerts(deps: AlertDeps): Promise<number> {
  const url = deps.alertWebhookUrl;
  const now = deps.clock.now();
  if (url === null) return await logAlerts(deps, now);
  // The claim keeps other workers away while the alert is posted. After a crash the lease runs out.
  const until = timestamp(secondsAfter(now, leaseSeconds));
  const due = await claimDueAlerts(deps.database.db, timestamp(now), until, batchSize);
  await Promise.all(due.map((alert) => postAlert(deps, url, alert)));
  return due.length;
}

/**
 * Without `ALERT_WEBHOOK_URL` the log is all that survives a restore. The service logs the alerts
 * that it raises itself. The command line has no log, so its alerts are logged here (decision
 * 0097).
 */
async function logAlerts(deps: AlertDeps, now: Temporal.Instant): Promise<number> {
  const since = timestamp(now.subtract({ hours: unloggedHours }));
  const alerts = await moveAlertsTold(deps.database.db, since, batchSize);
  for (const { id, at, kind, subject_id, detail, is_private } of alerts) {
    const alert = { id, at, kind, subject_id, ...(!is_private && { detail }) };
    deps.log.warn({ alert }, 'alert');
  }
  return alerts.length;
}

async function postAlert(deps: AlertDeps, url: string, alert: Alert): Promise<void> {
  const { db } = deps.database;
  const { id, at, kind, integration_id, merchant_id, subject_id } = alert;
  // The words of a shopper or a mail server must not leave the service.
  const detail = alert.is_private
    ? `The detail is private. Read it in the console, or with \`tranche alerts list\`.`
    : alert.detail;
  const payload = Buffer.from(
    JSON.stringify({ id, at, kind, integration_id, merchant_id, subject_id, detail }),
  );
  const key = deps.alertWebhookSecret;
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Tranche-Alert/1',
        ...(key !== null && webhookHeaders({ id, payload, key, now: deps.clock.now() })),
      },
      body: payload,
      signal: AbortSignal.timeout(postSeconds * 1000),
      redirect: 'error',
    });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`the receiver answered ${answer.status}`);
    await moveAlertPosted(db, id, timestamp(deps.clock.now()));
  } catch (error) {
    const pause = Math.min(firstPauseSeconds * 2 ** alert.attempts, pauseSecondsMax);
    const isLast = alert.attempts + 1 >= attemptsMax;
    const dueAt = isLast ? null : timestamp(secondsAfter(deps.clock.now(), pause));
    await releaseAlert(db, id, dueAt);
    deps.log.warn({ err: error, alert_id: id }, 'an alert could not be posted');
  }
}
