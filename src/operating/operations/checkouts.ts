import type { Scope } from '#operating/search/scope.sql.ts';
import { listShoppersCheckouts } from '#operating/search/search.ts';
import type { Handle } from '#platform/database/database.ts';
import { CheckoutRow, CheckoutsQuery } from './checkout.schema.ts';
import { type CheckoutFilter, listCheckoutsPage, listCollected } from './checkouts.sql.ts';
import { ownerColumns } from './csv.ts';
import { defineList, readList } from './list.ts';
import { findOwners } from './owner.sql.ts';
import { spanOf } from './span.ts';
import { BadInput, scopeOf } from './viewer.ts';

/** The newest checkouts first. */
export const checkoutList = defineList({
  name: 'checkouts',
  permission: 'checkouts.read',
  query: CheckoutsQuery,
  row: CheckoutRow,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    for (const name of ['amount', 'gateway'] as const) {
      if (query.status === 'received' && query[name] !== undefined) {
        throw new BadInput(name, 'finds only checkouts that have ended, and not status=received');
      }
    }
    return readList(
      viewer.deps,
      page,
      async (db, range) => listCheckoutsPage(db, scope, await filterOf(db, scope, query), range),
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

async function filterOf(
  db: Handle,
  scope: Scope,
  { status, from, to, amount, gateway, shopper }: CheckoutsQuery,
): Promise<CheckoutFilter> {
  const ids =
    shopper === undefined ? undefined : await listShoppersCheckouts(db, scope, shopper.trim());
  return { status, amount, gateway, ids, ...(await spanOf(db, scope, { from, to })) };
}
