import type { MerchantTime } from '#gateway/gateway.ts';
import type { Payment } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode } from './api.ts';

/**
 * The statuses in which the acquirer may know more than the gateway, for example if a shopper
 * approved a challenge and did not return.
 */
const undecided = ['processing', 'requires_customer_action', 'requires_merchant_action'];

/**
 * Reads a payment. If it is not decided yet, the gateway is told to ask the acquirer, as often as
 * is allowed.
 */
export const retrieve = (api: HyperswitchApi, merchant: MerchantTime, id: string) =>
  read(api, merchant, id).catch(fail);

/** Returns null if the gateway has no payment with this id. */
export const find = (api: HyperswitchApi, merchant: MerchantTime, id: string) =>
  read(api, merchant, id).catch((error) => (isCode(error, codes.missing) ? null : fail(error)));

async function read(api: HyperswitchApi, merchant: MerchantTime, id: string): Promise<Payment> {
  const path = `/payments/${encodeURIComponent(id)}`;
  const stored = await api.call<Payment>('GET', path, { merchant });
  if (!undecided.includes(stored.status) || !api.mayAskAcquirer(id, merchant)) return stored;
  return await api
    .call<Payment>('GET', `${path}?force_sync=true`, { merchant })
    // While another request is changing the payment, the state that was just read counts. `fail`
    // converts every other refusal, so that `find` takes none for a payment that does not exist.
    .catch((error) => (isCode(error, codes.busy) ? stored : fail(error)));
}
