import assert from 'node:assert/strict';
import { hostname, userInfo } from 'node:os';
import { after, before, test } from 'node:test';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import { commandsOf, type Paying, startPaying } from '../support/payments.ts';
import { send } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

let paying: Paying;
let tranche: Tranche;
before(async () => {
  paying = await startPaying();
  tranche = commandsOf(paying);
});
after(() => paying.close());

test('the check finds one cent that is changed in any row', async () => {
  assert.equal((await tranche.run('ledger', 'check')).stdout, '0 checkouts, no differences.\n');
  const shopper = await paying.shopper();
  await shopper.pay(3);
  await paying.shopper();
  await paying.pass({ days: 32 });
  const { body } = await send(paying.service, paying.account, 'POST', '/api/refunds', {
    body: { checkout_id: shopper.id, amount: 120_000 },
  });
  await tranche.json('refunds', 'approve', body.data.id);
  assert.deepEqual(await tranche.json('ledger', 'check'), { checkouts: 2, differences: [] });
  assert.equal((await tranche.run('ledger', 'check')).stdout, '2 checkouts, no differences.\n');

  const { pool } = paying.service.deps.database;
  // One row of every table with amounts. The test changes each amount and then restores it.
  const rows: [table: string, where: string][] = [
    ['checkouts', 'id = $1'],
    ['payment_attempts', 'checkout_id = $1'],
    ['instalments', 'checkout_id = $1 and number = 1'],
    ['collections', 'checkout_id = $1 and instalment = 2'],
    ['refund_requests', 'checkout_id = $1'],
    ['refund_parts', "checkout_id = $1 and kind = 'card'"],
    ['postings', 'checkout_id = $1'],
  ];
  for (const [table, where] of rows) {
    await tamper(pool, `update ${table} set amount = amount + 1 where ${where}`, [shopper.id]);
    const { code, stdout } = await tranche.run('ledger', 'check', '--json');
    const { differences } = JSON.parse(stdout);
    assert.equal(code, 1, table);
    assert.ok(differences.length > 0, table);
    assert.deepEqual(Object.keys(differences[0]), ['name', 'description', 'row']);
    await tamper(pool, `update ${table} set amount = amount - 1 where ${where}`, [shopper.id]);
  }
  assert.equal((await tranche.json('ledger', 'check')).differences.length, 0);
  await tamper(pool, 'update postings set amount = amount + 1 where checkout_id = $1', [
    shopper.id,
  ]);
  const { code, stdout } = await tranche.run('ledger', 'check');
  assert.equal(code, 1);
  assert.match(stdout, /^2 checkouts, 1 difference:\n\nM8 the postings of a checkout add up/);
  assert.ok(stdout.includes(`  id ${shopper.id}\n`));
});

test('changes by operators are listed, the newest first, by subject and by operator', async () => {
  const { id } = await tranche.json('merchants', 'create', '--name', 'Bean', '--rules', rules);
  paying.clock.advance({ hours: 1 });
  const other = commandLine(
    { DATABASE_URL: paying.service.databaseUrl, TRANCHE_OPERATOR: 'sipho' },
    { clock: paying.clock },
  );
  await other.json('merchants', 'rules', id, '--rules', rules);
  const list = async (...how: string[]) => {
    const { data } = await tranche.json('audit', 'list', ...how);
    return data.map(({ operator, action }: Record<string, string>) => `${operator} ${action}`);
  };
  assert.deepEqual(await list('--subject', id), [
    'sipho merchants rules',
    'nomsa merchants create',
  ]);
  assert.deepEqual(await list('--operator', 'sipho'), ['sipho merchants rules']);
  assert.deepEqual(await list('--subject', unknownId), []);
  const { stdout } = await tranche.run('audit', 'list', '--subject', id);
  assert.match(
    stdout,
    new RegExp(`^\\d.*\\n {2}\\d\\d:\\d\\d  ${id}  merchants rules by sipho\\s+\\[`),
  );
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
  await tranche.refused(2, /must be an ID/, 'audit', 'list', '--subject', 'x');
});

test('the audit has the system user and the host as facts, and TRANCHE_OPERATOR as a stated name', async () => {
  const { id } = await tranche.json('merchants', 'create', '--name', 'Bean', '--rules', rules);
  const env = { DATABASE_URL: paying.service.databaseUrl, TRANCHE_OPERATOR: undefined };
  const honest = commandLine(env, { clock: paying.clock });
  await honest.json('merchants', 'rules', id, '--rules', rules);
  const { data } = await tranche.json('audit', 'list', '--subject', id);
  const os_user = userInfo().username;
  const host = hostname();
  assert.deepEqual(
    data.map((row: Record<string, string>) => [row.operator, row.os_user, row.host]).sort(),
    [
      ['nomsa', os_user, host],
      [os_user, os_user, host],
    ].sort(),
  );
  const page = (await tranche.run('audit', 'list', '--subject', id)).stdout.replaceAll(/\s+/g, ' ');
  assert.ok(page.includes(`merchants create by nomsa [${os_user}@${host}]`), page);
  assert.ok(page.includes(`merchants rules by ${os_user}@${host}`), page);
});

const rules = '[{"from_amount":1000,"to_amount":2000,"terms":[1]}]';
