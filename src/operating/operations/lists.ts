import { merchantNow } from '#merchants/merchant.ts';
import { isOne, type Scope } from '#operating/search/scope.sql.ts';
import { type FoundCheckout, listFoundCheckouts } from '#operating/search/search.sql.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { CallbackStatus } from '#purchases/callbacks/callback.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import type { Dispute, DisputeStatus } from '#purchases/disputes/dispute.ts';
import {
  type Instalment,
  type InstalmentStatus,
  instalmentId,
} from '#purchases/instalments/instalment.ts';
import {
  givenBackOf,
  isFirstOfTwo,
  neededSecondPerson,
  type PlannedPart,
  type RefundPart,
  type RefundRequest,
  type RefundStatus,
  splitRefund,
} from '#purchases/refunds/refund.ts';
import { listPersonNames } from '#record/actions/person-names.sql.ts';
import { listDisputedAmounts } from '#record/ledger/posting.sql.ts';
import {
  BadKey,
  type CallbackRow,
  type CheckoutFilter,
  type Collected,
  type Decline,
  type Key,
  listCollected,
  listDeclines,
  listDisputesById,
  listMerchantNames,
  listPauses,
  listRefundRates,
  listRefundSources,
  listRefundsById,
  listWithCard,
  type MerchantName,
  type Page,
  type Pause,
  pageCallbacks,
  pageCheckouts,
  pageDisputes,
  pageInstalments,
  pageRefunds,
  type RefundSources,
  type RefundView,
} from './lists.sql.ts';

type Deps = { database: Database; clock: Clock };

/** One page of a list. `after` is the `next` of the page before; null begins at the start. */
export type PageRequest = { after: string | null; limit: number };
export type List<Row> = { data: Row[]; next: string | null };

/** The cursor is not one that a list of this kind gave. */
export class BadCursor extends Error {}

/** Whose a row is: the merchant, the order and the shopper. */
export type Whose = {
  merchant_name: string;
  time_zone: string;
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

/** `from` and `to` are days and are included. */
export type CheckoutDays = Pick<CheckoutFilter, 'status'> & {
  from?: string | undefined;
  to?: string | undefined;
};

/** The zone of the days of a list of several merchants. The console shows it beside the fields. */
const homeZone = 'Africa/Johannesburg';

/** Days as instants, in the zone that the times of the list are shown in. */
async function filterOf(
  db: Handle,
  scope: Scope,
  { status, from, to }: CheckoutDays,
): Promise<CheckoutFilter> {
  if (from === undefined && to === undefined) return { status };
  const ids = isOne(scope) ? scope.merchant_ids : [];
  const [merchant] = (await listMerchantNames(db, scope, ids)).values();
  const zone = merchant?.time_zone ?? homeZone;
  const startOf = (day: string, days: number) =>
    timestamp(Temporal.PlainDate.from(day).add({ days }).toZonedDateTime(zone).toInstant());
  return {
    status,
    from: from === undefined ? undefined : startOf(from, 0),
    until: to === undefined ? undefined : startOf(to, 1),
  };
}

export function listCheckouts(
  deps: Deps,
  scope: Scope,
  page: PageRequest,
  days: CheckoutDays = {},
): Promise<List<ListedCheckout>> {
  return list(
    deps,
    scope,
    page,
    async (db, within, range) => pageCheckouts(db, within, await filterOf(db, within, days), range),
    async (db, rows, describe) => {
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
    },
  );
}

export type ListedCallback = CallbackRow & Whose & { locale: string };

export function listCallbacks(
  deps: Deps,
  scope: Scope,
  status: CallbackStatus | null,
  page: PageRequest,
  host: string | null = null,
): Promise<List<ListedCallback>> {
  return list(
    deps,
    scope,
    page,
    (db, within, range) => pageCallbacks(db, within, status, host, range),
    async (_, rows, describe) =>
      rows.map((row) => {
        const { whose, locale } = describe(row);
        return { ...row, ...whose, locale };
      }),
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
        return {
          ...row,
          ...whose,
          reason: declines.get(instalmentId(row))?.reason ?? null,
          locale,
        };
      });
    },
  );
}

