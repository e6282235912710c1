import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { giveToGateway } from '#purchases/checkouts/give-to-gateway.ts';
import { listAttempts } from './payment-attempt.sql.ts';

/**
 * Moves a checkout to another gateway, in a transaction that holds the checkout's lock. Returns
 * null if the checkout has ended, or if it has any attempt: then it keeps the gateway that it began
 * with.
 */
export async function moveToGateway(
  db: Handle,
  checkout: Checkout,
  gateway: GatewayName,
): Promise<Checkout | null> {
  const { merchant_id, id: checkout_id, status } = checkout;
  if (status !== 'received') return null;
  const attempts = await listAttempts(db, { merchant_id, checkout_id });
  return attempts.length > 0 ? null : await giveToGateway(db, checkout, gateway);
}
