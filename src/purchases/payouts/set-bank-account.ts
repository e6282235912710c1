import { createHash, timingSafeEqual } from 'node:crypto';
import { findMerchantRow, lockMerchant } from '#merchants/merchant.sql.ts';
import { type Merchant, type MerchantRow, onOwnClock } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { type OperatorDeps, OperatorError, operate, personOf } from '#record/actions/operate.ts';
import { mustBeApprover, mustBeSecondApprover } from '#record/actions/second-person.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import {
  findAccountInUse,
  findNewestAccount,
  findStatementAddress,
  insertAccount,
  listAllAccounts,
  listNeededAccounts,
  moveConfirmed,
  moveSealedAccount,
  moveWrongNumbers,
  writeStatementAddress,
} from './bank-account.sql.ts';
import {
  type BankAccount,
  bankAccountContext,
  explainBadAccount,
  isAddress,
  type WantedAccount,
} from './bank-account.ts';
import { readCalendar } from './make-payouts.ts';
import { accountPayableFrom, type NewAccountWait } from './payout.ts';

/** A bank account without its whole number, which only the file for the bank contains. */
export type ShownAccount = Omit<BankAccount, 'sealed_account' | 'wrong_numbers'>;

export type Payee = {
  merchant: MerchantRow;
  /** The account that payouts go to. Null if the merchant cannot be paid. */
  account: ShownAccount | null;
  /** A newer account that another operator must confirm. */
  proposed: ShownAccount | null;
  statement_email: string | null;
};

/** Where a merchant is paid, and where its statements go. */
export async function readPayee(
  deps: Pick<OperatorDeps, 'database' | 'clock'>,
  merchant_id: string,
): Promise<Payee> {
  return await reading(deps, async (db) => {
    const merchant = await mustFindMerchant(db, merchant_id);
    const [newest, account, statement_email] = await Promise.all([
      findNewestAccount(db, merchant.id),
      findAccountInUse(db, merchant.id),
      findStatementAddress(db, merchant.id),
    ]);
    return {
      merchant,
      account: account && shown(account),
      proposed: newest && newest.confirmed_at === null ? shown(newest) : null,
      statement_email,
    };
  });
}

/**
 * An operator, or a person of the merchant, proposes the account that the merchant is paid to. It
 * is not used before an operator of the service has confirmed it, because a person who could change
 * it alone could take the next payout. To replace a proposal that is waiting, its number must be
 * given, so that an unseen proposal is never replaced. The merchant's people are told by mail.
 */
export async function proposeAccount(
  deps: OperatorDeps & MerchantMailDeps & { sealing: Sealing; log: Logger },
  operator: string,
  merchant_id: string,
  wanted: WantedAccount & { replaces?: number | undefined },
): Promise<ShownAccount> {
  return await operate(deps, operator, 'merchants bank', async (db, created_at) => {
    const { id, name, territory } = await mustFindMerchant(db, merchant_id);
    const problem = explainBadAccount(wanted, territory.code);
    if (problem !== null) throw new OperatorError(problem);
    mustBeApprover(deps);
    const { holder, bank, branch_code, account_number } = wanted;
    // Two proposals at once must not take the same number.
    await lockMerchant(db, id);
    const [newest, before] = await readAccounts(db, id);
    refuseToReplaceUnseen(newest, wanted.replaces);
    const number = (newest?.number ?? 0) + 1;
    const key = { merchant_id: id, number };
    const last4 = account_number.slice(-4);
    const account = {
      ...key,
      holder,
      bank,
      branch_code,
      sealed_account: deps.sealing.seal(account_number, bankAccountContext(key)),
      last4,
      created_at,
      proposed_by: operator,
      proposed_person_id: personOf(deps),
      confirmed_by: null,
      confirmed_person_id: null,
      confirmed_at: null,
      wrong_numbers: 0,
    };
    await insertAccount(db, account);
    await raiseAlert(deps, db, {
      kind: 'bank_account_proposed',
      caused_by: operator,
      merchant_id: id,
      detail: `${operator} proposed a bank account that ends in ${last4} as account ${number}. Payouts go there once another person has checked it with the merchant and confirmed it.`,
    });
    const facts = { merchant: name, account: last4 };
    const by = personOf(deps);
    const mail = { merchant_id: id, kind: 'bank_proposed' as const, facts, by, at: created_at };
    await deps.mailMerchant(db, mail);
    // The holder is left out: it may name a person, and the audit cannot be erased.
    const details = { number, bank, branch_code, last4, before };
    return { subject_id: id, merchant_id: id, details, result: shown(account) };
  });
}

