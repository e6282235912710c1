import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import pg from 'pg';
import { pino } from 'pino';
import { buildApp } from '../src/app.ts';
import type { Resolve } from '../src/callbacks/resolve-name.ts';
import type { CallbackSenderOptions } from '../src/callbacks/send-callback.ts';
import { completeCheckout } from '../src/checkouts/end-checkout.ts';
import { readConfig } from '../src/config.ts';
import { openDatabase } from '../src/database/database.ts';
import { migrate } from '../src/database/migrate.ts';
import { transaction } from '../src/database/transaction.ts';
import { scheduleInstalments } from '../src/instalments/schedule-instalments.ts';
import {
  createIntegration,
  type IssuedCredentials,
} from '../src/integrations/create-integration.ts';
import type { RefundMode } from '../src/integrations/integration.ts';
import { createDeps, type Deps, type ReadyConfig } from '../src/main.ts';
import { createMerchant } from '../src/merchants/create-merchant.ts';
import { type Merchant, merchantNow } from '../src/merchants/merchant.ts';
import { type Clock, systemClock, timestamp } from '../src/shared/clock.ts';
import type { Logger } from '../src/shared/logger.ts';

export const log = pino({ level: process.env.TEST_LOG ?? 'silent' });

const serverUrl = process.env.TEST_DATABASE_URL ?? '';
if (serverUrl === '') throw new Error('TEST_DATABASE_URL is missing: run the tests with npm test');

function urlOf(database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

async function onServer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/**
 * A database of its own for a test file, migrated. Cloned from one template that the first file
 * to come makes for all.
 */
export async function createTestDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const template = `template_${process.env.TEST_RUN ?? process.ppid}`;
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    // Two files that start together: one makes the template, the other waits.
    await client.query('select pg_advisory_lock(hashtext($1))', [template]);
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [
      template,
    ]);
    if (rowCount === 0) {
      await client.query(`create database ${template}_new`);
      const database = openDatabase(urlOf(`${template}_new`), { log, maxConnections: 1 });
      await migrate(database, { clock: systemClock, log });
      await database.close();
      await client.query(`alter database ${template}_new rename to ${template}`);
    }
    const name = `test_${randomBytes(8).toString('hex')}`;
    await client.query(`create database ${name} template ${template}`);
    return {
      url: urlOf(name),
      drop: () => onServer(`drop database if exists ${name} with (force)`),
    };
  } finally {
    await client.end();
  }
}

/** A database that nothing was ever done in. */
export async function createEmptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onServer(`create database ${name}`);
  return {
    url: urlOf(name),
    drop: () => onServer(`drop database if exists ${name} with (force)`),
  };
}

/** A clock that stands still until a test moves it; waiting is real. */
export function movableClock(start = '2026-11-15T08:00:00Z'): Clock & {
  advance(duration: Temporal.DurationLike): void;
  set(instant: string): void;
} {
  let now = Temporal.Instant.from(start);
  let elapsed = 0;
  return {
    now: () => now,
    monotonic: () => elapsed + systemClock.monotonic(),
    sleep: systemClock.sleep,
    advance(duration) {
      const next = now.toZonedDateTimeISO('UTC').add(duration).toInstant();
      elapsed += next.epochMilliseconds - now.epochMilliseconds;
      now = next;
    },
    set(instant) {
      now = Temporal.Instant.from(instant);
    },
  };
}

export const rules = [
  { from_amount: 10_000, to_amount: 99_999, terms: [1, 3] },
  { from_amount: 100_000, to_amount: 2_000_000, terms: [1, 3, 6, 12] },
];

export type Service = {
  app: FastifyInstance;
  deps: Deps;
  databaseUrl: string;
  close(): Promise<void>;
};

export function testConfig(
  databaseUrl: string,
  env: NodeJS.ProcessEnv = {},
  rateLimitStore: ReadyConfig['rateLimitStore'] = 'memory',
): ReadyConfig {
  const mode = env.TRANCHE_ENV === 'production' ? 'live' : 'test';
  const config = readConfig({
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    // Never called unless a test starts a gateway and says where it is.
    STRIPE_SECRET_KEY: `sk_${mode}_of_tests`,
    STRIPE_PUBLISHABLE_KEY: `pk_${mode}_of_tests`,
    ...env,
  });
  assert(config.gateway);
  return { ...config, databaseUrl, rateLimitStore, gateway: config.gateway };
}

/** No test asks the network for a name: a callback to one fails at once unless a test answers. */
const resolveNowhere: Resolve = async (hostname) => {
  throw Object.assign(new Error(`${hostname} is nowhere`), { code: 'ENOTFOUND' });
};

