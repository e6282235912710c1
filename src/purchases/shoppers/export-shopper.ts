import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { findCheckoutCallback, listCallbackAttempts } from '#purchases/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { type OperatorDeps, operate } from '#record/actions/operate.ts';
import {
  listCheckoutRows,
  listKeptAnswers,
  listMailAnswers,
  listOperatorRows,
  listShopperCheckouts,
} from './shopper-data.sql.ts';

export type ShopperExport = {
  email: string;
  exported_at: Timestamp;
  checkouts: ({ merchant: { id: string; name: string } } & Record<string, unknown>)[];
};

/** Addresses are compared as people write them: in any case, with spaces around them. */
export const readEmail = (text: string) => text.normalize('NFC').trim();

/** Everything that we hold about the shopper with an e-mail address, of every merchant. */
export async function exportShopper(
  deps: { database: Database; clock: Clock },
  address: string,
): Promise<ShopperExport> {
  const email = readEmail(address);
  return await snapshot(deps, async (db) => {
    const checkouts: ShopperExport['checkouts'] = [];
    for (const checkout of await listShopperCheckouts(db, email)) {
      checkouts.push(await exportCheckout(db, checkout));
    }
    return { email, exported_at: timestamp(deps.clock.now()), checkouts };
  });
}

/** The same for an operator. The audit has the checkouts, and does not name the shopper. */
export async function readShopper(
  deps: OperatorDeps,
  operator: string,
  address: string,
): Promise<ShopperExport> {
  const found = await exportShopper(deps, address);
  const ids = found.checkouts.map(({ checkout }) => (checkout as Checkout).id);
  const details = { checkouts: ids.length, first_ids: ids.slice(0, idsMax) };
  await operate(deps, operator, 'shoppers export', async () => ({
    subject_id: null,
    details,
    result: null,
  }));
  return found;
}

/** The audit names so many checkouts of an export. */
const idsMax = 100;

async function exportCheckout(
  db: Handle,
  { sealed_verify: _, ...checkout }: Checkout,
): Promise<ShopperExport['checkouts'][number]> {
  const { merchant_id, id: checkout_id } = checkout;
  const key = { merchant_id, checkout_id };
  const merchant = await findMerchantRow(db, merchant_id);
  const callback = await findCheckoutCallback(db, merchant_id, checkout_id);
  const attempts = callback ? await listCallbackAttempts(db, callback) : [];
  const rows = await listCheckoutRows(db, key);
  const refunds = rows.refund_requests.map(({ id }) => String(id));
  const disputes = rows.disputes.map(({ id }) => String(id));
  const subjects = [checkout_id, ...(callback ? [callback.id] : []), ...refunds, ...disputes];
  const integrations = [
    checkout.integration_id,
    ...rows.refund_requests.map(({ integration_id }) => String(integration_id)),
  ];
  const alerts = await listOperatorRows(db, 'alerts', subjects);
  const acted = [...subjects, ...alerts.map(({ id }) => String(id))];
  return {
    merchant: { id: merchant_id, name: merchant?.name ?? '' },
    checkout,
    ...rows,
    message_attempts: await listMailAnswers(db, key),
    callback: callback && presentCallback(callback),
    callback_attempts: attempts.map(presentAttempt),
    alerts,
    operator_actions: await listOperatorRows(db, 'operator_actions', acted),
    idempotency_keys: await listKeptAnswers(db, integrations, [checkout_id, ...refunds]),
  };
}

function presentCallback({ sealed_verify, lease, leased_until, ...callback }: Callback) {
  return { ...callback, payload: callback.payload.toString('utf8') };
}

function presentAttempt(attempt: CallbackAttempt) {
  return { ...attempt, response_body: attempt.response_body?.toString('utf8') ?? null };
}
