import { type StripeSettings, stripeProblems } from '#gateway/settings.ts';
import type { Reader } from './reader.ts';

/**
 * Stripe needs its keys. A test gateway that the operator started needs its address as well. Null
 * in a sandbox without either: then the supervisor starts a test gateway.
 */
export function readGateway(
  { environment, text, problem }: Reader,
  purpose: 'service' | 'command',
): StripeSettings | null {
  const secretKey = text('STRIPE_SECRET_KEY');
  if (secretKey === undefined && environment === 'sandbox') return null;
  const url = text('TEST_GATEWAY_URL')?.replace(/\/+$/, '');
  const prefix = text('STRIPE_STATEMENT_PREFIX');
  const webhookSecret = text('STRIPE_WEBHOOK_SECRET');
  const settings = {
    environment,
    secretKey: secretKey ?? '',
    publicKey: text('STRIPE_PUBLISHABLE_KEY') ?? '',
    ...(prefix !== undefined && { statementPrefix: prefix }),
    ...(webhookSecret !== undefined && { webhookSecret }),
    ...(url !== undefined && testGatewayAt(url)),
  };
  // A command that works on the database needs no gateway.
  if (purpose === 'service') for (const one of stripeProblems(settings)) problem(one);
  return settings;
}

export function testGatewayAt(
  url: string,
): Pick<StripeSettings, 'apiUrl' | 'scriptUrl' | 'testGateway'> {
  return { apiUrl: url, scriptUrl: `${url}/v1/tranche.js`, testGateway: true };
}
