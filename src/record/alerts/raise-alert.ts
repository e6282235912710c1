import type { Handle } from '#platform/database/database.ts';
import { type AlertKind, alertKinds } from '#platform/shared/alert-kinds.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { type Origin, personOf } from '#record/actions/operate.ts';
import { closedByService, insertAlert } from './alert.sql.ts';

/**
 * Records something that an operator must see, as a permanent row and a log line. Returns the id of
 * the row.
 */
export async function raiseAlert(
  deps: { clock: Clock; random: Random; log: Logger; origin?: Origin },
  db: Handle,
  alert: {
    kind: AlertKind;
    integration_id?: string;
    merchant_id?: string;
    /** The row that the alert is about: a callback, a refund, a checkout. */
    subject_id?: string;
    detail: string;
    /** The operator whose action raises it. That operator cannot close it. */
    caused_by?: string;
    /**
     * Whether the detail quotes a shopper or a mail server. Such a detail is neither logged nor
     * posted.
     */
    isPrivate?: true;
    /** Whether the alert is posted and closed at once, unlike others of its kind. */
    isNotice?: boolean;
  },
): Promise<string> {
  const at = timestamp(deps.clock.now());
  const row = {
    id: deps.random.uuid(),
    at,
    kind: alert.kind,
    integration_id: alert.integration_id ?? null,
    merchant_id: alert.merchant_id ?? null,
    subject_id: alert.subject_id ?? null,
    detail: alert.detail,
    is_private: alert.isPrivate ?? false,
    posted_at: null,
    attempts: 0,
    due_at: at,
    ...((alert.isNotice || alertKinds[alert.kind] === 'at once') &&
      closedByService(at, 'Nothing is left to do.')),
    caused_by: alert.caused_by ?? null,
    caused_person_id: alert.caused_by === undefined ? null : personOf(deps),
  };
  await insertAlert(db, row);
  const { detail, ...rest } = row;
  deps.log.warn({ alert: alert.isPrivate ? rest : { ...rest, detail } }, 'alert');
  return row.id;
}
