import Stripe from 'stripe';
import { type MerchantTime, OutcomeUnknown } from '#gateway/gateway.ts';
import type { GatewaySettings } from '#gateway/settings.ts';
import { traceHeaders } from '#platform/tracing/trace.ts';
import { isOtherRequest, isRepeated, isRepeatedFailure } from './errors.ts';
import { keepClientUserAgent, sendWithoutStack } from './quicker-requests.ts';
import { stripeSettings } from './settings.ts';

export type StripeApi = {
  readonly stripe: Stripe;
  readonly settings: GatewaySettings;
  /**
   * The options of a request. Every POST carries an idempotency key, because the SDK repeats a
   * request once if its connection was closed, even without `maxNetworkRetries`.
   */
  options(merchant: MerchantTime, key?: string): Stripe.RequestOptions;
};

export function openStripeApi(settings: GatewaySettings): StripeApi {
  const problems = stripeSettings.problems(settings);
  if (problems.length > 0) throw new Error(problems.join(' '));
  const api = new URL(settings.apiUrl ?? 'https://api.stripe.com');
  const stripe = new Stripe(settings.secretKey, {
    host: api.hostname.replace(/^\[|\]$/g, ''),
    port: api.port || (api.protocol === 'https:' ? 443 : 80),
    protocol: api.protocol === 'https:' ? 'https' : 'http',
    timeout: settings.timeoutMs ?? 15_000,
    // The caller records the request as unfinished and retries it itself. Retries by the SDK would
    // only delay the caller's.
    maxNetworkRetries: 0,
    telemetry: false,
  });
  keepClientUserAgent(stripe);
  const options: StripeApi['options'] = (merchant, key) => ({
    ...(key !== undefined && { idempotencyKey: key }),
    headers: {
      ...traceHeaders(),
      ...(settings.testGateway && {
        'Tranche-Merchant': merchant.id,
        'Tranche-Merchant-Time': merchant.now,
      }),
    },
  });
  return { stripe, settings, options };
}

/** A request that must take effect only once. */
type Request<T> = {
  key: string;
  merchant: MerchantTime;
  send: (options: Stripe.RequestOptions) => Promise<T>;
  /** Looks for the effect of an earlier request; null if there is none. */
  find: () => Promise<T | null>;
  /** Whether the gateway itself accepts the request only once, whatever its key. */
  isSafe?: boolean;
  /** Whether the cause of a refusal may end by itself. */
  mayPass?: boolean;
};

/**
 * Sends a request under its key. Stripe stores a 500 with the key and repeats it for a day,
 * whatever really happened. A repeated 500 means that the request has ended, so we look up whether
 * it took effect. If not, we send it under the next key. A retry reaches that key by the same
 * steps.
 *
 * A refusal is stored in the same way. If its cause may have ended since, the request is also sent
 * under the next key after a repeated refusal.
 *
 * A key that was used with other parameters does not show what happened to the request that used
 * it, which may be in flight. A safe request is then sent under the next key. Any other is looked
 * up and not sent (decision 0049).
 */
export async function sendOnce<T>(api: StripeApi, request: Request<T>): Promise<T> {
  const { key, merchant, send, find, isSafe = false, mayPass = false } = request;
  for (let round = 1; round <= 10; round += 1) {
    try {
      const options = api.options(merchant, round === 1 ? key : `${key}:${round}`);
      return await sendWithoutStack(() => send(options));
    } catch (error) {
      const isOther = isOtherRequest(error);
      const isOld = mayPass ? isRepeated(error) : isRepeatedFailure(error);
      if (!isOther && !isOld) throw error;
      const found = await find();
      if (found !== null) return found;
      if (isOther && !isSafe) {
        throw new OutcomeUnknown('the key belongs to another request, which was not found');
      }
    }
  }
  throw new OutcomeUnknown('the gateway failed under every key');
}