export type ListedOverdue = Instalment &
  Whose & {
    locale: string;
    number_of_payments: number;
    days_late: number;
    decline: Decline | null;
    has_card: boolean;
    /** Why it is not collected now. Null if nothing pauses it. */
    paused_by: Pause | 'refund' | 'shopper' | null;
  };

/** Overdue payments, the longest due first, with what decides whether a retry is sensible. */
export function listOverdue(
  deps: Deps,
  scope: Scope,
  page: PageRequest,
): Promise<List<ListedOverdue>> {
  return list(
    deps,
    scope,
    page,
    (db, within, range) => pageInstalments(db, within, 'overdue', range),
    async (db, rows, describe) => {
      const declines = await listDeclines(db, scope, rows);
      const cards = await listWithCard(db, scope, rows);
      const paused = rows.filter((row) => row.paused);
      const pauses = await listPauses(db, scope, paused);
      const pauseOf = ({ shopper_attempt, checkout_id }: Instalment) =>
        shopper_attempt === null ? (pauses.get(checkout_id) ?? 'refund') : 'shopper';
      return rows.map((row) => {
        const { checkout, merchant, whose, locale } = describe(row);
        const today = merchantNow(deps.clock, merchant)
          .toZonedDateTimeISO(merchant.time_zone)
          .toPlainDate();
        return {
          ...row,
          ...whose,
          locale,
          number_of_payments: checkout.number_of_payments ?? 1,
          days_late: Temporal.PlainDate.from(row.due_on).until(today).days,
          decline: declines.get(instalmentId(row)) ?? null,
          has_card: cards.has(row.checkout_id),
          paused_by: row.paused ? pauseOf(row) : null,
        };
      });
    },
  );
}

export type ReviewedRefund = RefundRequest &
  Whose & {
    locale: string;
    checkout_amount: number;
    purchased_at: Timestamp | null;
    days_since_purchase: number | null;
    needs_second_person: boolean;
    /** The next approval is only the first of two: it does not start the refund. */
    is_first_of_two: boolean;
    /**
     * The payments that it would be taken from if it began now; null if it has begun or must wait.
     */
    planned: PlannedPart[] | null;
    /** The payments that it was taken from, in all rounds. */
    parts: RefundPart[];
    /** The payment that is being collected. */
    waits_for: number | null;
    refund_rate: number | null;
  };

/** Refunds with what a reviewer needs to decide. */
export function listRefundsToReview(
  deps: Deps,
  scope: Scope,
  view: RefundView | null,
  page: PageRequest,
): Promise<List<ReviewedRefund>> {
  return list(
    deps,
    scope,
    page,
    (db, within, range) => pageRefunds(db, within, view, range),
    (db, rows, describe) => presentReviewed(db, scope, rows, describe),
  );
}

/** Some refunds by their ids, of those that the scope contains, in no order. */
export function findRefundsToReview(
  deps: Deps,
  scope: Scope,
  ids: string[],
): Promise<List<ReviewedRefund>> {
  return list(
    deps,
    scope,
    { after: null, limit: ids.length },
    async (db, within) => ({ rows: await listRefundsById(db, within, ids), last: null }),
    (db, rows, describe) => presentReviewed(db, scope, rows, describe),
  );
}

/**
 * A refund with the names of the people who asked for it and approved it first. Acts are recorded
 * under people's addresses. A name without a person, from the command line, stays as it was given.
 */
export function withNames<Refund extends RefundRequest>(
  refund: Refund,
  names: ReadonlyMap<string, string>,
): Refund {
  const { requested_by, first_approved_by } = refund;
  return {
    ...refund,
    requested_by_name: names.get(requested_by ?? '') ?? refund.requested_by_name,
    first_approved_by_name: names.get(first_approved_by ?? '') ?? refund.first_approved_by_name,
  };
}

export const peopleOf = (refunds: RefundRequest[]) =>
  refunds.flatMap(({ requested_by, first_approved_by }) => [requested_by, first_approved_by]);

