import type { FastifyRequest } from 'fastify';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from '#platform/http/errors.ts';
import type { AccessDeps } from '#platform/http/open-access.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { checkoutOfLink } from '#purchases/checkouts/payment-link.ts';
import { isPast } from './last-movement.ts';
import { type Plan, presentPlan } from './plan.ts';
import { readPlan } from './read-plan.ts';
import type { LinkDeps } from './send-link.ts';

export type ShopperDeps = LinkDeps &
  AccessDeps & {
    log: Logger;
    baseUrl: string;
    rateLimits: RateLimits;
  };

export type OpenedPlan = { merchant: Merchant; checkout: Checkout; plan: Plan };

/** Reads the plan behind a payment link, for routes that do not render the page. */
export async function openPlan(deps: ShopperDeps, request: FastifyRequest): Promise<OpenedPlan> {
  const key = checkoutOfLink(deps.sealing, request);
  const opened = key && (await read(deps, key));
  if (!opened) throw notFound('This payment link is not known, or it has no plan.');
  return opened;
}

const read = (deps: ShopperDeps, key: { merchant_id: string; id: string }) =>
  reading(deps, async (db): Promise<OpenedPlan | null> => {
    const checkout = await findCheckout(db, key.merchant_id, key.id);
    const merchant = checkout && (await findMerchant(db, deps.clock, key.merchant_id));
    if (!merchant || checkout.status !== 'successful' || checkout.erased_at !== null) return null;
    const rows = await readPlan(db, { merchant_id: key.merchant_id, checkout_id: key.id });
    if (isPast(checkout, rows, merchant.now())) return null;
    return { merchant, checkout, plan: presentPlan(rows) };
  });
