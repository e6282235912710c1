import { isDeepStrictEqual } from 'node:util';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { MoneyProblem } from '#gateway/guard-gateway.ts';
import { findMerchant, listMerchantRows } from '#merchants/merchant.sql.ts';
import { type Merchant, onOwnClock } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { isTransient } from '#platform/database/transaction.ts';
import type { Approver } from '#platform/shared/approver.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { explainInvisible } from '#platform/shared/plain-text.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { queuePayoutEvents } from '#purchases/callbacks/queue-events.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { DoneInPart, type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { mustBeApprover, mustBeSecondApprover } from '#record/actions/second-person.ts';
import { postEntries, withoutFee } from '#record/ledger/post-entries.ts';
import {
  findAccountInUse,
  findStatementAddress,
  listConfirmedAccounts,
} from './bank-account.sql.ts';
import type { BankAccount } from './bank-account.ts';
import {
  type BankFileDeps,
  type BankFormat,
  exportDigests,
  mustPayFrom,
  writeBankFile,
} from './bank-file.ts';
import { readCalendar } from './make-payouts.ts';
import { presentPayout } from './payout.schema.ts';
import {
  findPayoutOfAny,
  listApproved,
  listExports,
  lockExports,
  lockPayout,
  moveExported,
  movePayout,
} from './payout.sql.ts';
import {
  accountPayableFrom,
  type Calendar,
  hasBankFile,
  isForAccount,
  type NewAccountWait,
  type Payout,
  type PayoutStatus,
} from './payout.ts';
import { insertStatementMail } from './statement-mail.sql.ts';

/** Every action on a payout first checks whether money may move. */
type PayoutDeps = OperatorDeps & MerchantMailDeps & { money: MoneyProblem };

/**
 * Before an operator gets a bank file, the heartbeat is raised, so that a later restore to a time
 * before the export is noticed.
 */
type FileDeps = OperatorDeps &
  BankFileDeps & { money: { raiseHeartbeatNow(): Promise<string | null> } };

/**
 * Approves a payout for an operator. The first approval is recorded; the second, by another
 * operator, makes the payout `approved`. Both are for the bank account that the merchant has at
 * that moment: once another account is in use, the next approval counts as the first one. `seen` is
 * the number of the account that the operator saw, or null; the approval is refused if another one
 * is in use. The console always passes `seen`. The row's lock decides which of two concurrent
 * approvals is the first.
 */
export async function approvePayout(
  deps: PayoutDeps,
  operator: string,
  id: string,
  seen?: number | null,
): Promise<Payout> {
  // The audit contains the last digits of the account number that each approval is for.
  const said: { account: string | null } = { account: null };
  const approve = async (db: Handle, payout: Payout, at: Timestamp) => {
    const account = await findAccountInUse(db, payout.merchant_id);
    said.account = account?.last4 ?? null;
    const bank_account = account?.number ?? null;
    const isOfAccount = isForAccount(payout, account);
    if (payout.status !== 'draft' && !(payout.status === 'approved' && !isOfAccount)) {
      throw notIn(payout, 'draft', 'approved');
    }
    if (seen !== undefined && seen !== bank_account) throw otherAccount(payout, account);
    mustBeApprover(deps);
    if (payout.first_approver === null || !isOfAccount) {
      return await movePayout(db, payout, ['draft', 'approved'], {
        ...{ status: 'draft', first_approver: operator, approver: null, approved_at: null },
        bank_account,
      });
    }
    const refusal = `${operator} has already approved payout ${payout.id}. Another operator must approve it too.`;
    mustBeSecondApprover(deps, operator, [{ by: named(payout.first_approver), refusal }]);
    const to = { status: 'approved', approver: operator, approved_at: at } as const;
    return await movePayout(db, payout, ['draft'], to);
  };
  return await changed(deps, operator, 'payouts approve', id, approve, said);
}

