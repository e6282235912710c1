import { readFileSync } from 'node:fs';
import { secretNames } from '#gateway/adapters/read-settings.ts';
import type { Environment } from '#platform/shared/environment.ts';
import { isLoopback } from '#platform/shared/loopback.ts';

// Reads settings one by one and collects their problems, so that an operator sees all of them at
// once.

/** The risks that an operator may accept in production, by their names in ACCEPT_INSECURE. */
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

export type Reader = {
  readonly environment: Environment;
  readonly isProduction: boolean;
  /** Everything that is wrong so far. Only `problem` and `refuseInsecure` add to it. */
  readonly problems: readonly string[];
  problem(text: string): void;
  /** A problem in production, unless the operator accepts the risk. */
  refuseInsecure(risk: Risk, sentence: string): void;
  accepts(risk: Risk): boolean;
  /** Undefined if the setting is missing or blank. */
  text(name: string): string | undefined;
  choice<T extends string>(name: string, choices: readonly T[], byDefault: T): T;
  port(name: string, byDefault: number): number;
  count(name: string, byDefault: number, limits: { min: number; max: number }): number;
};

export function openReader(env: NodeJS.ProcessEnv): Reader {
  const problems: string[] = [];
  const problem = (text: string) => {
    problems.push(text);
  };
  const text = textReader(env, problem);
  const values = valueReaders(text, problem);
  const environment = values.choice('TRANCHE_ENV', ['sandbox', 'production'] as const, 'sandbox');
  const isProduction = environment === 'production';
  if (isProduction && text('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    problem('NODE_TLS_REJECT_UNAUTHORIZED must not be 0 in production: no certificate is checked.');
  }
  const accepted = readAccepted(text('ACCEPT_INSECURE'), problem);
  const accepts = (risk: Risk) => !isProduction || accepted.has(risk);
  return {
    environment,
    isProduction,
    problems,
    problem,
    refuseInsecure(risk, sentence) {
      if (!accepts(risk)) problem(`${sentence} To accept this, add ${risk} to ACCEPT_INSECURE.`);
    },
    accepts,
    text,
    ...values,
  };
}

function valueReaders(
  text: Reader['text'],
  problem: Reader['problem'],
): Pick<Reader, 'choice' | 'port' | 'count'> {
  return {
    choice<T extends string>(name: string, choices: readonly T[], byDefault: T): T {
      const value = text(name) ?? byDefault;
      if (choices.includes(value as T)) return value as T;
      problem(`${name} is "${value}" and must be one of ${choices.join(', ')}.`);
      return byDefault;
    },

    port(name, byDefault) {
      const value = text(name);
      if (value === undefined) return byDefault;
      if (/^\d+$/.test(value) && Number(value) <= 65_535) return Number(value);
      problem(`${name} is "${value}" and must be a port from 0 to 65535.`);
      return byDefault;
    },

    count(name, byDefault, { min, max }) {
      const value = text(name);
      if (value === undefined) return byDefault;
      if (/^\d{1,5}$/.test(value) && Number(value) >= min && Number(value) <= max) {
        return Number(value);
      }
      problem(`${name} is "${value}" and must be a number from ${min} to ${max}.`);
      return byDefault;
    },
  };
}

/**
 * Settings that may come from a file whose name is in `NAME_FILE`. Containers pass secrets this
 * way.
 */
export const secretSettings = [
  'ALERT_WEBHOOK_SECRET',
  'ALERT_WEBHOOK_URL',
  'CONSOLE_OIDC_CLIENT_SECRET',
  'DATABASE_URL',
  'MAIL_URL',
  'MASTER_KEY',
  'MASTER_KEY_PREVIOUS',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'REDIS_URL',
  'TLS_CERTIFICATE',
  'TLS_KEY',
  ...secretNames,
];

function textReader(env: NodeJS.ProcessEnv, problem: Reader['problem']): Reader['text'] {
  const given = (name: string) => env[name]?.trim() || undefined;
  const fromFiles = new Map<string, string>();
  const ofGateways = (given('GATEWAYS') ?? '')
    .split(',')
    .flatMap((name) => secretNames.map((one) => `GATEWAY_${name.trim().toUpperCase()}_${one}`));
  for (const name of [...secretSettings, ...ofGateways]) {
    const file = given(`${name}_FILE`);
    if (file === undefined) continue;
    if (given(name) !== undefined) problem(`${name} and ${name}_FILE are both set. Set one.`);
    try {
      fromFiles.set(name, readFileSync(file, 'utf8').trim());
    } catch (error) {
      problem(`${name}_FILE cannot be read (${(error as NodeJS.ErrnoException).code}).`);
    }
  }
  return (name) => given(name) ?? (fromFiles.get(name) || undefined);
}

function readAccepted(value = '', problem: Reader['problem']): Set<Risk> {
  const names = value.split(',').map((part) => part.trim());
  const unknown = names.filter((name) => name !== '' && !risks.includes(name as Risk));
  for (const name of unknown) {
    problem(`ACCEPT_INSECURE contains "${name}". It may contain ${risks.join(', ')}.`);
  }
  return new Set(names as Risk[]);
}

export const isAddress = (text: string, begin: RegExp) => begin.test(text) && URL.canParse(text);

/** Whether this host is certainly not another machine. A path is a local socket. */
export const isLocal = (hostname: string) =>
  hostname === '' || hostname.startsWith('/') || isLoopback(hostname);

/**
 * Whether a server on this host listens on all addresses of the machine, however the host is spelt.
 */
export function isEveryAddress(host: string): boolean {
  const isBare = host.includes(':') && !host.startsWith('[');
  const { hostname } = URL.parse(`http://${isBare ? `[${host}]` : host}`) ?? {};
  return ['0.0.0.0', '[::]', '[::ffff:0:0]'].includes(hostname ?? '');
}