async function presentReviewed(
  db: Handle,
  scope: Scope,
  rows: RefundRequest[],
  describe: Describe,
): Promise<ReviewedRefund[]> {
  const names = await listPersonNames(db, peopleOf(rows));
  const sources = await listRefundSources(db, scope, rows);
  // The split is shown of requests that wait, so only their disputes matter.
  const waiting = rows.filter(({ status }) => status === 'requested');
  const disputed = Map.groupBy(
    await listDisputedAmounts(db, waiting),
    ({ checkout_id }) => checkout_id,
  );
  const rates = await listRefundRates(db, scope, rows);
  return rows.map((row) => {
    const { checkout, merchant, whose, locale } = describe(row);
    const { instalments, parts, open } = sources.get(row.checkout_id) as RefundSources;
    const isPlanned = row.status === 'requested' && open === null;
    const given = givenBackOf(parts, disputed.get(row.checkout_id) ?? []);
    const purchased_at = checkout.completed_at;
    return {
      ...withNames(row, names),
      ...whose,
      locale,
      checkout_amount: checkout.amount,
      purchased_at,
      days_since_purchase:
        purchased_at === null
          ? null
          : daysBetween(purchased_at, row.created_at, merchant.time_zone),
      needs_second_person: neededSecondPerson(row, merchant),
      is_first_of_two:
        row.status === 'requested' && row.approved_at === null && isFirstOfTwo(row, merchant),
      planned: isPlanned ? planOf(row, instalments, given, merchant.payment_min) : null,
      parts: parts.filter((part) => part.refund_id === row.id),
      waits_for: row.status === 'requested' ? open : null,
      refund_rate: rates.get(row.merchant_id) ?? null,
    };
  });
}

/** The split of a refund; null if no split is possible. One row must not fail the whole page. */
function planOf(
  { amount }: RefundRequest,
  instalments: Instalment[],
  returned: ReadonlyMap<number, number>,
  payment_min: number,
): PlannedPart[] | null {
  try {
    return splitRefund(instalments, returned, amount, payment_min);
  } catch {
    return null;
  }
}

function daysBetween(from: Timestamp, to: Timestamp, timeZone: string): number {
  const date = (at: Timestamp) =>
    Temporal.Instant.from(at).toZonedDateTimeISO(timeZone).toPlainDate();
  return date(from).until(date(to)).days;
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

export type ListedDispute = Dispute & Whose & { locale: string; number_of_payments: number };

/** The newest disputes first. */
export function listDisputes(
  deps: Deps,
  scope: Scope,
  status: DisputeStatus | null,
  page: PageRequest,
): Promise<List<ListedDispute>> {
  return list(
    deps,
    scope,
    page,
    (db, within, range) => pageDisputes(db, within, status, range),
    presentDisputes,
  );
}

export async function findDisputeWithin(
  deps: Deps,
  scope: Scope,
  id: string,
): Promise<ListedDispute | null> {
  const { data } = await list(
    deps,
    scope,
    { after: null, limit: 1 },
    async (db, within) => ({ rows: await listDisputesById(db, within, [id]), last: null }),
    presentDisputes,
  );
  return data[0] ?? null;
}

async function presentDisputes(
  _: Handle,
  rows: Dispute[],
  describe: Describe,
): Promise<ListedDispute[]> {
  return rows.map((row) => {
    const { checkout, whose, locale } = describe(row);
    return { ...row, ...whose, locale, number_of_payments: checkout.number_of_payments ?? 1 };
  });
}

type OfCheckout = { merchant_id: string; checkout_id: string };
type Describe = (row: OfCheckout) => {
  checkout: FoundCheckout;
  merchant: MerchantName;
  whose: Whose;
  locale: string;
};

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
      const merchant = merchants.get(merchant_id) as MerchantName;
      const { locale, time_zone } = merchant;
      const whose = {
        merchant_name: merchant.name,
        time_zone,
        client_reference_id: checkout.client_reference_id,
        email,
        name: [first_name, last_name].filter(Boolean).join(' ') || null,
      };
      return { checkout, merchant, whose, locale };
    };
    return { data: await present(db, rows, describe), next: last && writeCursor(last) };
  });
}

export const writeCursor = (key: Key) => Buffer.from(JSON.stringify(key)).toString('base64url');

export function readCursor(text: string): Key {
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
