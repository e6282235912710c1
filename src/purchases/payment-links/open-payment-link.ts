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
import { normaliseEmail } from '#purchases/checkouts/checkout.ts';
import type { CreatedCheckout } from '#purchases/checkouts/create-checkout.ts';
import { commitCheckoutIn, newCheckout } from '#purchases/checkouts/create-checkout.ts';
import { expireCheckout } from '#purchases/checkouts/expire-checkout.ts';
import { linkUrls } from '#purchases/checkouts/link-token.ts';
import { listAttempts } from '#purchases/payments/payment-attempt.sql.ts';
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

/**
 * The form of the link's page, as the shopper filled it in. A member that the link itself sets is
 * null.
 */
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
 * shoppers who come at the same time get the same checkout, and the first of them pays it. But the
 * plan of a checkout belongs to the e-mail address that was typed for it. So a shopper with another
 * e-mail address gets a new checkout, and the earlier one expires. If the earlier one is being
 * paid, the shopper has to wait (`busy`). If the link can no longer be opened, returns its status;
 * `expired` also means that there is no such link, and `unavailable` that the merchant does not
 * accept the amount. If a new checkout is needed and `mayMake` is false, returns null.
 */
export async function openPaymentLink(
  deps: OpenDeps,
  merchant: Merchant,
  key: { merchant_id: string; id: string },
  typed: Typed,
  mayMake = true,
): Promise<CreatedCheckout | Exclude<PaymentLinkStatus, 'active'> | 'unavailable' | 'busy' | null> {
  const id = deps.random.uuid();
  return await transaction(deps, async (tx) => {
    const locked = await lockLink(tx.db, key);
    const [link] = locked ? await withCheckouts(tx.db, [locked]) : [];
    if (!link) return 'expired';
    // An earlier run of this transaction was committed.
    if (link.checkout_id === id) return { id, merchant_id: key.merchant_id };
    const status = statusOf(link, merchant.now());
    if (status !== 'active') return status;
    const open = link.reusable ? null : await findOpen(tx.db, merchant, link, typed.email);
    if (typeof open === 'string') return open;
    if (open?.isOwn) return { id: open.id, merchant_id: key.merchant_id };
    if (!mayMake) return null;
    return await makeCheckout(deps, tx, merchant, link, { id, ...typed, replaces: open?.id });
  });
}

/** The clocks of two nodes differ by less than this. */
const marginMinutes = 1;

/**
 * Finds the link's checkout if it can be paid or is being paid, and whether it belongs to the
 * e-mail address that this shopper typed. Locks the checkout, so that no payment begins unnoticed:
 * a payment begins under the same lock, before the checkout's end.
 */
async function findOpen(
  db: Handle,
  merchant: Merchant,
  { merchant_id, checkout_id }: PaymentLink,
  email: string | null,
): Promise<{ id: string; isOwn: boolean } | 'paid' | 'busy' | null> {
  const checkout = checkout_id && (await lockCheckout(db, merchant_id, checkout_id));
  if (!checkout || checkout.status === 'cancelled' || checkout.status === 'invalid_payload') {
    return null;
  }
  // The checkout was paid after the link's status was read.
  if (checkout.status === 'successful') return 'paid';
  const { id, customer } = checkout;
  const isOwn = email === null || normaliseEmail(email) === normaliseEmail(customer.email);
  const end = Temporal.Instant.from(checkout.expires_at).add({ minutes: marginMinutes });
  const isPast = Temporal.Instant.compare(merchant.now(), end) >= 0;
  if (isOwn && !isPast) return { id, isOwn };
  const attempts = await listAttempts(db, { merchant_id, checkout_id: id });
  if (attempts.some(({ due_at }) => due_at !== null)) return isOwn ? { id, isOwn } : 'busy';
  return isPast ? null : { id, isOwn };
}

async function makeCheckout(
  deps: OpenDeps,
  tx: Transaction,
  merchant: Merchant,
  link: ReadLink,
  { id, email, amount: typed, replaces }: Typed & { id: string; replaces: string | undefined },
): Promise<CreatedCheckout | 'unavailable'> {
  const amount = link.amount ?? typed;
  const customer = link.customer ?? (email === null ? null : { email });
  // The merchant's bands may have changed since the link was made.
  if (amount === null || customer === null || !isPayable(merchant, amount)) return 'unavailable';
  if (replaces !== undefined) {
    // On another node, no payment of the replaced checkout may begin either.
    const end = timestamp(merchant.now().subtract({ minutes: marginMinutes }));
    await expireCheckout(tx.db, { merchant_id: merchant.id, id: replaces }, end);
  }
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
