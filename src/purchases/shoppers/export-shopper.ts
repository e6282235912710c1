import { sql } from 'kysely';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { type Pages, readPages } from '#platform/database/read-pages.ts';
import { snapshot } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { PagedArray, writeJson } from '#platform/shared/write-json.ts';
import {
  findCheckoutCallback,
  selectCallbackAttempts,
  selectCheckoutEvents,
} from '#purchases/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { presentAction, selectActions } from '#record/actions/operator-action.sql.ts';
import type { PlanKey } from './plan-access.sql.ts';
import { namesAddress } from './pseudonyms.ts';
import {
  type CheckoutTable,
  checkoutTables,
  findShopperIds,
  listIntegrationIds,
  lockExport,
  selectAlerts,
  selectKeptAnswers,
  selectMailAnswers,
  selectRows,
  selectShopperCheckouts,
  selectShopperLinkMailAnswers,
  selectShopperLinkMails,
  selectShopperLinks,
  selectShopperRequests,
  selectSubjects,
} from './shopper-data.sql.ts';

/**
 * An e-mail address without spaces around it, and in one normal form of Unicode. The statements
 * that compare it ignore case.
 */
export const readEmail = (text: string) => text.normalize('NFC').trim();

/** The audit names at most this many checkouts of an export. */
const idsMax = 100;

const rowsMax = 100;
const subjectsMax = 1_000;

/**
 * The reader may pause for this long, for example in a pager, before the database ends the
 * transaction.
 */
const idleMinutesMax = 10;

/**
 * Writes everything that is stored about the shopper with this e-mail address, at every merchant,
 * as JSON. The data is read in pages from one snapshot and written piece by piece. An operator may
 * run one export at a time. The audit lists its checkouts before the first piece is written, and
 * does not name the shopper.
 */
export async function exportShopper(
  deps: OperatorDeps,
  operator: string,
  address: string,
  write: (piece: string) => Promise<void>,
  indent?: string,
): Promise<void> {
  const email = readEmail(address);
  await snapshot(deps, async (db) => {
    await sql`set local idle_in_transaction_session_timeout = ${sql.lit(`${idleMinutesMax}min`)}`.execute(
      db,
    );
    if (!(await lockExport(db, operator))) {
      throw new OperatorError(
        'You are already exporting a shopper’s data. Try again when that export has ended.',
      );
    }
    const { count: checkouts, first_ids } = await findShopperIds(db, email, idsMax);
    await operate(deps, operator, 'shoppers export', async () => ({
      subject_id: null,
      details: { checkouts, first_ids },
      result: null,
    }));
    const found = readPages(db, 'checkouts', selectShopperCheckouts(db, email), rowsMax);
    const whole = {
      email,
      exported_at: timestamp(deps.clock.now()),
      payment_links: new PagedArray(readRows(db, selectShopperLinks(email))),
      payment_link_messages: new PagedArray(readRows(db, selectShopperLinkMails(email))),
      payment_link_message_attempts: new PagedArray(
        readRows(db, selectShopperLinkMailAnswers(email)),
      ),
      refused_requests: new PagedArray(requestsOf(db, email)),
      checkouts: new PagedArray(presented(found, (one) => exportCheckout(db, one))),
    };
    try {
      for await (const piece of writeJson(whole, indent)) await write(piece);
    } catch (cause) {
      // The reader already has a part of the export, so it is never retried.
      throw new OperatorError('The export was interrupted. Run the command again.', { cause });
    }
  });
}

async function* presented<Row, Shown>(
  pages: Pages<Row>,
  present: (row: Row) => Shown | Promise<Shown>,
): AsyncGenerator<Shown[]> {
  for await (const rows of pages) {
    for (const row of rows) yield [await present(row)];
  }
}

async function* requestsOf(db: Handle, email: string): AsyncGenerator<unknown[]> {
  for await (const rows of readRows(db, selectShopperRequests(email))) {
    yield rows.filter(({ body }) => namesAddress(body, email));
  }
}

