import type { Integration } from '#merchants/integrations/integration.ts';
import { listMerchantRows } from '#merchants/merchant.sql.ts';
import { type MerchantRow, merchantNow } from '#merchants/merchant.ts';
import { recentDays } from '#operating/search/overview.sql.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { listLines } from '#purchases/payouts/payout.sql.ts';
import type { Payout, PayoutLine, PayoutStatus } from '#purchases/payouts/payout.ts';
import type { Totals } from '#purchases/payouts/statement.ts';
import { listOperatorActions, type OperatorAction } from '#record/actions/operator-action.sql.ts';
import type { Alert, AlertHandling, AlertState } from '#record/alerts/alert.sql.ts';
import {
  BadKey,
  type Key,
  listMerchantNames,
  listRecentSums,
  type MerchantName,
  type Page,
  type PageOf,
  type RecentSums,
} from './lists.sql.ts';
import { BadCursor, type List, type PageRequest, readCursor, writeCursor } from './lists.ts';
import {
  findAlertWithin,
  findIntegrationWithin,
  findPayoutWithin,
  type LegacyState,
  listCredentialsOf,
  listDestinationDays,
  listFailures,
  listLegacyOf,
  listLegacyUsage,
  listLimitsOf,
  listManagedWithin,
  type Order,
  pageActions,
  pageAlerts,
  pageDestinations,
  pageIntegrations,
  pageMerchants,
  pagePayouts,
  sumPayoutLines,
} from './registers.sql.ts';

type Deps = { database: Database; clock: Clock };

export type ListedMerchant = MerchantRow &
  RecentSums & { now: Timestamp; refund_rate: number | null };

/** Merchants with their sums of the last days. */
export function listMerchantsWithin(
  deps: Deps,
  scope: Scope,
  page: PageRequest,
  order?: Order,
): Promise<List<ListedMerchant>> {
  return list(
    deps,
    page,
    (db, range) => pageMerchants(db, scope, range, order),
    async (db, rows) => {
      const ids = rows.map(({ id }) => id);
      const merchants = new Map((await listMerchantRows(db, ids)).map((one) => [one.id, one]));
      const sums = await listRecentSums(db, scope, ids);
      return ids.map((id) => presentMerchant(deps, merchants.get(id) as MerchantRow, sums.get(id)));
    },
  );
}

export async function findMerchantWithin(
  deps: Deps,
  scope: Scope,
  id: string,
): Promise<ListedMerchant | null> {
  if (!isUuid(id)) return null;
  return await reading(deps, async (db) => {
    const names = await listMerchantNames(db, scope, [id]);
    if (names.size === 0) return null;
    const [merchant] = await listMerchantRows(db, [id]);
    const sums = await listRecentSums(db, scope, [id]);
    return presentMerchant(deps, merchant as MerchantRow, sums.get(merchant?.id ?? ''));
  });
}

function presentMerchant(
  { clock }: Deps,
  merchant: MerchantRow,
  sums: RecentSums = { sold: 0, collected: 0, refunded: 0 },
): ListedMerchant {
  return {
    ...merchant,
    ...sums,
    now: timestamp(merchantNow(clock, merchant)),
    refund_rate: sums.sold > 0 ? sums.refunded / sums.sold : null,
  };
}

type Life = { created_at: Timestamp; expires_at: Timestamp | null };

export type ListedIntegration = Integration & {
  merchant_name: string | null;
  managed_merchants: { id: string; name: string }[];
  limits: { endpoint: string; max_requests: number; window_seconds: number }[];
  client_secrets: Life[];
  /** How an intermediary is used is missing or null in a scope: it may be for other merchants. */
  signing_keys: (Life & { id: string; first_used_at?: Timestamp | null })[];
  v1: (Omit<LegacyState, 'integration_id'> & LegacyCounts) | null;
};

type LegacyCounts = { logins: number | null; checkouts: number | null };

/** Integrations with everything about them except their secrets. */
export function listIntegrationsWithin(
  deps: Deps,
  scope: Scope,
  page: PageRequest,
  order?: Order,
): Promise<List<ListedIntegration>> {
  return list(
    deps,
    page,
    (db, range) => pageIntegrations(db, scope, range, order),
    (db, rows) => presentIntegrations(deps, db, scope, rows),
  );
}

/** One integration, or null outside of the scope. */
export async function readIntegrationWithin(
  deps: Deps,
  scope: Scope,
  id: string,
): Promise<ListedIntegration | null> {
  return await reading(deps, async (db) => {
    const found = isUuid(id) ? await findIntegrationWithin(db, scope, id) : null;
    if (!found) return null;
    const [integration] = await presentIntegrations(deps, db, scope, [found]);
    return integration ?? null;
  });
}

