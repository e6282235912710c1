import type { GatewayName } from '#gateway/gateway-name.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findBlockAlert } from '#purchases/instalments/gateway-block.sql.ts';
import { findAlertThatStarts } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { type DifferenceKind, descriptions, remedyOf } from './compare.ts';
import type { ReconcileDeps } from './reconcile.ts';
import type { RunDifference } from './reconciliation.sql.ts';

const cannotRecord = 'It cannot be recorded: ';

/**
 * Raises an alert for a difference, unless there is one already. `why` says why the difference
 * cannot be recorded: its alert blocks the checkout. Returns the alert's id.
 */
export async function reportDifference(
  deps: ReconcileDeps,
  gateway: GatewayName,
  difference: RunDifference,
  why: string | null = null,
): Promise<string> {
  const { kind, record_kind, reference, checkout_id, merchant_id } = difference;
  const about = checkout_id === null ? '' : ` (checkout ${checkout_id})`;
  const alert = `gateway_${kind as DifferenceKind}` as const;
  const record = `${record_kind} ${reference}`;
  const isAlone = deps.gateways.names.length === 1;
  const subject = isAlone ? `The gateway's ${record}` : `The ${record} of the gateway ${gateway}`;
  const what = `${subject}${about} ${descriptions[kind as DifferenceKind]}`;
  const detail = `${what} ${why ? `${cannotRecord}${why}` : remedyOf(difference)}`;
  const { db } = deps.database;
  const of = checkout_id !== null && isUuid(checkout_id) ? checkout_id : null;
  // An earlier run may have found this difference under another kind and blocked the checkout.
  const block = of === null ? null : await findBlockAlert(db, of, reference);
  if (block !== null) return block;
  // An alert that blocks a checkout says how to release it, so an operator must see it: a closed
  // alert does not count. The reason is not compared, because a continued run may find another
  // reason: the payment is paused by then.
  const starts = why === null ? [`${subject} `] : [`${what} ${cannotRecord}`];
  // An alert that was raised when there was only one gateway does not name that gateway.
  if (why === null && !isAlone) starts.push(`The gateway's ${record} `);
  const known = await findAlertThatStarts(db, alert, starts, { isOpen: why !== null });
  return (
    known ??
    (await raiseAlert(deps, db, {
      kind: alert,
      ...(merchant_id !== null && { merchant_id }),
      ...(of !== null && { subject_id: of }),
      detail,
    }))
  );
}