function refuseToReplaceUnseen(newest: BankAccount | null, replaces: number | undefined): void {
  if (!newest || newest.confirmed_at !== null || newest.number === replaces) return;
  throw new OperatorError(
    `Account ${newest.number}, which ends in ${newest.last4}, was proposed on ${newest.created_at.slice(0, 10)} and is waiting to be confirmed. Look at it first. A new proposal has to say that it replaces account ${newest.number}.`,
  );
}

/**
 * Another operator confirms the newest account. A newer proposal that they have not seen is not
 * confirmed. They type the whole account number that the merchant told them, and it must match the
 * proposal. A wrong number is recorded in the audit, and after `wrongNumbersMax` of them the
 * proposal cannot be confirmed. Payouts go to the account once the waiting time in the settings is
 * over.
 */
export async function confirmAccount(
  deps: OperatorDeps & MerchantMailDeps & NewAccountWait & { sealing: Sealing },
  operator: string,
  merchant_id: string,
  { number, account_number }: { number: number; account_number: string },
): Promise<ShownAccount> {
  const confirmed = await operate(deps, operator, 'merchants bank confirm', async (db, at) => {
    const merchant = onOwnClock(deps.clock, await mustFindMerchant(db, merchant_id));
    const { id } = merchant;
    // Under this lock, numbers typed at the same time are counted one by one.
    await lockMerchant(db, id);
    const [newest, before] = await readAccounts(db, id);
    if (!newest || newest.confirmed_at !== null) {
      throw new OperatorError(`No bank account of merchant ${id} is waiting to be confirmed.`);
    }
    if (newest.number !== number) {
      throw new OperatorError(
        `Account ${number} is not the newest proposal. Look again: account ${newest.number} ends in ${newest.last4}.`,
      );
    }
    const by = { person_id: newest.proposed_person_id, name: newest.proposed_by };
    const refusal = `${operator} proposed this bank account. Another operator must confirm it.`;
    mustBeSecondApprover(deps, operator, [{ by, refusal }]);
    if (newest.wrong_numbers >= wrongNumbersMax) {
      throw new OperatorError(
        'Five wrong numbers were typed for this proposal. Propose the account again, after you have asked the merchant.',
      );
    }
    const { last4 } = newest;
    if (!isProposed(deps.sealing, newest, account_number)) {
      const wrong_numbers = newest.wrong_numbers + 1;
      await moveWrongNumbers(db, newest, wrong_numbers);
      const action = 'merchants bank mismatch';
      return { action, subject_id: id, details: { number, last4, wrong_numbers }, result: null };
    }
    // Payouts are made on the merchant's clock.
    const confirmed_at = timestamp(merchant.now());
    const confirmer = { confirmed_by: operator, confirmed_person_id: personOf(deps) };
    const confirmed = await moveConfirmed(db, newest, { ...confirmer, confirmed_at });
    if (!confirmed) throw new OperatorError('Another operator has already confirmed it.');
    const payable_from = await payableDay(deps, db, merchant);
    const facts = {
      merchant: merchant.name,
      account: last4,
      ...(payable_from && { payable_from }),
    };
    const by_id = personOf(deps);
    const mail = { merchant_id: id, kind: 'bank_confirmed' as const, facts, by: by_id, at };
    await deps.mailMerchant(db, mail);
    const details = { number, last4, before };
    return { subject_id: id, details, result: shown(confirmed) };
  });
  if (confirmed !== null) return confirmed;
  throw new OperatorError(
    'This is not the account number that was proposed. Nothing was confirmed. Ask the merchant for the number; if the proposal is wrong, propose the right one.',
  );
}

/** The day from which an account that is confirmed now can be paid. Null if that is at once. */
async function payableDay(
  wait: NewAccountWait,
  db: Handle,
  merchant: Merchant,
): Promise<string | null> {
  if (wait.newAccountBusinessDays === 0) return null;
  const now = merchant.now();
  const from = accountPayableFrom(await readCalendar(db, merchant, now), wait, now);
  return merchant.localDate(from).toString();
}

