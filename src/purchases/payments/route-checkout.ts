import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { isMoneyStopped, type MoneyProblem } from '#gateway/guard-gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { moveToGateway } from './move-gateway.ts';

type RouteDeps = {
  database: Database;
  clock: Clock;
  log: Logger;
  gateways: Gateways;
  money: MoneyProblem;
};

/**
 * Moves the checkout to the merchant's other gateway when a shopper opens the page while the
 * checkout's own gateway is not answering (decision 0029). A checkout with any attempt stays where
 * it is, because the outcome of the attempt may be unknown. A payment begins under the same lock,
 * so one of the two sees the other. Returns whether the checkout is now at the other gateway, even
 * if another request moved it there.
 */
export async function routeCheckout(
  deps: RouteDeps,
  merchant: Merchant,
  { merchant_id, id, gateway }: Pick<Checkout, 'merchant_id' | 'id' | 'gateway'>,
): Promise<boolean> {
  const standIn = deps.gateways.findStandIn(gateway, merchant);
  if (standIn === null || (await isMoneyStopped(deps.money, standIn))) return false;
  const isMoved = await transaction(deps, async ({ db }) => {
    const locked = await lockCheckout(db, merchant_id, id);
    if (locked?.gateway !== gateway) return locked?.gateway === standIn;
    return (await moveToGateway(db, locked, standIn)) !== null;
  });
  if (isMoved) logMove(deps, id, gateway, standIn);
  return isMoved;
}

const logMove = ({ log }: RouteDeps, checkout_id: string, from: GatewayName, to: GatewayName) =>
  log.warn({ checkout_id, from, to }, 'a checkout was moved to another gateway');
