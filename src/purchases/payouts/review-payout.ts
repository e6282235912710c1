import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { MoneyProblem } from '#gateway/guard-gateway.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Approver } from '#platform/shared/approver.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { mustCountAsPerson, mustCountAsSecond } from '#record/actions/second-person.ts';
import { postEntries, withoutFee } from '#record/ledger/post-entries.ts';
import { findAccountInUse, findStatementAddress } from './bank-account.sql.ts';
import type { BankAccount } from './bank-account.ts';
import { writeBankFile } from './bank-file.ts';
import { readCalendar } from './make-payouts.ts';
import { findPayoutOfAny, listExport, lockPayout, movePayout } from './payout.sql.ts';
import {
  accountPayableFrom,
  type NewAccountWait,
  type Payout,
  type PayoutStatus,
} from './payout.ts';
import { insertStatementMail } from './statement-mail.sql.ts';

/** Every action on a payout asks whether money may move. */
type PayoutDeps = OperatorDeps & { money: MoneyProblem };

/**
 * An operator approves a payout. The first approval is noted; the second, by another operator,
 * makes it `approved`. Both are for the merchant's bank account of that moment: once another
 * account is in use, an approval counts as the first one again. The row's lock decides between
 * operators who approve at once.
 */
export async function approvePayout(
  deps: PayoutDeps,
  operator: string,
  id: string,
): Promise<Payout> {
  return await changed(deps, operator, 'payouts approve', id, async (db, payout, at) => {
    const account = await findAccountInUse(db, payout.merchant_id);
    const bank_account = account?.number ?? null;
    const isOfAccount = payout.bank_account === bank_account;
    if (payout.status !== 'draft' && !(payout.status === 'approved' && !isOfAccount)) {
      throw notIn(payout, 'draft', 'approved');
    }
    mustCountAsPerson(deps);
    if (payout.first_approver === null || !isOfAccount) {
      return await movePayout(db, payout, ['draft', 'approved'], {
        ...{ status: 'draft', first_approver: operator, approver: null, approved_at: null },
        bank_account,
      });
    }
    const refusal = `${operator} has approved payout ${payout.id} already. Another operator must approve it too.`;
    mustCountAsSecond(deps, operator, [{ by: named(payout.first_approver), refusal }]);
    const to = { status: 'approved', approver: operator, approved_at: at } as const;
    return await movePayout(db, payout, ['draft'], to);
  });
}

/**
 * The bank has paid a payout. The money leaves what the merchant is owed. A merchant with an
 * address for statements gets this one by mail. A payout that must be compared need not be
 * exported: the bank paid it before the database was restored.
 */
export async function payPayout(
  deps: PayoutDeps & { sendsMessages: boolean },
  operator: string,
  id: string,
  bank_reference: string,
): Promise<Payout> {
  refuseBadText(bank_reference, '--bank-reference');
  return await changed(deps, operator, 'payouts paid', id, async (db, payout, at) => {
    const isLost = payout.status === 'approved' && payout.compare_since !== null;
    if (payout.status !== 'exported' && !isLost) throw notIn(payout, 'exported', 'paid');
    await post(deps, db, payout, at, ['paid_out']);
    if (deps.sendsMessages && (await findStatementAddress(db, payout.merchant_id)) !== null) {
      const { merchant_id, id: payout_id } = payout;
      await insertStatementMail(db, { merchant_id, id: deps.random.uuid(), payout_id, at });
    }
    const to = { status: 'paid', paid_at: at, bank_reference, compare_since: null } as const;
    const lost = isLost ? { export_id: deps.random.uuid(), exported_at: at } : {};
    return await movePayout(db, payout, ['exported', 'approved'], { ...to, ...lost });
  });
}

/** An operator has compared a payout with the bank, which has not paid it: it can be exported. */
export async function confirmPayout(
  deps: PayoutDeps,
  operator: string,
  id: string,
  reason: string,
): Promise<Payout> {
  refuseBadText(reason, '--reason');
  return await changed(
    deps,
    operator,
    'payouts confirm',
    id,
    async (db, payout) => {
      if (payout.compare_since === null) {
        throw new OperatorError(`Payout ${payout.id} need not be compared with the bank.`);
      }
      return await movePayout(db, payout, ['draft', 'approved'], { compare_since: null });
    },
    { reason },
  );
}

/**
 * The bank returned a payout, at once or after it had paid it. The first operator notes it; once
 * another one has confirmed it, the amount is owed again.
 */
export async function returnPayout(
  deps: PayoutDeps,
  operator: string,
  id: string,
  return_reason: string,
): Promise<Payout> {
  refuseBadText(return_reason, '--reason');
  return await changed(deps, operator, 'payouts returned', id, async (db, payout, at) => {
    const from: PayoutStatus[] = ['exported', 'paid'];
    if (!from.includes(payout.status)) throw notIn(payout, 'exported or paid', 'returned');
    mustCountAsPerson(deps);
    if (payout.return_noted_by === null) {
      return await movePayout(db, payout, from, { return_noted_by: operator, return_reason });
    }
    const refusal = `${operator} has noted the return of payout ${payout.id} already. Another operator must confirm it.`;
    mustCountAsSecond(deps, operator, [{ by: named(payout.return_noted_by), refusal }]);
    // Both stand in the books: the money left, and it came back.
    const isFirst = payout.status === 'exported';
    await post(deps, db, payout, at, [
      ...(isFirst ? ['paid_out' as const] : []),
      'payout_returned',
    ]);
    return await movePayout(db, payout, from, {
      status: 'returned',
      returned_at: at,
      return_reason,
    });
  });
}

