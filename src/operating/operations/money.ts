import { merchantNow } from '#merchants/merchant.ts';
import { findDefaultPlace, findPlace } from '#operating/search/overview.sql.ts';
import { isWithin, type Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { listTerritories, sumAccountFees } from '#purchases/payouts/money-day.sql.ts';
import type { Column } from './csv.ts';
import { defineList, readList } from './list.ts';
import { MoneyDayRow, MoneyDaysQuery, type MoneyTotals } from './money.schema.ts';
import { listMoneyDayPage, sumMoneyDay } from './money.sql.ts';
import { NotFound, plainDay, scopeOf, type Viewer } from './viewer.ts';

const amount = (head: string, name: keyof MoneyDayRow): Column<MoneyDayRow> => [
  head,
  (row) => ({ cents: row[name] as number }),
];

/** The movements of a local day, by merchant, including those of the last minutes. */
export const moneyDayList = defineList({
  name: 'money-days',
  permission: 'money.read',
  query: MoneyDaysQuery,
  row: MoneyDayRow,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      async (db, range) =>
        listMoneyDayPage(db, scope, await dayOf(viewer, db, scope, query), range),
      async (_, rows) => rows,
    );
  },
  columns: [
    ['Day', (row) => row.day],
    ['Merchant', (row) => row.merchant_name],
    amount('Sold', 'sold'),
    amount('Collected', 'collected'),
    amount('Returned to cards', 'refunded'),
    amount('Disputed', 'disputed'),
    amount('Fees', 'fees'),
    amount('VAT', 'vat'),
    amount('Paid out', 'paid_out'),
    ['Currency', (row) => row.currency],
    ['Merchant ID', (row) => row.merchant_id],
  ],
});

type DayQuery = { merchant?: string; date?: string };

/** The requested day, or the merchants' current day. */
async function dayOf(
  { deps }: Viewer,
  db: Handle,
  scope: Scope,
  { date }: DayQuery,
): Promise<string> {
  if (date !== undefined) return plainDay(date).toString();
  const place = (await findPlace(db, scope)) ?? (await findDefaultPlace(db));
  const now = merchantNow(deps.clock, place).toZonedDateTimeISO(place.time_zone);
  return now.toPlainDate().toString();
}

/** The movements of a local day, of all merchants in the scope together. */
export async function readMoneyTotals(viewer: Viewer, query: DayQuery): Promise<MoneyTotals> {
  if (query.merchant !== undefined && !isWithin(viewer.scope, query.merchant)) {
    throw new NotFound('There is no such merchant.');
  }
  const scope = scopeOf(viewer, query);
  return await reading(viewer.deps, async (db) => {
    const day = await dayOf(viewer, db, scope, query);
    return {
      day,
      totals: await sumMoneyDay(db, scope, day),
      account_fees: scope === 'all merchants' ? await readAccountFees(db, day) : null,
    };
  });
}

/**
 * An account fee has no territory. Its day is counted in the time zone of the first territory with
 * the fee's currency, or in UTC if there is none.
 */
async function readAccountFees(db: Handle, day: string) {
  const zones = new Map((await listTerritories(db)).toReversed().map((one) => [one.currency, one]));
  const elsewhere = { time_zone: 'UTC', locale: 'en' };
  const fees: { currency: string; amount: number; locale: string }[] = [];
  for (const time_zone of new Set([...zones.values(), elsewhere].map((one) => one.time_zone))) {
    for (const fee of await sumAccountFees(db, ...rangeOf(day, time_zone))) {
      const zone = zones.get(fee.currency) ?? elsewhere;
      if (zone.time_zone === time_zone) fees.push({ ...fee, locale: zone.locale });
    }
  }
  return fees;
}

function rangeOf(day: string, timeZone: string): [from: Timestamp, to: Timestamp] {
  const begins = Temporal.PlainDate.from(day);
  const at = (one: Temporal.PlainDate) => timestamp(one.toZonedDateTime({ timeZone }).toInstant());
  return [at(begins), at(begins.add({ days: 1 }))];
}
