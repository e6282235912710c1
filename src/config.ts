import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ipaddr from 'ipaddr.js';
import { type StripeSettings, stripeProblems } from '#gateway/settings.ts';
import type { Environment } from '#merchants/integrations/integration.ts';
import type { ConsoleSettings } from '#operating/console/settings.ts';
import type { OidcSettings } from '#operating/people/oidc.ts';
import { serversOf } from '#platform/database/servers.ts';
import {
  type CardBrand,
  cardBrands,
  type HostedPageSettings,
} from '#platform/shared/hosted-page.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import type { TraceSettings } from '#platform/tracing/otlp-exporter.ts';
import {
  type AllowedRange,
  parseAllowedRanges,
} from '#purchases/callbacks/delivery/destination.ts';
import { defaultSunset, deprecatedSince } from '#purchases/legacy/deprecation.ts';
import { addressOf, type MailSettings } from '#purchases/messages/sending/smtp-transport.ts';

/** What a process does: answer requests, do due work, or both. */
export const roles = ['web', 'worker', 'all'] as const;
export type Role = (typeof roles)[number];

export type Config = {
  environment: Environment;
  host: string;
  port: number;
  /** Where the test gateway listens when we start it. */
  gatewayPort: number;
  /** Where the demo shop of a sandbox listens. */
  shopPort: number;
  /** Null: the supervisor starts a test gateway beside the service. */
  gateway: StripeSettings | null;
  metrics: { host: string; port: number };
  /** Where shoppers and merchants reach us. Never ends in a slash. */
  baseUrl: string;
  dataDir: string;
  /** Null: the embedded server. */
  databaseUrl: string | null;
  /** The current one first. Empty: a sandbox makes one and keeps it in the data folder. */
  masterKeys: Buffer[];
  rateLimitStore: 'memory' | 'postgres' | 'redis' | null;
  redisUrl: string | null;
  /** The proxies whose X-Forwarded-For is trusted. */
  trustProxy: boolean | number | string[];
  callbackAllow: AllowedRange[];
  /** How long an attempt to deliver a callback is stored. */
  callbackRetentionDays: number;
  /** How long a shopper's data is kept after a checkout's last movement. Null: until it is erased. */
  retentionDays: number | null;
  /** What the operator adds to the pages that shoppers see. */
  page: HostedPageSettings;
  logLevel: string;
  /** How long a request waits for a database that is away, from its arrival. */
  requestDeadlineSeconds: number;
  /** How long a process that stops still serves, so that load balancers notice. */
  drainSeconds: number;
  alertWebhookUrl: string | null;
  /** Where traces go. Null: none are made. */
  traces: TraceSettings | null;
  /** Null: a sandbox keeps messages in its mailbox, and production sends none. */
  mail: MailSettings | null;
  mailFrom: string;
  /** Whether shoppers get messages at all. */
  sendsMessages: boolean;
  /** Where the mailbox page of a sandbox listens. */
  mailboxPort: number;
  /** The operators' console, on an origin of its own. */
  console: ConsoleSettings & { host: string; port: number };
  /** v1 works at least until this date. */
  legacySunset: string;
  /** The name under which the audit records commands. Null: the system's user. */
  operator: string | null;
};

/** Lists everything that is wrong with the settings at once. */
export class BadSettings extends Error {
  readonly problems: string[];

