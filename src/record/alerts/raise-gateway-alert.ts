import { StatusUnknown } from '#gateway/status-unknown.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { hasAlertSince } from './alert.sql.ts';
import { raiseAlert } from './raise-alert.ts';

/**
 * After how many failed retries an alert is raised. An outage usually ends within the hour, without
 * an operator. A refusal hardly ever ends by itself.
 */
const unknownRetriesMin = 12;
const refusedRetriesMin = 2;
const daySeconds = 24 * 3600;

/**
 * Raises an alert when money does not move because the gateway does not answer or answers
 * unexpectedly. Each merchant has at most one such alert a day until an operator closes it: an
 * outage that holds up thousands of payments is one problem. Each unknown status is a separate
 * problem.
 */
export async function raiseGatewayAlert(
  deps: { database: Database; clock: Clock; random: Random; log: Logger },
  merchant: Pick<Merchant, 'id'>,
  failed: {
    /** The subject of the alert's sentence: `Refund 0190…`. */
    what: string;
    subject_id: string;
    error: unknown;
    /** False if the gateway answered and refused. */
    isOutcomeUnknown: boolean;
    /** How many attempts failed before this one. */
    retries: number;
    /** Whether the service does not retry. If so, the alert is raised at once. */
    isGivenUp?: boolean;
  },
): Promise<void> {
  const { what, subject_id, error, isOutcomeUnknown, retries, isGivenUp = false } = failed;
  const isUrgent = isGivenUp || error instanceof StatusUnknown;
  if (!isUrgent && retries < (isOutcomeUnknown ? unknownRetriesMin : refusedRetriesMin)) return;
  const { db } = deps.database;
  const kind = 'gateway_trouble';
  const since = timestamp(secondsAfter(deps.clock.now(), -daySeconds));
  const { message } = error as Error;
  // An alert about one unknown status does not mention another, so each needs an alert of its own.
  const said = error instanceof StatusUnknown ? message : '';
  if (await hasAlertSince(db, kind, merchant.id, since, said)) return;
  const refused = `${what} was refused (${message}). The shopper was asked to pay again.`;
  const often = isUrgent ? '' : ` in ${retries + 1} attempts`;
  const unsettled = `${what} has not been settled${often} (${message}). The service keeps retrying.`;
  await raiseAlert(deps, db, {
    kind,
    merchant_id: merchant.id,
    subject_id,
    detail: `${isGivenUp ? refused : unsettled} Check the gateway, and its settings here.`,
  });
}
