import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NamedSettings } from '#gateway/settings.ts';
import type { ConsoleSettings } from '#operating/console/settings.ts';
import { type TlsSettings, tlsAt } from '#platform/http/server-options.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { HostedPageSettings } from '#platform/shared/hosted-page.ts';
import { isPlainLine } from '#platform/shared/plain-text.ts';
import type { SealingCipher } from '#platform/shared/sealing.ts';
import type { TraceSettings } from '#platform/tracing/otlp-exporter.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import { defaultSunset, deprecatedSince } from '#purchases/legacy/deprecation.ts';
import type { MailSettings } from '#purchases/messages/sending/smtp-transport.ts';
import type { Issuer } from '#purchases/payouts/monthly-statement.ts';
import type { PayingAccount } from '#purchases/payouts/pain-001.ts';
import { readAddresses } from './config/addresses.ts';
import { readGateways, readSandboxGateways, type SandboxGateway } from './config/gateway.ts';
import { readMail } from './config/mail.ts';
import { readObserving } from './config/observing.ts';
import { readPage } from './config/page.ts';
import { openReader, type Reader } from './config/reader.ts';
import { readStorage } from './config/storage.ts';

/** The work of a process: it serves requests, does due work, or both. */
export const roles = ['web', 'worker', 'all'] as const;
export type Role = (typeof roles)[number];

export type Config = {
  environment: Environment;
  host: string;
  port: number;
  /** Where the test gateway listens when we start it. */
  gatewayPort: number;
  /** Where the second test gateway listens, if `both` run. */
  secondGatewayPort: number;
  /** Where the demo shop of a sandbox listens. */
  shopPort: number;
  /** The first is the default. Null if the supervisor starts a test gateway with the service. */
  gateways: NamedSettings[] | null;
  /** The test gateways that the supervisor starts if `gateways` is null. */
  sandboxGateways: SandboxGateway[];
  metrics: { host: string; port: number };
  /** Where shoppers and merchants reach us. Never ends in a slash. */
  baseUrl: string;
  dataDir: string;
  /** Null means the embedded server. */
  databaseUrl: string | null;
  /**
   * The master keys, the current one first. Without a key, a sandbox makes one and keeps it in the
   * data folder.
   */
  masterKeys: Buffer[];
  /** The cipher that seals new values. */
  sealingCipher: SealingCipher;
  rateLimitStore: 'memory' | 'postgres' | 'redis' | null;
  redisUrl: string | null;
  /** The certificate and the key with which the service listens. Null for plain http. */
  tls: TlsSettings | null;
  /** The proxies whose X-Forwarded-For is trusted. */
  trustProxy: boolean | number | string[];
  callbackAllow: Destinations;
  /** How long an attempt to deliver a callback is stored. */
  callbackRetentionDays: number;
  /**
   * How long a shopper's data is kept after a checkout's last movement. Null if it is kept for
   * ever.
   */
  retentionDays: number | null;
  /** Refunds above this many cents need two people. Null if one person is enough for any refund. */
  fourEyesAbove: number | null;
  /**
   * How long a person's passkey and access must have been unchanged before the person can be the
   * second approver.
   */
  secondPersonHours: number;
  /**
   * How many whole business days lie between the confirmation of a bank account and a payout to it.
   */
  newAccountBusinessDays: number;
  /** The account that merchants are paid from. Null if it is not set. */
  payingAccount: PayingAccount | null;
  /** The service's name and address on merchants' invoices. */
  issuer: Issuer;
  /** Links and texts that the operator adds to the pages of shoppers. */
  page: HostedPageSettings;
  logLevel: string;
  /** How long after its arrival a request waits for a database that does not answer. */
  requestDeadlineSeconds: number;
  /** How long a stopping process keeps serving, so that load balancers notice. */
  drainSeconds: number;
  alertWebhookUrl: string | null;
  alertWebhookSecret: string | null;
  /** Where and how traces are sent. Null if traces are off. */
  traces: TraceSettings | null;
  /** If it is null, a sandbox keeps messages in its mailbox, and production sends none. */
  mail: MailSettings | null;
  mailFrom: string;
  /** Whether shoppers get messages at all. */
  sendsMessages: boolean;
  /** Where the mailbox page of a sandbox listens. */
  mailboxPort: number;
  /** The operators' console, on its own origin. */
  console: ConsoleSettings & { host: string; port: number };
  /** Where the merchants' own console listens. Null without one. */
  merchantConsole: { url: string; host: string; port: number } | null;
  /** v1 works at least until this date. */
  legacySunset: string;
  /** The name under which the audit records commands; null for the system's user. */
  operator: string | null;
  /** The settings for mails and links that are missing in production. Empty in a sandbox. */
  unset: string[];
};