  constructor(problems: string[]) {
    super(`The settings cannot be used:\n${problems.map((one) => `  - ${one}`).join('\n')}`);
    this.problems = problems;
  }
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
const loopbackRanges = '127.0.0.0/8,::1/128';

/**
 * The only reader of environment variables. A command that works on the database needs no gateway,
 * so its settings are not checked there.
 */
export function readConfig(
  env: NodeJS.ProcessEnv,
  purpose: 'service' | 'command' = 'service',
): Config {
  const problems: string[] = [];
  const problem = (text: string) => {
    problems.push(text);
  };
  const text = (name: string) => env[name]?.trim() || undefined;

  const choice = <T extends string>(name: string, choices: readonly T[], byDefault: T): T => {
    const value = text(name) ?? byDefault;
    if (!choices.includes(value as T)) {
      problem(`${name} is "${value}" and must be one of ${choices.join(', ')}.`);
      return byDefault;
    }
    return value as T;
  };
  const port = (name: string, byDefault: number): number => {
    const value = text(name);
    if (value === undefined) return byDefault;
    if (!/^\d+$/.test(value) || Number(value) > 65535) {
      problem(`${name} is "${value}" and must be a port from 0 to 65535.`);
      return byDefault;
    }
    return Number(value);
  };

  const count = (name: string, byDefault: number, { min, max }: { min: number; max: number }) => {
    const value = text(name);
    if (value === undefined) return byDefault;
    if (/^\d{1,5}$/.test(value) && Number(value) >= min && Number(value) <= max) {
      return Number(value);
    }
    problem(`${name} is "${value}" and must be a number from ${min} to ${max}.`);
    return byDefault;
  };

  const environment = choice('TRANCHE_ENV', ['sandbox', 'production'] as const, 'sandbox');
  const isProduction = environment === 'production';
  const host = text('HOST') ?? 'localhost';
  const ownPort = port('PORT', 3000);

  let baseUrl = `http://localhost:${ownPort}`;
  const givenBaseUrl = text('BASE_URL');
  if (givenBaseUrl !== undefined) {
    const url = URL.parse(givenBaseUrl);
    if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
      problem('BASE_URL must be an http or https address, without a user, a query or a fragment.');
    } else if (url.pathname !== '/') {
      problem('BASE_URL must not have a path: give Tranche a host name or a port of its own.');
    } else {
      baseUrl = url.origin;
    }
  }
  const baseIsLoopback = isLoopback(new URL(baseUrl).hostname);
  if (isProduction && baseUrl.startsWith('http:') && !baseIsLoopback) {
    problem('BASE_URL must be https in production.');
  }

