import type pg from 'pg';
import type { Handle } from '#platform/database/database.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Territory } from '#platform/shared/territories.ts';
import {
  type Merchant,
  type MerchantRow,
  type OwnThreshold,
  onOwnClock,
  type Rule,
} from './merchant.ts';

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
      'merchants.four_eyes_above',
      'territories.code',
      'territories.currency',
      'territories.time_zone',
      'territories.locale',
      'territories.payment_min',
    ]);

type Row = Awaited<ReturnType<ReturnType<typeof selectMerchants>['executeTakeFirstOrThrow']>>;

function toMerchantRow(row: Row): MerchantRow {
  const { code, currency, time_zone, locale, payment_min, ...merchant } = row;
  return { ...merchant, territory: { code, currency, time_zone, locale, payment_min } };
}

/** The merchant with its own time, for code that acts for it. */
export async function findMerchant(db: Handle, clock: Clock, id: string): Promise<Merchant | null> {
  const row = await findMerchantRow(db, id);
  return row && onOwnClock(clock, row);
}

export async function findMerchantRow(db: Handle, id: string): Promise<MerchantRow | null> {
  const row = await selectMerchants(db).where('merchants.id', '=', id).executeTakeFirst();
  return row ? toMerchantRow(row) : null;
}

export async function listMerchantRows(db: Handle, ids: string[]): Promise<MerchantRow[]> {
  if (ids.length === 0) return [];
  const rows = await selectMerchants(db).where('merchants.id', 'in', ids).execute();
  return rows.map(toMerchantRow);
}

/** How far each merchant's clock is ahead, in milliseconds, by merchant. */
export async function listClocks(
  client: pg.ClientBase,
  ids: string[],
): Promise<Map<string, number>> {
  const { rows } = await client.query<{ id: string; clock_ahead_ms: number }>({
    name: 'merchants-clocks',
    text: 'select id, clock_ahead_ms from merchants where id = any($1)',
    values: [ids],
  });
  return new Map(rows.map(({ id, clock_ahead_ms }) => [id, clock_ahead_ms]));
}

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
  to: { short_name?: string | null; no_fees?: boolean },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('merchants')
    .set(to)
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** The threshold as it is now. Read it under the lock of the checkout that is refunded. */
export async function findThreshold(
  db: Handle,
  id: string,
): Promise<{ four_eyes_above: OwnThreshold }> {
  return await db
    .selectFrom('merchants')
    .select('four_eyes_above')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
}

export async function moveThreshold(
  db: Handle,
  id: string,
  threshold: OwnThreshold,
): Promise<void> {
  const four_eyes_above = stored(threshold);
  await db.updateTable('merchants').set({ four_eyes_above }).where('id', '=', id).execute();
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

/** The lead of every merchant's clock that is ahead of real time, in milliseconds. */
export async function listMerchantClocks(db: Handle): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('merchants')
    .select(['id', 'clock_ahead_ms'])
    .where('clock_ahead_ms', '>', 0)
    .execute();
  return new Map(rows.map(({ id, clock_ahead_ms }) => [id, clock_ahead_ms]));
}
