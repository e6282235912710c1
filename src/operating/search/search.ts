import type { Database, Handle } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import { centsIn } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { Scope } from './scope.sql.ts';
import {
  type FoundRow,
  findByAmount,
  findByBeginningOfReference,
  findByEmail,
  findByGatewayReference,
  findByLastFour,
  findByName,
  findByReference,
  findMerchantsByName,
  findOpenByShopper,
  findOperatorsRowById,
  findPayoutsByReference,
  findPeopleByBeginning,
  findRowById,
  findSharedRowById,
  gatewayReferences,
  listFoundCheckouts,
  listRowsByIdPrefix,
  type Name,
  type OperatorsRow,
  rowKinds,
} from './search.sql.ts';

export const hitKinds = [
  'merchant',
  'integration',
  'alert',
  'checkout',
  'refund',
  'callback',
  'dispute',
  'payout',
  'person',
  'bulk_action',
] as const;
export type HitKind = (typeof hitKinds)[number];

/** The field in which the text was found. */
export const hitMatches = [
  'id',
  'order_reference',
  'email',
  'name',
  'last_four',
  'gateway_reference',
  'payout_reference',
  'merchant_name',
  'amount',
  /** The text matches the beginning of an id, an order reference or a person's name. */
  'beginning',
] as const;
type HitMatch = (typeof hitMatches)[number];

/**
 * A row that was found. The members about a checkout are null for a row without one. For a person
 * `name` and `email` are the person's; for a bulk action `name` is its kind.
 */
export type Hit = Awaited<ReturnType<typeof search>>[number];

/** We store no name, e-mail address or reference that is longer. */
const textMax = 320;
const wordsMax = 6;
/** With fewer characters, too many names match to be useful. */
const merchantNameMin = 3;
const merchantsMax = 5;

/**
 * Finds what a support person may paste: an id, an order reference, an e-mail address, a name, the
 * last four digits of a card, a gateway's or a payout's reference, or a merchant's name. A text may
 * be several of these at once. Every search is one look-up or one range in an index. For an id, an
 * order reference, and the name of a merchant or of a person of the console, the beginning is
 * enough; anything else must match completely (decision 0054). Checkouts that have not ended are
 * found by shopper only while they are among the newest, and never by amount.
 */
export async function search(
  deps: { database: Database; clock: Clock },
  scope: Scope,
  text: string,
  limit: number,
) {
  const wanted = text.trim();
  if (wanted === '' || wanted.length > textMax) return [];
  // The searches share a connection. With one each, they would take most of a process's
  // connections, and every connection would have to plan them.
  const read = async (db: Handle) => {
    const found = (await Promise.all(searchesFor(db, scope, wanted, limit))).flat();
    const rows = found.flatMap(({ row }) => ('checkout_id' in row ? [row] : []));
    const checkouts = await listFoundCheckouts(db, scope, rows);
    const seen = new Set<string>();
    const hits = found.flatMap(({ kind, matched, row }) => {
      if (seen.has(`${kind} ${row.id}`)) return [];
      seen.add(`${kind} ${row.id}`);
      const checkout_id = 'checkout_id' in row ? row.checkout_id : null;
      const checkout = checkout_id === null ? undefined : checkouts.get(checkout_id);
      if (checkout_id !== null && !checkout) return [];
      // A refund or a dispute is shown with its order's reference, but not with the order's amount
      // and status.
      const order = kind === 'checkout' ? checkout : undefined;
      const { email = null, first_name, last_name } = checkout?.customer ?? {};
      return {
        kind,
        id: row.id,
        merchant_id: row.merchant_id,
        matched,
        checkout_id: checkout?.id ?? null,
        client_reference_id: checkout?.client_reference_id ?? null,
        email: 'email' in row ? row.email : email,
        name: 'name' in row ? row.name : [first_name, last_name].filter(Boolean).join(' ') || null,
        status: order?.status ?? null,
        amount: order?.amount ?? null,
        currency: order?.currency ?? null,
        created_at: checkout?.created_at ?? (row as SharedRow).created_at,
      };
    });
    return hits.sort(byMatchAndAge).slice(0, limit);
  };
  return await snapshot(deps, read, { isPlannedOnce: true });
}

