import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Amounts } from '#platform/shared/fees.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { listConfirmedAccounts } from '#purchases/payouts/bank-account.sql.ts';
import { lineName } from '#purchases/payouts/line-names.ts';
import { entriesBefore, planPayout } from '#purchases/payouts/make-payouts.ts';
import { findPayoutDay, listUnpaid } from '#purchases/payouts/payout.sql.ts';
import type { EntryKind } from '#record/ledger/settlement.ts';
import { defineList, readList } from './list.ts';
import { noMerchant } from './merchants.ts';
import { type Balance, BalanceLine, BalanceLinesQuery } from './money.schema.ts';
import {
  listOpenEntriesPage,
  listReservesPage,
  type OpenEntry,
  sumEntries,
  sumEntriesFrom,
} from './money.sql.ts';
import { listMerchantNames, type MerchantName } from './owner.sql.ts';
import { approvalsOf } from './payouts.ts';
import { scopeOf, type Viewer } from './viewer.ts';

/** Only the oldest payouts are shown, but the sum covers all of them. */
const payoutsMax = 100;

/** The amount that a merchant in the viewer's scope is owed now, by reason. */
export async function readBalance(viewer: Viewer, id: string): Promise<Balance> {
  const { deps, scope } = viewer;
  // All reads share one snapshot: a payout made in between would move amounts from one sum to
  // another.
  const balance = await snapshot(deps, async (db) => {
    const names = await listMerchantNames(db, scope, isUuid(id) ? [id] : []);
    const [found] = names.keys();
    const merchant = found === undefined ? null : await findMerchant(db, deps.clock, found);
    return merchant && (await sumUp(db, scope, merchant));
  });
  if (!balance) throw noMerchant(id);
  return balance;
}

async function sumUp(db: Handle, scope: Scope, merchant: Merchant): Promise<Balance> {
  const { id, name, territory, clock_ahead_ms } = merchant;
  const kinds = openKinds(await sumEntries(db, id));
  const unpaid = await listUnpaid(db, id, payoutsMax);
  const accounts = await listConfirmedAccounts(db, [id]);
  const dueAt = await findPayoutDay(db, id);
  const of = (member: keyof Amounts, ...names: EntryKind[]) =>
    names.reduce((sum, kind) => sum + (kinds.open.get(kind)?.[member] ?? 0), 0);
  const all = [...kinds.open.keys()];
  const entries = {
    sale: of('gross', 'sale'),
    refund: of('gross', 'refund', 'refund_reversed'),
    dispute: of('gross', 'dispute', 'dispute_reversed', 'dispute_fee'),
    payout_returned: of('gross', 'payout_returned'),
    withheld: of('gross', 'reserve'),
    fee: 0 - of('fee', ...all),
    vat: 0 - of('vat', ...all),
  };
  const open = of('net', ...all);
  return {
    merchant_id: id,
    merchant_name: name,
    currency: territory.currency,
    locale: territory.locale,
    time_zone: territory.time_zone,
    clock_ahead_ms,
    has_terms: dueAt !== null,
    sums: { ...entries, payouts: unpaid.amount, reserve: kinds.reserve },
    open,
    owed: open + unpaid.amount + kinds.reserve,
    payouts: unpaid.payouts.map((row) => ({ ...row, ...approvalsOf(scope, row, accounts) })),
    payout_count: unpaid.count,
    next_payout: dueAt === null ? null : await planNext(db, merchant, dueAt, kinds.open),
  };
}

/** The open entries by kind, and the reserve that is held. */
function openKinds(rows: (Amounts & { kind: EntryKind; is_line: boolean })[]) {
  const open = new Map<EntryKind, Amounts>();
  let reserve = 0;
  for (const { kind, is_line, gross, fee, vat, net } of rows) {
    // Lines of payouts are not subtracted: a reserve that is a line of a payout is still held,
    // until another payout releases it.
    if ((kind === 'reserve' || kind === 'reserve_released') && !is_line) reserve -= net;
    // The entry of a paid payout is not a line of any payout.
    if (kind === 'paid_out') continue;
    const sign = is_line ? -1 : 1;
    const one = open.get(kind) ?? { gross: 0, fee: 0, vat: 0, net: 0 };
    open.set(kind, {
      gross: one.gross + sign * gross,
      fee: one.fee + sign * fee,
      vat: one.vat + sign * vat,
      net: one.net + sign * net,
    });
  }
  return { open, reserve };
}

/** The next payout, as the entries that are open now would make it. */
async function planNext(
  db: Handle,
  merchant: Merchant,
  made_at: Timestamp,
  open: Map<EntryKind, Amounts>,
): Promise<Balance['next_payout']> {
  const day = merchant.localDate(Temporal.Instant.from(made_at));
  const later = await sumEntriesFrom(db, merchant.id, entriesBefore(merchant, day));
  const entries = [...open].map(([kind, { net }]) => ({
    kind,
    net: net - (later.find((one) => one.kind === kind)?.net ?? 0),
  }));
  const when = { at: made_at, day };
  const { amount, reserves } = await planPayout(db, merchant.id, entries, when);
  const reserved = (kind: EntryKind) =>
    reserves.reduce((sum, one) => sum + (one.kind === kind ? one.net : 0), 0);
  return {
    business_on: day.toString(),
    made_at,
    open: entries.reduce((sum, { net }) => sum + net, 0),
    reserve_held: reserved('reserve'),
    reserve_released: reserved('reserve_released'),
    amount,
  };
}

/** The entries that make up a merchant's balance. */
export const balanceLineList = defineList({
  name: 'balance-lines',
  permission: 'payouts.read',
  query: BalanceLinesQuery,
  row: BalanceLine,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    const { merchant, kind } = query;
    return readList(
      viewer.deps,
      page,
      async (db, range) => {
        const names = await listMerchantNames(db, scope, [merchant]);
        const [id] = names.keys();
        if (id === undefined) throw noMerchant(merchant);
        return kind === 'reserve'
          ? await listReservesPage(db, id, range)
          : await listOpenEntriesPage(db, id, kind, range);
      },
      async (db, rows) => {
        const names = await listMerchantNames(db, scope, [merchant]);
        return rows.map((row) => presentLine(row, [...names.values()][0] as MerchantName));
      },
    );
  },
  columns: [
    ['At', (row) => row.at],
    ['Kind', (row) => row.name],
    ['Order', (row) => row.client_reference_id],
    ['Gross', (row) => ({ cents: row.gross })],
    ['Fee', (row) => ({ cents: row.fee })],
    ['VAT', (row) => ({ cents: row.vat })],
    ['Net', (row) => ({ cents: row.net })],
    ['Currency', (row) => row.currency],
    ['Released on', (row) => row.release_on],
    ['Checkout', (row) => row.checkout_id],
    ['Payout', (row) => row.payout_id],
    ['ID', (row) => row.id],
  ],
});

function presentLine(row: OpenEntry, place: MerchantName) {
  const { currency, locale, time_zone, clock_ahead_ms } = place;
  const name = lineName(row.kind);
  return { ...row, name, currency, locale, time_zone, clock_ahead_ms };
}
