import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Random } from '#platform/shared/random.ts';
import { queueCheckoutEvent } from '#purchases/callbacks/queue-events.ts';
import { refundResource } from './refund.schema.ts';
import type { RefundRequest } from './refund.ts';

/** Informs the merchant that a refund has changed, in the transaction that changed it. */
export async function announceRefund(
  deps: { random: Random },
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<void> {
  const { checkout_id } = refund;
  await queueCheckoutEvent(deps, db, 'refunds', {
    merchant,
    checkout_id,
    data: refundResource(refund),
  });
}
