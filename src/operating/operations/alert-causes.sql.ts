import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { listKnownRefs } from '#purchases/disputes/dispute.sql.ts';
import type { Alert } from '#record/alerts/alert.sql.ts';
import { keysOf, type OfAlert } from './alert-subjects.sql.ts';
import { unique } from './owner.sql.ts';

// The exported functions whose names begin with `list` list the rows whose alerts still apply.

type Keys = ReturnType<typeof keysOf>;

const rowsOf = (
  db: Handle,
  table: 'refund_requests' | 'callbacks' | 'disputes' | 'checkouts',
  { ids, merchants }: Keys,
) =>
  db
    .selectFrom(table as 'refund_requests')
    .select('id')
    .where('id', 'in', ids)
    .where('merchant_id', 'in', merchants);

const rowsOfCheckouts = (
  db: Handle,
  table: 'payment_attempts' | 'instalments' | 'deleted_customers',
  { ids, merchants }: Keys,
) =>
  db
    .selectFrom(table as 'instalments')
    .select('checkout_id as id')
    .where('checkout_id', 'in', ids)
    .where('merchant_id', 'in', merchants);

const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id);

export async function listFailedRefunds(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const refunds = rowsOf(db, 'refund_requests', keysOf(alerts));
  return idsOf(await refunds.where('status', '=', 'failed').execute());
}

export async function listExhaustedCallbacks(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const callbacks = rowsOf(db, 'callbacks', keysOf(alerts));
  return idsOf(await callbacks.where(sql.ref('status'), '=', 'exhausted').execute());
}

export async function listPausingDisputes(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const disputes = rowsOf(db, 'disputes', keysOf(alerts));
  return idsOf(await disputes.where(sql.ref('is_pausing'), '=', true).execute());
}

/** The disputes among these that the gateway is still asked about. All of them have ended. */
export async function listUnbookedDisputes(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const disputes = rowsOf(db, 'disputes', keysOf(alerts));
  return idsOf(await disputes.where('due_at', 'is not', null).execute());
}

/** The gateway was asked and will be asked again. */
const isAskedAgain = sql<boolean>`due_at is not null and attempts > 0`;

const merchantsOf = (alerts: OfAlert[]) =>
  unique(alerts.flatMap((alert) => alert.merchant_id ?? []));

/** Merchants with a receiver that keeps failing, or with an exhausted callback. */
export async function listWithFailingReceiver(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const failing = await db
    .selectFrom('destinations')
    .select('merchant_id')
    .where('merchant_id', 'in', merchantsOf(alerts))
    .where('alerted', '=', true)
    .where('failures', '>', 0)
    .execute();
  const waiting = await Promise.all(
    merchantsOf(alerts).map((merchant_id) =>
      db
        .selectFrom('callbacks')
        .select('merchant_id')
        .where('merchant_id', '=', merchant_id)
        .where('status', '=', 'exhausted')
        .executeTakeFirst(),
    ),
  );
  return [...failing, ...waiting].flatMap((row) => row?.merchant_id ?? []);
}

/** Merchants whose newest bank account is not confirmed. */
export async function listWithProposedAccount(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const rows = await db
    .selectFrom('bank_accounts')
    .distinctOn('merchant_id')
    .select(['merchant_id', 'confirmed_at'])
    .where('merchant_id', 'in', merchantsOf(alerts))
    .orderBy('merchant_id')
    .orderBy('number', 'desc')
    .execute();
  return rows.filter((row) => row.confirmed_at === null).map(({ merchant_id }) => merchant_id);
}

/**
 * The alerts about disputes that are still not recorded. The text of an alert contains the
 * gateway's reference.
 */
export async function listUnrecordedDisputes(
  db: Handle,
  alerts: { id: string; detail: string }[],
): Promise<string[]> {
  const refOf = ({ detail }: { detail: string }) => /dispute (\S+) of/i.exec(detail)?.[1] ?? '';
  const known = await listKnownRefs(db, null, alerts.map(refOf));
  return alerts.filter((alert) => !known.has(refOf(alert))).map(({ id }) => id);
}

