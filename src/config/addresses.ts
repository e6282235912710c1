import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import ipaddr from 'ipaddr.js';
import type { Config } from '#config.ts';
import type { OidcSettings } from '#operating/people/oidc.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import {
  type Destinations,
  parseAllowedRanges,
  parseHosts,
} from '#purchases/callbacks/delivery/destination.ts';
import { isEveryAddress, isLocal, type Reader } from './reader.ts';

// Reads where the service listens, the addresses under which it is reached, and the addresses that
// it trusts.

const loopbackRanges = '127.0.0.0/8,::1/128';

type Addresses = Pick<
  Config,
  | 'host'
  | 'port'
  | 'gatewayPort'
  | 'secondGatewayPort'
  | 'shopPort'
  | 'mailboxPort'
  | 'baseUrl'
  | 'metrics'
  | 'console'
  | 'merchantConsole'
  | 'tls'
  | 'trustProxy'
  | 'callbackAllow'
>;

export function readAddresses(reader: Reader): Addresses {
  const port = reader.port('PORT', 3000);
  // By default the other servers use ports close to our own, so that two sandboxes with different
  // values of PORT do not collide.
  const beside = (distance: number) =>
    port === 0 || port + distance > 65_535 ? 0 : port + distance;
  const baseUrl = readBaseUrl(reader, port);
  return {
    host: reader.text('HOST') ?? 'localhost',
    port,
    gatewayPort: reader.port('GATEWAY_PORT', beside(1)),
    secondGatewayPort: reader.port('SECOND_GATEWAY_PORT', beside(5)),
    shopPort: reader.port('SHOP_PORT', beside(2)),
    mailboxPort: reader.port('MAILBOX_PORT', beside(4)),
    baseUrl,
    ...readConsoles(reader, baseUrl, { staff: beside(3), merchants: beside(6) }),
    metrics: readMetrics(reader, beside(9)),
    tls: readTls(reader),
    trustProxy: readTrustProxy(reader),
    callbackAllow: {
      ranges: readCallbackAllow(reader, baseUrl),
      hosts: readCallbackHosts(reader),
    },
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

function readConsoles(
  reader: Reader,
  baseUrl: string,
  ports: { staff: number; merchants: number },
): Pick<Config, 'console' | 'merchantConsole'> {
  const { text, refuseInsecure, isProduction } = reader;
  const port = reader.port('CONSOLE_PORT', ports.staff);
  const url = readConsoleUrl(reader, 'CONSOLE_URL', { baseUrl }) ?? `http://localhost:${port}`;
  const host = text('CONSOLE_HOST') ?? 'localhost';
  if (isEveryAddress(host)) {
    refuseInsecure(
      'console-everywhere',
      'CONSOLE_HOST must name one address in production: the console is not for the public.',
    );
  }
  const allowsSignInLinks = !isProduction && isLoopback(new URL(url).hostname);
  const merchantConsole = readMerchantConsole(reader, { baseUrl, url }, ports.merchants);
  const merchantUrl = merchantConsole?.url ?? null;
  const otherUrl = readOtherUrl(reader, [baseUrl, url, merchantUrl]);
  const own = { host, port, url, merchantUrl, otherUrl, isForMerchants: false };
  return { console: { ...own, allowsSignInLinks, oidc: readOidc(reader) }, merchantConsole };
}

/** A sandbox on this machine has a merchants' console. Elsewhere a setting enables it. */
function readMerchantConsole(
  reader: Reader,
  others: { baseUrl: string; url: string },
  byDefault: number,
): Config['merchantConsole'] {
  const port = reader.port('MERCHANT_CONSOLE_PORT', byDefault);
  const host = reader.text('MERCHANT_CONSOLE_HOST') ?? 'localhost';
  const isOnLoopback = isLoopback(new URL(others.url).hostname);
  const url =
    readConsoleUrl(reader, 'MERCHANT_CONSOLE_URL', others) ??
    (!reader.isProduction && isOnLoopback ? `http://localhost:${port}` : null);
  return url === null ? null : { url, host, port };
}

function readConsoleUrl(
  { text, problem }: Reader,
  name: 'CONSOLE_URL' | 'MERCHANT_CONSOLE_URL',
  /** `url` is the staff's console. It is given only when the merchants' console is read. */
  { baseUrl, url: staffUrl }: { baseUrl: string; url?: string },
): string | null {
  const given = text(name);
  if (given === undefined) return null;
  const url = URL.parse(given);
  const isAt = (other: string) => !!url && url.hostname === new URL(other).hostname;
  if (!isPlainAddress(url)) {
    problem(`${name} must be an http or https address, without a user, query or fragment.`);
  } else if (url.pathname !== '/') {
    problem(`${name} must not have a path: give the console a host name of its own.`);
  } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    problem(`${name} must be https, unless it is on this machine: passkeys need that.`);
  } else if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
    problem(`${name} must have a name, such as localhost: passkeys belong to a name.`);
  } else if (url.origin === baseUrl) {
    problem(`${name} must differ from BASE_URL: shoppers must not share its origin.`);
  } else if (url.origin === staffUrl) {
    problem(`${name} must differ from CONSOLE_URL: merchants must not share its origin.`);
  } else if (!isLoopback(url.hostname) && isAt(baseUrl)) {
    problem(
      `${name} must have a host name that differs from that of BASE_URL: cookies ignore the port.`,
    );
  } else if (!isLoopback(url.hostname) && staffUrl !== undefined && isAt(staffUrl)) {
    problem(
      `${name} must have a host name that differs from that of CONSOLE_URL: cookies and passkeys ignore the port.`,
    );
  } else {
    return url.origin;
  }
  return null;
}