/** Exports one checkout with everything about it. Each array is read when it is written. */
async function exportCheckout(db: Handle, { sealed_verify: _, ...checkout }: Checkout) {
  const { merchant_id, id: checkout_id } = checkout;
  const key = { merchant_id, checkout_id };
  const merchant = await findMerchantRow(db, merchant_id);
  const callback = await findCheckoutCallback(db, merchant_id, checkout_id);
  return {
    merchant: { id: merchant_id, name: merchant?.name ?? '' },
    checkout,
    ...rowsOf(db, key),
    message_attempts: new PagedArray(readRows(db, selectMailAnswers(key))),
    callback: callback && presentCallback(callback),
    callback_attempts: callback ? attemptsOf(db, callback) : [],
    events: new PagedArray(
      presented(readPages(db, 'events', selectCheckoutEvents(db, key), rowsMax), (event) => ({
        ...presentCallback(event),
        attempts: attemptsOf(db, event),
      })),
    ),
    alerts: new PagedArray(
      ofSubjects(db, key, (ids) => presented(readRows(db, selectAlerts(ids)), (row) => row)),
    ),
    operator_actions: new PagedArray(ofSubjects(db, key, (ids) => actionsAbout(db, ids))),
    idempotency_keys: new PagedArray(keptAnswers(db, key)),
  };
}

/**
 * The rows of a checkout by table. A page has only one dispute file, which may be megabytes long.
 */
function rowsOf(db: Handle, key: PlanKey): Record<CheckoutTable, PagedArray> {
  const rows = checkoutTables.map((table) => {
    const max = table === 'dispute_files' ? 1 : rowsMax;
    return [table, new PagedArray(readRows(db, selectRows(table, key), max))];
  });
  return Object.fromEntries(rows);
}

async function* readRows<Row>(
  db: Handle,
  query: Parameters<typeof readPages<{ row: Row }>>[2],
  max = rowsMax,
): AsyncGenerator<Row[]> {
  for await (const rows of readPages(db, 'rows', query, max)) yield rows.map(({ row }) => row);
}

/**
 * Reads the rows that name a checkout, its callbacks, its refunds or its disputes. `read` gets a
 * page of their ids.
 */
async function* ofSubjects<Row>(
  db: Handle,
  key: PlanKey,
  read: (ids: string[]) => Pages<Row>,
): AsyncGenerator<Row[]> {
  for await (const subjects of readPages(db, 'subjects', selectSubjects(key), subjectsMax)) {
    yield* read(subjects.map(({ id }) => id));
  }
}

/** The actions of operators on these objects, and on the alerts about them. */
async function* actionsAbout(db: Handle, ids: string[]): AsyncGenerator<unknown[]> {
  const about = (subjects: string[]) =>
    selectActions(db)
      .where(sql<boolean>`subject_id = any(${subjects}::uuid[])`)
      .orderBy('at')
      .orderBy('id');
  yield* presented(readPages(db, 'actions', about(ids), rowsMax), presentAction);
  for await (const alerts of readRows(db, selectAlerts(ids))) {
    const alertIds = alerts.map(({ id }) => id);
    yield* presented(readPages(db, 'actions', about(alertIds), rowsMax), presentAction);
  }
}

async function* keptAnswers(db: Handle, key: PlanKey): AsyncGenerator<unknown[]> {
  const integrations = await listIntegrationIds(db, key);
  yield* ofSubjects(db, key, (ids) => readRows(db, selectKeptAnswers(integrations, ids)));
}

const attemptsOf = (db: Handle, callback: Callback) =>
  new PagedArray(
    presented(
      readPages(db, 'attempts', selectCallbackAttempts(db, callback), rowsMax),
      presentAttempt,
    ),
  );

function presentCallback({ sealed_verify, lease, leased_until, ...callback }: Callback) {
  return { ...callback, payload: callback.payload.toString('utf8') };
}

function presentAttempt(attempt: CallbackAttempt) {
  return { ...attempt, response_body: attempt.response_body?.toString('utf8') ?? null };
}