/**
 * Records that the bank has paid a payout, so that the amount is no longer owed to the merchant. A
 * merchant with an e-mail address for statements gets the payout's statement by mail. A payout that
 * must be compared need not be exported: the bank paid it before the database was restored. A
 * return that only one operator has recorded is dropped, so that it does not count as the first of
 * two for a later return.
 */
export async function payPayout(
  deps: PayoutDeps & { sendsMessages: boolean },
  operator: string,
  id: string,
  bank_reference: string,
): Promise<Payout> {
  refuseBadText(bank_reference, 'The bank reference');
  return await changed(deps, operator, 'payouts paid', id, async (db, payout, at) => {
    const isLost = payout.status === 'approved' && payout.compare_since !== null;
    if (payout.status !== 'exported' && !isLost) throw notIn(payout, 'exported', 'paid');
    await post(deps, db, payout, at, ['paid_out']);
    if (deps.sendsMessages && (await findStatementAddress(db, payout.merchant_id)) !== null) {
      const about = { merchant_id: payout.merchant_id, payout_id: payout.id, statement_id: null };
      await insertStatementMail(db, { ...about, id: deps.random.uuid(), at });
    }
    const noReturn = { return_noted_by: null, return_reason: null };
    const to = { status: 'paid', paid_at: at, bank_reference, compare_since: null } as const;
    // The lost database wrote this payout's file for the bank. No other file may be written.
    const lost = isLost ? { export_id: payout.id, exported_at: at } : {};
    return await movePayout(db, payout, ['exported', 'approved'], { ...to, ...noReturn, ...lost });
  });
}

/**
 * Records that an operator has compared a payout with the bank, which has not paid it. Two people
 * approve it again: otherwise one person alone could have the bank pay it a second time.
 */
export async function confirmPayout(
  deps: PayoutDeps,
  operator: string,
  id: string,
  reason: string,
): Promise<Payout> {
  refuseBadText(reason, 'The reason');
  return await changed(
    deps,
    operator,
    'payouts confirm',
    id,
    async (db, payout) => {
      if (payout.compare_since === null) {
        throw new OperatorError(`Payout ${payout.id} need not be compared with the bank.`);
      }
      return await movePayout(db, payout, ['draft', 'approved'], {
        ...{ status: 'draft', first_approver: null, approver: null, approved_at: null },
        ...{ bank_account: null, compare_since: null },
      });
    },
    { reason: new FreeText(reason) },
  );
}

/**
 * Records that the bank returned a payout, at once or after it had paid it. Once a second operator
 * has confirmed this, the amount is owed again. With `asFirst`, a second record of it is refused.
 */
export async function returnPayout(
  deps: PayoutDeps,
  operator: string,
  id: string,
  return_reason: string,
  asFirst = false,
): Promise<Payout> {
  refuseBadText(return_reason, 'The reason');
  return await changed(deps, operator, 'payouts returned', id, async (db, payout, at) => {
    const from: PayoutStatus[] = ['exported', 'paid'];
    if (!from.includes(payout.status)) throw notIn(payout, 'exported or paid', 'returned');
    mustBeApprover(deps);
    if (payout.return_noted_by === null) {
      return await movePayout(db, payout, from, { return_noted_by: operator, return_reason });
    }
    const refusal = `${operator} has already recorded the return of payout ${payout.id}. Another operator must confirm it.`;
    mustBeSecondApprover(deps, operator, [{ by: named(payout.return_noted_by), refusal }]);
    const stale = `${payout.return_noted_by} recorded this return in the meantime. Reload and try again.`;
    if (asFirst) throw new OperatorError(stale);
    // The books show that the money left and came back.
    await post(deps, db, payout, at, [
      ...(payout.status === 'exported' ? ['paid_out' as const] : []),
      'payout_returned',
    ]);
    return await movePayout(db, payout, from, {
      status: 'returned',
      returned_at: at,
      return_reason,
    });
  });
}

/** A payout names operators by their e-mail addresses, which are unique and never change. */
const named = (name: string): Approver => ({ person_id: null, name });

/**
 * The payouts that an export leaves approved, by reason. Each list contains only the oldest ones.
 */
