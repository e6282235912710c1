import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { writeCsv } from '#platform/shared/csv.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { findAccount } from './bank-account.sql.ts';
import type { BankAccount } from './bank-account.ts';
import type { Payout } from './payout.ts';
import { openAccount } from './set-bank-account.ts';

// Columns are only ever added, at the end. Amounts are cents.
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

/** The file for the bank run: one row for each payout, with the account that it goes to. */
export async function writeBankFile(
  deps: { sealing: Sealing },
  db: Handle,
  payouts: Payout[],
): Promise<string> {
  const rows = [];
  for (const { merchant_id, bank_account, reference, amount, currency, id } of payouts) {
    const merchant = await findMerchantRow(db, merchant_id);
    const account = bank_account === null ? null : await findAccount(db, merchant_id, bank_account);
    rows.push([
      reference,
      merchant_id,
      merchant?.name ?? '',
      amount,
      currency,
      id,
      account?.holder ?? '',
      account?.bank ?? '',
      account?.branch_code ?? '',
      account ? mustOpen(deps.sealing, account) : '',
    ]);
  }
  return writeCsv([columns, ...rows]);
}

function mustOpen(sealing: Sealing, account: BankAccount): string {
  const number = openAccount(sealing, account);
  if (number !== null) return number;
  throw new OperatorError(
    `Neither MASTER_KEY nor MASTER_KEY_PREVIOUS opens the bank account of merchant ${account.merchant_id}. Run the command with the keys of the service, or propose the account again.`,
  );
}
