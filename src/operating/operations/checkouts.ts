import { isOne, type Scope } from '#operating/search/scope.sql.ts';
import { listShoppersCheckouts } from '#operating/search/search.ts';
import type { Handle } from '#platform/database/database.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { CheckoutRow, CheckoutsQuery } from './checkout.schema.ts';
import { type CheckoutFilter, listCollected, pageCheckouts } from './checkouts.sql.ts';
import { ownerColumns } from './csv.ts';
import { defineList, readList } from './list.ts';
import { findOwners, listMerchantNames } from './owner.sql.ts';
import { plainDay, scopeOf } from './viewer.ts';

/** The newest checkouts first. */
export const checkoutList = defineList({
  name: 'checkouts',
  permission: 'checkouts.read',
  query: CheckoutsQuery,
  row: CheckoutRow,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      async (db, range) => pageCheckouts(db, scope, await filterOf(db, scope, query), range),
      async (db, rows) => {
        const describe = await findOwners(db, scope, rows);
        const collected = await listCollected(db, scope, rows);
        return rows.map((row) => {
          const { checkout, owner } = describe(row);
          const sums = collected.get(row.id) ?? { collected: 0, outstanding: 0 };
          return { ...checkout, ...owner, ...sums };
        });
      },
    );
  },
  columns: [
    ['Created', (row) => row.created_at],
    ...ownerColumns,
    ['Status', (row) => row.status],
    ['Payments', (row) => row.number_of_payments],
    ['Amount', (row) => ({ cents: row.amount })],
    ['Collected', (row) => ({ cents: row.collected })],
    ['Outstanding', (row) => ({ cents: row.outstanding })],
    ['Currency', (row) => row.currency],
    ['ID', (row) => row.id],
  ],
});

/** The time zone of a list of several merchants. The console shows it beside the fields. */
const homeZone = 'Africa/Johannesburg';

/** Converts days to instants, in the time zone in which the list shows its times. */
async function filterOf(
  db: Handle,
  scope: Scope,
  { status, from, to, amount, gateway, shopper }: CheckoutsQuery,
): Promise<CheckoutFilter> {
  const ids =
    shopper === undefined ? undefined : await listShoppersCheckouts(db, scope, shopper.trim());
  const filter = { status, amount, gateway, ids };
  if (from === undefined && to === undefined) return filter;
  const of = isOne(scope) ? scope.merchant_ids : [];
  const [merchant] = (await listMerchantNames(db, scope, of)).values();
  const zone = merchant?.time_zone ?? homeZone;
  const startOf = (day: string, days: number) =>
    timestamp(plainDay(day).add({ days }).toZonedDateTime(zone).toInstant());
  return {
    ...filter,
    from: from === undefined ? undefined : startOf(from, 0),
    until: to === undefined ? undefined : startOf(to, 1),
  };
}