/** The settings that slices read. */
export const settingsOf = (config: Config) => ({
  environment: config.environment,
  baseUrl: config.baseUrl,
  page: config.page,
  console: config.console,
  sendsMessages: config.sendsMessages,
  trustProxy: config.trustProxy,
  tls: tlsAt(config.tls, config.host),
  requestDeadlineSeconds: config.requestDeadlineSeconds,
  callbackAllow: config.callbackAllow,
  callbackRetentionDays: config.callbackRetentionDays,
  retentionDays: config.retentionDays,
  fourEyesAbove: config.fourEyesAbove,
  secondPersonHours: config.secondPersonHours,
  newAccountBusinessDays: config.newAccountBusinessDays,
  payingAccount: config.payingAccount,
  issuer: config.issuer,
  alertWebhookUrl: config.alertWebhookUrl,
  alertWebhookSecret: config.alertWebhookSecret,
  legacySunset: config.legacySunset,
});

/** Lists everything that is wrong with the settings at once. */
export class BadSettings extends Error {
  readonly problems: string[];

  constructor(problems: string[]) {
    super(`The settings cannot be used:\n${problems.map((one) => `  - ${one}`).join('\n')}`);
    this.problems = problems;
  }
}

/**
 * The only reader of environment variables; `config/` has its parts by topic. A command that only
 * works on the database needs no gateway, so the gateway's settings are not checked for it.
 */
export function readConfig(
  env: NodeJS.ProcessEnv,
  purpose: 'service' | 'command' = 'service',
): Config {
  const reader = openReader(env);
  const { text, count, environment, isProduction } = reader;
  const addresses = readAddresses(reader);
  const gateways = readGateways(reader, purpose);
  const config: Config = {
    environment,
    ...addresses,
    ...readStorage(reader),
    ...readObserving(reader),
    ...readMail(reader, addresses.baseUrl),
    gateways,
    sandboxGateways: gateways === null ? readSandboxGateways(reader) : [],
    page: readPage(reader),
    // The default is in the project's folder, not in the working directory.
    dataDir: resolve(text('DATA_DIR') ?? fileURLToPath(new URL('../.tranche', import.meta.url))),
    retentionDays: text('RETENTION_DAYS')
      ? count('RETENTION_DAYS', 400, { min: 1, max: 36_500 })
      : null,
    fourEyesAbove: readFourEyes(reader),
    newAccountBusinessDays: count('NEW_ACCOUNT_BUSINESS_DAYS', isProduction ? 1 : 0, {
      min: 0,
      max: 10,
    }),
    payingAccount: readPayingAccount(reader),
    issuer: readIssuer(reader),
    secondPersonHours: count('SECOND_PERSON_HOURS', isProduction ? 24 : 0, { min: 0, max: 720 }),
    callbackRetentionDays: count('CALLBACK_RETENTION_DAYS', 400, { min: 1, max: 36_500 }),
    requestDeadlineSeconds: count('REQUEST_DEADLINE_SECONDS', 30, { min: 1, max: 55 }),
    drainSeconds: count('DRAIN_SECONDS', isProduction ? 10 : 0, { min: 0, max: 300 }),
    legacySunset: readLegacySunset(reader),
    operator: text('TRANCHE_OPERATOR') ?? null,
    unset: reader.isProduction
      ? ['BASE_URL', 'CONSOLE_URL', 'MAIL_URL'].filter((name) => text(name) === undefined)
      : [],
  };
  if (reader.problems.length > 0) throw new BadSettings([...reader.problems]);
  return config;
}