export type LeftOut = {
  /** Their merchants have no confirmed bank account. */
  without_account: Payout[];
  /** Their merchants have another account now. Two people must approve them again. */
  to_approve_again: Payout[];
  /** An operator must compare them with the bank first. */
  to_compare: Payout[];
  /** Their accounts were confirmed too recently to be paid. */
  new_account: (Payout & { payable_from: Timestamp })[];
};

export type Export = LeftOut & {
  /** Null if no payout was exported. */
  export_id: string | null;
  payouts: Payout[];
  /** Whether the file is full. If so, another export takes the next payouts. */
  is_full: boolean;
  file: string;
};

/** A file has at most this many payouts, so that an export stays short. */
export const exportedPayoutsMax = 1_000;
/** An export lists at most this many of the payouts that it left out, for each reason. */
const leftOutNamedMax = 100;

/**
 * Moves approved payouts, the oldest first, to `exported`, under one id for the file. The bank
 * account that a payout was approved for must be in use and not too new. Reading an earlier export
 * again by its id moves nothing.
 */
export async function exportPayouts(
  deps: PayoutDeps & NewAccountWait & FileDeps,
  operator: string,
  format: BankFormat,
): Promise<Export> {
  if (format === 'pain.001') mustPayFrom(deps);
  // If the database was restored a moment ago, that must be noticed before any payout becomes
  // `exported`. The heartbeat that shows a lost export may be at only one of the gateways, so all
  // of them must have been compared.
  await mustMoveMoney(deps);
  await mustAllow(() => deps.money.raiseHeartbeatNow());
  const export_id = deps.random.uuid();
  const made = await operate(deps, operator, 'payouts export', async (db): Promise<Made> => {
    await lockExports(db);
    const { ready, merchants, counts, ...found } = await findReady(deps, db);
    const times = new Map([...merchants].map(([id, merchant]) => [id, timestamp(merchant.now())]));
    const payouts = await moveExported(db, ready, export_id, times);
    const changed = payouts.map((payout) => ({
      merchant: merchants.get(payout.merchant_id) as Merchant,
      data: presentPayout(payout),
    }));
    await queuePayoutEvents(deps, db, changed);
    // If an account number cannot be opened, nothing is exported.
    const file = await writeBankFile(deps, db, payouts, format);
    const id = payouts.length > 0 ? export_id : null;
    const details = {
      format,
      payouts: payouts.length,
      ...counts,
      ...(id !== null && exportDigests(payouts, file)),
    };
    return { subject_id: id, details, result: { ...found, export_id: id, payouts, file } };
  });
  return await giveOut(deps, made);
}

const noneLeftOut = (): LeftOut => ({
  without_account: [],
  to_approve_again: [],
  to_compare: [],
  new_account: [],
});

/** Reads the approved payouts, page by page, until enough of them can be exported. */
async function findReady(deps: PayoutDeps & NewAccountWait, db: Handle) {
  const ready: Payout[] = [];
  const merchants = new Map<string, Merchant>();
  const left = noneLeftOut();
  const counts = { without_account: 0, to_approve_again: 0, to_compare: 0, new_account: 0 };
  const leave = <Reason extends keyof LeftOut>(reason: Reason, payout: LeftOut[Reason][number]) => {
    counts[reason] += 1;
    if (counts[reason] <= leftOutNamedMax) (left[reason] as Payout[]).push(payout);
  };
  const readCalendarOnce = rememberCalendars(db);
  for (let last: Payout | null = null; ; ) {
    const page: Payout[] = await listApproved(db, last, exportedPayoutsMax);
    const ids = [...new Set(page.map(({ merchant_id }) => merchant_id))];
    for (const row of await listMerchantRows(db, ids)) {
      merchants.set(row.id, onOwnClock(deps.clock, row));
    }
    const accounts = findInUse(await listConfirmedAccounts(db, ids));
    for (const payout of page) {
      const account = accounts.get(payout.merchant_id);
      const merchant = merchants.get(payout.merchant_id);
      if (payout.compare_since !== null) leave('to_compare', payout);
      else if (!account || !merchant) leave('without_account', payout);
      else if (!isForAccount(payout, account)) leave('to_approve_again', payout);
      else {
        const calendar = await readCalendarOnce(merchant);
        const payable_from = findPayableFrom(deps, calendar, merchant, account);
        if (payable_from !== null) leave('new_account', { ...payout, payable_from });
        else if (ready.length < exportedPayoutsMax) ready.push(payout);
        else return { ready, merchants, counts, ...left, is_full: true };
      }
    }
    last = page.at(-1) ?? null;
    if (page.length < exportedPayoutsMax)
      return { ready, merchants, counts, ...left, is_full: false };
  }
}

