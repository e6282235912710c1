import { isLoopback } from '#platform/shared/loopback.ts';
import type { Capabilities } from './capabilities.ts';
import type { GatewayName } from './gateway-name.ts';
import type { GatewayLimits } from './limit-gateway.ts';
import { prefixCharactersMax } from './statement.ts';

/** The protocols that the adapters speak. */
export const protocols = ['stripe', 'hyperswitch'] as const;
export type Protocol = (typeof protocols)[number];

/** How to reach a gateway. The adapter for its protocol reads the settings and checks them. */
export type GatewaySettings = {
  protocol: Protocol;
  environment: 'sandbox' | 'production';
  secretKey: string;
  publicKey: string;
  /** The URL of the gateway's API. If absent, the adapter's own default. */
  apiUrl?: string;
  /** The URL of the card form's script. If absent, the adapter's own default. */
  scriptUrl?: string;
  /** The origins of the card form's frames. If absent, the script's own. */
  frameOrigins?: string[];
  /**
   * Whether the gateway is our test gateway, which receives the merchant's time (decision 0017).
   */
  testGateway?: boolean;
  /** The prefix that the account puts before every statement descriptor. */
  statementPrefix?: string;
  /** The webhook secret: it proves that an event comes from the gateway. */
  webhookSecret?: string;
  /** See `Capabilities`. If absent, nothing is held. */
  verificationAmount?: number;
  timeoutMs?: number;
};

/** One of the gateways of a service. */
export type NamedSettings = GatewaySettings & {
  name: GatewayName;
  /**
   * Whether the gateway takes no new checkouts. It still collects and refunds those that it has.
   */
  isClosed?: boolean;
};

/** The part of an adapter that knows its settings, in a file of its own. */
export type AdapterSettings = {
  /** The names of the settings by which an operator configures this gateway. */
  names: {
    secretKey: string;
    publicKey: string;
    statementPrefix: string;
    webhookSecret: string;
    apiUrl?: string;
    scriptUrl?: string;
    frameOrigins?: string;
    verificationAmount?: string;
  };
  /** Everything that is wrong with the settings, besides `commonProblems`. */
  problems(settings: GatewaySettings): string[];
  limits(settings: GatewaySettings): GatewayLimits;
  capabilities(settings: GatewaySettings): Capabilities;
  /** The path of the card form's script at our test gateway. */
  testScript: string;
};

/** A shorter secret could be guessed, and events move money. */
const webhookSecretCharactersMin = 16;

/** Returns null if the prefix is not known. The test gateway has its own prefix. */
export function statementPrefix({ statementPrefix, testGateway }: GatewaySettings): string | null {
  return statementPrefix ?? (testGateway ? 'TRANCHE' : null);
}

/** Everything that is wrong with settings that every adapter has (decision 0029). */
export function commonProblems(
  settings: GatewaySettings,
  { names }: Pick<AdapterSettings, 'names'>,
): string[] {
  const problems: string[] = [];
  const {
    environment,
    webhookSecret: secret,
    statementPrefix: prefix,
    apiUrl,
    scriptUrl,
  } = settings;
  if (environment === 'production' && settings.testGateway) {
    problems.push('Production must not run on a test gateway.');
  }
  if (secret !== undefined && secret.length < webhookSecretCharactersMin) {
    problems.push(
      `${names.webhookSecret} must have at least ${webhookSecretCharactersMin} characters: copy the signing secret of the webhook endpoint.`,
    );
  }
  if (prefix !== undefined && !(prefix.length >= 2 && prefix.length <= prefixCharactersMax)) {
    problems.push(`The statement prefix must have 2 to ${prefixCharactersMax} characters.`);
  }
  problems.push(...addressProblems({ address: apiUrl, script: scriptUrl }));
  for (const frame of settings.frameOrigins ?? []) {
    problems.push(...addressProblems({ frame }));
    if (URL.canParse(frame) && new URL(frame).origin !== frame) {
      problems.push(`${names.frameOrigins} takes origins, without a path.`);
    }
  }
  return problems;
}

/**
 * Everything that is wrong with the addresses of a gateway. An address that is not given is fine.
 */
function addressProblems(addresses: Record<string, string | undefined>): string[] {
  return Object.entries(addresses).flatMap(([name, given]) => {
    if (given === undefined) return [];
    if (!URL.canParse(given)) return [`The gateway's ${name} is not a URL.`];
    const { protocol, hostname } = new URL(given);
    const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
    return isSafe ? [] : [`The gateway's ${name} must be https (plain http only on loopback).`];
  });
}