type Placed = { id: string; matched: HitMatch; created_at: Timestamp };

/** A whole match comes first, so that many longer references cannot displace it. */
function byMatchAndAge(one: Placed, other: Placed): number {
  const isWhole = one.matched !== 'beginning';
  if (isWhole !== (other.matched !== 'beginning')) return isWhole ? -1 : 1;
  return `${one.created_at} ${one.id}` < `${other.created_at} ${other.id}` ? 1 : -1;
}

type SharedRow = { id: string; merchant_id: string | null; created_at: Timestamp } | OperatorsRow;
type Found = { kind: HitKind; matched: HitMatch; row: FoundRow<string | null> | SharedRow };

const as =
  (kind: HitKind, matched: HitMatch) =>
  (rows: (FoundRow<string | null> | SharedRow)[]): Found[] =>
    rows.map((row) => ({ kind, matched, row }));

const one = <T>(row: T | null): T[] => (row === null ? [] : [row]);

const rowTables = Object.keys(rowKinds) as (keyof typeof rowKinds)[];

/** The searches that can have results for this text. */
function searchesFor(db: Handle, scope: Scope, text: string, limit: number): Promise<Found[]>[] {
  // A payment's id consists of its checkout's id and a number.
  const id = text.replace(/:\d{1,4}$/, '').toLowerCase();
  // A shop may use a UUID as its order reference.
  const byReference = findByReference(db, scope, text, limit).then(
    as('checkout', 'order_reference'),
  );
  return isUuid(id)
    ? [...searchesById(db, scope, id), byReference]
    : [
        byReference,
        ...searchesByText(db, scope, text, limit),
        ...searchesByBeginning(db, scope, text, limit),
      ];
}

function searchesById(db: Handle, scope: Scope, id: string): Promise<Found[]>[] {
  const shared = (table: 'merchants' | 'integrations' | 'alerts' | 'payouts') =>
    findSharedRowById(db, scope, table, id).then(one);
  // A payment or an attempt to pay is shown on the page of its checkout.
  const ofCheckout = (table: 'payment_attempts' | 'collections') =>
    findRowById(db, scope, table, id)
      .then((found) => one(found && { ...found, id: found.checkout_id }))
      .then(as('checkout', 'id'));
  const ofOperators = (table: 'people' | 'bulk_actions') =>
    findOperatorsRowById(db, scope, table, id).then(one);
  return [
    ...rowTables.map((table) =>
      findRowById(db, scope, table, id).then(one).then(as(rowKinds[table], 'id')),
    ),
    ofCheckout('payment_attempts'),
    ofCheckout('collections'),
    shared('merchants').then(as('merchant', 'id')),
    shared('integrations').then(as('integration', 'id')),
    shared('alerts').then(as('alert', 'id')),
    shared('payouts').then(as('payout', 'id')),
    ofOperators('people').then(as('person', 'id')),
    ofOperators('bulk_actions').then(as('bulk_action', 'id')),
  ];
}

/** With fewer characters, too many references, ids and names match to be useful. */
const beginningMin = 3;

function searchesByBeginning(
  db: Handle,
  scope: Scope,
  text: string,
  limit: number,
): Promise<Found[]>[] {
  const searches: Promise<Found[]>[] = [];
  if (text.length >= beginningMin) {
    const orders = findByBeginningOfReference(db, scope, text, limit);
    searches.push(orders.then(as('checkout', 'beginning')));
    const people = findPeopleByBeginning(db, scope, text, merchantsMax);
    searches.push(people.then(as('person', 'beginning')));
  }
  const digits = text.toLowerCase().replaceAll('-', '');
  if (/^[0-9a-f]{8,31}$/.test(digits)) {
    searches.push(
      ...rowTables.map((table) =>
        listRowsByIdPrefix(db, scope, table, digits, limit).then(as(rowKinds[table], 'beginning')),
      ),
      listRowsByIdPrefix(db, scope, 'payouts', digits, limit)
        .then((found) => found.map(({ checkout_id: _, ...payout }) => payout))
        .then(as('payout', 'beginning')),
    );
  }
  return searches;
}

