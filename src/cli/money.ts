import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { showMoney } from '#platform/shared/money.ts';
import { UsageError } from './command.ts';

/** Formats the amounts of a row in the locale of its merchant (decision 0001). */
export async function moneyOf(
  db: Handle,
  { merchant_id, currency }: { merchant_id: string; currency: string },
): Promise<(cents: number) => string> {
  const merchant = await findMerchantRow(db, merchant_id);
  const locale = merchant?.territory.locale ?? 'en';
  return (cents) => showMoney(cents, { currency, locale });
}

/** Reads an amount in cents, as the API writes it. */
export function readCents(text: string, option: string): number {
  const cents = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (cents > 0) return cents;
  throw new UsageError(
    `--${option} is "${text}" and must be a whole number of cents, such as 150000.`,
  );
}
