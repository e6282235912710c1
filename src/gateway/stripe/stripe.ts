import Stripe from 'stripe';
import type { CardEntry, Gateway } from '#gateway/gateway.ts';
import type { GatewaySettings } from '#gateway/settings.ts';
import { openStripeApi } from './api.ts';
import { customerCalls } from './customers.ts';
import { disputeCalls } from './disputes.ts';
import { heartbeatCalls } from './heartbeats.ts';
import { holdCalls } from './holds.ts';
import { paymentCalls } from './payments.ts';
import { recordCalls } from './records.ts';
import { refundCalls } from './refunds.ts';
import { stripeSettings } from './settings.ts';
import { verificationCalls } from './verifications.ts';

/**
 * Implements the gateway port with Stripe, or with the test gateway, which speaks Stripe's
 * protocol.
 */
export function createStripeGateway(settings: GatewaySettings): Gateway {
  const api = openStripeApi(settings);
  return {
    cardEntry: cardEntry(settings),
    capabilities: stripeSettings.capabilities(settings),
    ...customerCalls(api),
    ...paymentCalls(api),
    ...holdCalls(api),
    ...verificationCalls(api),
    ...refundCalls(api),
    ...disputeCalls(api),
    ...recordCalls(api),
    ...heartbeatCalls(api),
  };
}

function cardEntry({ publicKey, scriptUrl }: GatewaySettings): CardEntry {
  const about = { form: 'stripe', entersCard: 'before', publicKey } as const;
  // The script's release must match the API version of the pinned SDK.
  if (scriptUrl === undefined) {
    return {
      ...about,
      scriptUrl: `https://js.stripe.com/${Stripe.API_VERSION.split('.')[1]}/stripe.js`,
      scriptOrigins: ['https://js.stripe.com', 'https://*.js.stripe.com'],
      frameOrigins: [
        'https://js.stripe.com',
        'https://*.js.stripe.com',
        'https://hooks.stripe.com',
      ],
      connectOrigins: ['https://api.stripe.com'],
    };
  }
  const { origin } = new URL(scriptUrl);
  return {
    ...about,
    scriptUrl,
    scriptOrigins: [origin],
    frameOrigins: [origin],
    connectOrigins: [],
  };
}
