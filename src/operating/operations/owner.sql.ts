import { sql } from 'kysely';
import { localDay } from '#merchants/merchant.sql.ts';
import type { OwnThreshold } from '#merchants/merchant.ts';
import { recentDays } from '#operating/search/overview.sql.ts';
import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import { type FoundCheckout, listFoundCheckouts } from '#operating/search/search.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** The merchant, the order and the shopper that a row belongs to. */
export type Owner = {
  merchant_name: string;
  time_zone: string;
  locale: string;
  /** How far the merchant's clock is ahead of the real one, in a sandbox. */
  clock_ahead_ms: number;
  client_reference_id: string;
  email: string;
  name: string | null;
};

export type OfCheckout = { merchant_id: string; checkout_id: string };

export type Described = { checkout: FoundCheckout; merchant: MerchantName; owner: Owner };

/** Reads the owners of rows, and returns a function that finds the owner of one row. */
export async function findOwners(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<(row: OfCheckout) => Described> {
  const checkouts = await listFoundCheckouts(db, scope, rows);
  const merchants = await listMerchantNames(
    db,
    scope,
    rows.map(({ merchant_id }) => merchant_id),
  );
  return ({ merchant_id, checkout_id }) => {
    const checkout = checkouts.get(checkout_id) as FoundCheckout;
    const { email, first_name, last_name } = checkout.customer;
    const merchant = merchants.get(merchant_id) as MerchantName;
    const owner = {
      merchant_name: merchant.name,
      time_zone: merchant.time_zone,
      locale: merchant.locale,
      clock_ahead_ms: merchant.clock_ahead_ms,
      client_reference_id: checkout.client_reference_id,
      email,
      name: [first_name, last_name].filter(Boolean).join(' ') || null,
    };
    return { checkout, merchant, owner };
  };
}

export const unique = (values: string[]) => [...new Set(values)];

export type MerchantName = {
  name: string;
  currency: string;
  locale: string;
  time_zone: string;
  payment_min: number;
  clock_ahead_ms: number;
  four_eyes_above: OwnThreshold;
};

/** The names, locales, zones and clocks of merchants, by their ids. */
export async function listMerchantNames(
  db: Handle,
  scope: Scope,
  ids: string[],
): Promise<Map<string, MerchantName>> {
  if (ids.length === 0) return new Map();
  const rows = await scoped(
    db
      .selectFrom('merchants')
      .innerJoin('territories', 'territories.code', 'merchants.territory')
      .select([
        'merchants.id',
        'merchants.name',
        'merchants.clock_ahead_ms',
        'merchants.four_eyes_above',
        'territories.currency',
        'territories.locale',
        'territories.time_zone',
        'territories.payment_min',
      ]),
    scope,
    'merchants.id',
  )
    .where('merchants.id', 'in', unique(ids))
    .execute();
  return new Map(rows.map(({ id, ...merchant }) => [id, merchant]));
}

export type RecentSums = { sold: number; collected: number; refunded: number };

/** Each merchant's sums over `recentDays`, counted back from the day on its own clock. */
export async function listRecentSums(
  db: Handle,
  scope: Scope,
  merchant_ids: string[],
  now: Timestamp,
): Promise<Map<string, RecentSums>> {
  if (merchant_ids.length === 0) return new Map();
  const rows = await scoped(
    db
      .selectFrom('merchant_days as d')
      .innerJoin('merchants as m', 'm.id', 'd.merchant_id')
      .innerJoin('territories as t', 't.code', 'm.territory')
      .select((select) => [
        'd.merchant_id',
        select.fn.sum<number>('d.sold').as('sold'),
        select.fn.sum<number>('d.collected').as('collected'),
        select.fn.sum<number>('d.refunded').as('refunded'),
      ]),
    scope,
    'd.merchant_id',
  )
    .where('d.merchant_id', 'in', unique(merchant_ids))
    .where(sql<boolean>`d.day > ${localDay(now)} - ${recentDays}::integer`)
    .groupBy('d.merchant_id')
    .execute();
  return new Map(
    rows.map(({ merchant_id, sold, collected, refunded }) => [
      merchant_id,
      { sold: Number(sold), collected: Number(collected), refunded: Number(refunded) },
    ]),
  );
}
