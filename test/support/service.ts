import assert from 'node:assert/strict';
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { buildApp } from '#app.ts';
import { readConfig } from '#config.ts';
import { createDeps, type Deps, type ReadyConfig } from '#main.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import {
  createIntegration,
  type IssuedCredentials,
} from '#merchants/integrations/create-integration.ts';
import type { RefundMode } from '#merchants/integrations/integration.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { openDatabase } from '#platform/database/database.ts';
import { distributeDatabase } from '#platform/database/distribute-database.ts';
import { migrate } from '#platform/database/migrate.ts';
import { transaction } from '#platform/database/transaction.ts';
import { writeTogether } from '#platform/database/write-together.ts';
import { type Clock, systemClock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Resolve } from '#purchases/callbacks/delivery/resolve-name.ts';
import type { CallbackSenderOptions } from '#purchases/callbacks/delivery/send-callback.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { completeCheckout } from '#purchases/checkouts/end-checkout.ts';
import { scheduleInstalments } from '#purchases/instalments/schedule-instalments.ts';
import {
  findNodes,
  joinCluster,
  onDatabase,
  onEveryNode,
  serverUrl,
  urlOf,
} from './database-server.ts';

export const log = pino({ level: process.env.TEST_LOG ?? 'silent' });

/**
 * Creates a migrated database for one test file, distributed if there is Citus. It is a clone of a
 * template that the first file creates.
 */
export async function createTestDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const template = `template_${process.env.TEST_RUN ?? process.ppid}`;
  if (!hasTemplate) await ensureTemplate(template);
  hasTemplate = true;
  // By default PostgreSQL writes a clone through its log, which takes four times as much processor
  // time.
  return createDatabase(`template ${template} strategy file_copy`);
}

/** Whether this process has found the template. */
let hasTemplate = false;

async function ensureTemplate(template: string): Promise<void> {
  await onDatabase(serverUrl, async (client) => {
    // When two files start together, one creates the template and the other waits.
    await client.query('select pg_advisory_lock(hashtext($1))', [template]);
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [
      template,
    ]);
    if (rowCount === 0) await createTemplate(template);
  });
}

async function createTemplate(name: string): Promise<void> {
  const { urls, hasCitus } = await findNodes();
  await onEveryNode(`create database ${name}_new`);
  if (hasCitus) await joinCluster(`${name}_new`);
  const database = openDatabase(urlOf(`${name}_new`), { log, maxConnections: 2 });
  await migrate(database, { clock: systemClock, log });
  if (hasCitus) await distributeDatabase(database);
  await database.close();
  // PostgreSQL does not clone a database that has connections, and Citus keeps some open.
  await onEveryNode(`alter database ${name}_new with allow_connections false`);
  await onEveryNode(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}_new'`,
  );
  for (const node of urls.toReversed()) {
    await onDatabase(node, (client) =>
      client.query(`alter database ${name}_new rename to ${name}`),
    );
  }
}

const scansFile = process.env.TRANCHE_INDEX_SCANS;

/** Records how often each index of a database was used, for `npm test -- --indexes`. */
async function noteIndexScans(name: string): Promise<void> {
  if (scansFile === undefined) return;
  await onDatabase(urlOf(name), async (client) => {
    // A server process reports its counts when it ends.
    await client.query(
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
    const { rows } = await client.query<{ index: string; scans: number }>(
      `select s.indexrelname as index, s.idx_scan::int as scans
       from pg_stat_user_indexes s join pg_index i using (indexrelid) where not i.indisunique`,
    );
    appendFileSync(scansFile, rows.map(({ index, scans }) => `${index} ${scans}\n`).join(''));
  });
}

export const createEmptyDatabase = () => createDatabase('');

/** Creates an empty database on every node of a Citus cluster. */
export async function createEmptyCluster(): ReturnType<typeof createDatabase> {
  const created = await createDatabase('');
  await joinCluster(new URL(created.url).pathname.slice(1));
  return created;
}

async function createDatabase(from: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onEveryNode(`create database ${name} ${from}`);
  // The tables of a test are small, so the server would rather scan them than use an index.
  if (scansFile) await onEveryNode(`alter database ${name} set enable_seqscan = off`);
  return {
    url: urlOf(name),
    async drop() {
      await noteIndexScans(name);
      await onEveryNode(`drop database if exists ${name} with (force)`);
    },
  };
}

/**
 * The real clock with longer time limits, because the machine may pause. A sleep with a signal is a
 * time limit.
 */
export const patientClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(signal ? 12 * ms : ms, signal),
};

