import { createHash } from 'node:crypto';
import { listMerchantRows } from '#merchants/merchant.sql.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { writeCsv } from '#platform/shared/csv.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { listConfirmedAccounts } from './bank-account.sql.ts';
import type { BankAccount } from './bank-account.ts';
import { type PayingAccount, writePain001 } from './pain-001.ts';
import { listHolidays } from './payout.sql.ts';
import { isBusinessDay, type Payout } from './payout.ts';
import { openAccount } from './set-bank-account.ts';

/** A CSV file, for people and for banks that accept one, or an ISO 20022 message. */
export const bankFormats = ['csv', 'pain.001'] as const;
export type BankFormat = (typeof bankFormats)[number];

export type BankFileDeps = {
  sealing: Sealing;
  /** The account that the operator pays from. Null if the settings name none. */
  payingAccount: PayingAccount | null;
};

// Columns are only ever added, at the end. Amounts have two decimals.
const columns = [
  'reference',
  'merchant_id',
  'merchant_name',
  'amount',
  'currency',
  'payout_id',
  'account_holder',
  'bank',
  'branch_code',
  'account_number',
];

type Row = {
  payout: Payout;
  merchant: MerchantRow;
  account: BankAccount & { account_number: string };
};

/** The file for the bank: each payout, with the account that it goes to. */
export async function writeBankFile(
  deps: BankFileDeps,
  db: Handle,
  payouts: Payout[],
  format: BankFormat,
): Promise<string> {
  const ids = [...new Set(payouts.map(({ merchant_id }) => merchant_id))];
  const merchants = new Map((await listMerchantRows(db, ids)).map((one) => [one.id, one]));
  const accounts = new Map((await listConfirmedAccounts(db, ids)).map((one) => [keyOf(one), one]));
  const rows: Row[] = [];
  for (const payout of payouts) {
    const { merchant_id, bank_account } = payout;
    const merchant = merchants.get(merchant_id) as MerchantRow;
    const found = accounts.get(keyOf({ merchant_id, number: bank_account }));
    if (!found) throw new OperatorError(`The bank account of payout ${payout.id} is not known.`);
    const account = { ...found, account_number: mustOpen(deps.sealing, found) };
    rows.push({ payout, merchant, account });
  }
  return format === 'csv' ? writeBankCsv(rows) : await writeMessage(deps, db, rows);
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/**
 * The digests that are recorded for an export: one of the file, and one of the rows that it was
 * made from. `tranche prove` compares both later.
 */
export const exportDigests = (payouts: Payout[], file: string) => ({
  file_sha256: sha256(file),
  payouts_sha256: digestPayouts(payouts),
});

/** A digest of the amounts and the accounts that they go to. */
export function digestPayouts(
  payouts: Pick<Payout, 'id' | 'amount' | 'currency' | 'bank_account'>[],
): string {
  const rows = payouts.map(({ id, amount, currency, bank_account }) => [
    id,
    amount,
    currency,
    bank_account,
  ]);
  return sha256(
    JSON.stringify(rows.toSorted(([one], [other]) => (String(one) < String(other) ? -1 : 1))),
  );
}

function writeBankCsv(rows: Row[]): string {
  const lines = rows.map(({ payout, merchant, account }) => [
    payout.reference,
    merchant.id,
    merchant.name,
    { cents: payout.amount },
    payout.currency,
    payout.id,
    account.holder,
    account.bank,
    account.branch_code,
    account.account_number,
  ]);
  return writeCsv([columns, ...lines]);
}

/** The pain.001 message for an export. Empty if no payout was exported: it must have a transfer. */
async function writeMessage(
  { payingAccount }: BankFileDeps,
  db: Handle,
  rows: Row[],
): Promise<string> {
  const from = mustPayFrom({ payingAccount });
  const [first] = rows;
  if (!first) return '';
  const exportedAt = ({ payout }: Row) => Temporal.Instant.from(payout.exported_at as string);
  const groups = Map.groupBy(rows, ({ merchant }) => merchant.territory.code);
  const batches = [];
  for (const [territory, members] of groups) {
    const [member] = members as [Row];
    const at = exportedAt(member).toZonedDateTimeISO(member.merchant.territory.time_zone);
    batches.push({
      territory,
      executes_on: await findExecutionDay(db, territory, at),
      transfers: members.map(({ payout, account }) => ({ ...account, ...payout })),
    });
  }
  return writePain001({
    ...{ id: first.payout.export_id as string, at: exportedAt(first) },
    ...{ from, batches },
  });
}

/** A bank pays on a business day: on the day of the export or, if it is not one, on the next. */
async function findExecutionDay(
  db: Handle,
  territory: string,
  at: Temporal.ZonedDateTime,
): Promise<string> {
  let day = at.toPlainDate();
  const calendar = {
    holidays: await listHolidays(db, territory, day.toString()),
    time_zone: at.timeZoneId,
  };
  while (!isBusinessDay(calendar, day)) day = day.add({ days: 1 });
  return day.toString();
}

/**
 * Returns the account that a pain.001 file pays from. Throws if the settings do not name it. The
 * export of such a file calls this before it moves any payout.
 */
export function mustPayFrom({ payingAccount }: Pick<BankFileDeps, 'payingAccount'>): PayingAccount {
  if (payingAccount) return payingAccount;
  throw new OperatorError(
    'A pain.001 file names the account that you pay from. Set PAYOUT_FROM_HOLDER, PAYOUT_FROM_BRANCH_CODE and PAYOUT_FROM_ACCOUNT, or use the CSV file.',
  );
}

const keyOf = ({ merchant_id, number }: { merchant_id: string; number: number | null }) =>
  `${merchant_id} ${number}`;

function mustOpen(sealing: Sealing, account: BankAccount): string {
  const number = openAccount(sealing, account);
  if (number !== null) return number;
  throw new OperatorError(
    `Neither MASTER_KEY nor MASTER_KEY_PREVIOUS opens the bank account of merchant ${account.merchant_id}. Run the command with the keys of the service, or propose the account again.`,
  );
}