/** The console of the other environment, which people open in their browsers. */
function readOtherUrl({ text, problem }: Reader, ours: readonly (string | null)[]): string | null {
  const given = text('OTHER_CONSOLE_URL');
  if (given === undefined) return null;
  const url = URL.parse(given);
  if (!isPlainAddress(url) || url.pathname !== '/') {
    problem('OTHER_CONSOLE_URL must be an http or https address without a path.');
  } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    problem('OTHER_CONSOLE_URL must be https, unless it is on this machine.');
  } else if (ours.includes(url.origin)) {
    problem('OTHER_CONSOLE_URL is an address of this environment: name that of the other one.');
  } else {
    return url.origin;
  }
  return null;
}

/** The issuer, the client ID and the client secret are given together or not at all. */
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

function readTls({ text, problem }: Reader): Config['tls'] {
  const [cert, key] = [text('TLS_CERTIFICATE'), text('TLS_KEY')];
  if (cert === undefined && key === undefined) return null;
  try {
    createSecureContext({ cert, key });
    if (cert !== undefined && key !== undefined) return { cert, key };
  } catch {
    // The error is not quoted, because it could contain the key.
  }
  problem('TLS_CERTIFICATE and TLS_KEY belong together: a certificate and its key, as PEM.');
  return null;
}

/** The settings with which a production service uses plain http over a network, behind a proxy. */
export function listPlaintextHosts(config: Config): string[] {
  if (config.tls !== null || config.environment !== 'production') return [];
  const hosts = {
    HOST: config.host,
    CONSOLE_HOST: config.console.host,
    MERCHANT_CONSOLE_HOST: config.merchantConsole?.host ?? '',
    METRICS_HOST: config.metrics.host,
  };
  return Object.entries(hosts).flatMap(([name, host]) => (isLocal(host) ? [] : [name]));
}

/** A CDN, a load balancer and the operator's own proxy are three, so five are enough. */
const proxiesMax = 5;

/** `true`, a number of proxies, or a list of addresses and ranges. */
function readTrustProxy({ text, problem, refuseInsecure }: Reader): Config['trustProxy'] {
  const value = text('TRUST_PROXY');
  if (value === undefined || value === 'false') return false;
  if (value === 'true') {
    refuseInsecure(
      'any-proxy',
      'TRUST_PROXY must be the number of proxies or their addresses in production: with true, every caller chooses its own address.',
    );
    return true;
  }
  if (/^\d{1,2}$/.test(value)) {
    if (Number(value) > proxiesMax) {
      refuseInsecure(
        'any-proxy',
        `TRUST_PROXY must be at most ${proxiesMax} in production: with more proxies than there are, every caller chooses its own address.`,
      );
    }
    return Number(value);
  }
  const addresses = value.split(',').map((part) => part.trim());
  for (const address of addresses) {
    if (isIP(address) === 0 && !ipaddr.isValidCIDR(address)) {
      problem(`TRUST_PROXY: "${address}" is not true, a number of proxies, an address or a range.`);
    } else if (isWide(address)) {
      refuseInsecure(
        'any-proxy',
        `TRUST_PROXY: "${address}" must be a narrower range in production: every caller within it chooses its own address.`,
      );
    }
  }
  return addresses;
}

/**
 * Whether a range is wider than any network of proxies. A private network has a prefix of 8 bits,
 * and a provider's IPv6 network one of 20.
 */
function isWide(address: string): boolean {
  if (!ipaddr.isValidCIDR(address)) return false;
  const [network, bits] = ipaddr.parseCIDR(address);
  if (network instanceof ipaddr.IPv4) return bits < 8;
  return bits < (network.isIPv4MappedAddress() ? 96 + 8 : 16);
}

function readCallbackAllow(
  { text, problem, isProduction }: Reader,
  baseUrl: string,
): Destinations['ranges'] {
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

function readCallbackHosts({ text, problem }: Reader): Destinations['hosts'] {
  const given = text('CALLBACK_HOSTS');
  try {
    return given === undefined ? null : parseHosts(given);
  } catch (error) {
    problem(`CALLBACK_HOSTS: ${(error as Error).message} (example: shop.example,*.shops.example).`);
    return [];
  }
}