/** A clock that stands still until a test moves it. Sleeping takes real time. */
export function movableClock(start = '2026-11-15T08:00:00Z'): Clock & {
  advance(duration: Temporal.DurationLike): void;
  set(instant: string): void;
} {
  let now = Temporal.Instant.from(start);
  let elapsed = 0;
  return {
    now: () => now,
    monotonic: () => elapsed + systemClock.monotonic(),
    // A shopper waits ten seconds for the first delivery of a callback. A loaded machine may pause
    // for longer than that.
    sleep: (ms, signal) => systemClock.sleep(signal && ms === 10_000 ? 120_000 : ms, signal),
    after: systemClock.after,
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
    ...(mode === 'live' && { ...productionSettings, DATABASE_URL: databaseUrl }),
    // The gateway is called only if a test starts one and passes its address.
    STRIPE_SECRET_KEY: `sk_${mode}_of_tests`,
    STRIPE_PUBLISHABLE_KEY: `pk_${mode}_of_tests`,
    ...env,
  });
  assert(config.gateways);
  return { ...config, databaseUrl, rateLimitStore, gateways: config.gateways };
}

/** The settings that production needs besides a database, with made-up values. */
export const productionSettings = {
  TRANCHE_ENV: 'production',
  BASE_URL: 'https://pay.example',
  MASTER_KEY: createHash('sha256').update('a key for tests').digest('base64'),
  DATABASE_URL: 'postgres://127.0.0.1/tranche',
  STRIPE_SECRET_KEY: 'sk_live_0123456789',
  STRIPE_PUBLISHABLE_KEY: 'pk_live_0123456789',
  FOUR_EYES_ABOVE: '1000000',
  ISSUER_NAME: 'Pay Well',
};

/** The settings that a command needs in production. */
export const commandSettings = {
  ...productionSettings,
  CONSOLE_URL: 'https://console.example',
  MAIL_URL: 'none',
};

/** Resolves no names, so that tests do not use the network. A test can pass its own answers. */
const resolveNowhere: Resolve = async (hostname) => {
  throw Object.assign(new Error(`${hostname} is nowhere`), { code: 'ENOTFOUND' });
};

/** Starts the whole service in this process, on a new database unless one is given. */
export async function startService(
  options: {
    clock?: Clock;
    env?: NodeJS.ProcessEnv;
    databaseUrl?: string;
    rateLimitStore?: ReadyConfig['rateLimitStore'];
    callbackSender?: CallbackSenderOptions;
    /** The gateway's time limit. A loaded machine may pause for longer than that of production. */
    gatewayTimeoutMs?: number;
    log?: Logger;
    random?: Random;
  } = {},
): Promise<Service> {
  const own = options.databaseUrl === undefined ? await createTestDatabase() : null;
  const databaseUrl = options.databaseUrl ?? own?.url ?? '';
  const config = testConfig(databaseUrl, options.env, options.rateLimitStore);
  const { gatewayTimeoutMs: timeoutMs = 120_000 } = options;
  for (const one of config.gateways) one.timeoutMs = timeoutMs;
  const deps = await createDeps(config, options.log ?? log, {
    ...(options.clock && { clock: options.clock }),
    ...(options.random && { random: options.random }),
    callbackSender: {
      resolve: resolveNowhere,
      deadlineMilliseconds: 120_000,
      ...options.callbackSender,
    },
    // Each connection plans the statements that it sends, which is a third of the server's work, so
    // there are few connections. A test of locks needs one for the holder, one for itself and one
    // for each session that waits.
    maxConnections: 5,
  });
  const app = buildApp(deps);
  await app.ready();
  // A pause of this process must not look like a slow client.
  Object.assign(app.server, { headersTimeout: 0, requestTimeout: 0 });
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

export type Account = IssuedCredentials & { merchant: Merchant };

/** Creates a merchant with one integration. Its limits are lifted unless a test wants them. */
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

/** Sets limits that no test reaches, for tests that are not about limits. */
export async function liftLimits(deps: Deps, integration_id: string): Promise<void> {
  const { endpointLimits } = await import('#platform/http/rate-limits.ts');
  // One statement for all endpoints, because most tests begin with this.
  await deps.database.pool.query(
    `insert into integration_limits (integration_id, endpoint, max_requests, window_seconds)
     select $1, endpoint, 1000000, 1 from unnest($2::text[]) as endpoint
     on conflict (integration_id, endpoint)
       do update set max_requests = excluded.max_requests, window_seconds = excluded.window_seconds`,
    [integration_id, Object.keys(endpointLimits)],
  );
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
  // biome-ignore lint/suspicious/noExplicitAny: assertions look into answers.
  body: any;
  headers: Record<string, unknown>;
};

/** Sends a request like a merchant's server. POSTs are signed by default. */
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

/** Creates a paid checkout with the use cases that record an authorised payment. */
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
    const now = timestamp(merchant.now());
    const received = await lockCheckout(db, merchant.id, id);
    if (!received) throw new Error('there is no such checkout');
    const { checkout, writes } = completeCheckout(deps, received, 1, now, null);
    const held = { payment_ref: `pi_test_${id}`, stored_card: null };
    await writeTogether(db, { ...writes, ...scheduleInstalments(deps, merchant, checkout, held) });
  });
}

/** Whether this is `npm run test:long`. */
export const isLong = Boolean(process.env.TRANCHE_TEST_LONG);

/** How many times a randomised test runs: a tenth of `long`, and all in `npm run test:long`. */
export function runs(long: number): number {
  return isLong ? long : Math.ceil(long / 10);
}
