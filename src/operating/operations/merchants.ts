import { listMerchantRows } from '#merchants/merchant.sql.ts';
import { merchantNow, type MerchantRow as Row } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { decimal } from './csv.ts';
import { defineList, readList } from './list.ts';
import { MerchantRow, MerchantsQuery } from './merchant.schema.ts';
import { pageMerchants } from './merchants.sql.ts';
import { listMerchantNames, listRecentSums } from './owner.sql.ts';
import { NotFound, type Viewer } from './viewer.ts';

/** Merchants with their sums of the last days. */
export const merchantList = defineList({
  name: 'merchants',
  permission: 'merchants.read',
  query: MerchantsQuery,
  row: MerchantRow,
  read: (viewer, { order }, page) =>
    readList(
      viewer.deps,
      page,
      (db, range) => pageMerchants(db, viewer.scope, range, order),
      (db, rows) =>
        presentMerchants(
          viewer,
          db,
          rows.map(({ id }) => id),
        ),
    ),
  columns: [
    ['Name', (row) => row.name],
    ['Created', (row) => row.created_at],
    ['Sold, 30 days', (row) => decimal(row.sold)],
    ['Collected, 30 days', (row) => decimal(row.collected)],
    ['Refunded, 30 days', (row) => decimal(row.refunded)],
    ['Currency', (row) => row.currency],
    ['ID', (row) => row.id],
  ],
});

export type ListedMerchant = Awaited<ReturnType<typeof presentMerchants>>[number];

/** A merchant of the viewer's scope. */
export async function mustSeeMerchant(viewer: Viewer, id: string): Promise<ListedMerchant> {
  const [merchant] = await reading(viewer.deps, async (db) => {
    const names = await listMerchantNames(db, viewer.scope, isUuid(id) ? [id] : []);
    return await presentMerchants(viewer, db, [...names.keys()]);
  });
  if (!merchant) throw noMerchant(id);
  return merchant;
}

export const noMerchant = (id: string) =>
  new NotFound(`There is no merchant ${id}. \`tranche merchants list\` lists them.`);

async function presentMerchants({ deps, scope }: Viewer, db: Handle, ids: string[]) {
  const merchants = new Map((await listMerchantRows(db, ids)).map((one) => [one.id, one]));
  const recent = await listRecentSums(db, scope, ids);
  return ids.map((id) => {
    const merchant = merchants.get(id) as Row;
    const sums = recent.get(id) ?? { sold: 0, collected: 0, refunded: 0 };
    return {
      ...withPlace(merchant),
      four_eyes_default: deps.fourEyesAbove,
      ...sums,
      now: timestamp(merchantNow(deps.clock, merchant)),
      refund_rate: sums.sold > 0 ? sums.refunded / sums.sold : null,
    };
  });
}

/** A merchant with the members of its territory beside its own. */
export function withPlace(merchant: Row) {
  const { code, currency, time_zone, locale } = merchant.territory;
  // The database does not keep the order of members.
  const rules = merchant.rules.map(({ from_amount, to_amount, terms }) => ({
    from_amount,
    to_amount,
    terms,
  }));
  return { ...merchant, rules, territory: code, currency, time_zone, locale };
}
