import type { MerchantTime } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode } from './api.ts';

/** The acquirer may know more, also if the shopper approved a challenge and did not come back. */
const undecided = ['processing', 'requires_customer_action', 'requires_merchant_action'];

/**
 * Reads a payment. If it is not decided yet, the gateway is told to ask the acquirer, as often as it
 * may.
 */
export async function retrieve(
  api: HyperswitchApi,
  merchant: MerchantTime,
  id: string,
): Promise<Payment> {
  const path = `/payments/${encodeURIComponent(id)}`;
  try {
    const stored = await api.call<Payment>('GET', path, { merchant });
    if (!undecided.includes(stored.status) || !api.mayAskAcquirer(id, merchant)) return stored;
    return await api
      .call<Payment>('GET', `${path}?force_sync=true`, { merchant })
      // The stored state is true as long as another request changes the payment.
      .catch((error) => (isCode(error, codes.busy) ? stored : fail(error)));
  } catch (error) {
    fail(error);
  }
}

/** Null if the gateway has no payment of this id. */
export async function find(
  api: HyperswitchApi,
  merchant: MerchantTime,
  id: string,
): Promise<Payment | null> {
  const path = `/payments/${encodeURIComponent(id)}`;
  try {
    return await api.call<Payment>('GET', path, { merchant });
  } catch (error) {
    return isCode(error, codes.missing) ? null : fail(error);
  }
}