/** Maps each merchant to its account in use, which is its newest confirmed account. */
function findInUse(newestFirst: BankAccount[]): Map<string, BankAccount> {
  return new Map(newestFirst.toReversed().map((account) => [account.merchant_id, account]));
}

/**
 * Reads the holidays around today once for each territory. These suffice, because an account
 * confirmed a month ago has waited long enough whatever the holidays were.
 */
function rememberCalendars(db: Handle): (merchant: Merchant) => Promise<Calendar> {
  const calendars = new Map<string, Calendar>();
  return async (merchant) => {
    const today = merchant.localDate(merchant.now()).toString();
    const key = `${merchant.territory.code} ${today}`;
    const calendar = calendars.get(key) ?? (await readCalendar(db, merchant, merchant.now()));
    calendars.set(key, calendar);
    return calendar;
  };
}

/** The time from which an account can be paid. Null if that time has already come. */
function findPayableFrom(
  wait: NewAccountWait,
  calendar: Calendar,
  merchant: Merchant,
  { confirmed_at }: BankAccount,
): Timestamp | null {
  if (confirmed_at === null) return null;
  const from = accountPayableFrom(calendar, wait, Temporal.Instant.from(confirmed_at));
  return Temporal.Instant.compare(from, merchant.now()) > 0 ? timestamp(from) : null;
}

type Made = { subject_id: string | null; details: object; result: Export };

/**
 * Reads an earlier export again. The audit records who read it, because the file has whole account
 * numbers.
 */
export async function readExport(
  deps: FileDeps,
  operator: string,
  export_id: string,
  format: BankFormat,
): Promise<Export> {
  const read = await operate(deps, operator, 'payouts file', async (db) => {
    const payouts = isUuid(export_id) ? await listExports(db, [export_id.toLowerCase()]) : [];
    if (payouts.length === 0) throw new OperatorError(`There is no export ${export_id}.`);
    if (!payouts.every(hasBankFile)) {
      throw new OperatorError(
        'This payout has no file here: the bank had paid it before the database was restored.',
      );
    }
    const file = await writeBankFile(deps, db, payouts, format);
    const details = {
      ...{ export_id, format, payouts: payouts.length },
      ...exportDigests(payouts, file),
    };
    const result = { ...noneLeftOut(), export_id, payouts, is_full: false, file };
    return { subject_id: null, details, result };
  });
  return await giveOut(deps, read);
}

/**
 * Raises the heartbeat between the export and its file (decision 0097). Otherwise a database that
 * is restored to before the export would export the payouts again, and the bank would pay them
 * twice.
 */
async function giveOut({ money }: FileDeps, made: Export): Promise<Export> {
  if (made.export_id === null) return made;
  const kept = ` The payouts are in export ${made.export_id}. Read its file by that id before you repeat it.`;
  await mustAllow(() => money.raiseHeartbeatNow(), kept);
  return made;
}

/** After a restore, no payout moves until what the gateway did is recorded. */
const mustMoveMoney = ({ money }: PayoutDeps) => mustAllow(() => money.problem());

