import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  merchantRoles,
  type OperatorRole,
  operatorRoles,
  permissionsOf,
  rolePermissions,
} from './permission.ts';

const all = permissionsOf(['admin'], true);

test('an administrator of all merchants may do everything, and no other role may', () => {
  assert.ok(all.length > 40);
  assert.equal(new Set(all).size, all.length);
  for (const permission of all) assert.match(permission, /^[a-z]+\.[a-z]+$/);
  for (const role of operatorRoles) {
    const known = new Set<string>(all);
    assert.deepEqual(
      rolePermissions[role].filter((permission) => !known.has(permission)),
      [],
    );
    if (role !== 'admin') assert.ok(permissionsOf([role], true).length < all.length, role);
  }
});

test('a person whose scope is a list of merchants may do nothing that concerns all merchants', () => {
  const withheld = new Set<string>(all);
  for (const permission of permissionsOf(operatorRoles, false)) withheld.delete(permission);
  assert.deepEqual([...withheld].sort(), [
    'alerts.handle',
    'alerts.read',
    'bank.confirm',
    'differences.close',
    'differences.read',
    'fees.set',
    'limits.raise',
    'merchants.create',
    'payouts.approve',
    'payouts.settle',
    'people.confirm',
    'review.lift',
  ]);
});

test('a role has what its work needs, and nothing that would let it act alone', () => {
  for (const [role, has, lacks] of [
    ['viewer', ['overview.read', 'payouts.read'], ['notes.write', 'refunds.create', 'money.read']],
    ['support', ['refunds.create', 'callbacks.retry'], ['refunds.review', 'people.manage']],
    ['refunds', ['refunds.review', 'refunds.retry'], ['payouts.approve', 'bank.propose']],
    ['finance', ['payouts.approve', 'bank.confirm'], ['refunds.review', 'people.manage']],
    ['on-call', ['alerts.handle', 'clock.move'], ['payouts.approve', 'refunds.review']],
    ['merchant-admin', ['people.manage', 'refunds.review'], ['bank.confirm', 'money.read']],
    [
      'till',
      ['refunds.create', 'links.create'],
      ['overview.read', 'refunds.review', 'payouts.read'],
    ],
    ['auditor', ['audit.read', 'money.read'], ['notes.write', 'refunds.create']],
  ] as [OperatorRole, string[], string[]][]) {
    const granted: string[] = permissionsOf([role], true);
    for (const permission of has) assert.ok(granted.includes(permission), `${role} ${permission}`);
    for (const permission of lacks) {
      assert.ok(!granted.includes(permission), `${role} ${permission}`);
    }
  }
  const reading = ['checkouts.read', 'disputes.read', 'merchants.read', 'messages.read'];
  const granted: string[] = permissionsOf(['auditor'], false);
  for (const permission of reading) assert.ok(granted.includes(permission));
  assert.deepEqual([...merchantRoles], ['merchant-admin', 'till']);
});

test('roles add up, and an unknown one gives nothing', () => {
  const both = permissionsOf(['till', 'viewer'], true);
  assert.deepEqual(
    both,
    all.filter((one) =>
      [...rolePermissions.till, ...rolePermissions.viewer].includes(one as never),
    ),
  );
  assert.deepEqual(permissionsOf(['later', 'constructor'], true), []);
  assert.deepEqual(permissionsOf([], true), []);
});