async function presentIntegrations(
  deps: Deps,
  db: Handle,
  scope: Scope,
  rows: Integration[],
): Promise<ListedIntegration[]> {
  const ids = rows.map(({ id }) => id);
  const owners = rows.flatMap(({ merchant_id }) => (merchant_id === null ? [] : [merchant_id]));
  const now = deps.clock.now();
  const names = await listMerchantNames(db, scope, owners);
  const managed = await listManagedWithin(db, scope, ids);
  const limits = await listLimitsOf(db, ids);
  const { client_secrets, signing_keys } = await listCredentialsOf(db, ids, timestamp(now));
  const legacy = await listLegacyOf(db, ids);
  const showsUse = (row: Integration) => scope === 'all merchants' || row.merchant_id !== null;
  const shown = rows.filter(showsUse).map(({ id }) => id);
  const usage = await listLegacyUsage(db, shown, dayBefore(now, recentDays));
  return rows.map((row) => {
    const of = <Part extends { integration_id: string }>(parts: Part[]) =>
      parts
        .filter(({ integration_id }) => integration_id === row.id)
        .map(({ integration_id: _, ...part }) => part);
    const [v1] = of(legacy);
    const none = showsUse(row) ? 0 : null;
    const [used = { logins: none, checkouts: none }] = of(usage);
    const keys = of(signing_keys);
    return {
      ...row,
      merchant_name: row.merchant_id === null ? null : (names.get(row.merchant_id)?.name ?? null),
      managed_merchants: of(managed),
      limits: of(limits),
      client_secrets: of(client_secrets),
      signing_keys: showsUse(row) ? keys : keys.map(({ first_used_at: _, ...key }) => key),
      v1: v1 ? { ...v1, ...used } : null,
    };
  });
}

export type ListedAlert = Alert & AlertHandling & { merchant_name: string | null };

export function listAlertsWithin(
  deps: Deps,
  scope: Scope,
  state: AlertState | null,
  page: PageRequest,
  kinds: string[] | null = null,
): Promise<List<ListedAlert>> {
  return list(
    deps,
    page,
    (db, range) => pageAlerts(db, scope, state, range, kinds),
    (db, rows) => presentAlerts(db, scope, rows),
  );
}

export async function readAlertWithin(
  deps: Deps,
  scope: Scope,
  id: string,
): Promise<ListedAlert | null> {
  return await reading(deps, async (db) => {
    const found = await findAlertWithin(db, scope, id);
    const [alert] = found ? await presentAlerts(db, scope, [found]) : [];
    return alert ?? null;
  });
}

async function presentAlerts(
  db: Handle,
  scope: Scope,
  rows: (Alert & AlertHandling)[],
): Promise<ListedAlert[]> {
  const ids = rows.flatMap(({ merchant_id }) => (merchant_id === null ? [] : [merchant_id]));
  const names = await listMerchantNames(db, scope, ids);
  return rows.map((row) => ({
    ...row,
    merchant_name: names.get(row.merchant_id ?? '')?.name ?? null,
  }));
}

export type ListedPayout = Payout & { merchant_name: string; time_zone: string; locale: string };

/** The newest payouts first. */
export function listPayoutsWithin(
  deps: Deps,
  scope: Scope,
  status: PayoutStatus | null,
  page: PageRequest,
): Promise<List<ListedPayout>> {
  return list(
    deps,
    page,
    (db, range) => pagePayouts(db, scope, status, range),
    (db, rows) => presentPayouts(db, scope, rows),
  );
}

export type PayoutDetails = {
  payout: ListedPayout;
  /** The first lines. */
  lines: PayoutLine[];
  totals: Totals;
  /** Operators' actions on it, the oldest first. */
  actions: OperatorAction[];
};

/** One payout with its first lines, or null outside of the scope. */
export async function readPayoutWithin(
  deps: Deps,
  scope: Scope,
  id: string,
  linesMax: number,
): Promise<PayoutDetails | null> {
  return await reading(deps, async (db) => {
    const found = await findPayoutWithin(db, scope, id);
    const [payout] = found ? await presentPayouts(db, scope, [found]) : [];
    if (!payout) return null;
    return {
      payout,
      lines: await listLines(db, payout, { first: 1, last: linesMax }),
      totals: await sumPayoutLines(db, payout),
      actions: await listActionsOn(db, payout.id),
    };
  });
}

