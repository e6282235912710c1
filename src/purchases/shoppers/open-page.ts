import type { FastifyRequest } from 'fastify';
import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import { notFound } from '#platform/http/errors.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import { chooseLanguage, type Language } from '#platform/shared/language.ts';
import { joinCheckout } from '#platform/tracing/trace.ts';
import { findCheckoutCallback } from '#purchases/callbacks/callback.sql.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { checkoutOfLink } from '#purchases/checkouts/payment-link.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import { listAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import type { PaymentAttempt } from '#purchases/payments/payment-attempt.ts';
import type { PaymentDeps } from '#purchases/payments/settle-attempt.ts';
import { isPast } from './last-movement.ts';
import type { PayPage } from './pay-page.ts';
import { type Plan, presentPlan } from './plan.ts';
import { findPlanSession } from './plan-proof.sql.ts';
import { presentPage } from './present-page.ts';
import { readPlan } from './read-plan.ts';
import { hashToken } from './send-link.ts';
import { sessionTokenOf } from './session-cookie.ts';

export type PageDeps = PaymentDeps & {
  environment: Environment;
  page: HostedPageSettings;
  rateLimits: RateLimits;
  /** Why money is stopped, or null. Does not ask the gateway. */
  money: { stopReason(): Promise<string | null> };
};

/** The rows behind the hosted page, of one moment. */
export type OpenedPage = {
  merchant: Merchant;
  checkout: Checkout;
  attempts: PaymentAttempt[];
  callback: Callback | null;
  plan: Plan | null;
  session: PayPage['session'];
  /** Money is stopped: no payment can begin. */
  paused: boolean;
};

/** An order that was not paid moves only by its own status. */
const unpaid = {
  instalments: [],
  refunds: { count: 0, is_open: false, moved_at: null },
  disputes: [],
};

/** Null if the link is unknown, or no longer shows its order. */
export async function openPage(
  deps: PageDeps,
  request: FastifyRequest,
): Promise<OpenedPage | null> {
  const key = checkoutOfLink(deps.sealing, request);
  if (!key) return null;
  joinCheckout(key.id);
  const isStopped = await isPaused(deps);
  // In two snapshots the page could show a finished attempt beside the plan from before it, and
  // stop polling.
  return await snapshot(deps, async (db) => {
    // Statements that do not need each other travel together: every answer wakes this process.
    const of = { merchant_id: key.merchant_id, checkout_id: key.id };
    const [checkout, merchant, attempts, isBlockedNow] = await Promise.all([
      findCheckout(db, key.merchant_id, key.id),
      findMerchant(db, deps.clock, key.merchant_id),
      listAttempts(db, of),
      isBlocked(db, of),
    ]);
    if (!checkout || !merchant || checkout.erased_at !== null) return null;
    const [rows, callback] = await Promise.all([
      checkout.status === 'successful' ? readPlan(db, of) : null,
      checkout.completed_at === null ? null : findCheckoutCallback(db, key.merchant_id, key.id),
    ]);
    // The order is no longer shown once nothing has moved for a long time.
    if (isPast(checkout, rows ?? unpaid, merchant.now())) return null;
    const opened = { merchant, checkout, attempts, callback };
    if (rows === null) {
      return { ...opened, plan: null, session: null, paused: isStopped || isBlockedNow };
    }
    const session = await readSession(
      db,
      merchant,
      checkout,
      sessionTokenOf(request.headers.cookie, deps.baseUrl),
    );
    return { ...opened, plan: presentPlan(rows), session, paused: isStopped };
  });
}

export async function mustOpenPage(deps: PageDeps, request: FastifyRequest): Promise<OpenedPage> {
  const opened = await openPage(deps, request);
  if (!opened) throw notFound('This payment link is not known.');
  return opened;
}

export const showPage = (deps: PageDeps, opened: OpenedPage, request: FastifyRequest): PayPage =>
  presentPage(deps, opened, languageOf(request, opened.checkout));

/** The shopper's choice, or the browser's. */
export const languageOf = (request: FastifyRequest, checkout: Checkout | null): Language =>
  checkout?.language ?? chooseLanguage(request.headers['accept-language']);

export const keyOf = ({ merchant_id, id }: Checkout) => ({ merchant_id, checkout_id: id });

/** Only for the page to say so: a failure to read it does not fail the page. */
const isPaused = (deps: PageDeps) =>
  deps.money.stopReason().then(
    (reason) => reason !== null,
    () => false,
  );

async function readSession(
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  session: string | null,
): Promise<PayPage['session']> {
  if (session === null) return null;
  const now = timestamp(merchant.now());
  return await findPlanSession(db, keyOf(checkout), hashToken(session), now);
}
