// This is the only table of what people at the console may do. A route names a permission, and a
// person has roles, so a new action needs one line here and one at its route.

const permissions = [
  'overview.read',
  'checkouts.read',
  'links.read',
  'links.create',
  'notes.write',
  'messages.read',
  'messages.answer',
  'refunds.read',
  'refunds.create',
  'refunds.review',
  'refunds.retry',
  'review.lift',
  'instalments.read',
  'instalments.retry',
  'callbacks.read',
  'callbacks.retry',
  'merchants.read',
  'merchants.create',
  'merchants.change',
  'integrations.read',
  'integrations.change',
  'limits.raise',
  'credentials.rotate',
  'clock.move',
  'money.read',
  'payouts.read',
  'fees.set',
  'payouts.approve',
  'payouts.settle',
  'bank.propose',
  'bank.confirm',
  'disputes.read',
  'disputes.supply',
  'disputes.answer',
  'differences.read',
  'differences.close',
  'alerts.read',
  'alerts.handle',
  'audit.read',
  'people.read',
  'people.manage',
  'people.confirm',
] as const;
export type Permission = (typeof permissions)[number];

/**
 * Permissions for rows that belong to no merchant or to all of them. A person whose scope is a list
 * of merchants never has them, whatever their roles.
 */
const needAllMerchants: ReadonlySet<Permission> = new Set([
  'merchants.create',
  // The review of refunds also binds the merchant's own administrators.
  'review.lift',
  // The service bears the load of a merchant's requests and the risk of its orders.
  'limits.raise',
  // A merchant's own staff must not decide what the merchant is paid or where. They propose an
  // account, and the service's staff confirms it.
  'fees.set',
  'payouts.approve',
  'payouts.settle',
  'bank.confirm',
  'differences.read',
  'differences.close',
  'alerts.read',
  'alerts.handle',
  // A merchant's administrator must not vouch for their own second identity.
  'people.confirm',
]);

const reading: Permission[] = [
  'overview.read',
  'checkouts.read',
  'links.read',
  'messages.read',
  'refunds.read',
  'instalments.read',
  'callbacks.read',
  'merchants.read',
  'disputes.read',
];

export const rolePermissions = {
  viewer: [...reading, 'payouts.read'],
  support: [
    ...reading,
    'notes.write',
    'messages.answer',
    'links.create',
    'disputes.supply',
    'refunds.create',
    'instalments.retry',
    'callbacks.retry',
    'integrations.read',
  ],
  refunds: [
    ...reading,
    'notes.write',
    'messages.answer',
    'refunds.create',
    'refunds.review',
    'refunds.retry',
  ],
  finance: [
    ...reading,
    'notes.write',
    'money.read',
    'payouts.read',
    'payouts.approve',
    'payouts.settle',
    'bank.propose',
    'bank.confirm',
    'disputes.supply',
    'disputes.answer',
    'differences.read',
    'differences.close',
    'alerts.read',
  ],
  'on-call': [
    ...reading,
    'notes.write',
    'refunds.retry',
    'instalments.retry',
    'callbacks.retry',
    'integrations.read',
    'clock.move',
    'money.read',
    'alerts.read',
    'alerts.handle',
  ],
  admin: [...permissions],
  // Roles for a merchant's own people, who are invited for their merchants.
  'merchant-admin': [
    ...reading,
    'notes.write',
    'messages.answer',
    'links.create',
    'disputes.supply',
    'refunds.create',
    'refunds.review',
    'refunds.retry',
    'instalments.retry',
    'callbacks.retry',
    'merchants.change',
    'integrations.read',
    'integrations.change',
    'credentials.rotate',
    'payouts.read',
    'bank.propose',
    'audit.read',
    'people.read',
    'people.manage',
  ],
  // This role sells and refunds, but sees no sums.
  till: [
    'checkouts.read',
    'links.read',
    'links.create',
    'notes.write',
    'refunds.read',
    'refunds.create',
  ],
  auditor: [
    ...reading,
    'integrations.read',
    'money.read',
    'payouts.read',
    'differences.read',
    'alerts.read',
    'audit.read',
    'people.read',
  ],
} as const satisfies Record<string, readonly Permission[]>;

export type OperatorRole = keyof typeof rolePermissions;
/** Roles that are made for a merchant's own people. */
export const merchantRoles: readonly OperatorRole[] = ['merchant-admin', 'till'];
export const operatorRoles = Object.keys(rolePermissions) as OperatorRole[];

/** The permissions of a person. An unknown role, from a later version, gives none. */
export function permissionsOf(roles: readonly string[], hasAllMerchants: boolean): Permission[] {
  const granted = new Set<Permission>(
    roles.flatMap((role): readonly Permission[] =>
      Object.hasOwn(rolePermissions, role) ? rolePermissions[role as OperatorRole] : [],
    ),
  );
  return permissions.filter(
    (one) => granted.has(one) && (hasAllMerchants || !needAllMerchants.has(one)),
  );
}
