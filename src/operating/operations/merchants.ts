import { changePage, type PageChange, readPageChange } from '#merchants/change-page.ts';
import { changeRules } from '#merchants/change-rules.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import { listMerchantRows } from '#merchants/merchant.sql.ts';
import { merchantNow, type MerchantRow as Row } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { logoBounds } from '#platform/shared/uploads.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { DoneInPart } from '#record/actions/operate.ts';
import type { LiftDeps } from '#record/alerts/lift-review.ts';
import { defineAction } from './action.ts';
import { IdParams } from './list.schema.ts';
import { defineList, readList } from './list.ts';
import {
  ChangeMerchant,
  CreateMerchant,
  MerchantRow,
  MerchantsQuery,
  Page,
  Rules,
} from './merchant.schema.ts';
import { listMerchantsPage } from './merchants.sql.ts';
import { listMerchantNames, listRecentSums } from './owner.sql.ts';
import { BadInput, NotFound, type Viewer, type ViewerDeps } from './viewer.ts';

/** Merchants with their sums for the last `recentDays`. */
export const merchantList = defineList({
  name: 'merchants',
  permission: 'merchants.read',
  query: MerchantsQuery,
  row: MerchantRow,
  read: (viewer, { order }, page) =>
    readList(
      viewer.deps,
      page,
      (db, range) => listMerchantsPage(db, viewer.scope, range, order),
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
    ['Sold, 30 days', (row) => ({ cents: row.sold })],
    ['Collected, 30 days', (row) => ({ cents: row.collected })],
    ['Refunded, 30 days', (row) => ({ cents: row.refunded })],
    ['Currency', (row) => row.currency],
    ['ID', (row) => row.id],
  ],
});

export type ListedMerchant = Awaited<ReturnType<typeof presentMerchants>>[number];

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
  const recent = await listRecentSums(db, scope, ids, timestamp(deps.clock.now()));
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

/** A merchant together with the members of its territory. */
function withPlace(merchant: Row) {
  const { code, currency, time_zone, locale } = merchant.territory;
  // A jsonb column does not keep the order of members, so the order is set here.
  const rules = merchant.rules.map(({ from_amount, to_amount, terms }) => ({
    from_amount,
    to_amount,
    terms,
  }));
  return { ...merchant, rules, territory: code, currency, time_zone, locale };
}

type Change = Viewer<ViewerDeps & LiftDeps>;

/** Says that only the first of two actions was done. */
function sayRulesChanged(cause: unknown): never {
  const message = 'The rules were changed. The other changes may be missing. Reload and check.';
  throw new DoneInPart(message, { cause });
}

export const merchantActions = {
  create: defineAction({
    url: '/api/merchants',
    permission: 'merchants.create',
    fresh: true,
    schema: { body: CreateMerchant, response: MerchantRow },
    async run(viewer: Change, { body }) {
      const { deps, operator, may } = viewer;
      const { id } = await createMerchant(deps, operator, {
        territory: 'ZA',
        preselected_term: null,
        four_eyes_above: null,
        ...body,
        mayLiftReview: may('review.lift'),
      });
      return () => mustSeeMerchant(viewer, id);
    },
  }),
  change: defineAction({
    method: 'PATCH',
    url: '/api/merchants/:id',
    permission: 'merchants.change',
    mayNeed: ['review.lift', 'limits.raise'],
    fresh: true,
    bodyBytesMax: Math.ceil(logoBounds.bytesMax / 3) * 4 + 65_536,
    schema: { params: IdParams, body: ChangeMerchant, response: MerchantRow },
    async run(viewer: Change, { params, body }) {
      const { deps, operator, may } = viewer;
      const { id } = await mustSeeMerchant(viewer, params.id);
      const { was = {}, logo, ...members } = body;
      const named = (isWanted: (name: string) => boolean) =>
        Object.fromEntries(Object.entries(members).filter(([name]) => isWanted(name)));
      const rules: Pick<typeof members, keyof typeof Rules> = named((name) =>
        Object.hasOwn(Rules, name),
      );
      const page: PageChange = {
        ...named((name) => Object.hasOwn(Page, name)),
        ...(logo !== undefined && { logo: logo === null ? null : Buffer.from(logo, 'base64') }),
      };
      const hasRules = Object.keys(rules).length > 0;
      const hasPage = Object.keys(page).length > 0;
      if (!hasRules && !hasPage) throw new BadInput('', 'Name something to change');
      // The change consists of two actions, so a bad text is refused before the first of them, and
      // the first one compares everything that the person read.
      readPageChange(page);
      if (hasRules) {
        await changeRules(deps, operator, {
          id,
          ...rules,
          was,
          mayLiftReview: may('review.lift'),
          mayWidenBands: may('limits.raise'),
        });
      }
      if (hasPage) {
        const read = Object.entries(was).filter(([name]) => !Object.hasOwn(Rules, name));
        const changed = changePage(deps, operator, { id, was: Object.fromEntries(read), ...page });
        await (hasRules ? changed.catch(sayRulesChanged) : changed);
      }
      return () => mustSeeMerchant(viewer, id);
    },
  }),
};
