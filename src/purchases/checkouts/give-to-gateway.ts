import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Handle } from '#platform/database/database.ts';
import { moveGateway } from './checkout.sql.ts';
import type { Checkout } from './checkout.ts';

/**
 * Moves a checkout to another gateway. The caller holds the checkout's lock and has found no
 * attempt to pay it.
 */
export async function giveToGateway(
  db: Handle,
  checkout: Checkout,
  gateway: GatewayName,
): Promise<Checkout> {
  await moveGateway(db, checkout, gateway);
  return { ...checkout, gateway };
}
