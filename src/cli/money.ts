import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { showMoney } from '#platform/shared/money.ts';
import { UsageError } from './command.ts';

/** Formats the amounts of rows in the locale of each row's merchant (decision 0001). */
export async function moneyOf(
  db: Handle,
  rows: { merchant_id: string }[],
): Promise<(row: { merchant_id: string; currency: string }, cents: number) => string> {
  const locales = new Map<string, string>();
  for (const id of new Set(rows.map(({ merchant_id }) => merchant_id))) {
    const merchant = await findMerchantRow(db, id);
    if (merchant) locales.set(id, merchant.territory.locale);
  }
  return ({ merchant_id, currency }, cents) =>
    showMoney(cents, { currency, locale: locales.get(merchant_id) ?? 'en' });
}

/** Reads an amount in cents, as the API writes it. */
export function readCents(text: string, option: string): number {
  const cents = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (cents > 0) return cents;
  throw new UsageError(
    `--${option} is "${text}" and must be a whole number of cents, such as 150000.`,
  );
}
