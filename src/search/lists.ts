import type { CallbackStatus } from '../callbacks/callback.ts';
import type { CheckoutStatus } from '../checkouts/checkout.ts';
import type { Database, Handle } from '../database/database.ts';
import { reading } from '../database/transaction.ts';
import { type Instalment, type InstalmentStatus, instalmentId } from '../instalments/instalment.ts';
import type { RefundRequest, RefundStatus } from '../refunds/refund.ts';
import type { Clock, Timestamp } from '../shared/clock.ts';
import {
  BadKey,
  type CallbackRow,
  type Collected,
  type Key,
  listCollected,
  listDeclines,
  listMerchantNames,
  type Page,
  pageCallbacks,
  pageCheckouts,
  pageInstalments,
  pageRefunds,
} from './lists.sql.ts';
import type { Scope } from './scope.sql.ts';
import { type FoundCheckout, listFoundCheckouts } from './search.sql.ts';

type Deps = { database: Database; clock: Clock };

/** One page of a list. `after` is the `next` of the page before; null begins at the start. */
export type PageRequest = { after: string | null; limit: number };
export type List<Row> = { data: Row[]; next: string | null };

/** The cursor is not one that a list of this kind gave. */
export class BadCursor extends Error {}

/** Whose a row is: the merchant, the order and the shopper. */
export type Whose = {
  merchant_name: string;
  client_reference_id: string;
  email: string;
  name: string | null;
};

export type ListedCheckout = Whose &
  Collected & {
    merchant_id: string;
    id: string;
    status: CheckoutStatus;
    amount: number;
    currency: string;
    number_of_payments: number | null;
    created_at: Timestamp;
    locale: string;
  };

export function listCheckouts(
  deps: Deps,
  scope: Scope,
  page: PageRequest,
): Promise<List<ListedCheckout>> {
  return list(deps, scope, page, pageCheckouts, async (db, rows, describe) => {
    const collected = await listCollected(db, scope, rows);
    return rows.map((row) => {
      const { checkout, whose, locale } = describe(row);
      const { merchant_id, id, status, amount, currency, number_of_payments, created_at } =
        checkout;
      return {
        merchant_id,
        id,
        status,
        amount,
        currency,
        number_of_payments,
        created_at,
        ...whose,
        ...(collected.get(id) ?? { collected: 0, outstanding: 0 }),
        locale,
      };
    });
  });
}

export type ListedCallback = CallbackRow & Whose;

export function listCallbacks(
  deps: Deps,
  scope: Scope,
  status: CallbackStatus | null,
  page: PageRequest,
): Promise<List<ListedCallback>> {
  return list(
    deps,
    scope,
    page,
    (db, within, range) => pageCallbacks(db, within, status, range),
    async (_, rows, describe) => rows.map((row) => ({ ...row, ...describe(row).whose })),
  );
}

export type ListedInstalment = Instalment & Whose & { reason: string | null; locale: string };

export function listInstalments(
  deps: Deps,
  scope: Scope,
  status: InstalmentStatus,
  page: PageRequest,
): Promise<List<ListedInstalment>> {
  return list(
    deps,
    scope,
    page,
    (db, within, range) => pageInstalments(db, within, status, range),
    async (db, rows, describe) => {
      const declines = await listDeclines(db, scope, rows);
      return rows.map((row) => {
        const { whose, locale } = describe(row);
        return { ...row, ...whose, reason: declines.get(instalmentId(row)) ?? null, locale };
      });
    },
  );
}

export type ListedRefund = RefundRequest & Whose & { locale: string };

export function listRefunds(
  deps: Deps,
  scope: Scope,
  status: RefundStatus | null,
  page: PageRequest,
): Promise<List<ListedRefund>> {
  return list(
    deps,
    scope,
    page,
    (db, within, range) => pageRefunds(db, within, status, range),
    async (_, rows, describe) =>
      rows.map((row) => {
        const { whose, locale } = describe(row);
        return { ...row, ...whose, locale };
      }),
  );
}

type OfCheckout = { merchant_id: string; checkout_id: string };
type Describe = (row: OfCheckout) => { checkout: FoundCheckout; whose: Whose; locale: string };

async function list<Row extends OfCheckout, Listed>(
  deps: Deps,
  scope: Scope,
  page: PageRequest,
  read: (
    db: Handle,
    scope: Scope,
    page: { after: Key | null; limit: number },
  ) => Promise<Page<Row>>,
  present: (db: Handle, rows: Row[], describe: Describe) => Promise<Listed[]>,
): Promise<List<Listed>> {
  const after = page.after === null ? null : readCursor(page.after);
  return await reading(deps, async (db) => {
    const { rows, last } = await read(db, scope, { after, limit: page.limit }).catch((error) => {
      // A cursor of another list may hold a value that is not of the column's type (class 22).
      if (error instanceof BadKey || (after && error.code?.startsWith('22'))) throw new BadCursor();
      throw error;
    });
    const checkouts = await listFoundCheckouts(db, scope, rows);
    const merchants = await listMerchantNames(
      db,
      scope,
      rows.map(({ merchant_id }) => merchant_id),
    );
    const describe: Describe = ({ merchant_id, checkout_id }) => {
      const checkout = checkouts.get(checkout_id) as FoundCheckout;
      const { email, first_name, last_name } = checkout.customer;
      const { name, locale } = merchants.get(merchant_id) ?? { name: '', locale: 'en' };
      const whose = {
        merchant_name: name,
        client_reference_id: checkout.client_reference_id,
        email,
        name: [first_name, last_name].filter(Boolean).join(' ') || null,
      };
      return { checkout, whose, locale };
    };
    return { data: await present(db, rows, describe), next: last && writeCursor(last) };
  });
}

const writeCursor = (key: Key) => Buffer.from(JSON.stringify(key)).toString('base64url');

function readCursor(text: string): Key {
  try {
    const key = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (Array.isArray(key) && key.length > 0 && key.every((value) => typeof value === 'string')) {
      return key;
    }
  } catch {
    // Not base64 or not JSON: refused below.
  }
  throw new BadCursor();
}
