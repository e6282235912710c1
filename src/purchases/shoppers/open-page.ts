import type { FastifyRequest } from 'fastify';
import { findCardEntry } from '#gateway/gateways.ts';
import { selectMerchant, toMerchantRow } from '#merchants/merchant.sql.ts';
import { type Merchant, onOwnClock } from '#merchants/merchant.ts';
import { compileOnce } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from '#platform/http/errors.ts';
import type { AccessDeps } from '#platform/http/open-access.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import { chooseLanguage, type Language } from '#platform/shared/language.ts';
import { joinCheckout } from '#platform/tracing/trace.ts';
import { selectDelivery } from '#purchases/callbacks/callback.sql.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { selectCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { checkoutOfLink } from '#purchases/checkouts/payment-link.ts';
import { listEntries } from '#purchases/conversations/conversation.sql.ts';
import { type ConversationEntry, entriesShown } from '#purchases/conversations/conversation.ts';
import { selectBlocks } from '#purchases/instalments/gateway-block.sql.ts';
import { selectAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import type { PaymentAttempt } from '#purchases/payments/payment-attempt.ts';
import type { PaymentDeps } from '#purchases/payments/settle-attempt.ts';
import { isPast } from './last-movement.ts';
import type { PayPage } from './pay-page.ts';
import { type Plan, presentPlan } from './plan.ts';
import { findPlanSession, type PlanKey } from './plan-access.sql.ts';
import { presentPage } from './present-page.ts';
import { planOf, planQueries, readPlan } from './read-plan.ts';
import { hashToken } from './send-link.ts';
import { sessionTokenOf } from './session-cookie.ts';

export type PageDeps = PaymentDeps & {
  environment: Environment;
  page: HostedPageSettings;
  rateLimits: RateLimits;
  /** `stopReason` says why money is stopped, or null. It does not ask the gateway. */
  money: AccessDeps['money'] & { stopReason(): Promise<string | null> };
};

/** The rows behind the hosted page. */
export type OpenedPage = {
  merchant: Merchant;
  checkout: Checkout;
  attempts: PaymentAttempt[];
  callback: Pick<Callback, 'status' | 'attempts' | 'created_at' | 'redirect_url'> | null;
  plan: Plan | null;
  session: PayPage['session'];
  /** Null without a session for the whole plan, or if the shopper asked no question. */
  conversation: ConversationEntry[] | null;
  /** Whether no payment can begin: money is stopped, or an unpaid checkout is blocked. */
  paused: boolean;
};

/** An order that was not paid moves only when its own status changes. */
const unpaid = {
  instalments: [],
  refunds: { count: 0, is_open: false, moved_at: null },
  disputes: [],
};

/**
 * Returns null if the link is unknown, or no longer shows its order. With `isLikelyPaid`, the plan
 * is read in the same statement as the checkout.
 */
export async function openPage(
  deps: PageDeps,
  request: FastifyRequest,
  isLikelyPaid = false,
): Promise<OpenedPage | null> {
  const key = checkoutOfLink(deps.sealing, request);
  if (!key) return null;
  joinCheckout(key.id);
  const isStopped = await isPaused(deps);
  const token = await tokenOf(deps, request, key.id);
  return await reading(deps, async (db) => {
    const of = { merchant_id: key.merchant_id, checkout_id: key.id };
    const found = await findPage(deps, db, of, isLikelyPaid);
    if (!found || found.checkout.erased_at !== null) return null;
    const { isBlockedNow, known, ...opened } = found;
    const { merchant, checkout } = opened;
    // The plan must not be older than the attempts. Otherwise the page could show it beside an
    // attempt that has ended since, and stop polling.
    const rows = checkout.status === 'successful' ? (known ?? (await readPlan(db, of))) : null;
    // An order is no longer shown once nothing has moved for a long time.
    if (isPast(checkout, rows ?? unpaid, merchant.now())) return null;
    if (rows === null) {
      const paused = isStopped || isBlockedNow;
      return { ...opened, plan: null, session: null, conversation: null, paused };
    }
    const session = await readSession(db, merchant, checkout, token);
    const entries = session?.scope === 'plan' ? await listEntries(db, of, entriesShown) : [];
    const conversation = entries.length > 0 ? entries : null;
    return { ...opened, plan: presentPlan(rows), session, conversation, paused: isStopped };
  });
}

/** All first payments, which come first and are fewer, and the newest attempts on the plan. */
const attemptsReadMax = 100;

const pageQueries = (db: Handle, { merchant_id, checkout_id }: PlanKey) => ({
  checkouts: selectCheckout(db, merchant_id, checkout_id),
  merchants: selectMerchant(db, merchant_id),
  attempts: selectAttempts(db, { merchant_id, checkout_id }).limit(attemptsReadMax),
  callbacks: selectDelivery(db, merchant_id, checkout_id),
  blocks: selectBlocks(db, { merchant_id, checkout_id }),
});

const selectPage = compileOnce((db, key: PlanKey) => together(pageQueries(db, key)));

const selectPageAndPlan = compileOnce((db, key: PlanKey) =>
  together({ ...pageQueries(db, key), ...planQueries(db, key) }),
);

/** A checkout with all that its page shows, in one statement. */
async function findPage(deps: { clock: Clock }, db: Handle, key: PlanKey, isLikelyPaid: boolean) {
  const [paid] = isLikelyPaid ? await selectPageAndPlan(db, key) : [];
  const [rows] = paid ? [paid] : await selectPage(db, key);
  const [checkout] = asRows(rows?.checkouts ?? []);
  const [merchant] = asRows(rows?.merchants ?? []);
  if (!rows || !checkout || !merchant) return null;
  return {
    checkout,
    merchant: onOwnClock(deps.clock, toMerchantRow(merchant)),
    attempts: asRows(rows.attempts),
    callback: asRows(rows.callbacks)[0] ?? null,
    isBlockedNow: rows.blocks.length > 0,
    known: paid ? planOf(paid) : null,
  };
}

export async function mustOpenPage(
  deps: PageDeps,
  request: FastifyRequest,
  isLikelyPaid = false,
): Promise<OpenedPage> {
  const opened = await openPage(deps, request, isLikelyPaid);
  if (!opened) throw notFound('This payment link is not known.');
  return opened;
}

export const showPage = (deps: PageDeps, opened: OpenedPage, request: FastifyRequest): PayPage =>
  presentPage(deps, opened, languageOf(request, opened.checkout));

/** The language that the shopper chose, or else the browser's. */
export const languageOf = (request: FastifyRequest, checkout: Checkout | null): Language =>
  checkout?.language ?? chooseLanguage(request.headers['accept-language']);

/** The card form of the checkout's gateway; null if the settings lack that gateway. */
export const entryOf = ({ gateways }: PageDeps, { checkout }: Pick<OpenedPage, 'checkout'>) =>
  findCardEntry(gateways, checkout.gateway);

export const keyOf = ({ merchant_id, id }: Checkout) => ({ merchant_id, checkout_id: id });

/** The page only informs the shopper of a stop, so a failure to find out does not fail the page. */
const isPaused = (deps: PageDeps) =>
  deps.money.stopReason().then(
    (reason) => reason !== null,
    () => false,
  );

/**
 * Returns null until sessions are accepted, so that the page is shown as if there were no session
 * (decision 0097).
 */
async function tokenOf(deps: PageDeps, request: FastifyRequest, checkoutId: string) {
  const token = sessionTokenOf(request.headers.cookie, deps.baseUrl, checkoutId);
  return token === null || (await deps.money.accessProblem()) === null ? token : null;
}

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
