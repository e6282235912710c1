import { type SelectQueryBuilder, sql } from 'kysely';
import type { ChosenGateways } from '#gateway/gateway-name.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type { Territory } from '#platform/shared/territories.ts';
import {
  type Merchant,
  type MerchantProfile,
  type MerchantRow,
  type OwnThreshold,
  onOwnClock,
  type Rule,
} from './merchant.ts';

/** The local day of the merchant `m` in its territory `t`, on its own clock. */
export const localDay = (now: Timestamp) =>
  sql<string>`((${now}::timestamptz + m.clock_ahead_ms * interval '1 millisecond')
    at time zone t.time_zone)::date`;

const selectMerchants = (db: Handle) =>
  db
    .selectFrom('merchants')
    .innerJoin('territories', 'territories.code', 'merchants.territory')
    .select([
      'merchants.id',
      'merchants.name',
      'merchants.rules',
      'merchants.created_at',
      'merchants.clock_ahead_ms',
      'merchants.preselected_term',
      'merchants.short_name',
      'merchants.no_fees',
      'merchants.language',
      'merchants.contact',
      'merchants.address',
      'merchants.vat_number',
      'merchants.logo',
      'merchants.four_eyes_above',
      'merchants.has_events',
      'merchants.gateway',
      'merchants.second_gateway',
      'territories.code',
      'territories.currency',
      'territories.time_zone',
      'territories.locale',
      'territories.payment_min',
    ]);

/** One merchant in the form that `toMerchantRow` takes. */
export const selectMerchant = (db: Handle, id: string) =>
  selectMerchants(db).where('merchants.id', '=', id);

type Row = Awaited<ReturnType<ReturnType<typeof selectMerchants>['executeTakeFirstOrThrow']>>;

export function toMerchantRow(row: Row): MerchantRow {
  const { code, currency, time_zone, locale, payment_min, ...merchant } = row;
  return { ...merchant, territory: { code, currency, time_zone, locale, payment_min } };
}

/** The merchant with its own time, for code that acts for it. */
export async function findMerchant(db: Handle, clock: Clock, id: string): Promise<Merchant | null> {
  const row = await findMerchantRow(db, id);
  return row && onOwnClock(clock, row);
}

export async function findMerchantRow(db: Handle, id: string): Promise<MerchantRow | null> {
  const row = await selectMerchant(db, id).executeTakeFirst();
  return row ? toMerchantRow(row) : null;
}

export async function listMerchantRows(db: Handle, ids: string[]): Promise<MerchantRow[]> {
  if (ids.length === 0) return [];
  const rows = await selectMerchants(db).where('merchants.id', 'in', ids).execute();
  return rows.map(toMerchantRow);
}

/** How far the clocks of merchants are ahead, in milliseconds. */
export const selectClocks = (db: Handle, ids: string[]) =>
  db
    .selectFrom('merchants')
    .select(['id', 'clock_ahead_ms'])
    .where(sql<boolean>`id = any(${ids}::uuid[])`);

export async function insertMerchant(
  db: Handle,
  merchant: {
    id: string;
    name: string;
    territory: string;
    rules: Rule[];
    created_at: string;
    preselected_term: number | null;
    four_eyes_above: OwnThreshold;
  },
): Promise<void> {
  await db
    .insertInto('merchants')
    .values({
      ...merchant,
      rules: JSON.stringify(merchant.rules),
      four_eyes_above: stored(merchant.four_eyes_above),
    })
    .execute();
}

export async function moveRules(db: Handle, id: string, rules: Rule[]): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('merchants')
    .set({ rules: JSON.stringify(rules) })
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

export async function movePreselectedTerm(
  db: Handle,
  id: string,
  preselected_term: number | null,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('merchants')
    .set({ preselected_term })
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

export async function movePage(
  db: Handle,
  id: string,
  to: Partial<MerchantProfile> & {
    logo_png?: Buffer | null;
    short_name?: string | null;
    no_fees?: boolean;
    language?: Language;
  },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('merchants')
    .set(to)
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

export async function moveGateways(db: Handle, id: string, to: ChosenGateways): Promise<void> {
  await db.updateTable('merchants').set(to).where('id', '=', id).execute();
}

/** The image with this SHA-256. Two merchants may have the same one. */
export async function findLogo(db: Handle, logo: string): Promise<Buffer | null> {
  const row = await db
    .selectFrom('merchants')
    .select('logo_png')
    .where('logo', '=', logo)
    .limit(1)
    .executeTakeFirst();
  return row?.logo_png ?? null;
}

/** The current threshold. Read it under the lock of the refunded checkout. */
export const selectThreshold = (db: Handle, id: string) =>
  db.selectFrom('merchants').select('four_eyes_above').where('id', '=', id);

export async function findThreshold(
  db: Handle,
  id: string,
): Promise<{ four_eyes_above: OwnThreshold }> {
  return await selectThreshold(db, id).executeTakeFirstOrThrow();
}

export async function moveThreshold(
  db: Handle,
  id: string,
  threshold: OwnThreshold,
): Promise<void> {
  const four_eyes_above = stored(threshold);
  await db.updateTable('merchants').set({ four_eyes_above }).where('id', '=', id).execute();
}

/** Ids of merchants, or a statement that selects them. */
export type MerchantIds =
  | string[]
  | SelectQueryBuilder<Tables, 'managed_merchants', { merchant_id: string }>;

export async function moveHasEvents(db: Handle, ids: MerchantIds): Promise<void> {
  await db
    .updateTable('merchants')
    .set({ has_events: true })
    .where('id', 'in', ids)
    .where('has_events', '=', false)
    .execute();
}

const stored = (threshold: OwnThreshold) => (threshold === null ? null : JSON.stringify(threshold));

export async function findTerritory(db: Handle, code: string): Promise<Territory | null> {
  const row = await db
    .selectFrom('territories')
    .selectAll()
    .where('code', '=', code)
    .executeTakeFirst();
  return row ?? null;
}

export async function lockMerchant(
  db: Handle,
  id: string,
): Promise<{ clock_ahead_ms: number } | null> {
  const row = await db
    .selectFrom('merchants')
    .select('clock_ahead_ms')
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row ?? null;
}

export async function moveClock(db: Handle, id: string, clock_ahead_ms: number): Promise<void> {
  await db.updateTable('merchants').set({ clock_ahead_ms }).where('id', '=', id).execute();
}

/** The merchants whose clocks are ahead of real time, and by how many milliseconds. */
export async function listMerchantClocks(db: Handle): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('merchants')
    .select(['id', 'clock_ahead_ms'])
    .where('clock_ahead_ms', '>', 0)
    .execute();
  return new Map(rows.map(({ id, clock_ahead_ms }) => [id, clock_ahead_ms]));
}
