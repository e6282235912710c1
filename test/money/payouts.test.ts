import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { auditSlice } from '#checks/books/audit-books.ts';
import { findDifferences, findViolations } from '#checks/invariants/invariants.ts';
import { changePage } from '#merchants/change-page.ts';
import { rollUp } from '#operating/rollups/roll-up.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { smtpTransport } from '#purchases/messages/sending/smtp-transport.ts';
import { makeDuePayouts } from '#purchases/payouts/make-payouts.ts';
import { approvePayout, exportPayouts, readExport } from '#purchases/payouts/review-payout.ts';
import { sendDueStatements } from '#purchases/payouts/send-statements.ts';
import { postEntries, withoutFee } from '#record/ledger/post-entries.ts';
import { findBooks } from '#record/ledger/settlement.sql.ts';
import { commandLine, type Tranche } from '../support/cli.ts';
import { countLockWaits, findNodes } from '../support/database-server.ts';
import { startMailServer } from '../support/mail.ts';
import { cards, refundNow } from '../support/money.ts';
import {
  assertSound,
  commandsOf,
  endPayouts,
  endPlans,
  gatewayEnv,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { readPdf } from '../support/pdf.ts';
import { backUp } from '../support/restore.ts';
import { type Account, createAccount, startService } from '../support/service.ts';
import { tamper } from '../support/tamper.ts';
import { until } from '../support/until.ts';

// Tests the amounts that merchants are owed and paid, on their clocks, against the real test
// gateway. Each test has a merchant of its own and continues at the time of the one before.

const { hasCitus } = await findNodes();
const onCitus = hasCitus && 'Citus has no triggers';

let paying: Paying;
let nomsa: Tranche;
let sipho: Tranche;
before(async () => {
  // This is a Monday.
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
  nomsa = commandsOf(paying);
  sipho = commandsOf(paying, { TRANCHE_OPERATOR: 'sipho' });
});
afterEach(async () => {
  await endPayouts(paying);
  await endPlans(paying);
});
after(async () => {
  try {
    await paying.work();
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

async function setFee({ merchant }: Account, ...options: string[]): Promise<void> {
  const fee = ['--basis-points', '500', '--fixed', '200', '--vat-basis-points', '1500'];
  await nomsa.json('merchants', 'fee', merchant.id, ...fee, ...options);
}

async function merchantWith(...options: string[]): Promise<Account> {
  const account = await createAccount(paying.service);
  await setFee(account, ...options);
  await confirmedAccount(account);
  return account;
}

const accountNumber = '0629871234';
const firstId = '00000000-0000-0000-0000-000000000000';

async function confirmedAccount({ merchant }: Account): Promise<void> {
  const account = [
    '--holder',
    'Karoo & Sons',
    '--bank',
    'Standard Bank',
    '--branch-code',
    '051001',
  ];
  const number = ['--account-number', accountNumber];
  await nomsa.json('merchants', 'bank', merchant.id, ...account, ...number);
  await sipho.json('merchants', 'bank', merchant.id, '--confirm', '1', ...number);
}

async function bought(
  account: Account,
  term: number,
  options: { amount?: number; card?: string } = {},
) {
  const shopper = await paying.shopper({ amount: options.amount ?? 100_000 }, account);
  await shopper.pay(term, options.card === undefined ? {} : { card: options.card });
  return shopper;
}

type Line = {
  kind: string;
  gross: number;
  fee: number;
  vat: number;
  net: number;
  checkout_id: string;
};
type Shown = { id: string; status: string; amount: number; reference: string; lines: Line[] };

async function payoutsOf({ merchant }: Account): Promise<Shown[]> {
  const { data } = await nomsa.json('payouts', 'list', '--merchant', merchant.id);
  return data.toReversed();
}

const linesOf = ({ lines }: Shown) =>
  lines.map(({ kind, gross, fee, vat, net }) => [kind, gross, fee, vat, net]);

const netsOf = ({ lines }: Shown) => lines.map(({ kind, net }) => [kind, net]);

async function entriesOf(shopper: Shopper): Promise<string[]> {
  const rows = await shopper.rows('settlement_entries');
  return rows
    .sort((one, other) => (one.at < other.at ? -1 : 1))
    .map(({ kind, instalment, gross }) => `${kind} ${instalment ?? 'whole'} ${gross}`);
}

async function assertBooks(...more: string[]): Promise<void> {
  const now = timestamp(paying.clock.now());
  const names = ['M8', 'P1', 'P2', 'P3', 'P4', ...more];
  assert.deepEqual(await findViolations(paying.service.deps.database, now, names), []);
}

/** Asserts that a cent too many in one entry of a checkout is found, and nothing else. */
async function assertCentFound(shopper: Shopper): Promise<void> {
  const { database } = paying.service.deps;
  const add = (cents: number) =>
    tamper(
      database.pool,
      `update settlement_entries set gross = gross + $2, net = net + $2
       where checkout_id = $1 and kind = 'sale'`,
      [shopper.id, cents],
    );
  await add(1);
  const { id } = shopper;
  const found = (await findDifferences(database, id, id)).map(({ name }) => name);
  await add(-1);
  assert.deepEqual([...new Set(found)], ['P1']);
}

/** Approves and exports a payout, and records it as paid. */
async function settle(id: string): Promise<void> {
  await nomsa.json('payouts', 'approve', id);
  await sipho.json('payouts', 'approve', id);
  await nomsa.json('payouts', 'export');
  await nomsa.json('payouts', 'paid', id, '--bank-reference', 'FT1');
}

test('a merchant without terms has no entries and no payouts', async () => {
  const account = await createAccount(paying.service);
  const shopper = await bought(account, 1);
  await paying.pass({ days: 3 });
  assert.deepEqual(await shopper.rows('settlement_entries'), []);
  assert.deepEqual(await payoutsOf(account), []);
});

describe('funding whole', () => {
  test('owes the whole order once its first payment is collected, and pays it on the next business day', async () => {
    await paying.pass('2026-01-08T08:00:00Z');
    const account = await merchantWith();
    const shopper = await bought(account, 3);
    await paying.pass('2026-01-08T23:59:00Z');
    assert.deepEqual(await entriesOf(shopper), []);
    // The payment is captured at 02:00 on Friday, so the day closes on Monday.
    await paying.pass('2026-01-11T12:00:00Z');
    assert.deepEqual(await entriesOf(shopper), ['sale whole 100000']);
    assert.deepEqual(await payoutsOf(account), []);
    await paying.pass('2026-01-12T03:00:00Z');
    const [payout, ...others] = await payoutsOf(account);
    assert.ok(payout && others.length === 0);
    assert.equal(payout.status, 'draft');
    assert.equal(payout.reference, 'TR20260112-1');
    // The fee is 5 % and R 2,00, and VAT is 15 % of that.
    assert.deepEqual(linesOf(payout), [['sale', 100_000, 5_200, 780, 94_020]]);
    assert.equal(payout.amount, 94_020);
    assert.equal(payout.lines[0]?.checkout_id, shopper.id);
    // The later payments belong to the service: the merchant is owed nothing more for them.
    await paying.pass('2026-03-20T12:00:00Z');
    assert.deepEqual(await entriesOf(shopper), ['sale whole 100000']);
    assert.equal((await payoutsOf(account)).length, 1);
    await assertCentFound(shopper);
    await assertBooks();
  });

  test('owes what a refund before the capture left, and nothing for an order that was refunded whole', async () => {
    const account = await merchantWith();
    const part = await bought(account, 3);
    const whole = await bought(account, 3);
    await refundNow({ ...paying, account }, part, 40_000);
    await refundNow({ ...paying, account }, whole, 100_000);
    await paying.pass({ days: 5 });
    assert.deepEqual(await entriesOf(part), ['sale whole 60000']);
    assert.deepEqual(await entriesOf(whole), []);
    await assertBooks();
  });

  test('a refund takes back what is not collected and what is, and keeps the fee', async () => {
    const account = await merchantWith();
    const shopper = await bought(account, 3);
    await paying.pass({ days: 2 });
    await refundNow({ ...paying, account }, shopper, 70_000);
    const rows = await shopper.rows('settlement_entries');
    const refunds = rows.filter(({ kind }) => kind === 'refund');
    assert.equal(
      refunds.reduce((sum, { gross }) => sum + gross, 0),
      -70_000,
    );
    assert.equal(
      refunds.reduce((sum, { fee }) => sum + fee, 0),
      0,
    );
    await assertBooks();
  });

  test('a refund that the card network returns is owed again for what had gone to the card, with its fee', async () => {
    const account = await merchantWith('--refund-fee', 'returned');
    const shopper = await bought(account, 3, { card: cards.refundFails });
    await paying.pass({ days: 2 });
    await refundNow({ ...paying, account }, shopper, 100_000);
    // Later terms apply to later refunds only.
    await setFee(account, '--refund-fee', 'kept');
    await paying.pass({ days: 10 });
    const rows = await shopper.rows('settlement_entries');
    const sum = (name: string) => rows.reduce((total, row) => total + row[name], 0);
    // The refund had also cancelled the later payments. They stay cancelled.
    assert.deepEqual([sum('gross'), sum('fee'), sum('vat')], [33_334, 1_733, 260]);
    await assertBooks();
  });

  test('entries that are written together are read back in their order, whatever their ids', async () => {
    const account = await merchantWith();
    const shopper = await bought(account, 1);
    await paying.pass({ days: 2 });
    const { deps } = paying.service;
    const merchant_id = account.merchant.id;
    const at = timestamp(paying.clock.now());
    const ids = [...'321'].map((last) => firstId.replace(/.$/, last));
    const random = { ...deps.random, uuid: () => ids.shift() as string };
    const refunds = [1, 2, 3].map((cents) => {
      return { ...withoutFee(0 - cents), kind: 'refund' as const, checkout_id: shopper.id };
    });
    const rolledBack = new Error('what this test writes is rolled back');
    const reading = transaction(deps, async ({ db }) => {
      await postEntries({ random }, db, { merchant_id, currency: 'ZAR', at }, refunds);
      const books = await findBooks(db, { merchant_id, checkout_ids: [shopper.id], at });
      const read = books.sales.flatMap(({ taken }) => taken.map(({ gross }) => gross));
      assert.deepEqual(read, [-1, -2, -3]);
      throw rolledBack;
    });
    await assert.rejects(reading, rolledBack);
  });
});

describe('funding as_collected', () => {
  test('owes each payment when it is collected, with the fixed part on the first', async () => {
    await paying.pass('2026-05-04T08:00:00Z');
    const account = await merchantWith('--funding', 'as_collected');
    const shopper = await bought(account, 3, { amount: 90_000 });
    await paying.pass('2026-06-10T12:00:00Z');
    assert.deepEqual(await entriesOf(shopper), ['sale 1 30000', 'sale 2 30000']);
    const payouts = await payoutsOf(account);
    assert.deepEqual(payouts.map(linesOf), [
      [['sale', 30_000, 1_700, 255, 28_045]],
      [['sale', 30_000, 1_500, 225, 28_275]],
    ]);
    // An amount that a refund cancels was never owed. An amount that it returns to the card was.
    await refundNow({ ...paying, account }, shopper, 50_000);
    assert.deepEqual((await entriesOf(shopper)).slice(2), ['refund 2 -20000']);
    await assertCentFound(shopper);
    await assertBooks();
  });

  test('a plan keeps the funding with which it began', async () => {
    const account = await merchantWith('--funding', 'as_collected');
    const shopper = await bought(account, 3, { amount: 90_000 });
    await paying.pass({ days: 3 });
    const zero = ['--basis-points', '0', '--fixed', '0', '--vat-basis-points', '0'];
    await nomsa.json('merchants', 'fee', account.merchant.id, ...zero);
    await paying.pass({ days: 32 });
    assert.deepEqual(await entriesOf(shopper), ['sale 1 30000', 'sale 2 30000']);
    const [, second] = await payoutsOf(account);
    assert.deepEqual(second && linesOf(second), [['sale', 30_000, 0, 0, 30_000]]);
    await assertBooks();
  });
});

test('a negative balance is carried forward until sales make up for it', async () => {
  await paying.pass('2026-08-03T08:00:00Z');
  const account = await merchantWith();
  const first = await bought(account, 1);
  await paying.pass({ days: 2 });
  const [paid] = await payoutsOf(account);
  assert.ok(paid);
  await settle(paid.id);
  await refundNow({ ...paying, account }, first, 100_000);
  await bought(account, 1, { amount: 20_000 });
  await paying.pass({ days: 4 });
  assert.equal((await payoutsOf(account)).length, 1);
  await bought(account, 1, { amount: 200_000 });
  await paying.pass({ days: 4 });
  const [, next] = await payoutsOf(account);
  assert.deepEqual(
    next?.lines.map(({ kind, gross }) => [kind, gross]),
    [
      ['refund', -100_000],
      ['sale', 20_000],
      ['sale', 200_000],
    ],
  );
  assert.equal(
    next?.amount,
    next?.lines.reduce((sum, { net }) => sum + net, 0),
  );
  await assertBooks();
});

test('a reserve is held back from each day and released after its days', async () => {
  const account = await merchantWith('--reserve-basis-points', '1000', '--reserve-days', '30');
  await bought(account, 1);
  await paying.pass({ days: 5 });
  const [first] = await payoutsOf(account);
  assert.deepEqual(first && netsOf(first), [
    ['sale', 94_020],
    ['reserve', -9_402],
  ]);
  await paying.pass({ days: 35 });
  const [, second] = await payoutsOf(account);
  assert.deepEqual(second && netsOf(second), [['reserve_released', 9_402]]);
  await assertBooks();
});

test('a reserve leaves no money unpaid: refunds lessen it, and all of a sale is released on time', async () => {
  const refunded = await merchantWith('--reserve-basis-points', '1000', '--reserve-days', '7');
  const shopper = await bought(refunded, 1);
  const whole = await merchantWith('--reserve-basis-points', '10000', '--reserve-days', '7');
  await bought(whole, 1);
  await paying.pass({ days: 1 });
  await refundNow({ ...paying, account: refunded }, shopper, 94_000);
  await paying.pass({ days: 4 });
  assert.deepEqual((await payoutsOf(refunded)).map(netsOf), [
    [
      ['sale', 94_020],
      ['refund', -94_000],
      ['reserve', -2],
    ],
  ]);
  assert.deepEqual(await payoutsOf(whole), []);
  const held = await balanceOf(whole);
  assert.deepEqual([held.owed, held.open, held.sums.reserve], [94_020, 0, 94_020]);
  await paying.pass({ days: 10 });
  assert.deepEqual((await payoutsOf(refunded)).map(netsOf).slice(1), [[['reserve_released', 2]]]);
  assert.deepEqual((await payoutsOf(whole)).map(netsOf), [
    [
      ['sale', 94_020],
      ['reserve', -94_020],
      ['reserve_released', 94_020],
    ],
  ]);
  // The next sale is held back too, although the reserve before it is only a line.
  await bought(whole, 1);
  await paying.pass({ days: 5 });
  const again = await balanceOf(whole);
  assert.deepEqual([again.sums.payouts, again.sums.reserve, again.owed], [94_020, 94_020, 188_040]);
  await assertBooks('P5');
});

describe('a payout', () => {
  async function draft(): Promise<{ account: Account; payout: Shown }> {
    const account = await merchantWith();
    await bought(account, 1);
    await paying.pass({ days: 5 });
    const [payout] = await payoutsOf(account);
    assert.ok(payout);
    return { account, payout };
  }

  test('needs two operators, is exported once, and is paid with the bank’s reference', async () => {
    const { account: of, payout } = await draft();
    const { id } = payout;
    // The merchant's clock is a month ahead of the real one.
    await paying.service.deps.database.pool.query(
      'update merchants set clock_ahead_ms = clock_ahead_ms + $2 where id = $1',
      [of.merchant.id, 30 * 24 * 60 * 60 * 1000],
    );
    const inAMonth = timestamp(paying.clock.now().add({ hours: 30 * 24 }));
    await nomsa.refused(
      1,
      /only a payout that is exported can become paid/,
      'payouts',
      'paid',
      id,
      '--bank-reference',
      'x',
    );
    assert.equal((await nomsa.json('payouts', 'approve', id)).status, 'draft');
    await nomsa.refused(
      1,
      /nomsa has already approved .* Another operator/,
      'payouts',
      'approve',
      id,
    );
    assert.equal((await sipho.json('payouts', 'approve', id)).status, 'approved');
    await sipho.refused(1, /is approved: only a payout that is draft/, 'payouts', 'approve', id);
    await nomsa.refused(
      2,
      /--format is "xml" and must be csv or pain\.001/,
      'payouts',
      'export',
      '--format',
      'xml',
    );
    // The first output is lost, so it is printed again by the id on standard error.
    const lost = await commandsOf(paying, {}, { isFull: true }).run('payouts', 'export', '--json');
    const named = /^Payouts in export (\S+): 1\. .*--export \1`/.exec(lost.stderr);
    assert.ok(named, lost.stderr);
    const exported = await nomsa.json('payouts', 'export', '--export', String(named[1]));
    assert.deepEqual(
      exported.data.map((one: Shown & { exported_at: string }) => [one.id, one.exported_at]),
      [[id, inAMonth]],
    );
    assert.deepEqual((await nomsa.json('payouts', 'export')).data, []);
    const again = await nomsa.run('payouts', 'export', '--export', exported.export_id);
    assert.doesNotMatch(again.stderr, /No payout is approved/);
    const [heading, row] = again.stdout.split('\r\n');
    assert.equal(
      heading,
      'reference,merchant_id,merchant_name,amount,currency,payout_id,account_holder,bank,branch_code,account_number',
    );
    const account = `Karoo & Sons,Standard Bank,051001,${accountNumber}`;
    assert.match(row ?? '', new RegExp(`^${payout.reference},.*,940\\.20,ZAR,${id},${account}$`));
    const { stdout: message } = await nomsa.run(
      ...['payouts', 'export', '--format', 'pain.001', '--export', exported.export_id],
    );
    assert.match(message, /pain\.001\.001\.09"/);
    assert.match(message, /<NbOfTxs>1<\/NbOfTxs><CtrlSum>940\.20<\/CtrlSum>/);
    assert.match(message, new RegExp(`<Nm>Karoo \\+ Sons</Nm>.*\n.*<Id>${accountNumber}</Id>`));
    assert.match(message, new RegExp(`<Ustrd>${payout.reference}</Ustrd>`));
    const paid = await nomsa.json('payouts', 'paid', id, '--bank-reference', 'FT26');
    assert.deepEqual([paid.status, paid.bank_reference], ['paid', 'FT26']);
    await assertBooks();
  });

  test('is not exported before two operators agree on the bank account, and the export says so', async () => {
    const account = await createAccount(paying.service);
    const { id: merchant } = account.merchant;
    const fee = ['--basis-points', '0', '--fixed', '0', '--vat-basis-points', '0'];
    await nomsa.json('merchants', 'fee', merchant, ...fee);
    await bought(account, 1);
    await paying.pass({ days: 5 });
    const [payout] = await payoutsOf(account);
    assert.ok(payout);
    await nomsa.json('payouts', 'approve', payout.id);
    await sipho.json('payouts', 'approve', payout.id);
    const refusal = async () => {
      const { stdout, stderr } = await nomsa.run('payouts', 'export');
      assert.equal(stdout.split('\r\n')[1], '', 'the file has no row');
      assert.match(stderr, new RegExp(`${payout.reference} was not exported: .* bank account`));
      return (await nomsa.json('payouts', 'show', payout.id)).status;
    };
    assert.equal(await refusal(), 'approved');
    const bank = ['merchants', 'bank', merchant];
    const proposal = ['--holder', 'Thandi', '--bank', 'FNB', '--branch-code', '250655'];
    const bad = [...proposal, '--account-number', '12 34'];
    await nomsa.refused(1, /must have 5 to 20 digits/, ...bank, ...bad);
    const shown = await nomsa.json(...bank, ...proposal, '--account-number', '62100049876');
    assert.equal(shown.account, null);
    assert.equal(shown.proposed.last4, '9876');
    assert.equal(await refusal(), 'approved');
    const confirmed = ['--confirm', '1', '--account-number', '62100049876'];
    await nomsa.refused(1, /Another operator must confirm it/, ...bank, ...confirmed);
    await sipho.refused(2, /--account-number/, ...bank, '--confirm', '1');
    for (const wrong of ['62100049875', '9876', '621000498760']) {
      const other = [...bank, '--confirm', '1', '--account-number', wrong];
      await sipho.refused(1, /not the account number that was proposed/, ...other);
    }
    await sipho.json(...bank, ...confirmed);
    await sipho.refused(1, /No bank account .* is waiting/, ...bank, ...confirmed);
    // Both approved the payout when there was no account, so both approve it again for this one.
    assert.equal(await refusal(), 'approved');
    assert.equal((await sipho.json('payouts', 'approve', payout.id)).status, 'draft');
    assert.equal((await nomsa.json('payouts', 'approve', payout.id)).status, 'approved');
    const { stdout } = await nomsa.run('payouts', 'export');
    assert.match(stdout, /,Thandi,FNB,250655,62100049876\r\n$/);

    // A later proposal changes nothing until it is confirmed, and an export stays what it was.
    const other = ['--holder', 'Thandi', '--bank', 'FNB', '--branch-code', '250655'];
    await sipho.json(...bank, ...other, '--account-number', '62100041111');
    assert.equal((await nomsa.json(...bank)).account.last4, '9876');
    await nomsa.refused(1, /not the newest proposal/, ...bank, ...confirmed);
    await nomsa.json(...bank, '--confirm', '2', '--account-number', '62100041111');
    assert.equal((await nomsa.json(...bank)).account.last4, '1111');
    const { export_id } = await nomsa.json('payouts', 'show', payout.id);
    const again = await nomsa.run('payouts', 'export', '--export', export_id);
    assert.equal(again.stdout, stdout);
    await nomsa.json('payouts', 'paid', payout.id, '--bank-reference', 'FT2');

    // Nothing but the bank file has the whole account number.
    const { pool } = paying.service.deps.database;
    for (const table of ['bank_accounts', 'operator_actions', 'alerts', 'payouts']) {
      const { rows } = await pool.query(`select t::text as row from ${table} t`);
      assert.ok(!rows.some(({ row }) => /621000(498|411)/.test(row)), table);
    }
    await assertBooks();
  });

  test('is exported only to the account that two operators approved it for', async () => {
    const { account, payout } = await draft();
    const bank = ['merchants', 'bank', account.merchant.id];
    const other = ['--holder', 'Mallory', '--bank', 'FNB', '--branch-code', '250655'];
    const approve = async (operator: Tranche) =>
      (await operator.json('payouts', 'approve', payout.id)).status;
    assert.equal(await approve(nomsa), 'draft');
    await sipho.json(...bank, ...other, '--account-number', '62100046666');
    await nomsa.json(...bank, '--confirm', '2', '--account-number', '62100046666');
    const seen = ['payouts', 'approve', payout.id, '--account'];
    await sipho.refused(1, /Account 2, which ends in 6666, is in use now/, ...seen, '1');
    await sipho.refused(1, /is not the one that you saw/, ...seen, 'none');
    await sipho.refused(2, /--account is "x"/, ...seen, 'x');
    const { stdout: shown } = await sipho.run('payouts', 'show', payout.id);
    assert.match(shown, /^Account in use +account 2, which ends in 6666$/m);
    assert.match(shown, /^Approved for +account 1$/m);
    const first = await sipho.json(...seen, '2');
    assert.equal(first.status, 'draft', 'the first approval was for another account');
    assert.equal(await approve(nomsa), 'approved');
    await sipho.json(...bank, ...other, '--account-number', '62100047777');
    await nomsa.json(...bank, '--confirm', '3', '--account-number', '62100047777');
    const held = await nomsa.json('payouts', 'export');
    assert.deepEqual(
      [held.data.length, held.to_approve_again.map(({ id }: Shown) => id)],
      [0, [payout.id]],
    );
    assert.equal(await approve(nomsa), 'draft');
    assert.equal(await approve(sipho), 'approved');
    const { stdout } = await nomsa.run('payouts', 'export');
    assert.match(stdout, /,Mallory,FNB,250655,62100047777\r\n$/);
    await assertBooks();
  });

  test('is exported to a new account only after a business day', async () => {
    const careful = commandsOf(paying, { NEW_ACCOUNT_BUSINESS_DAYS: '1' });
    const { account, payout } = await draft();
    const bank = ['merchants', 'bank', account.merchant.id];
    const other = ['--holder', 'Mallory', '--bank', 'FNB', '--branch-code', '250655'];
    const number = ['--account-number', '62100048888'];
    await sipho.json(...bank, ...other, ...number);
    await nomsa.json(...bank, '--confirm', '2', ...number);
    for (const operator of [nomsa, sipho]) await operator.json('payouts', 'approve', payout.id);
    const { stdout, stderr } = await careful.run('payouts', 'export');
    assert.equal(stdout.split('\r\n')[1], '', 'the file has no row');
    assert.match(stderr, /was not exported: its bank account was confirmed too recently\. .* from/);
    const held = await careful.json('payouts', 'export');
    assert.deepEqual(
      held.new_account.map(({ id }: Shown) => id),
      [payout.id],
    );
    paying.clock.advance({ days: 5 });
    assert.match(
      (await careful.run('payouts', 'export')).stdout,
      /,Mallory,FNB,250655,62100048888/,
    );
  });

  test('whose export is lost in a restore is not exported again before it is compared', async () => {
    const { payout } = await draft();
    for (const operator of [nomsa, sipho]) await operator.json('payouts', 'approve', payout.id);
    const { clock, gateway, service } = paying;
    clock.advance({ minutes: 2 });
    await service.deps.money.raiseHeartbeat();
    const backup = await backUp(service.databaseUrl);
    assert.match((await nomsa.run('payouts', 'export')).stdout, new RegExp(payout.id));
    const env = gatewayEnv(gateway);
    const restored = await startService({ databaseUrl: backup.url, clock, env });
    try {
      const again = exportPayouts(restored.deps, 'nomsa', 'csv');
      await assert.rejects(again, /The gateway is ahead of this database/);
    } finally {
      await restored.close();
      await backup.drop();
    }
  });

  test('is in no file for the bank until the gateway has recorded its export', async () => {
    const { payout } = await draft();
    for (const operator of [nomsa, sipho]) await operator.json('payouts', 'approve', payout.id);
    const { gateway, service, clock } = paying;
    const statusOf = async () => (await nomsa.json('payouts', 'show', payout.id)).status;
    // The SDK repeats a request once if its connection was closed.
    const fault = {
      fault: 'drop_before',
      method: 'POST',
      path: '/v1/customers/:id',
      times: 2,
    } as const;
    await gateway.fault(fault);
    await nomsa.refused(1, /Try again once it answers/, 'payouts', 'export');
    assert.equal(await statusOf(), 'approved');
    // The gateway stops answering while the payout is exported.
    let calls = 0;
    const { money } = service.deps;
    const raiseHeartbeatNow = async () => {
      calls += 1;
      if (calls === 2) await gateway.fault(fault);
      return await money.raiseHeartbeatNow();
    };
    const deps = { ...service.deps, money: { ...money, raiseHeartbeatNow } };
    await assert.rejects(exportPayouts(deps, 'nomsa', 'csv'), /Read its file by that id/);
    assert.equal(await statusOf(), 'exported');
    const { export_id } = await nomsa.json('payouts', 'show', payout.id);
    // The database stops answering while the file is read.
    for (const [cause, told] of [
      [new Error('Connection terminated unexpectedly'), /The database is not answering/],
      [new TypeError('x is not a function'), /An error in the service/],
    ] as const) {
      const away = { ...deps, money: { raiseHeartbeatNow: () => Promise.reject(cause) } };
      await assert.rejects(readExport(away, 'nomsa', export_id, 'csv'), (error: Error) => {
        assert.match(error.message, told);
        assert.match(error.message, new RegExp(export_id));
        // The log needs the error itself.
        assert.equal(error.cause, cause);
        return true;
      });
    }
    const file = ['payouts', 'export', '--export', export_id];
    await gateway.fault(fault);
    clock.advance({ seconds: 2 });
    await nomsa.refused(1, /Try again once it answers/, ...file);
    assert.match((await nomsa.run(...file)).stdout, new RegExp(payout.id));
  });

  test('that the bank returns is owed again once two operators recorded it, as a line of the next payout', async () => {
    const { account, payout } = await draft();
    await nomsa.json('payouts', 'approve', payout.id);
    await sipho.json('payouts', 'approve', payout.id);
    await nomsa.json('payouts', 'export');
    const returned = ['returned', payout.id, '--reason', 'account closed'];
    const noted = await nomsa.json('payouts', ...returned);
    assert.deepEqual([noted.status, noted.return_noted_by], ['exported', 'nomsa']);
    const shown = await sipho.run('payouts', 'show', payout.id);
    assert.match(shown.stdout, /^Return recorded +by nomsa: account closed$/m);
    await nomsa.refused(1, /Another operator must confirm it/, 'payouts', ...returned);
    assert.equal((await sipho.json('payouts', ...returned)).status, 'returned');
    await paying.pass({ days: 5 });
    const [, next] = await payoutsOf(account);
    assert.deepEqual(
      next?.lines.map(({ kind, net }) => [kind, net]),
      [['payout_returned', 94_020]],
    );
    assert.ok(next);
    await settle(next.id);
    // The bank may also return what it had paid.
    for (const operator of [nomsa, sipho]) {
      await operator.json('payouts', 'returned', next.id, '--reason', 'account closed');
    }
    await assertBooks();
  });

  test('never counts one operator twice, however two operators approve it at once', async () => {
    const { payout } = await draft();
    const { deps } = paying.service;
    const answers = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) =>
        approvePayout(deps, index % 2 === 0 ? 'nomsa' : 'sipho', payout.id),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 2);
    const shown = await nomsa.json('payouts', 'show', payout.id);
    assert.deepEqual([shown.first_approver, shown.approver].sort(), ['nomsa', 'sipho']);
    assert.equal(shown.status, 'approved');
  });

  test('has an entry of the day before that comes while it is being made', async () => {
    const account = await merchantWith();
    const shopper = await bought(account, 1);
    await paying.pass({ days: 1 });
    const { clock, service } = paying;
    const day = clock.now();
    const due = day.add({ hours: 24 * 4 });
    const other = await service.deps.database.pool.connect();
    try {
      await other.query('begin');
      await other.query('lock table payouts in share mode');
      clock.set(due.toString());
      const made = makeDuePayouts(service.deps);
      const waits = async () => (await countLockWaits(service.deps.database.pool)) > 0;
      await Promise.race([until('the payout to wait', waits), made.then(() => assert.fail())]);
      clock.set(day.toString());
      await refundNow({ ...paying, account }, shopper, 40_000);
      clock.set(due.toString());
      await other.query('commit');
      await made;
    } finally {
      other.release();
    }
    const [payout] = await payoutsOf(account);
    assert.deepEqual(
      payout?.lines.map(({ kind, gross }) => [kind, gross]),
      [
        ['sale', 100_000],
        ['refund', -40_000],
      ],
    );
  });

  test('and its lines cannot be changed in the database', { skip: onCitus }, async () => {
    const { payout } = await draft();
    const { pool } = paying.service.deps.database;
    for (const statement of [
      'update payouts set amount = amount + 1 where id = $1',
      'delete from payouts where id = $1',
      'update settlement_entries set payout_id = null, line = null where payout_id = $1',
      'update settlement_entries set net = net + 1, gross = gross + 1 where payout_id = $1',
      'delete from settlement_entries where payout_id = $1',
    ]) {
      await assert.rejects(pool.query(statement, [payout.id]), /append-only/, statement);
    }
  });

  test('has a statement as CSV, as JSON and as a page, and no order name is run as a formula', async () => {
    const account = await merchantWith();
    const shopper = await paying.shopper(
      { amount: 100_000, client_reference_id: '=HYPERLINK("x")<b>' },
      account,
    );
    await shopper.pay(1);
    await paying.pass({ days: 5 });
    const [payout] = await payoutsOf(account);
    assert.ok(payout);
    const csv = (await nomsa.run('payouts', 'statement', payout.id)).stdout;
    assert.equal(
      csv.split('\r\n')[0],
      'payout_reference,payout_id,business_date,line,at,kind,checkout_id,client_reference_id,gross,fee,vat,net,currency',
    );
    assert.match(csv, /,"'=HYPERLINK\(""x""\)<b>",1000\.00,52\.00,7\.80,940\.20,ZAR\r\n$/);
    const json = await nomsa.json('payouts', 'statement', payout.id);
    assert.deepEqual(json.totals, { gross: 100_000, fee: 5_200, vat: 780, net: 94_020 });
    const page = (await nomsa.run('payouts', 'statement', payout.id, '--format', 'html')).stdout;
    assert.match(page, /<html lang="en">.*not a tax invoice/s);
    assert.match(page, /=HYPERLINK\(&quot;x&quot;\)&lt;b&gt;/);
    // A reference that a list prints is enough, and the command line knows which payout it means.
    const profile = { address: '12 Long Street\nCape Town', vat_number: '4123456789' };
    const { id } = account.merchant;
    await changePage(paying.service.deps, 'test', { id, ...profile });
    const pdf = async (as: Tranche) =>
      await as.run('payouts', 'statement', payout.id.slice(0, 23), '--format', 'pdf');
    const { pages, source } = readPdf(Buffer.from((await pdf(nomsa)).stdout, 'latin1'));
    const text = pages.flat().join('\n').replaceAll('\u00a0', ' ');
    for (const said of [
      `Statement ${payout.reference}`,
      '12 Long Street, Cape Town',
      '4123456789',
      '=HYPERLINK("x")<b>',
      ...['R 1 000,00', 'R 52,00', 'R 7,80', 'R 940,20', 'R 59,80', 'not a tax invoice'],
    ]) {
      assert.ok(text.includes(said), `${said} in ${text}`);
    }
    assert.match(source, /\/Lang \(en\)/);
    assert.match(source, /\/S \/TH\b/);
    const env = { DATABASE_URL: paying.service.databaseUrl };
    const atTerminal = await pdf(commandLine(env, { terminal: true }));
    assert.deepEqual([atTerminal.code, atTerminal.stdout], [2, '']);
  });
});

test('the statement of a paid payout is sent once, in the merchant’s language, to the address that an operator set', async () => {
  const [account, other] = [await merchantWith(), await merchantWith()];
  await changePage(paying.service.deps, 'test', { id: account.merchant.id, language: 'af' });
  const bank = ['merchants', 'bank', account.merchant.id];
  await nomsa.refused(1, /one e-mail address/, ...bank, '--statements-to', 'books@karoo');
  const address = 'books@karoo.example';
  const shown = await nomsa.json(...bank, '--statements-to', address);
  assert.equal(shown.statement_email, address);
  await bought(account, 1);
  await bought(other, 1);
  await paying.pass({ days: 5 });
  const [payout] = await payoutsOf(account);
  const [silent] = await payoutsOf(other);
  assert.ok(payout && silent);
  await settle(payout.id);
  await settle(silent.id);
  const server = await startMailServer();
  const mail = smtpTransport({ url: server.url, from: 'payments@tranche.example' });
  try {
    const { deps } = paying.service;
    assert.equal(await sendDueStatements({ ...deps, mail }), 1);
    assert.equal(await sendDueStatements({ ...deps, mail }), 0);
    const [sent, ...others] = server.mails;
    assert.ok(sent && others.length === 0);
    assert.deepEqual(sent.to, [address]);
    for (const said of [
      `Subject: Staat ${payout.reference}: R 940,20`,
      'Fooie met BTW, van die saldo afgetrek: R 59,80',
      `filename=${payout.reference}.csv`,
      `filename=${payout.reference}.pdf`,
    ]) {
      assert.ok(unfold(sent.source).includes(said), said);
    }
    const { stdout: csv } = await nomsa.run('payouts', 'statement', payout.id);
    const attached = Buffer.from(`\u{feff}${csv}`).toString('base64');
    assert.ok(sent.source.replaceAll('\r\n', '').includes(attached), 'the file of a download');
  } finally {
    await mail.close();
    await server.stop();
  }
});

/** Header lines and quoted-printable text without their line breaks. */
const unfold = (source: string) =>
  source
    .replaceAll('=\r\n', '')
    .replaceAll('=C2=A0', ' ')
    .replace(/\r\n\s+/g, ' ');

test('ledger check and the audit name a payout that differs by a cent, and nothing else', async () => {
  const account = await merchantWith();
  const shopper = await bought(account, 1);
  await paying.pass({ days: 5 });
  const [payout] = await payoutsOf(account);
  assert.ok(payout);
  await settle(payout.id);
  const { deps } = paying.service;
  const { pool } = deps.database;
  const merchant_id = account.merchant.id;
  const own: string[] = [payout.id, shopper.id, merchant_id];
  const check = async () => {
    const { code, stdout } = await nomsa.run('ledger', 'check', '--json');
    const { differences } = JSON.parse(stdout) as { differences: { name: string; row: object }[] };
    return { code, found: differences.map(({ name, row }) => `${name} ${JSON.stringify(row)}`) };
  };
  const alerts = async () => {
    do await auditSlice(deps);
    while ((await pool.query('select from audit where after <> $1', [firstId])).rowCount);
    const { rows } = await pool.query("select detail from alerts where kind = 'books_differ'");
    return rows.map(({ detail }) => detail as string);
  };
  assert.deepEqual(await check(), { code: 0, found: [] });
  assert.deepEqual(await alerts(), []);

  const cent = (where: string, sign: string) =>
    `update settlement_entries set gross = gross ${sign} 1, net = net ${sign} 1 where ${where}`;
  const paidOut = `paid_payout_id = '${payout.id}' and kind = 'paid_out'`;
  const line = `payout_id = '${payout.id}' and line = 1`;
  const amount = (sign: string) =>
    `update payouts set amount = amount ${sign} 1 where id = '${payout.id}'`;
  const second = (operator: string) =>
    `update operator_actions set operator = '${operator}' where subject_id = '${payout.id}'
     and action = 'payouts approve' and details->>'status' = 'approved'`;
  const fee = `insert into gateway_fees values
    ('txn_planted', 'charge', 'pi_planted', '${merchant_id}', '${shopper.id}', 1, 'ZAR', now())`;
  const noFee = "delete from gateway_fees where transaction_ref = 'txn_planted'";
  const inPayouts = (sign: string) =>
    `update payout_sums set net = net ${sign} 1 where merchant_id = '${merchant_id}'`;
  for (const [change, undo, names, id] of [
    [cent(paidOut, '-'), cent(paidOut, '+'), ['P3'], payout.id],
    [cent(line, '+'), cent(line, '-'), ['P2', 'P4'], payout.id],
    [amount('+'), amount('-'), ['P2', 'P3', 'P4'], payout.id],
    [second('nomsa'), second('sipho'), ['A2'], payout.id],
    [fee, noFee, ['M10'], shopper.id],
    [inPayouts('+'), inPayouts('-'), ['P5'], merchant_id],
  ] as const) {
    await tamper(pool, change);
    try {
      const { code, found } = await check();
      assert.equal(code, 1, change);
      for (const name of names) {
        assert.ok(
          found.some((one) => one.startsWith(`${name} `)),
          `${name} after ${change}: ${found}`,
        );
      }
      assert.ok(
        found.every((one) => own.some((ownId) => one.includes(ownId))),
        `${found}`,
      );
      const details = await alerts();
      assert.ok(
        details.some((one) => one.startsWith(`${names[0]}, `) && one.includes(id)),
        `${names[0]} after ${change}: ${details}`,
      );
    } finally {
      await tamper(pool, undo);
    }
    assert.deepEqual(await check(), { code: 0, found: [] });
  }
});

/** Adds up the entries of a merchant one by one. */
async function owedByBooks({ merchant }: Account) {
  const { rows } = await paying.service.deps.database.pool.query(
    `select kind, gross::int, fee::int, vat::int, net::int, payout_id from settlement_entries
     where merchant_id = $1 and kind <> 'paid_out'`,
    [merchant.id],
  );
  const sum = (member: string, kinds: string[] | null, open = true) =>
    rows
      .filter(
        ({ kind, payout_id }) => (!open || payout_id === null) && (kinds?.includes(kind) ?? true),
      )
      .reduce((total, row) => total + row[member], 0);
  const payouts = (await payoutsOf({ merchant } as Account))
    .filter(({ status }) => !['paid', 'returned'].includes(status))
    .reduce((total, { amount }) => total + amount, 0);
  const sums = {
    sale: sum('gross', ['sale']),
    refund: sum('gross', ['refund', 'refund_reversed']),
    dispute: sum('gross', ['dispute', 'dispute_reversed']),
    payout_returned: sum('gross', ['payout_returned']),
    withheld: sum('gross', ['reserve']),
    fee: 0 - sum('fee', null),
    vat: 0 - sum('vat', null),
    payouts,
    reserve: 0 - sum('net', ['reserve', 'reserve_released'], false),
  };
  return { sums, open: sum('net', null) };
}

/** Reads a balance, and compares it with the books. */
async function balanceOf(account: Account) {
  const found = await nomsa.json('merchants', 'balance', account.merchant.id);
  const { sums, open, owed } = found;
  assert.deepEqual({ sums, open }, await owedByBooks(account));
  const { payouts, reserve, ...entries } = sums;
  const add = (all: object) => Object.values(all).reduce((sum, one) => sum + one, 0);
  assert.deepEqual([add(entries), add(sums)], [open, owed]);
  return found;
}

test('a balance is what the books say, whether its entries are in the sums yet or not', async () => {
  const reserve = ['--reserve-basis-points', '1000', '--reserve-days', '20'];
  const account = await merchantWith('--refund-fee', 'returned', ...reserve);
  const { deps } = paying.service;
  const read = () => balanceOf(account);
  assert.equal((await read()).owed, 0);
  const shopper = await bought(account, 1);
  await paying.pass({ days: 1 });
  await refundNow({ ...paying, account }, shopper, 30_000);
  const first = await read();
  assert.deepEqual(
    [first.sums.sale, first.sums.refund, first.sums.fee, first.sums.vat],
    [100_000, -30_000, -3_640, -546],
  );
  while ((await rollUp(deps, 0)) > 0);
  assert.deepEqual(await read(), first);
  // Nothing more happens, so the payout is made as it stood.
  await paying.pass(first.next_payout.made_at);
  const [payout] = await payoutsOf(account);
  assert.equal(payout?.amount, first.next_payout.amount);
  const made = await read();
  assert.equal(made.sums.payouts, payout?.amount);
  assert.equal(made.sums.reserve, -first.next_payout.reserve_held);
  assert.deepEqual([made.open, made.owed], [0, first.owed]);
  assert.deepEqual(
    made.payouts.map(({ reference, status }: Shown) => [reference, status]),
    [[payout?.reference, 'draft']],
  );
  await settle(payout?.id ?? '');
  await bought(account, 3);
  await paying.pass({ days: 1 });
  const settled = await read();
  assert.equal(settled.sums.payouts, 0);
  // The bank returns the first payout, and later the reserve becomes free.
  for (const one of [nomsa, sipho]) {
    await one.json('payouts', 'returned', payout?.id ?? '', '--reason', 'account closed');
  }
  assert.equal((await read()).sums.payout_returned, payout?.amount);
  while ((await rollUp(deps, 0)) > 0);
  await paying.pass({ days: 25 });
  await read();
  await assertBooks();
});

test('money day says what moved on a local date', async () => {
  await paying.pass('2027-02-01T08:00:00Z');
  const account = await merchantWith();
  const shopper = await bought(account, 1);
  await paying.pass('2027-02-02T08:00:00Z');
  await refundNow({ ...paying, account }, shopper, 30_000);
  await paying.pass('2027-02-03T08:00:00Z');
  const [payout] = await payoutsOf(account);
  assert.ok(payout);
  await settle(payout.id);
  const day = async (date: string) => {
    const { data } = await nomsa.json('money', 'day', '--date', date);
    const own = data.find(
      (row: { merchant_id: string }) => row.merchant_id === account.merchant.id,
    );
    const { sold, collected, refunded, disputed, fees, vat, paid_out } = own;
    return { sold, collected, refunded, disputed, fees, vat, paid_out };
  };
  const none = { sold: 0, collected: 0, refunded: 0, disputed: 0, fees: 0, vat: 0, paid_out: 0 };
  assert.deepEqual(await day('2027-02-01'), { ...none, sold: 100_000 });
  assert.deepEqual(await day('2027-02-02'), {
    ...none,
    collected: 100_000,
    refunded: 30_000,
    fees: 5_200,
    vat: 780,
  });
  assert.deepEqual(await day('2027-02-03'), { ...none, paid_out: payout.amount });
  const days = ['2027-02-01', '2027-02-02', '2027-02-03'];
  const before = await Promise.all(days.map(day));
  while ((await rollUp(paying.service.deps, 0)) > 0);
  assert.deepEqual(await Promise.all(days.map(day)), before);
});