async function presentPayouts(db: Handle, scope: Scope, rows: Payout[]): Promise<ListedPayout[]> {
  const ids = rows.map(({ merchant_id }) => merchant_id);
  const names = await listMerchantNames(db, scope, ids);
  return rows.map((row) => {
    const { name, time_zone, locale } = names.get(row.merchant_id) as MerchantName;
    return { ...row, merchant_name: name, time_zone, locale };
  });
}

const actionsMax = 100;

/** Operators' actions on one thing, the oldest first. */
export async function listActionsOn(db: Handle, id: string): Promise<OperatorAction[]> {
  return (await listOperatorActions(db, { subject_ids: [id] }, actionsMax)).reverse();
}

export type ListedAction = OperatorAction & { number?: number | null };

export function listActionsWithin(
  deps: Deps,
  scope: Scope,
  filter: { id?: string; subject_id: string | null; person_id: string | null; operator?: string },
  page: PageRequest,
): Promise<List<ListedAction>> {
  return list(
    deps,
    page,
    (db, range) => pageActions(db, scope, filter, range),
    async (_, rows) => rows,
  );
}

export type ListedDestination = {
  merchant_id: string;
  merchant_name: string;
  host: string;
  attempts: number;
  delivered: number;
  success_rate: number | null;
  p95_ms: number | null;
  last_attempt_at: Timestamp;
  last_error: string | null;
  last_error_at: Timestamp | null;
  failures_in_a_row: number;
};

/** How many days the statistics of a receiver look back. */
const destinationDays = 7;

/** Receivers with how they did in the last days. `bounds` are the ends of the histogram's buckets. */
export function listDestinationsWithin(
  deps: Deps,
  scope: Scope,
  bounds: readonly number[],
  page: PageRequest,
): Promise<List<ListedDestination>> {
  return list(
    deps,
    page,
    (db, range) => pageDestinations(db, scope, range),
    async (db, rows) => {
      const since = dayBefore(deps.clock.now(), destinationDays);
      const days = await listDestinationDays(db, scope, rows, since);
      const failures = await listFailures(db, scope, rows);
      const names = await listMerchantNames(
        db,
        scope,
        rows.map(({ merchant_id }) => merchant_id),
      );
      return rows.map((row) => {
        const isSame = (one: { merchant_id: string; host: string }) =>
          one.merchant_id === row.merchant_id && one.host === row.host;
        const own = days.filter(isSame);
        const attempts = own.reduce((sum, day) => sum + day.attempts, 0);
        const delivered = own.reduce((sum, day) => sum + day.delivered, 0);
        return {
          ...row,
          merchant_name: names.get(row.merchant_id)?.name ?? '',
          attempts,
          delivered,
          success_rate: attempts === 0 ? null : delivered / attempts,
          p95_ms: percentile(
            own.map(({ buckets }) => buckets),
            bounds,
            0.95,
          ),
          failures_in_a_row: failures.find(isSame)?.failures ?? 0,
        };
      });
    },
  );
}

/** The end of the bucket that contains the part's answer; null without answers. */
function percentile(
  histograms: number[][],
  bounds: readonly number[],
  part: number,
): number | null {
  const sums = bounds.map((_, index) =>
    histograms.reduce((sum, buckets) => sum + (buckets[index] ?? 0), 0),
  );
  const wanted = sums.reduce((sum, count) => sum + count, 0) * part;
  if (wanted === 0) return null;
  let passed = 0;
  for (const [index, count] of sums.entries()) {
    passed += count;
    if (passed >= wanted) return bounds[index] ?? null;
  }
  return bounds.at(-1) ?? null;
}

/** A day in UTC, so many days before an instant. */
function dayBefore(now: Temporal.Instant, days: number): string {
  return now.toZonedDateTimeISO('UTC').toPlainDate().subtract({ days }).toString();
}

async function list<Row, Listed>(
  deps: Deps,
  page: PageRequest,
  read: (db: Handle, page: PageOf) => Promise<Page<Row>>,
  present: (db: Handle, rows: Row[]) => Promise<Listed[]>,
): Promise<List<Listed>> {
  const after: Key | null = page.after === null ? null : readCursor(page.after);
  return await reading(deps, async (db) => {
    const { rows, last } = await read(db, { after, limit: page.limit }).catch((error) => {
      // A cursor of another list may hold a value that is not of the column's type (class 22).
      if (error instanceof BadKey || (after && error.code?.startsWith('22'))) throw new BadCursor();
      throw error;
    });
    return { data: await present(db, rows), next: last && writeCursor(last) };
  });
}