/** `kept` says what has already been done. The operator must learn that, whatever fails. */
async function mustAllow(ask: () => Promise<string | null>, kept = ''): Promise<void> {
  let reason: string | null;
  let cause: unknown;
  try {
    reason = await ask();
  } catch (error) {
    cause = error;
    const isOfGateway = error instanceof OutcomeUnknown || error instanceof RequestRefused;
    if (!isOfGateway && kept === '') throw error;
    const { message } = error as Error;
    reason = isOfGateway
      ? `The gateway does not say whether it is ahead of this database (${message}). Try again once it answers.`
      : isTransient(error)
        ? 'The database is not answering. Try again once it does.'
        : `An error in the service kept the file back (${message}).`;
  }
  if (reason === null) return;
  throw kept === '' ? new OperatorError(reason) : new DoneInPart(`${reason}${kept}`, { cause });
}

async function changed(
  deps: PayoutDeps,
  operator: string,
  action: string,
  wanted: string,
  change: (db: Handle, payout: Payout, at: Timestamp) => Promise<Payout | null>,
  said: object = {},
): Promise<Payout> {
  await mustMoveMoney(deps);
  const found = await mustFindPayout(deps.database.db, wanted);
  const { merchant_id, id } = found;
  return await operate(deps, operator, action, async (db) => {
    const payout = await lockPayout(db, merchant_id, id);
    const merchant = await findMerchant(db, deps.clock, merchant_id);
    if (!payout || !merchant) throw noPayout(wanted);
    const at = timestamp(merchant.now());
    const result = (await change(db, payout, at)) as Payout;
    const data = presentPayout(result);
    if (!isDeepStrictEqual(presentPayout(payout), data)) {
      await queuePayoutEvents(deps, db, [{ merchant, data }]);
    }
    if (result.status !== payout.status) await mailMoved(deps, db, merchant, result, at);
    const { reference, amount, status } = result;
    return { subject_id: id, details: { reference, amount, status, ...said }, result };
  });
}

/** Tells the merchant's people by mail that a payout was paid, or that the bank returned it. */
async function mailMoved(
  deps: PayoutDeps,
  db: Handle,
  { id: merchant_id, name, territory }: Merchant,
  { id, status, amount, currency, reference }: Payout,
  at: Timestamp,
): Promise<void> {
  if (status !== 'paid' && status !== 'returned') return;
  const money = showMoney(amount, { currency, locale: territory.locale });
  await deps.mailMerchant(db, {
    ...{ merchant_id, kind: `payout_${status}`, event: `${id} ${at}` },
    facts: { merchant: name, amount: money, reference },
    at: timestamp(deps.clock.now()),
  });
}

export async function mustFindPayout(db: Handle, id: string): Promise<Payout> {
  const payout = isUuid(id) ? await findPayoutOfAny(db, id) : null;
  if (!payout) throw noPayout(id);
  return payout;
}

const noPayout = (id: string) =>
  new OperatorError(`There is no payout ${id}. \`tranche payouts list\` lists them.`);

const otherAccount = ({ reference }: Payout, account: BankAccount | null) =>
  new OperatorError(
    `${reference} was not approved: the merchant's bank account is not the one that you saw. ${account ? `Account ${account.number}, which ends in ${account.last4}, is in use now` : 'None is confirmed'}. Look at the payout again, then approve it.`,
  );

const notIn = ({ id, status }: Payout, wanted: string, becomes: string) =>
  new OperatorError(
    `Payout ${id} is ${status}: only a payout that is ${wanted} can become ${becomes}.`,
  );

async function post(
  deps: OperatorDeps,
  db: Handle,
  { merchant_id, id, amount, currency }: Payout,
  at: Timestamp,
  kinds: ('paid_out' | 'payout_returned')[],
): Promise<void> {
  const entries = kinds.map((kind) => ({
    ...withoutFee(kind === 'paid_out' ? -amount : amount),
    kind,
    paid_payout_id: id,
  }));
  await postEntries(deps, db, { merchant_id, currency, at }, entries);
}

const textCharactersMax = 200;

function refuseBadText(text: string, name: string): void {
  if (text.trim() === '' || text.length > textCharactersMax) {
    throw new OperatorError(`${name} must have 1 to ${textCharactersMax} characters.`);
  }
  if (/\p{C}/u.test(text)) throw new OperatorError(explainInvisible(name));
}
