import assert from 'node:assert/strict';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Handle } from '#platform/database/database.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import { findRecordEnd } from '#record/alerts/publish-end.ts';
import { entriesTogether, stateEntries } from '#record/ledger/post-entries.ts';
import { sumStatement } from '#record/ledger/settlement.sql.ts';
import { findStatementAddress } from './bank-account.sql.ts';
import type { PayoutDeps } from './make-payouts.ts';
import {
  dueStatementMonths,
  findBalancesBefore,
  insertMonthlyStatement,
  insertStatementMonth,
  lockStatementMonth,
  moveStatementMonth,
} from './monthly-statement.sql.ts';
import {
  balancesAfter,
  endOfMonth,
  type Issuer,
  type MonthlyStatement,
  namedIssuer,
  nextMonth,
  partiesOf,
  type StatementMonth,
  statementDueAt,
  statementReference,
} from './monthly-statement.ts';
import { listHolidays, lockPayouts } from './payout.sql.ts';
import { insertStatementMail } from './statement-mail.sql.ts';

export type MonthlyDeps = PayoutDeps & {
  issuer: Issuer;
  environment: Environment;
  /** Whether mails are sent at all. */
  sendsMessages: boolean;
};

const leaseSeconds = 600;

const work: MerchantDueWork<'statement_months', MonthlyDeps> = {
  due: dueStatementMonths,
  leaseSeconds,
  batchSize: 1,
  merchantsMax: 200,
  concurrency: 1,
  roundMilliseconds: 0,
  run: async (deps, merchant, [month]) => {
    assert(month?.lease);
    await makeStatement(deps, merchant, month.lease);
  },
};

/** Makes the statements for all merchants whose month is over (decision 0140). */
export async function makeDueMonthlyStatements(
  deps: MonthlyDeps,
  stopping?: AbortSignal,
): Promise<number> {
  return await runDueWork(deps, work, stopping);
}

export const makeMerchantMonthlyStatements = (deps: MonthlyDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

/** Begins a merchant's statements with the current month. */
export async function beginStatements(
  db: Handle,
  merchant: Merchant,
  now: Temporal.Instant,
): Promise<void> {
  const month = merchant.localDate(now).with({ day: 1 }).toString();
  const due_at = timestamp(await dueAt(db, merchant, month));
  await insertStatementMonth(db, merchant.id, month, due_at);
}

async function dueAt(db: Handle, merchant: Merchant, month: string): Promise<Temporal.Instant> {
  const { code, time_zone } = merchant.territory;
  const holidays = await listHolidays(db, code, nextMonth(month));
  return statementDueAt({ holidays, time_zone }, month);
}

/**
 * A process that dies loses at most one transaction of this work, and the next process continues
 * from there.
 */
async function makeStatement(deps: MonthlyDeps, merchant: Merchant, lease: string) {
  const id = deps.random.uuid();
  for (;;) {
    const made = await transaction(deps, ({ db }) => goOn(deps, db, merchant, { id, lease }));
    if (made === 'lines') continue;
    if (made === null) return;
    const { merchant_id, reference, lines } = made;
    deps.log.info({ merchant_id, statement_id: id, reference, lines }, 'a statement was made');
    return;
  }
}

/**
 * Turns some entries into lines of the statement. With the last of them the statement gets its
 * number, and the merchant's row moves to the next month. A month without entries gets neither a
 * statement nor a number.
 */
async function goOn(
  deps: MonthlyDeps,
  db: Handle,
  merchant: Merchant,
  { id, lease }: { id: string; lease: string },
): Promise<MonthlyStatement | 'lines' | null> {
  // Another process claimed the month, or an earlier run of this transaction was committed.
  const locked = await lockStatementMonth(db, merchant.id, lease);
  if (!locked) return null;
  // A payout that is being made updates the same entries in another order. Without this lock the
  // two transactions could deadlock.
  await lockPayouts(db, merchant.id);
  const { month, number } = locked;
  const before = timestamp(endOfMonth(month, merchant.territory.time_zone));
  // A transaction takes only part of a large month, so that it stays short.
  const added = await stateEntries(db, merchant.id, { ...locked, before, max: entriesTogether });
  const lines = locked.lines + added;
  if (added === entriesTogether) {
    const leased_until = timestamp(secondsAfter(deps.clock.now(), leaseSeconds));
    await moveStatementMonth(db, merchant.id, { lines, leased_until });
    return 'lines';
  }
  const made = lines > 0 ? await issue(deps, db, merchant, { id, month, number, lines }) : null;
  await moveStatementMonth(db, merchant.id, {
    month: nextMonth(month),
    number: number + (made ? 1 : 0),
    lines: 0,
    due_at: timestamp(await dueAt(db, merchant, nextMonth(month))),
    attempts: 0,
    ...released,
  });
  return made;
}

async function issue(
  deps: MonthlyDeps,
  db: Handle,
  merchant: Merchant,
  { id, month, number, lines }: StatementMonth & { id: string },
): Promise<MonthlyStatement> {
  const sums = await sumStatement(db, merchant.id, number);
  const { currency, locale, time_zone } = merchant.territory;
  const created_at = timestamp(merchant.now());
  const statement: MonthlyStatement = {
    merchant_id: merchant.id,
    id,
    number,
    reference: statementReference(merchant.id, number),
    month,
    created_at,
    corrects: null,
    lines_of: number,
    currency,
    lines,
    ...balancesAfter(await findBalancesBefore(db, merchant.id, month), sums),
    sums,
    ...partiesOf(merchant, namedIssuer(deps.issuer, deps.environment)),
    locale,
    time_zone,
    record_end: await findRecordEnd(db, created_at),
  };
  assert.equal(
    sums.reduce((sum, { count }) => sum + count, 0),
    lines,
  );
  await writeStatement(deps, db, statement);
  return statement;
}

/** Writes a statement with its number, and its mail. */
export async function writeStatement(
  deps: Pick<MonthlyDeps, 'random' | 'sendsMessages'>,
  db: Handle,
  statement: MonthlyStatement,
): Promise<void> {
  const { merchant_id, id: statement_id, created_at: at } = statement;
  await insertMonthlyStatement(db, statement);
  if (!deps.sendsMessages || (await findStatementAddress(db, merchant_id)) === null) return;
  const mail = { merchant_id, id: deps.random.uuid(), payout_id: null, statement_id, at };
  await insertStatementMail(db, mail);
}
