import { isLoopback } from '#platform/shared/loopback.ts';
import type { GatewayLimits } from './limit-gateway.ts';
import { prefixCharactersMax } from './statement.ts';

/** How to reach Stripe, or the test gateway, which speaks Stripe's protocol. */
export type StripeSettings = {
  environment: 'sandbox' | 'production';
  secretKey: string;
  publicKey: string;
  /** Stripe's own address when absent. */
  apiUrl?: string;
  /** Stripe's own script when absent. */
  scriptUrl?: string;
  /** The gateway is our test gateway, which receives the merchant's time (decision 0017). */
  testGateway?: boolean;
  /** The prefix that the account puts before every statement descriptor. */
  statementPrefix?: string;
  /** The webhook secret: it proves that an event comes from the gateway. */
  webhookSecret?: string;
  timeoutMs?: number;
};

/**
 * Stripe allows 100 requests a second in live mode and 25 in test mode. Several processes share
 * that; if they exceed it, Stripe answers 429 and they pause.
 */
export function limitsFor({ secretKey, testGateway }: StripeSettings): GatewayLimits {
  if (testGateway) return { requestsPerSecond: null };
  return { requestsPerSecond: liveKey.test(secretKey) ? 80 : 20 };
}

/** A shorter secret could be guessed, and events move money. */
const webhookSecretCharactersMin = 16;

const liveKey = /^(sk|rk)_live_/;

/** Null if it is not known. The test gateway has its own. */
export function statementPrefix({ statementPrefix, testGateway }: StripeSettings): string | null {
  return statementPrefix ?? (testGateway ? 'TRANCHE' : null);
}

/** Everything that is wrong with the settings (decision 0029). */
export function stripeProblems(settings: StripeSettings): string[] {
  const problems: string[] = [];
  if (settings.environment === 'sandbox' && liveKey.test(settings.secretKey)) {
    problems.push('The sandbox does not accept a live gateway key.');
  }
  if (settings.environment === 'production') {
    if (!liveKey.test(settings.secretKey)) {
      problems.push('Production needs a live gateway key (sk_live_… or rk_live_…).');
    }
    if (!settings.publicKey.startsWith('pk_live_')) {
      problems.push('Production needs a live public gateway key (pk_live_…).');
    }
    if (settings.testGateway) problems.push('Production does not run on a test gateway.');
  } else if (settings.publicKey.startsWith('pk_live_')) {
    problems.push('The sandbox does not accept a live public gateway key.');
  }
  const secret = settings.webhookSecret;
  if (secret !== undefined && secret.length < webhookSecretCharactersMin) {
    problems.push(
      `STRIPE_WEBHOOK_SECRET must have at least ${webhookSecretCharactersMin} characters: copy the signing secret of the webhook endpoint.`,
    );
  }
  const prefix = settings.statementPrefix;
  if (prefix !== undefined && !(prefix.length >= 2 && prefix.length <= prefixCharactersMax)) {
    problems.push(`The statement prefix must have 2 to ${prefixCharactersMax} characters.`);
  }
  for (const [name, given] of [
    ['address', settings.apiUrl],
    ['script', settings.scriptUrl],
  ] as const) {
    if (given === undefined) continue;
    if (!URL.canParse(given)) {
      problems.push(`The gateway's ${name} is not a URL.`);
      continue;
    }
    const url = new URL(given);
    const safe =
      url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
    if (!safe) problems.push(`The gateway's ${name} must be https (plain http only on loopback).`);
  }
  return problems;
}
