import type { Handle } from '#platform/database/database.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { type OperatorDeps, OperatorError, operate, personOf } from '#record/actions/operate.ts';
import { listAccessIds } from '#record/actions/person-names.sql.ts';
import { mustBeApprover } from '#record/actions/second-person.ts';
import {
  type Alert,
  type AlertHandling,
  lockAlert,
  moveAlertClosed,
  moveAlertTaken,
} from './alert.sql.ts';

/**
 * An operator takes an alert, so that others know that it is being handled. An operator who may not
 * close an alert may not take it either, because others would wait for them. A repeated call
 * changes nothing.
 */
export async function takeAlert(deps: OperatorDeps, operator: string, id: string) {
  return await operate(deps, operator, 'alerts take', async (db, now) => {
    const alert = await lockToHandle(deps, db, operator, id);
    if (alert.taken_by !== null && alert.taken_by !== operator) {
      throw new OperatorError(
        `${alert.taken_by} took this alert at ${alert.taken_at}. Ask them, or close it.`,
      );
    }
    const details = { kind: alert.kind };
    if (alert.taken_at !== null) return { subject_id: id, details, result: alert };
    const taken = { taken_by: operator, taken_person_id: personOf(deps), taken_at: now };
    await moveAlertTaken(db, id, taken);
    return { subject_id: id, details, result: { ...alert, ...taken } };
  });
}

type Closer = { operator: string; person_id: string | null; access_ids: string[] };

/** The operator, with every access of the person, because an alert may be about any of them. */
export async function closerOf(deps: OperatorDeps, db: Handle, operator: string): Promise<Closer> {
  const person_id = personOf(deps);
  const access_ids = person_id === null ? [] : await listAccessIds(db, person_id);
  return { operator, person_id, access_ids };
}

/**
 * Why this operator may not take or close an alert, or null. If an operator's action raised the
 * alert, another operator has to see it. A person may not handle an alert about themselves, because
 * the operator who caused the alert may be signed in as that person.
 */
export function explainBadCloser(
  alert: Pick<Alert, 'caused_by' | 'caused_person_id' | 'subject_id'>,
  closer: Closer,
): string | null {
  if (alert.caused_by === null) return null;
  const { operator, person_id, access_ids } = closer;
  const isCauser =
    person_id !== null && alert.caused_person_id !== null
      ? person_id === alert.caused_person_id
      : operator === alert.caused_by;
  if (isCauser) return 'Your own action raised this alert. Another person has to close it.';
  if (access_ids.includes(alert.subject_id ?? '')) {
    return 'This alert is about you. Another person has to close it.';
  }
  return null;
}

/** Closes an alert, taken or not. The operator says what was done about it. */
export async function closeAlert(
  deps: OperatorDeps,
  operator: string,
  id: string,
  close_reason: string,
) {
  return await operate(deps, operator, 'alerts close', async (db, now) => {
    const alert = await lockToHandle(deps, db, operator, id);
    const by = { closed_by: operator, closed_person_id: personOf(deps) };
    const closed = { ...by, closed_at: now, close_reason };
    await moveAlertClosed(db, id, closed);
    const details = { kind: alert.kind, reason: new FreeText(close_reason) };
    return { subject_id: id, details, result: { ...alert, ...closed } };
  });
}

/** Locks an open alert that this operator may take and close. */
async function lockToHandle(
  deps: OperatorDeps,
  db: Handle,
  operator: string,
  id: string,
): Promise<Alert & AlertHandling> {
  const alert = isUuid(id) ? await lockAlert(db, id) : null;
  if (!alert) throw new OperatorError(`There is no alert ${id}.`);
  if (alert.closed_at !== null) {
    throw new OperatorError(
      `${alert.closed_by} closed this alert at ${alert.closed_at}: ${alert.close_reason}`,
    );
  }
  const bad = explainBadCloser(alert, await closerOf(deps, db, operator));
  if (bad !== null) throw new OperatorError(bad);
  if (alert.caused_by !== null) mustBeApprover(deps);
  return alert;
}