const wrongNumbersMax = 5;

/** The comparison takes the same time wherever the two numbers differ. */
function isProposed(sealing: Sealing, account: BankAccount, account_number: string): boolean {
  const proposed = openAccount(sealing, account);
  if (proposed === null) {
    throw new OperatorError(
      'No known master key opens the proposed account number. Propose the account again.',
    );
  }
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(account_number), digest(proposed));
}

/** Sets or removes the e-mail address that a merchant's statements are mailed to. */
export async function setStatementAddress(
  deps: OperatorDeps,
  operator: string,
  merchant_id: string,
  email: string | null,
): Promise<void> {
  if (email !== null && !isAddress(email)) {
    throw new OperatorError('Statements go to one e-mail address, or to none.');
  }
  await operate(deps, operator, 'merchants bank statements', async (db, at) => {
    const { id } = await mustFindMerchant(db, merchant_id);
    const earlier = await findStatementAddress(db, id);
    await writeStatementAddress(db, id, email, at);
    // The e-mail address is left out: it may name a person, and the audit cannot be erased.
    const before = { has_address: earlier !== null };
    const details = { has_address: email !== null, is_changed: email !== earlier, before };
    return { subject_id: id, merchant_id: id, details, result: undefined };
  });
}

/**
 * Re-encrypts every account number under the current master key. A number that cannot be opened is
 * reported only if it may be needed: after the loss of a master key, the numbers of replaced
 * accounts stay sealed under it.
 */
export async function reencryptAccounts(
  deps: OperatorDeps & { sealing: Sealing },
  operator: string,
): Promise<{ examined: number; reencrypted: number; unreadable: string[] }> {
  const { accounts, needed } = await reading(deps, async (db) => ({
    accounts: await listAllAccounts(db),
    needed: new Set((await listNeededAccounts(db)).map(bankAccountContext)),
  }));
  const stale = accounts
    .filter(({ sealed_account }) => !deps.sealing.isCurrent(sealed_account))
    .map((account) => ({ account, opened: openAccount(deps.sealing, account) }));
  const lost = stale.filter(({ opened }) => opened === null);
  const unreadable = lost
    .map(({ account }) => bankAccountContext(account))
    .filter((one) => needed.has(one));
  const examined = accounts.length - lost.length + unreadable.length;
  if (stale.length === lost.length) return { examined, reencrypted: 0, unreadable };
  const reencrypted = await operate(deps, operator, 'keys reencrypt', async (db) => {
    let count = 0;
    for (const { account, opened } of stale) {
      if (opened === null) continue;
      const resealed = deps.sealing.seal(opened, bankAccountContext(account));
      if (await moveSealedAccount(db, account, resealed)) count += 1;
    }
    return { subject_id: null, details: { bank_accounts: count }, result: count };
  });
  return { examined, reencrypted, unreadable };
}

/** Opens an account number. Returns null if none of the known master keys opens it. */
export function openAccount(sealing: Sealing, account: BankAccount): string | null {
  if (!sealing.isKnown(account.sealed_account)) return null;
  try {
    return sealing.open(account.sealed_account, bankAccountContext(account));
  } catch {
    return null;
  }
}

/**
 * The newest account, and for the audit the one that payouts go to. The caller holds the merchant's
 * lock.
 */
async function readAccounts(
  db: Handle,
  merchant_id: string,
): Promise<[newest: BankAccount | null, inUse: Pick<BankAccount, 'number' | 'last4'> | null]> {
  const [newest, used] = await Promise.all([
    findNewestAccount(db, merchant_id),
    findAccountInUse(db, merchant_id),
  ]);
  return [newest, used && { number: used.number, last4: used.last4 }];
}

function shown({ sealed_account: _, wrong_numbers: __, ...account }: BankAccount): ShownAccount {
  return account;
}

async function mustFindMerchant(db: Handle, id: string): Promise<MerchantRow> {
  const merchant = isUuid(id) ? await findMerchantRow(db, id.toLowerCase()) : null;
  if (merchant) return merchant;
  throw new OperatorError(`There is no merchant ${id}. \`tranche merchants list\` lists them.`);
}