/** A payout names operators by their addresses, which are unique and never change. */
const named = (name: string): Approver => ({ person_id: null, name });

export type Export = {
  /** Null if no payout was exported. */
  export_id: string | null;
  payouts: Payout[];
  /** Approved payouts whose merchants have no confirmed bank account. They stay approved. */
  refused: Payout[];
  /**
   * Approved payouts whose merchants have another account now. Two people must approve them again.
   */
  toApprove: Payout[];
  /**
   * Approved payouts to accounts that were confirmed too recently to be paid. They stay approved.
   */
  tooNew: (Payout & { payable_from: Timestamp })[];
  /** Approved payouts that an operator must compare with the bank first. They stay approved. */
  toCompare: Payout[];
  /** The file for the bank. */
  file: string;
};

/**
 * Moves every approved payout to `exported`, under one id for the file, if the bank account that it
 * was approved for is in use and not too new. An earlier export can be read again by that id and
 * moves nothing.
 */
export async function exportPayouts(
  deps: PayoutDeps & NewAccountWait & { sealing: Sealing },
  operator: string,
): Promise<Export> {
  await mustMoveMoney(deps);
  const export_id = deps.random.uuid();
  return await operate(deps, operator, 'payouts export', async (db, at): Promise<Made> => {
    const payouts: Payout[] = [];
    const refused: Payout[] = [];
    const toApprove: Payout[] = [];
    const toCompare: Payout[] = [];
    const tooNew: Export['tooNew'] = [];
    for (const payout of await listExport(db, 'approved')) {
      if (payout.compare_since !== null) {
        toCompare.push(payout);
        continue;
      }
      const account = await findAccountInUse(db, payout.merchant_id);
      if (!account) {
        refused.push(payout);
        continue;
      }
      if (account.number !== payout.bank_account) {
        toApprove.push(payout);
        continue;
      }
      const payable_from = await findPayableFrom(deps, db, account);
      if (payable_from !== null) {
        tooNew.push({ ...payout, payable_from });
        continue;
      }
      const to = { status: 'exported', export_id, exported_at: at } as const;
      // Another export may have taken it meanwhile.
      const moved = await movePayout(db, payout, ['approved'], to);
      if (moved) payouts.push(moved);
    }
    // If an account number cannot be opened, nothing is exported.
    const file = await writeBankFile(deps, db, payouts);
    const id = payouts.length > 0 ? export_id : null;
    const details = {
      payouts: payouts.length,
      without_account: refused.length,
      to_approve_again: toApprove.length,
      to_compare: toCompare.length,
      new_account: tooNew.length,
    };
    return {
      subject_id: id,
      details,
      result: { export_id: id, payouts, refused, toApprove, toCompare, tooNew, file },
    };
  });
}

/** When an account can be paid first, if that is still to come. */
async function findPayableFrom(
  deps: PayoutDeps & NewAccountWait,
  db: Handle,
  { merchant_id, confirmed_at }: BankAccount,
): Promise<Timestamp | null> {
  const merchant = await findMerchant(db, deps.clock, merchant_id);
  if (!merchant || confirmed_at === null) return null;
  const confirmed = Temporal.Instant.from(confirmed_at);
  const calendar = await readCalendar(db, merchant, confirmed);
  const from = accountPayableFrom(calendar, deps, confirmed);
  return Temporal.Instant.compare(from, merchant.now()) > 0 ? timestamp(from) : null;
}

type Made = { subject_id: string | null; details: object; result: Export };

/** An earlier export once more. The audit has who read it: the file has whole account numbers. */
export async function readExport(
  deps: OperatorDeps & { sealing: Sealing },
  operator: string,
  export_id: string,
): Promise<{ payouts: Payout[]; file: string }> {
  return await operate(deps, operator, 'payouts file', async (db) => {
    const payouts = isUuid(export_id)
      ? await listExport(db, { export_id: export_id.toLowerCase() })
      : [];
    if (payouts.length === 0) throw new OperatorError(`There is no export ${export_id}.`);
    const file = await writeBankFile(deps, db, payouts);
    const details = { export_id, payouts: payouts.length };
    return { subject_id: null, details, result: { payouts, file } };
  });
}

/** After a restore no payout moves before what the gateway did is recorded. */
async function mustMoveMoney({ money }: { money: MoneyProblem }): Promise<void> {
  let reason: string | null;
  try {
    reason = await money.problem();
  } catch (error) {
    if (!(error instanceof OutcomeUnknown || error instanceof RequestRefused)) throw error;
    throw new OperatorError(
      `The gateway does not say whether it is ahead of this database (${error.message}). Try again once it answers.`,
    );
  }
  if (reason !== null) throw new OperatorError(reason);
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
    const { reference, amount, status } = result;
    return { subject_id: id, details: { reference, amount, status, ...said }, result };
  });
}

export async function mustFindPayout(db: Handle, id: string): Promise<Payout> {
  const payout = isUuid(id) ? await findPayoutOfAny(db, id) : null;
  if (!payout) throw noPayout(id);
  return payout;
}

const noPayout = (id: string) =>
  new OperatorError(`There is no payout ${id}. \`tranche payouts list\` lists them.`);

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

function refuseBadText(text: string, option: string): void {
  if (text.trim() === '' || text.length > textCharactersMax || /\p{C}/u.test(text)) {
    throw new OperatorError(
      `${option} must have 1 to ${textCharactersMax} characters that can be printed.`,
    );
  }
}
