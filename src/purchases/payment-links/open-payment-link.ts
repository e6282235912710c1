import type { Gateways } from '#gateway/gateways.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { isPayable, type Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading, type Transaction, transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { beginCheckout } from '#platform/tracing/trace.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { CreatedCheckout } from '#purchases/checkouts/create-checkout.ts';
import { commitCheckoutIn, newCheckout } from '#purchases/checkouts/create-checkout.ts';
import { listAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import { linkUrls } from './link-token.ts';
import { findLink, lockLink, moveLinkCheckout, withCheckouts } from './payment-link.sql.ts';
import {
  type PaymentLink,
  type PaymentLinkStatus,
  type ReadLink,
  referenceOf,
  statusOf,
} from './payment-link.ts';

export type OpenDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  sealing: Sealing;
  baseUrl: string;
  gateways: Pick<Gateways, 'choose'>;
};

/** The form of the link's page, as the shopper filled it in. */
export type Typed = { email: string | null; amount: number | null };

/** Reads a link and its merchant, and changes nothing, because programs follow links too. */
export const readLink = (deps: OpenDeps, key: { merchant_id: string; id: string }) =>
  reading(deps, async (db): Promise<{ link: ReadLink; merchant: Merchant } | null> => {
    const link = await findLink(db, key.merchant_id, key.id);
    const merchant = link && (await findMerchant(db, deps.clock, key.merchant_id));
    return merchant ? { link, merchant } : null;
  });

/**
 * Finds or makes the checkout of a shopper who presses the button on a link's page. A reusable link
 * makes a new checkout each time. Any other link has at most one checkout that can be paid:
 * shoppers who come at the same time get the same checkout, and the first of them pays it. If the
 * link can no longer be opened, returns its status. If a new checkout is needed and `typed` is
 * null, returns null.
 */
export async function openPaymentLink(
  deps: OpenDeps,
  merchant: Merchant,
  key: { merchant_id: string; id: string },
  typed: Typed | null,
): Promise<CreatedCheckout | Exclude<PaymentLinkStatus, 'active'> | 'unavailable' | null> {
  const id = deps.random.uuid();
  return await transaction(deps, async (tx) => {
    const locked = await lockLink(tx.db, key);
    const [link] = locked ? await withCheckouts(tx.db, [locked]) : [];
    if (!link) return 'expired';
    // An earlier run of this transaction was committed.
    if (link.checkout_id === id) return { id, merchant_id: key.merchant_id };
    const status = statusOf(link, merchant.now());
    if (status !== 'active') return status;
    const payable = link.reusable ? null : await findPayable(tx.db, merchant, link);
    if (payable !== null) return { id: payable, merchant_id: key.merchant_id };
    return typed && (await makeCheckout(deps, tx, merchant, link, { id, ...typed }));
  });
}

/** The clocks of two nodes differ by less than this. */
const marginMinutes = 1;

/**
 * Finds the link's checkout if it can be paid or is being paid. Locks it, so that no payment begins
 * unnoticed: a payment begins under the same lock, before the checkout's end.
 */
async function findPayable(
  db: Handle,
  merchant: Merchant,
  { merchant_id, checkout_id }: PaymentLink,
): Promise<string | null> {
  const checkout = checkout_id && (await lockCheckout(db, merchant_id, checkout_id));
  if (!checkout || checkout.status === 'cancelled' || checkout.status === 'invalid_payload') {
    return null;
  }
  const end = Temporal.Instant.from(checkout.expires_at).add({ minutes: marginMinutes });
  if (Temporal.Instant.compare(merchant.now(), end) < 0) return checkout.id;
  const attempts = await listAttempts(db, { merchant_id, checkout_id: checkout.id });
  const isSettled = attempts.every(({ due_at }) => due_at === null);
  return checkout.status === 'received' && isSettled ? null : checkout.id;
}

async function makeCheckout(
  deps: OpenDeps,
  tx: Transaction,
  merchant: Merchant,
  link: ReadLink,
  { id, email, amount: typed }: Typed & { id: string },
): Promise<CreatedCheckout | 'unavailable'> {
  const amount = link.amount ?? typed;
  const customer = link.customer ?? (email === null ? null : { email });
  // The merchant's bands may have changed since the link was made.
  if (amount === null || customer === null || !isPayable(merchant, amount)) return 'unavailable';
  const { url } = linkUrls(deps, link);
  beginCheckout(id);
  const checkout = newCheckout(
    merchant,
    {
      amount,
      currency: link.currency,
      client_reference_id: referenceOf(link, link.checkouts + 1),
      notify_url: link.notify_url,
      success_url: link.success_url,
      cancel_url: link.cancel_url ?? url,
      customer,
    },
    {
      id,
      integration_id: link.integration_id,
      signed: link.signed,
      payment_link_id: link.id,
      sealed_verify: null,
      gateway: deps.gateways.choose(merchant),
    },
  );
  await moveLinkCheckout(tx.db, link, { checkout_id: id, checkouts: link.checkouts + 1 });
  await commitCheckoutIn(tx, checkout, timestamp(merchant.now()));
  return { id, merchant_id: merchant.id };
}
