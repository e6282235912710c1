import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Config } from '#config.ts';
import type { OidcSettings } from '#operating/people/oidc.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import {
  type AllowedRange,
  parseAllowedRanges,
} from '#purchases/callbacks/delivery/destination.ts';
import { isEveryAddress, type Reader } from './reader.ts';

// Where the service listens, under which addresses it is reached, and which addresses it trusts.

const loopbackRanges = '127.0.0.0/8,::1/128';

type Addresses = Pick<
  Config,
  | 'host'
  | 'port'
  | 'gatewayPort'
  | 'shopPort'
  | 'mailboxPort'
  | 'baseUrl'
  | 'metrics'
  | 'console'
  | 'trustProxy'
  | 'callbackAllow'
>;

export function readAddresses(reader: Reader): Addresses {
  const port = reader.port('PORT', 3000);
  // Next to our own port, so that two sandboxes on one machine do not collide.
  const beside = (distance: number) =>
    port === 0 || port + distance > 65_535 ? 0 : port + distance;
  const baseUrl = readBaseUrl(reader, port);
  return {
    host: reader.text('HOST') ?? 'localhost',
    port,
    gatewayPort: reader.port('GATEWAY_PORT', beside(1)),
    shopPort: reader.port('SHOP_PORT', beside(2)),
    mailboxPort: reader.port('MAILBOX_PORT', beside(4)),
    baseUrl,
    console: readConsole(reader, baseUrl, beside(3)),
    metrics: readMetrics(reader, beside(9)),
    trustProxy: readTrustProxy(reader),
    callbackAllow: readCallbackAllow(reader, baseUrl),
  };
}

function readBaseUrl({ text, problem, isProduction }: Reader, port: number): string {
  const byDefault = `http://localhost:${port}`;
  const given = text('BASE_URL');
  if (given === undefined) return byDefault;
  const url = URL.parse(given);
  if (!isPlainAddress(url)) {
    problem('BASE_URL must be an http or https address, without a user, a query or a fragment.');
  } else if (url.pathname !== '/') {
    problem('BASE_URL must not have a path: give Tranche a host name or a port of its own.');
  } else {
    if (isProduction && url.protocol === 'http:' && !isLoopback(url.hostname)) {
      problem('BASE_URL must be https in production.');
    }
    return url.origin;
  }
  return byDefault;
}

function isPlainAddress(url: URL | null): url is URL {
  if (!url || !/^https?:$/.test(url.protocol)) return false;
  return !url.search && !url.hash && !url.username;
}

function readConsole(reader: Reader, baseUrl: string, byDefault: number): Config['console'] {
  const { text, refuseInsecure, isProduction } = reader;
  const port = reader.port('CONSOLE_PORT', byDefault);
  const url = readConsoleUrl(reader, baseUrl) ?? `http://localhost:${port}`;
  const host = text('CONSOLE_HOST') ?? 'localhost';
  if (isEveryAddress(host)) {
    refuseInsecure(
      'console-everywhere',
      'CONSOLE_HOST must name one address in production: the console is not for the public.',
    );
  }
  const allowsSignInLinks = !isProduction && isLoopback(new URL(url).hostname);
  return { host, port, url, allowsSignInLinks, oidc: readOidc(reader) };
}

function readConsoleUrl({ text, problem }: Reader, baseUrl: string): string | null {
  const given = text('CONSOLE_URL');
  if (given === undefined) return null;
  const url = URL.parse(given);
  if (!isPlainAddress(url)) {
    problem('CONSOLE_URL must be an http or https address, without a user, query or fragment.');
  } else if (url.pathname !== '/') {
    problem('CONSOLE_URL must not have a path: give the console a host name of its own.');
  } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    problem('CONSOLE_URL must be https, unless it is on this machine: passkeys need that.');
  } else if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
    problem('CONSOLE_URL must have a name, such as localhost: passkeys belong to a name.');
  } else if (url.origin === baseUrl) {
    problem('CONSOLE_URL must differ from BASE_URL: shoppers must not share its origin.');
  } else if (!isLoopback(url.hostname) && url.hostname === new URL(baseUrl).hostname) {
    problem('CONSOLE_URL must have another host name than BASE_URL: cookies ignore the port.');
  } else {
    return url.origin;
  }
  return null;
}

/** All three settings, or none. */
function readOidc({ text, problem }: Reader): OidcSettings | null {
  const issuer = text('CONSOLE_OIDC_ISSUER');
  const clientId = text('CONSOLE_OIDC_CLIENT_ID');
  const clientSecret = text('CONSOLE_OIDC_CLIENT_SECRET');
  if (issuer === undefined && clientId === undefined && clientSecret === undefined) return null;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) {
    problem(
      'CONSOLE_OIDC_ISSUER, CONSOLE_OIDC_CLIENT_ID and CONSOLE_OIDC_CLIENT_SECRET belong together.',
    );
    return null;
  }
  const url = URL.parse(issuer);
  const isSafe = url && (url.protocol === 'https:' || isLoopback(url.hostname));
  if (!isSafe) problem('CONSOLE_OIDC_ISSUER must be an https address.');
  const list = (name: string) => (text(name) ?? '').split(/[\s,]+/).filter((one) => one !== '');
  const [acr, amr] = [list('CONSOLE_OIDC_ACR'), list('CONSOLE_OIDC_AMR')];
  return { issuer, clientId, clientSecret, acr, amr };
}

function readMetrics(reader: Reader, byDefault: number): Config['metrics'] {
  const host = reader.text('METRICS_HOST') ?? '127.0.0.1';
  if (isEveryAddress(host)) {
    reader.refuseInsecure(
      'metrics-everywhere',
      'METRICS_HOST must name one address in production: the metrics have no authentication.',
    );
  }
  return { host, port: reader.port('METRICS_PORT', byDefault) };
}

/** A CDN, a load balancer and the operator's own proxy make three. */
const proxiesMax = 5;

/** `true`, a number of proxies, or a list of addresses and ranges. */
function readTrustProxy({ text, problem, refuseInsecure }: Reader): Config['trustProxy'] {
  const value = text('TRUST_PROXY');
  if (value === undefined || value === 'false') return false;
  if (value === 'true') {
    refuseInsecure(
      'any-proxy',
      "TRUST_PROXY must be the proxies' number or addresses in production: with true, every caller chooses its own address.",
    );
    return true;
  }
  if (/^\d{1,2}$/.test(value)) {
    if (Number(value) > proxiesMax) {
      refuseInsecure(
        'any-proxy',
        `TRUST_PROXY must be at most ${proxiesMax} proxies in production: with more than there are, every caller chooses its own address.`,
      );
    }
    return Number(value);
  }
  const addresses = value.split(',').map((part) => part.trim());
  for (const address of addresses) {
    if (isIP(address) === 0 && !ipaddr.isValidCIDR(address)) {
      problem(`TRUST_PROXY: "${address}" is not true, a number of proxies, an address or a range.`);
    }
  }
  return addresses;
}

function readCallbackAllow(
  { text, problem, isProduction }: Reader,
  baseUrl: string,
): AllowedRange[] {
  const given = text('CALLBACK_ALLOW');
  if (isProduction && given !== undefined) {
    problem('CALLBACK_ALLOW must not be set in production: callbacks go to public addresses only.');
  }
  const isOnLoopback = !isProduction && isLoopback(new URL(baseUrl).hostname);
  try {
    return parseAllowedRanges(given ?? (isOnLoopback ? loopbackRanges : ''));
  } catch (error) {
    problem(`CALLBACK_ALLOW: ${(error as Error).message} (example: ${loopbackRanges}).`);
    return [];
  }
}