/** The whole service in this process, on a database of its own unless one is given. */
export async function startService(
  options: {
    clock?: Clock;
    env?: NodeJS.ProcessEnv;
    databaseUrl?: string;
    rateLimitStore?: ReadyConfig['rateLimitStore'];
    callbackSender?: CallbackSenderOptions;
    /** How long the gateway is waited for, when not as in production. */
    gatewayTimeoutMs?: number;
    log?: Logger;
  } = {},
): Promise<Service> {
  const own = options.databaseUrl === undefined ? await createTestDatabase() : null;
  const databaseUrl = options.databaseUrl ?? own?.url ?? '';
  const config = testConfig(databaseUrl, options.env, options.rateLimitStore);
  if (options.gatewayTimeoutMs !== undefined) config.gateway.timeoutMs = options.gatewayTimeoutMs;
  const deps = await createDeps(config, options.log ?? log, {
    ...(options.clock && { clock: options.clock }),
    callbackSender: { resolve: resolveNowhere, ...options.callbackSender },
  });
  const app = buildApp(deps);
  await app.ready();
  return {
    app,
    deps,
    databaseUrl,
    async close() {
      await app.close();
      await deps.close();
      await own?.drop();
    },
  };
}

/** Far above what a test sends: for tests that are not about limits. */
const unlimited = { max_requests: 1_000_000, window_seconds: 1 };

export type Account = IssuedCredentials & { merchant: Merchant };

/** A merchant with one integration, its limits lifted unless a test is about them. */
export async function createAccount(
  { deps }: Pick<Service, 'deps'>,
  options: { refund_mode?: RefundMode; limits?: 'spec' | 'none' } = {},
): Promise<Account> {
  const merchant = await createMerchant(deps, 'test', {
    name: 'Bean There',
    territory: 'ZA',
    rules,
  });
  const credentials = await createIntegration(deps, 'test', {
    merchant_id: merchant.id,
    refund_mode: options.refund_mode ?? 'manual',
  });
  if (options.limits !== 'spec') await liftLimits(deps, credentials.id);
  return { ...credentials, merchant };
}

export async function liftLimits(deps: Deps, integration_id: string): Promise<void> {
  const { endpointLimits } = await import('../src/http/rate-limits.ts');
  const { insertLimit } = await import('../src/integrations/integration.sql.ts');
  for (const endpoint of Object.keys(endpointLimits)) {
    await insertLimit(deps.database.db, { integration_id, endpoint, ...unlimited });
  }
}

export function sign(signingKey: string, body: string): string {
  return createHmac('sha512', signingKey).update(body).digest('base64');
}

export const checkoutBody = (changes: object = {}) => ({
  checkout: {
    amount: 150_000,
    currency: 'ZAR',
    client_reference_id: 'order-1001',
    notify_url: 'https://shop.example/callback',
    success_url: 'https://shop.example/paid',
    cancel_url: 'https://shop.example/cart',
    customer: { email: 'thandi@example.com' },
    ...changes,
  },
});

export type Answer = {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: an answer is looked into by assertions.
  body: any;
  headers: Record<string, unknown>;
};

/** Sends a request as a merchant's server does; POSTs are signed unless told otherwise. */
export async function send(
  { app }: Pick<Service, 'app'>,
  account: Pick<IssuedCredentials, 'client_secret' | 'signing_key'>,
  method: 'GET' | 'POST',
  path: string,
  options: { body?: object | string; headers?: Record<string, string>; signed?: boolean } = {},
): Promise<Answer> {
  const payload =
    typeof options.body === 'object' ? JSON.stringify(options.body) : (options.body ?? '');
  const response = await app.inject({
    method,
    url: path,
    headers: {
      authorization: `Bearer ${account.client_secret}`,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
      ...(method === 'POST' &&
        options.signed !== false && { 'x-signature': sign(account.signing_key, payload) }),
      ...options.headers,
    },
    ...(method === 'POST' && { payload }),
  });
  const type = String(response.headers['content-type'] ?? '');
  return {
    status: response.statusCode,
    body: type.includes('json') ? response.json() : response.body,
    headers: response.headers,
  };
}

export async function createCheckout(
  service: Pick<Service, 'app'>,
  account: Account,
  changes: object = {},
): Promise<string> {
  const answer = await send(service, account, 'POST', '/api/checkouts', {
    body: checkoutBody(changes),
  });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body.data.id;
}

/** A checkout that was paid, by the use cases that record an authorised payment. */
export async function createSuccessfulCheckout(
  service: Service,
  account: Account,
  changes: object = {},
): Promise<string> {
  const id = await createCheckout(service, account, changes);
  await completeTestCheckout(service, account.merchant, id);
  return id;
}

export async function completeTestCheckout(
  { deps }: Pick<Service, 'deps'>,
  merchant: Merchant,
  id: string,
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    const now = timestamp(merchantNow(deps.clock, merchant));
    const completed = await completeCheckout(deps, db, { merchant_id: merchant.id, id }, 1, now);
    if (!completed) throw new Error('the checkout was not received');
    await scheduleInstalments(db, merchant, completed);
  });
}

/** How often a randomised test runs: a tenth, and all of it in `npm run test:long`. */
export function runs(long: number): number {
  return process.env.TRANCHE_TEST_LONG ? long : Math.ceil(long / 10);
}