  const consolePort = port('CONSOLE_PORT', ownPort === 0 || ownPort > 65_532 ? 0 : ownPort + 3);
  let consoleUrl = `http://localhost:${consolePort}`;
  const givenConsoleUrl = text('CONSOLE_URL');
  if (givenConsoleUrl !== undefined) {
    const url = URL.parse(givenConsoleUrl);
    if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) {
      problem('CONSOLE_URL must be an http or https address, without a user, query or fragment.');
    } else if (url.pathname !== '/') {
      problem('CONSOLE_URL must not have a path: give the console a host name of its own.');
    } else if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
      problem('CONSOLE_URL must be https, unless it is on this machine: passkeys need that.');
    } else if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) {
      problem('CONSOLE_URL must have a name, such as localhost: passkeys belong to a name.');
    } else if (url.origin === baseUrl) {
      problem('CONSOLE_URL must differ from BASE_URL: shoppers must not share its origin.');
    } else {
      consoleUrl = url.origin;
    }
  }

  const accepted = readAccepted(text('ACCEPT_INSECURE'), problem);
  const refuseInsecure = (risk: Risk, sentence: string) => {
    if (!isProduction || accepted.has(risk)) return;
    problem(`${sentence} To accept this, add ${risk} to ACCEPT_INSECURE.`);
  };

  const databaseUrl = text('DATABASE_URL') ?? null;
  const servers = databaseUrl === null ? [] : serversOf(databaseUrl);
  if (servers === null) {
    problem(
      'DATABASE_URL must be an address that begins with postgres:// or postgresql://. It may name several servers: postgres://user@a:5432,b:5432/tranche.',
    );
  } else if (servers.some(isPlaintext)) {
    refuseInsecure(
      'database-plaintext',
      'DATABASE_URL must ask for TLS in production (sslmode=verify-full), unless the server is local.',
    );
  }
  if (isProduction && databaseUrl === null) {
    problem('DATABASE_URL must be set in production: the embedded database is for sandboxes.');
  }

  const masterKeys: Buffer[] = [];
  for (const name of ['MASTER_KEY', 'MASTER_KEY_PREVIOUS']) {
    const value = text(name);
    if (value === undefined) continue;
    const key = readMasterKey(value);
    if (!key || (isProduction && !isRandom(key))) {
      problem(`${name} must be 32 random bytes in Base64 or hex (openssl rand -base64 32).`);
    } else {
      masterKeys.push(key);
    }
  }
  if (text('MASTER_KEY_PREVIOUS') !== undefined && text('MASTER_KEY') === undefined) {
    problem('MASTER_KEY_PREVIOUS is set without MASTER_KEY.');
  }
  if (isProduction && text('MASTER_KEY') === undefined) {
    problem('MASTER_KEY must be set in production (openssl rand -base64 32); keep it safe.');
  }

  const redisUrl = text('REDIS_URL') ?? null;
  if (redisUrl !== null && !isAddress(redisUrl, /^rediss?:\/\//)) {
    problem('REDIS_URL must be an address that begins with redis:// or rediss://.');
  } else if (redisUrl?.startsWith('redis:') && !isLocal(new URL(redisUrl).hostname)) {
    refuseInsecure(
      'redis-plaintext',
      'REDIS_URL must begin with rediss:// in production, unless the server is local.',
    );
  }
  const rateLimitStore = text('RATE_LIMIT_STORE')
    ? choice('RATE_LIMIT_STORE', ['memory', 'postgres', 'redis'] as const, 'postgres')
    : null;
  if (rateLimitStore === 'redis' && redisUrl === null) {
    problem('RATE_LIMIT_STORE is redis, so REDIS_URL must be set.');
  }
  if (rateLimitStore === 'memory' && databaseUrl !== null) {
    problem('RATE_LIMIT_STORE is memory: this needs the embedded database and a single process.');
  }

  const alertWebhookUrl = text('ALERT_WEBHOOK_URL') ?? null;
  if (alertWebhookUrl !== null && !isAddress(alertWebhookUrl, /^https?:\/\//)) {
    problem('ALERT_WEBHOOK_URL must be an http or https address.');
  } else if (alertWebhookUrl?.startsWith('http:') && !isLocal(new URL(alertWebhookUrl).hostname)) {
    refuseInsecure('alerts-plaintext', 'ALERT_WEBHOOK_URL must be https in production.');
  }

  const traces = readTraces(text, problem);
  if (traces?.endpoint.startsWith('http:') && !isLocal(new URL(traces.endpoint).hostname)) {
    refuseInsecure('traces-plaintext', 'OTEL_EXPORTER_OTLP_ENDPOINT must be https in production.');
  }

  const metricsHost = text('METRICS_HOST') ?? '127.0.0.1';
  if (isEveryAddress(metricsHost)) {
    refuseInsecure(
      'metrics-everywhere',
      'METRICS_HOST must name one address in production: the metrics have no authentication.',
    );
  }

  const consoleHost = text('CONSOLE_HOST') ?? 'localhost';
  if (isEveryAddress(consoleHost)) {
    refuseInsecure(
      'console-everywhere',
      'CONSOLE_HOST must name one address in production: the console is not for the public.',
    );
  }
  const oidc = readOidc(text, problem);

  const trustProxy = readTrustProxy(text('TRUST_PROXY'), problem);
  if (trustProxy === true) {
    refuseInsecure(
      'any-proxy',
      "TRUST_PROXY must be the proxies' number or addresses in production: with true, every caller chooses its own address.",
    );
  }

  const mailUrl = text('MAIL_URL') ?? null;
  if (mailUrl !== null && !isAddress(mailUrl, /^smtps?:\/\//)) {
    problem('MAIL_URL must be an address that begins with smtp:// or smtps://.');
  } else if (mailUrl !== null && isRemoteMail(mailUrl) && weakensTls(mailUrl)) {
    refuseInsecure(
      'mail-plaintext',
      'MAIL_URL must not weaken TLS by its query in production, unless the server is local.',
    );
  }
  const acceptsPlainMail = !isProduction || accepted.has('mail-plaintext');
  const mailFrom = text('MAIL_FROM') ?? `Tranche <no-reply@${new URL(baseUrl).hostname}>`;
  if (!/^[^@\s<>]+@[^@\s<>]+$/.test(addressOf(mailFrom)) || /[\r\n]/.test(mailFrom)) {
    problem('MAIL_FROM must be an e-mail address, alone or as "Name <address>".');
  }
  if (isProduction && mailUrl !== null && text('MAIL_FROM') === undefined) {
    problem('MAIL_FROM must be set beside MAIL_URL in production: shoppers see it as the sender.');
  }

  const legacySunset = text('LEGACY_SUNSET') ?? defaultSunset;
  if (!isSunset(legacySunset)) {
    problem('LEGACY_SUNSET must be a date after 1 November 2026, such as 2027-11-01.');
  }

  const gateway = readGateway(environment, text);
  if (gateway && purpose === 'service') problems.push(...stripeProblems(gateway));

  let callbackAllow: AllowedRange[] = [];
  const givenAllow = text('CALLBACK_ALLOW');
  if (isProduction && givenAllow !== undefined) {
    problem('CALLBACK_ALLOW must not be set in production: callbacks go to public addresses only.');
  }
  try {
    const byDefault = !isProduction && baseIsLoopback ? loopbackRanges : '';
    callbackAllow = parseAllowedRanges(givenAllow ?? byDefault);
  } catch (error) {
    problem(`CALLBACK_ALLOW: ${(error as Error).message} (example: ${loopbackRanges}).`);
  }

  const config: Config = {
    environment,
    host,
    port: ownPort,
    gatewayPort: port('GATEWAY_PORT', ownPort === 0 || ownPort === 65_535 ? 0 : ownPort + 1),
    shopPort: port('SHOP_PORT', ownPort === 0 || ownPort > 65_533 ? 0 : ownPort + 2),
    gateway,
    metrics: {
      host: metricsHost,
      // Next to our own port, so that two sandboxes on one machine do not collide.
      port: port('METRICS_PORT', ownPort === 0 || ownPort > 65_526 ? 0 : ownPort + 9),
    },
    baseUrl,
    // The default is in the project's folder, whatever the working directory is.
    dataDir: resolve(text('DATA_DIR') ?? fileURLToPath(new URL('../.tranche', import.meta.url))),
    databaseUrl,
    masterKeys,
    rateLimitStore,
    redisUrl,
    trustProxy,
    callbackAllow,
    retentionDays: text('RETENTION_DAYS')
      ? count('RETENTION_DAYS', 400, { min: 1, max: 36_500 })
      : null,
    callbackRetentionDays: count('CALLBACK_RETENTION_DAYS', 400, { min: 1, max: 36_500 }),
    page: readPage(text, problem),
    logLevel: choice('LOG_LEVEL', logLevels, 'info'),
    requestDeadlineSeconds: count('REQUEST_DEADLINE_SECONDS', 30, { min: 1, max: 55 }),
    drainSeconds: count('DRAIN_SECONDS', isProduction ? 10 : 0, { min: 0, max: 300 }),
    alertWebhookUrl,
    traces,
    mail:
      mailUrl === null
        ? null
        : {
            url: mailUrl,
            from: mailFrom,
            requiresTls: isRemoteMail(mailUrl) && !acceptsPlainMail,
          },
    mailFrom,
    sendsMessages: mailUrl !== null || !isProduction,
    mailboxPort: port('MAILBOX_PORT', ownPort === 0 || ownPort > 65_531 ? 0 : ownPort + 4),
    console: {
      host: consoleHost,
      port: consolePort,
      url: consoleUrl,
      allowsSignInLinks: !isProduction && isLoopback(new URL(consoleUrl).hostname),
      oidc,
    },
    legacySunset,
    operator: text('TRANCHE_OPERATOR') ?? null,
  };
  if (problems.length > 0) throw new BadSettings(problems);
  return config;
}

const isAddress = (text: string, begin: RegExp) => begin.test(text) && URL.canParse(text);

/** What an operator may accept in production by name, in ACCEPT_INSECURE. */
const risks = [
  'alerts-plaintext',
  'any-proxy',
  'console-everywhere',
  'database-plaintext',
  'mail-plaintext',
  'metrics-everywhere',
  'redis-plaintext',
  'traces-plaintext',
] as const;
type Risk = (typeof risks)[number];

function readAccepted(value = '', problem: (text: string) => void): Set<Risk> {
  const names = value.split(',').map((part) => part.trim());
  const unknown = names.filter((name) => name !== '' && !risks.includes(name as Risk));
  for (const name of unknown) {
    problem(`ACCEPT_INSECURE has "${name}" and may have ${risks.join(', ')}.`);
  }
  return new Set(names as Risk[]);
}

/** Whether nothing on the way to this host can be another machine. A path is a local socket. */
const isLocal = (hostname: string) =>
  hostname === '' || hostname.startsWith('/') || isLoopback(hostname);

/** Whether a server on this host listens on all addresses of the machine, however it is spelled. */
function isEveryAddress(host: string): boolean {
  const isBare = host.includes(':') && !host.startsWith('[');
  const { hostname } = URL.parse(`http://${isBare ? `[${host}]` : host}`) ?? {};
  return ['0.0.0.0', '[::]', '[::ffff:0:0]'].includes(hostname ?? '');
}

/** Whether the mail server is another machine. nodemailer reads options from the query as well. */
function isRemoteMail(mailUrl: string): boolean {
  const { hostname, searchParams } = URL.parse(mailUrl) ?? new URL('smtp://localhost');
  return !isLocal(hostname) || ['host', 'service', 'proxy'].some((name) => searchParams.has(name));
}

/** The query overrides `requireTLS`, and can switch off the check of the certificate. */
function weakensTls(mailUrl: string): boolean {
  const names = [
    'ignoreTLS',
    'opportunisticTLS',
    'requireTLS',
    'secured',
    'tls.rejectUnauthorized',
  ];
  return names.some((name) => new URL(mailUrl).searchParams.has(name));
}

/** Without a host the driver takes one from the environment. `?host=` overrides the host. Modes that do not check the certificate count as plaintext. */
function isPlaintext(databaseUrl: string): boolean {
  const { hostname, searchParams } = new URL(databaseUrl);
  const host = decodeURIComponent(searchParams.getAll('host').at(-1) ?? hostname);
  if (host !== '' && isLocal(host)) return false;
  const mode = searchParams.get('sslmode') ?? '';
  const isChecked = mode === 'verify-full' || mode === 'verify-ca' || mode === 'require';
  return !isChecked || searchParams.get('uselibpqcompat') === 'true';
}

/** The standard settings of OpenTelemetry's exporters, as far as we know them. */
function readTraces(
  text: (name: string) => string | undefined,
  problem: (text: string) => void,
): TraceSettings | null {
  const endpoint = text('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (endpoint === undefined) return null;
  if (!isAddress(endpoint, /^https?:\/\//)) {
    problem('OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https address.');
    return null;
  }
  const pairs = (text('OTEL_EXPORTER_OTLP_HEADERS') ?? '').split(',').filter((pair) => pair.trim());
  // Do not repeat the setting: it can hold a password.
  const isPairs = pairs.every((pair) => /^[\w-]+=[\x20-\x7e]+$/.test(pair.trim()));
  if (!isPairs)
    problem('OTEL_EXPORTER_OTLP_HEADERS must be pairs such as name=value, with commas.');
  const ratio = Number(text('OTEL_TRACES_SAMPLER_ARG') ?? '1');
  if (!(ratio >= 0 && ratio <= 1)) problem('OTEL_TRACES_SAMPLER_ARG must be from 0 to 1.');
  return {
    endpoint,
    headers: Object.fromEntries(
      isPairs ? pairs.map((pair) => pair.trim().split(/=(.*)/s).slice(0, 2)) : [],
    ),
    serviceName: text('OTEL_SERVICE_NAME') ?? 'tranche',
    ratio,
  };
}

/** All three settings, or none. */
function readOidc(
  text: (name: string) => string | undefined,
  problem: (text: string) => void,
): OidcSettings | null {
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
  return { issuer, clientId, clientSecret };
}

/** Zeros or a repeated pattern are no key. 32 random bytes have about 30 different values. */
const isRandom = (key: Buffer) => new Set(key).size >= 16;

function readPage(
  text: (name: string) => string | undefined,
  problem: (text: string) => void,
): HostedPageSettings {
  const link = (name: string) => {
    const value = text(name) ?? null;
    if (value !== null && !isAddress(value, /^https:\/\//)) {
      problem(`${name} must be an https address.`);
    }
    return value;
  };
  const contact = text('SUPPORT_CONTACT') ?? null;
  const isContact =
    contact === null ||
    isAddress(contact, /^https:\/\//) ||
    /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(contact) ||
    /^\+?[0-9][0-9 ()-]{5,25}$/.test(contact);
  if (!isContact) {
    problem('SUPPORT_CONTACT must be an e-mail address, a phone number or an https address.');
  }
  const brands = (text('CARD_BRANDS') ?? 'visa,mastercard').split(',').map((name) => name.trim());
  if (!brands.every((brand) => cardBrands.includes(brand as CardBrand))) {
    problem(`CARD_BRANDS must be a list out of ${cardBrands.join(', ')}.`);
  }
  return {
    cardBrands: brands as CardBrand[],
    // `tranche sandbox` runs the mailbox page and fills this in.
    mailboxUrl: null,
    operator: { terms_url: link('TERMS_URL'), privacy_url: link('PRIVACY_URL'), contact },
  };
}

/** A sunset before v1 was deprecated would leave integrators no warning. */
function isSunset(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  try {
    const end = Temporal.PlainDate.from(text).toZonedDateTime('UTC').toInstant();
    return Temporal.Instant.compare(end, deprecatedSince) > 0;
  } catch {
    return false;
  }
}

export function readMasterKey(text: string): Buffer | null {
  const isHex = /^[0-9a-f]{64}$/i.test(text);
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(text);
  return isHex || isBase64 ? Buffer.from(text, isHex ? 'hex' : 'base64') : null;
}

/**
 * Stripe needs its keys. A test gateway that the operator started needs its address as well. Null
 * in a sandbox without either: then the supervisor starts a test gateway.
 */
function readGateway(
  environment: Environment,
  text: (name: string) => string | undefined,
): StripeSettings | null {
  const secretKey = text('STRIPE_SECRET_KEY');
  if (secretKey === undefined && environment === 'sandbox') return null;
  const url = text('TEST_GATEWAY_URL')?.replace(/\/+$/, '');
  const prefix = text('STRIPE_STATEMENT_PREFIX');
  const webhookSecret = text('STRIPE_WEBHOOK_SECRET');
  return {
    environment,
    secretKey: secretKey ?? '',
    publicKey: text('STRIPE_PUBLISHABLE_KEY') ?? '',
    ...(prefix !== undefined && { statementPrefix: prefix }),
    ...(webhookSecret !== undefined && { webhookSecret }),
    ...(url !== undefined && testGatewayAt(url)),
  };
}

export function testGatewayAt(
  url: string,
): Pick<StripeSettings, 'apiUrl' | 'scriptUrl' | 'testGateway'> {
  return { apiUrl: url, scriptUrl: `${url}/v1/tranche.js`, testGateway: true };
}

/** A whole number of days, up to a century. */
/** `true`, a number of proxies, or a list of addresses and ranges. */
function readTrustProxy(
  value: string | undefined,
  problem: (text: string) => void,
): Config['trustProxy'] {
  if (value === undefined || value === 'false') return false;
  if (value === 'true') return true;
  if (/^\d{1,2}$/.test(value)) return Number(value);
  const addresses = value.split(',').map((part) => part.trim());
  for (const address of addresses) {
    if (isIP(address) === 0 && !ipaddr.isValidCIDR(address)) {
      problem(`TRUST_PROXY: "${address}" is not true, a number of proxies, an address or a range.`);
    }
  }
  return addresses;
}
