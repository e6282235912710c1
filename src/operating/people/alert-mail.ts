import {
  type ExportKind,
  exportKinds,
  type MerchantAlertKind,
  merchantAlerts,
} from '#purchases/messages/merchant-mail.ts';
import { type OperatorRole, operatorRoles, type Permission, permissionsOf } from './permission.ts';

// Decides which people of a merchant get mail about which events. A person may get mail only about
// what they may read. Unless something else is chosen, the merchant's administrators get mail about
// all events except exports and paid links, and other people get none. Exports and paid links must
// be chosen, because a busy till would fill a mailbox.

const readers: Record<MerchantAlertKind, Permission> = {
  callbacks_failing: 'callbacks.read',
  dispute_opened: 'disputes.read',
  key_ends: 'integrations.read',
  payout_paid: 'payouts.read',
  payout_returned: 'payouts.read',
  link_paid: 'links.read',
  // People with the role `till` can open orders, but do not see sums.
  orders_week: 'overview.read',
  orders_month: 'overview.read',
  refunds_week: 'overview.read',
  refunds_month: 'overview.read',
};

export const isExport = (kind: MerchantAlertKind): kind is ExportKind =>
  (exportKinds as readonly string[]).includes(kind);

const rolesWith = (permission: Permission): OperatorRole[] =>
  operatorRoles.filter((role) => permissionsOf([role], false).includes(permission));

/** The roles that may get mail about an event, and those that get it without a choice. */
export const alertRoles = (kind: MerchantAlertKind) => {
  const may = rolesWith(readers[kind]);
  const isChosen = isExport(kind) || kind === 'link_paid';
  const managers = isChosen ? [] : rolesWith('people.manage');
  return { may, byDefault: may.filter((role) => managers.includes(role)) };
};

/** The events that one of a merchant's people may get mail about, and whether they get it. */
export const alertMailsOf = (
  roles: readonly string[],
  chosen: ReadonlyMap<string, boolean>,
): { kind: MerchantAlertKind; is_wanted: boolean }[] =>
  merchantAlerts.flatMap((kind) => {
    const { may, byDefault } = alertRoles(kind);
    const has = (some: OperatorRole[]) => some.some((role) => roles.includes(role));
    return has(may) ? [{ kind, is_wanted: chosen.get(kind) ?? has(byDefault) }] : [];
  });
