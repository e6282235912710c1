import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { RateLimited } from '#platform/http/errors.ts';
import { declineLimits, type RateLimits } from '#platform/http/rate-limits.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { hasAlertSince } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { listAttempts } from './payment-attempt.sql.ts';
import { networkContext, type PaymentAttempt } from './payment-attempt.ts';

// Thieves try out stolen card numbers with small orders. The sign is many declined cards on one
// payment link, from one IP network or at one merchant (decision 0007). We count declines and not
// attempts, so that a shop or a mobile network with many buyers is not limited.

type Deps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  rateLimits: RateLimits;
};

type CountingDeps = Deps & { sealing: Sealing };

/** `declines` is how many cards were declined on the shopper's payment link. */
type Shopper = { merchant: Merchant; network: string; declines: number };

/**
 * How many declined cards a payment link or an IP network may have while the merchant is under
 * attack.
 */
const declinesUnderAttackMax = 3;

/**
 * This many declined cards on one payment link alert the operator. The link itself allows more
 * attempts.
 */
const linkDeclinesAlert = 10;

const alertSeconds = 24 * 3600;

/** Throws a 429 if another card from this shopper is more likely to be a test than a payment. */
export async function refuseCardTesting(deps: Deps, shopper: Shopper): Promise<void> {
  const { merchant, network, declines } = shopper;
  const { ofNetwork, ofMerchant } = await deps.rateLimits.declines(network, merchant.id, 0);
  const isUnderAttack = ofMerchant.count >= declineLimits.ofMerchant.max_requests;
  const isNetworkOver = ofNetwork.count >= declineLimits.ofNetwork.max_requests;
  const suspicious = Math.max(ofNetwork.count, declines);
  if (isNetworkOver) throw limited(declineLimits.ofNetwork.window_seconds, ofNetwork);
  if (isUnderAttack && suspicious >= declinesUnderAttackMax) {
    throw limited(declineLimits.ofMerchant.window_seconds, ofMerchant);
  }
}

/**
 * Counts the card of an attempt that was just recorded as declined, in a request or in the worker:
 * a thief need not come back for the outcome. Never throws, because the outcome is recorded
 * already.
 */
export async function noteDecline(
  deps: CountingDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<void> {
  try {
    await countDecline(deps, merchant, attempt);
  } catch (error) {
    deps.log.error({ err: error, attempt_id: attempt.id }, 'a declined card was not counted');
  }
}

/** Counts a declined card, and alerts the operator if there were too many. */
async function countDecline(
  deps: CountingDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<void> {
  const { sealed_network } = attempt;
  const network = sealed_network && deps.sealing.open(sealed_network, networkContext(attempt));
  const { ofNetwork, ofMerchant } = await deps.rateLimits.declines(network, merchant.id, 1);
  const declines = countDeclines(await listAttempts(deps.database.db, attempt));
  const signs = [
    ofMerchant.count >= declineLimits.ofMerchant.max_requests &&
      `${declineLimits.ofMerchant.max_requests} cards were declined within ten minutes`,
    ofNetwork.count >= declineLimits.ofNetwork.max_requests &&
      `${declineLimits.ofNetwork.max_requests} cards from ${network} were declined within an hour`,
    declines >= linkDeclinesAlert && `${linkDeclinesAlert} cards were declined on one payment link`,
  ].filter((sign) => sign !== false);
  if (signs.length === 0) return;
  const { db } = deps.database;
  const since = timestamp(secondsAfter(deps.clock.now(), -alertSeconds));
  if (await hasAlertSince(db, 'card_testing', merchant.id, since)) return;
  await raiseAlert(deps, db, {
    kind: 'card_testing',
    merchant_id: merchant.id,
    detail: `Someone may be trying out stolen cards at this merchant: ${signs.join('; ')}.`,
  });
}

/** Counts the declined cards of attempts at checkout and on the plan. */
export function countDeclines(attempts: Pick<PaymentAttempt, 'status' | 'payment_ref'>[]): number {
  // If an attempt has no reference, the gateway may not have been asked at all.
  return attempts.filter(({ status, payment_ref }) => status === 'declined' && payment_ref !== null)
    .length;
}

function limited(
  windowSeconds: number,
  { resetsInMilliseconds }: { resetsInMilliseconds: number },
): RateLimited {
  const resetSeconds = Math.max(1, Math.ceil(resetsInMilliseconds / 1000));
  return new RateLimited(windowSeconds, { limit: 0, remaining: 0, resetSeconds });
}
