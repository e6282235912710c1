import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { listUnrecordedExports } from '#checks/proof/proof.sql.ts';
import type { Proof } from '#checks/proof/prove.ts';
import { publishEnd } from '#record/alerts/publish-end.ts';
import { commandLine, type Tranche } from '../support/cli.ts';
import { commandsOf, gatewayEnv, type Paying, startPaying } from '../support/payments.ts';
import { createAccount } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

// One merchant with a paid order, whose payout is exported and paid.

let paying: Paying;
let nomsa: Tranche;
let folder: string;
let file: string;
let payout: { id: string; reference: string };
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
  nomsa = commandsOf(paying);
  const sipho = commandsOf(paying, { TRANCHE_OPERATOR: 'sipho' });
  const account = await createAccount(paying.service);
  const { id } = account.merchant;
  const fee = ['--basis-points', '500', '--fixed', '0', '--vat-basis-points', '1500'];
  await nomsa.json('merchants', 'fee', id, ...fee);
  const bank = ['--holder', 'Karoo', '--bank', 'Standard Bank', '--branch-code', '051001'];
  const number = ['--account-number', '0629871234'];
  await nomsa.json('merchants', 'bank', id, ...bank, ...number);
  await sipho.json('merchants', 'bank', id, '--confirm', '1', ...number);
  const shopper = await paying.shopper({ amount: 100_000 }, account);
  await shopper.pay(1);
  await paying.pass({ days: 5 });
  [payout] = (await nomsa.json('payouts', 'list')).data;
  await nomsa.json('payouts', 'approve', payout.id);
  await sipho.json('payouts', 'approve', payout.id);
  folder = await mkdtemp(join(tmpdir(), 'tranche-prove-'));
  file = join(folder, 'payouts.csv');
  const { stdout } = await nomsa.run('payouts', 'export');
  await writeFile(file, stdout);
  await nomsa.json('payouts', 'paid', payout.id, '--bank-reference', 'FT1');
});
after(async () => {
  await paying.close();
  await rm(folder, { recursive: true });
});

async function prove(...options: string[]) {
  const { code, stdout, stderr } = await nomsa.run('prove', '--json', ...options);
  assert.equal(stderr, '');
  const { proved, end, proofs } = JSON.parse(stdout) as {
    proved: boolean;
    end: string;
    proofs: Proof[];
  };
  assert.equal(code, proved ? 0 : 1);
  const outcomes = Object.fromEntries(proofs.map(({ name, outcome }) => [name, outcome]));
  return { proved, end, proofs, outcomes };
}

const all = {
  books: 'holds',
  gateway: 'holds',
  payouts: 'holds',
  record: 'holds',
  callbacks: 'holds',
};

test('the end of the record is posted once a day, is printed in statements, and is required', async () => {
  const { deps } = paying.service;
  const before = await prove();
  assert.deepEqual(before.outcomes, { ...all, record: 'differs' });
  await Promise.all([publishEnd(deps), publishEnd(deps)]);
  await publishEnd(deps);
  const { rows } = await deps.database.pool.query(
    `select detail, due_at is not null as is_posted, closed_at is not null as is_closed
     from alerts where kind = 'record_end'`,
  );
  assert.equal(rows.length, 1);
  const [{ detail, is_posted, is_closed }] = rows;
  assert.deepEqual([is_posted, is_closed], [true, true]);
  assert.ok(detail.includes(before.end), detail);
  const page = await nomsa.run('payouts', 'statement', payout.id, '--format', 'html');
  // The payout was made before an end of the operators' record was first published.
  assert.ok(!page.stdout.includes('Record of actions'));
  await tamper(deps.database.pool, `update published_ends set at = at - interval '30 days'`);
  const later = await nomsa.run('payouts', 'statement', payout.id, '--format', 'html');
  assert.ok(later.stdout.includes(before.end), later.stdout);
});

test('everything agrees, with the file that went to the bank and an end that was kept', async () => {
  const { end } = await prove();
  const { outcomes, proofs } = await prove('--since', end, '--bank-file', file);
  assert.deepEqual(outcomes, all);
  const compared = Object.fromEntries(proofs.map(({ name, compared }) => [name, compared]));
  assert.deepEqual(compared.books, { checkouts: 1 });
  assert.deepEqual(compared.payouts, { exports: 1, payouts: 1, files: 1 });
  assert.deepEqual(compared.callbacks, { delivered: 1, waiting: 0, 'given up': 0 });
  assert.ok(compared.gateway?.records);
  const page = await nomsa.run('prove', '--without-gateway');
  assert.equal(page.code, 0);
  assert.match(page.stdout, /– The rows agree with the records of the card gateway/);
  assert.match(page.stdout, /Not compared: Files for the bank/);
});

test('each proof finds what is wrong, and the others hold', async () => {
  const { deps } = paying.service;
  const changed = join(folder, 'changed.csv');
  await writeFile(changed, 'reference,amount\nTR1,1.00\n');
  const wrongFile = await prove('--bank-file', changed);
  assert.deepEqual(wrongFile.outcomes, { ...all, payouts: 'differs' });

  for (const [change, undo, name] of [
    // No one approved this account.
    ['update payouts set bank_account = 7', 'update payouts set bank_account = 1', 'payouts'],
    [
      'update callback_attempts set response_status = 302',
      'update callback_attempts set response_status = 200',
      'callbacks',
    ],
    [
      `update published_ends set hash = sha256('x')`,
      `update published_ends e set hash = a.hash from operator_actions a where a.number = e.number`,
      'record',
    ],
  ] as const) {
    await tamper(deps.database.pool, change);
    try {
      const { outcomes } = await prove('--bank-file', file);
      assert.deepEqual(outcomes, { ...all, [name]: 'differs' }, change);
    } finally {
      await tamper(deps.database.pool, undo);
    }
  }
  assert.deepEqual((await prove('--bank-file', file)).outcomes, all);
});

test('a payout that was paid before a restore needs no export, whatever its merchant’s clock says', async () => {
  const { pool, db } = paying.service.deps.database;
  const { rows } = await pool.query('select export_id, exported_at from payouts');
  const move = (exported_at: string) =>
    tamper(pool, `update payouts set export_id = gen_random_uuid(), exported_at = ${exported_at}`);
  try {
    await tamper(pool, `update payouts set paid_at = paid_at + interval '30 days'`);
    await move('paid_at');
    assert.deepEqual(await listUnrecordedExports(db, 10), []);
    await move(`paid_at - interval '1 second'`);
    assert.deepEqual(await listUnrecordedExports(db, 10), [payout.reference]);
  } finally {
    const { export_id, exported_at } = rows[0];
    await tamper(
      pool,
      `update payouts set export_id = $1, exported_at = $2, paid_at = paid_at - interval '30 days'`,
      [export_id, exported_at],
    );
  }
});

test('a gateway that does not answer is reported as not compared', async () => {
  const { deps } = paying.service;
  const env = {
    ...gatewayEnv(paying.gateway),
    GATEWAY_MAIN_TEST_GATEWAY_URL: 'http://127.0.0.1:9',
  };
  const alone = commandLine(
    { DATABASE_URL: paying.service.databaseUrl, ...env },
    { clock: deps.clock },
  );
  const { code, stdout } = await alone.run('prove', '--json');
  const { proofs } = JSON.parse(stdout) as { proofs: Proof[] };
  assert.equal(code, 1);
  assert.equal(proofs.find(({ name }) => name === 'gateway')?.outcome, 'not compared');
});
