import type { CardEntry, Gateway } from '#gateway/gateway.ts';
import type { GatewaySettings } from '#gateway/settings.ts';
import { openHyperswitchApi } from './api.ts';
import { customerCalls } from './customers.ts';
import { disputeCalls } from './disputes.ts';
import { holdCalls } from './holds.ts';
import { paymentCalls } from './payments.ts';
import { recordCalls } from './records.ts';
import { refundCalls } from './refunds.ts';
import { hyperswitchSettings } from './settings.ts';
import { verificationCalls } from './verifications.ts';

/**
 * Implements the gateway port with Hyperswitch's protocol, which the second API of the test gateway
 * speaks too.
 */
export function createHyperswitchGateway(settings: GatewaySettings): Gateway {
  const api = openHyperswitchApi(settings);
  return {
    cardEntry: cardEntry(settings),
    capabilities: hyperswitchSettings.capabilities(settings),
    ...customerCalls(api),
    ...paymentCalls(api),
    ...holdCalls(api),
    ...verificationCalls(api),
    ...refundCalls(api),
    ...disputeCalls(api),
    ...recordCalls(api),
  };
}

/** The script, its frames and the API may have different origins. */
function cardEntry(settings: GatewaySettings): CardEntry {
  const { publicKey, scriptUrl = '', apiUrl = '' } = settings;
  const { origin } = new URL(scriptUrl);
  return {
    form: 'hyperswitch',
    entersCard: 'after',
    scriptUrl,
    publicKey,
    apiUrl,
    scriptOrigins: [origin],
    frameOrigins: settings.frameOrigins ?? [origin],
    connectOrigins: [new URL(apiUrl).origin],
  };
}
