import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { BankAccount } from './bank-account.ts';

const newestFirst = (db: Handle, merchant_id: string) =>
  db
    .selectFrom('bank_accounts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .orderBy('number', 'desc')
    .limit(1);

/** The newest account, whether it has been confirmed or not. */
export const findNewestAccount = async (
  db: Handle,
  merchant_id: string,
): Promise<BankAccount | null> => (await newestFirst(db, merchant_id).executeTakeFirst()) ?? null;

/** The account that is in use: the newest that was confirmed. */
export async function findAccountInUse(
  db: Handle,
  merchant_id: string,
): Promise<BankAccount | null> {
  const confirmed = newestFirst(db, merchant_id).where('confirmed_at', 'is not', null);
  return (await confirmed.executeTakeFirst()) ?? null;
}

/** The confirmed accounts of several merchants, the newest first. A merchant has only a few. */
export async function listConfirmedAccounts(
  db: Handle,
  merchant_ids: string[],
): Promise<BankAccount[]> {
  if (merchant_ids.length === 0) return [];
  return await db
    .selectFrom('bank_accounts')
    .selectAll()
    .where('merchant_id', 'in', merchant_ids)
    .where('confirmed_at', 'is not', null)
    .orderBy('number', 'desc')
    .execute();
}

export async function insertAccount(db: Handle, account: BankAccount): Promise<void> {
  await db.insertInto('bank_accounts').values(account).execute();
}

/** Returns null if the account is already confirmed. */
export async function moveConfirmed(
  db: Handle,
  { merchant_id, number }: Pick<BankAccount, 'merchant_id' | 'number'>,
  to: { confirmed_by: string; confirmed_person_id: string | null; confirmed_at: Timestamp },
): Promise<BankAccount | null> {
  const row = await db
    .updateTable('bank_accounts')
    .set(to)
    .where('merchant_id', '=', merchant_id)
    .where('number', '=', number)
    .where('confirmed_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** Records how many wrong numbers have been typed. The caller holds the merchant's lock. */
export async function moveWrongNumbers(
  db: Handle,
  { merchant_id, number }: Pick<BankAccount, 'merchant_id' | 'number'>,
  wrong_numbers: number,
): Promise<void> {
  await db
    .updateTable('bank_accounts')
    .set({ wrong_numbers })
    .where('merchant_id', '=', merchant_id)
    .where('number', '=', number)
    .execute();
}

/** Every account, for a change of the master key. Each merchant has only a few accounts. */
export async function listAllAccounts(db: Handle): Promise<BankAccount[]> {
  return await db
    .selectFrom('bank_accounts')
    .selectAll()
    .orderBy('merchant_id')
    .orderBy('number')
    .execute();
}

/**
 * The accounts whose number may be needed again: each merchant's newest one, which may be waiting
 * to be confirmed, the one in use, and those of payouts that are on their way to the bank.
 */
export async function listNeededAccounts(
  db: Handle,
): Promise<Pick<BankAccount, 'merchant_id' | 'number'>[]> {
  const { rows } = await sql<Pick<BankAccount, 'merchant_id' | 'number'>>`
    select merchant_id, number from bank_accounts a
    where not exists (
        select from bank_accounts later
        where later.merchant_id = a.merchant_id and later.number > a.number
          and (a.confirmed_at is null or later.confirmed_at is not null))
      or exists (
        select from payouts p
        where p.merchant_id = a.merchant_id and p.bank_account = a.number
          and p.status = 'exported')`.execute(db);
  return rows;
}

/** Returns false if another run has already re-encrypted the number. */
export async function moveSealedAccount(
  db: Handle,
  { merchant_id, number, sealed_account }: BankAccount,
  to: Buffer,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('bank_accounts')
    .set({ sealed_account: to })
    .where('merchant_id', '=', merchant_id)
    .where('number', '=', number)
    .where('sealed_account', '=', sealed_account)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** The e-mail address that a merchant's statements are mailed to. Null if they are not mailed. */
export async function findStatementAddress(
  db: Handle,
  merchant_id: string,
): Promise<string | null> {
  const row = await db
    .selectFrom('statement_addresses')
    .select('email')
    .where('merchant_id', '=', merchant_id)
    .executeTakeFirst();
  return row?.email ?? null;
}

export async function writeStatementAddress(
  db: Handle,
  merchant_id: string,
  email: string | null,
  changed_at: Timestamp,
): Promise<void> {
  if (email === null) {
    await db.deleteFrom('statement_addresses').where('merchant_id', '=', merchant_id).execute();
    return;
  }
  await db
    .insertInto('statement_addresses')
    .values({ merchant_id, email, changed_at })
    .onConflict((conflict) => conflict.column('merchant_id').doUpdateSet({ email, changed_at }))
    .execute();
}