/**
 * Checkouts, payouts, statements and people whose last mail was refused. A mail that was sent
 * again, or a later one, shows that the address works.
 */
export async function listWithRefusedMail(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const ids = unique(alerts.flatMap(({ subject_id }) => subject_id ?? []));
  const merchants = merchantsOf(alerts);
  const isRefused = ({ status }: { status: string }) => status === 'refused';
  const people = await db
    .selectFrom('person_mails')
    .distinctOn('person_id')
    .select(['person_id as id', 'status'])
    .where('person_id', 'in', ids)
    .where('status', 'in', ['sent', 'refused'])
    .orderBy('person_id')
    .orderBy('settled_at', 'desc')
    .execute();
  if (merchants.length === 0) return people.filter(isRefused).map(({ id }) => id);
  const shoppers = await db
    .selectFrom('messages')
    .distinctOn('checkout_id')
    .select((of) => [of.ref('checkout_id').$notNull().as('id'), 'status'])
    .where('merchant_id', 'in', merchants)
    .where('checkout_id', 'in', ids)
    .where('status', 'in', ['sent', 'refused'])
    .orderBy('checkout_id')
    .orderBy('settled_at', 'desc')
    .execute();
  const statements = await db
    .selectFrom('statement_mails')
    .select((of) => [of.fn.coalesce('payout_id', 'statement_id').$notNull().as('id'), 'status'])
    .where('merchant_id', 'in', merchants)
    .where((of) => of.or([of('payout_id', 'in', ids), of('statement_id', 'in', ids)]))
    .execute();
  return [...people, ...shoppers, ...statements].filter(isRefused).map(({ id }) => id);
}

/** Merchants with a message that could not be sent yet. */
export async function listWithUnsentMail(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const found = await Promise.all(
    merchantsOf(alerts).map((merchant_id) =>
      db
        .selectFrom('messages')
        .select('merchant_id')
        .where('merchant_id', '=', merchant_id)
        .where('due_at', 'is not', null)
        .where('attempts', '>', 0)
        .executeTakeFirst(),
    ),
  );
  return found.flatMap((row) => row?.merchant_id ?? []);
}

/**
 * Refunds, disputes and checkouts for which the gateway has not answered a request. A checkout that
 * has not been paid also stays listed: the gateway may have refused its payment, and an operator
 * must look at that.
 */
export async function listUnanswered(db: Handle, alerts: OfAlert[]): Promise<string[]> {
  const keys = keysOf(alerts);
  const found = await Promise.all([
    rowsOf(db, 'refund_requests', keys).where(isAskedAgain).execute(),
    rowsOf(db, 'disputes', keys).where(isAskedAgain).execute(),
    rowsOf(db, 'checkouts', keys).where(sql.ref('status'), '<>', 'successful').execute(),
    rowsOfCheckouts(db, 'payment_attempts', keys).where('due_at', 'is not', null).execute(),
    rowsOfCheckouts(db, 'instalments', keys).where(isAskedAgain).execute(),
    rowsOfCheckouts(db, 'deleted_customers', keys).where('due_at', 'is not', null).execute(),
  ]);
  return idsOf(found.flat());
}

export async function isMoneyStopped(db: Handle): Promise<boolean> {
  const row = await db.selectFrom('gateway_heartbeat').select('stopped_at').executeTakeFirst();
  return row?.stopped_at != null;
}

/**
 * The alerts about a late daily comparison with a gateway that has still not finished. Each alert
 * names its gateway. A gateway that is missing from the settings is no longer compared, so its
 * alert stays open.
 */
export async function listLateComparisons(db: Handle, alerts: Alert[]): Promise<string[]> {
  const runs = await db.selectFrom('reconciliation').select(['gateway', 'due_at']).execute();
  const late = alerts.filter(({ detail, at }) => {
    const run = runs.find(({ gateway }) => detail.includes(` the gateway ${gateway} was due at `));
    return run === undefined || run.due_at <= at;
  });
  return late.map(({ id }) => id);
}