function searchesByText(db: Handle, scope: Scope, text: string, limit: number): Promise<Found[]>[] {
  const searches: Promise<Found[]>[] = [];
  const isEmail = text.includes('@');
  const names = namesIn(text);
  if (isEmail) {
    searches.push(findByEmail(db, scope, text, limit).then(as('checkout', 'email')));
  }
  const cents = centsIn(text);
  if (cents !== null) {
    searches.push(findByAmount(db, scope, cents, limit).then(as('checkout', 'amount')));
  }
  if (/^\d{4}$/.test(text)) {
    searches.push(findByLastFour(db, scope, text, limit).then(as('checkout', 'last_four')));
  }
  // A gateway's reference is a prefix, an underscore, and letters and digits.
  if (/^[a-z]+_[A-Za-z0-9_]+$/.test(text)) {
    for (const columns of gatewayReferences) {
      const found = findByGatewayReference(db, scope, columns, text, limit);
      searches.push(found.then(as(columns.kind, 'gateway_reference')));
    }
  }
  if (/^TR\d{8}-\d+$/i.test(text)) {
    const payouts = findPayoutsByReference(db, scope, text.toUpperCase(), limit);
    searches.push(payouts.then(as('payout', 'payout_reference')));
  }
  if (text.length >= merchantNameMin) {
    const merchants = findMerchantsByName(db, scope, text, merchantsMax).then((found) =>
      found.map(({ id, created_at }) => ({ id, merchant_id: id, created_at })),
    );
    searches.push(merchants.then(as('merchant', 'merchant_name')));
  }
  for (const name of names) {
    searches.push(findByName(db, scope, name, limit).then(as('checkout', 'name')));
  }
  if (isEmail || names.length > 0) {
    const shopper = { email: isEmail ? text : null, names };
    const open = findOpenByShopper(db, scope, shopper);
    searches.push(open.then(as('checkout', isEmail ? 'email' : 'name')));
  }
  return searches;
}

/** The ways to read a text as a name: `Dlamini`, `Thandi Dlamini`, `Dlamini, Thandi`. */
export function namesIn(text: string): Name[] {
  const words = text.split(/[\s,]+/).filter((word) => word !== '');
  if (words.length === 0 || words.length > wordsMax) return [];
  if (words.some((word) => /[\d@_]/.test(word))) return [];
  const names: Name[] = [{ last: words.join(' '), first: null }];
  for (let cut = 1; cut < words.length; cut += 1) {
    const [before, after] = [words.slice(0, cut).join(' '), words.slice(cut).join(' ')];
    names.push({ last: after, first: before }, { last: before, first: after });
  }
  return names;
}

const shoppersCheckoutsMax = 1_000;

/** The ids of checkouts of a shopper, by an e-mail address or a name. */
export async function listShoppersCheckouts(
  db: Handle,
  scope: Scope,
  shopper: string,
): Promise<string[]> {
  const isEmail = shopper.includes('@');
  const names = isEmail ? [] : namesIn(shopper);
  const found = await Promise.all([
    ...(isEmail ? [findByEmail(db, scope, shopper, shoppersCheckoutsMax)] : []),
    ...names.map((name) => findByName(db, scope, name, shoppersCheckoutsMax)),
    findOpenByShopper(db, scope, { email: isEmail ? shopper : null, names }),
  ]);
  return [...new Set(found.flat().map(({ id }) => id))];
}