/** Ten thousand rand, so that an ordinary refund in a sandbox needs one person. */
const sandboxFourEyesAbove = 1_000_000;

function readFourEyes({ text, problem, isProduction }: Reader): number | null {
  const value = text('FOUR_EYES_ABOVE');
  if (value === undefined && isProduction) {
    problem(
      'FOUR_EYES_ABOVE must be set in production: the amount in cents above which a refund needs two people, or none.',
    );
  } else if (value !== undefined && value !== 'none' && !/^\d{1,13}$/.test(value)) {
    problem(`FOUR_EYES_ABOVE is "${value}" and must be an amount in cents, or none.`);
  }
  return value === 'none' ? null : Number(value ?? sandboxFourEyesAbove);
}

/** Every bank refuses this account, so that a file from a sandbox pays no one. */
const sandboxPayingAccount: PayingAccount = {
  holder: 'Tranche sandbox',
  branch_code: '000000',
  account_number: '0000000000',
};

function readPayingAccount({ text, problem, isProduction }: Reader): PayingAccount | null {
  const [holder = '', branch_code = '', account_number = ''] = [
    text('PAYOUT_FROM_HOLDER'),
    text('PAYOUT_FROM_BRANCH_CODE'),
    text('PAYOUT_FROM_ACCOUNT'),
  ];
  const given = [holder, branch_code, account_number].filter((one) => one !== '').length;
  if (given === 0) return isProduction ? null : sandboxPayingAccount;
  if (given < 3) {
    problem(
      'PAYOUT_FROM_HOLDER, PAYOUT_FROM_BRANCH_CODE and PAYOUT_FROM_ACCOUNT belong together. Set all three.',
    );
  }
  if (holder.length > 100) problem('PAYOUT_FROM_HOLDER must have at most 100 characters.');
  if (!/^[0-9A-Za-z-]{0,20}$/.test(branch_code)) {
    problem('PAYOUT_FROM_BRANCH_CODE must have 1 to 20 letters, digits or hyphens.');
  }
  if (!/^(\d{5,20})?$/.test(account_number)) {
    problem('PAYOUT_FROM_ACCOUNT must have 5 to 20 digits, without spaces.');
  }
  return { holder, branch_code, account_number };
}

/** An invoice without the issuer's VAT number is not a tax invoice. */
function readIssuer({ text, problem, isProduction }: Reader): Issuer {
  const name = text('ISSUER_NAME') ?? null;
  if (isProduction && name === null) {
    problem('ISSUER_NAME must be set in production: your company’s name on merchants’ invoices.');
  }
  const address = text('ISSUER_ADDRESS') ?? null;
  const vat_number = text('ISSUER_VAT_NUMBER') ?? null;
  if (name !== null && (!isPlainLine(name) || name.length > 100)) {
    problem('ISSUER_NAME must be one line of at most 100 characters.');
  }
  if (address !== null && (!isPlainLine(address) || address.length > 300)) {
    problem('ISSUER_ADDRESS must be one line of at most 300 characters.');
  }
  if (vat_number !== null && !/^[A-Z0-9][A-Z0-9 .-]{0,19}$/i.test(vat_number)) {
    problem('ISSUER_VAT_NUMBER must have 1 to 20 letters and digits.');
  }
  return { name, address, vat_number };
}

function readLegacySunset({ text, problem }: Reader): string {
  const sunset = text('LEGACY_SUNSET') ?? defaultSunset;
  if (!isSunset(sunset)) {
    problem('LEGACY_SUNSET must be a date after 1 November 2026, such as 2027-11-01.');
  }
  return sunset;
}

/** If v1 ended before it was deprecated, integrators would get no warning. */
function isSunset(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  try {
    const end = Temporal.PlainDate.from(text).toZonedDateTime('UTC').toInstant();
    return Temporal.Instant.compare(end, deprecatedSince) > 0;
  } catch {
    return false;
  }
}
