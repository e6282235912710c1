import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { pino } from 'pino';
import { createMoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { readConfig } from '#config.ts';
import type { Gateway } from '#gateway/gateway.ts';
import { mainGateway } from '#gateway/gateway-name.ts';
import { createGateways } from '#gateway/gateways.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { createDeps, type Deps } from '#main.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import {
  createIntegration,
  type IssuedCredentials,
} from '#merchants/integrations/create-integration.ts';
import { setLimit } from '#merchants/integrations/set-limit.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { claimInstallation } from '#platform/database/installation.ts';
import { migrate } from '#platform/database/migrate.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import { systemClock, timestamp } from '#platform/shared/clock.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import { processorMilliseconds } from './processor-time.ts';

const log = pino({ level: 'error' });
export const masterKey = Buffer.alloc(32, 1).toString('base64');

export type Account = IssuedCredentials & { merchant: Merchant };

/** The service with only this gateway, whose account the money guard compares too. */
export function withGateway(deps: Deps, gateway: Gateway): Deps {
  const gateways = createGateways([{ name: mainGateway, isClosed: false, gateway }]);
  return {
    ...deps,
    gateways,
    money: createMoneyGuard({ ...deps, gateways, endAccess: endAllAccess }),
  };
}

export type BenchDatabase = {
  url: string;
  /** The process of the server. On Citus it is the coordinator. */
  pid: number;
  /** The process ids of the Citus workers. */
  workers: number[];
  /** The server's own log. Empty for a server that the bench did not start. */
  logFile: string;
  deps: Deps;
  /** The processes that serve a connection, on all servers. */
  listPids(connection: pg.ClientBase): Promise<number[]>;
  stop(): Promise<void>;
};

/**
 * Starts a separate PostgreSQL with the settings of the embedded one, with fsync on. Its data is
 * deleted at the end, unless it is in a folder that was given.
 */
export async function startDatabase(
  maxConnections = 2,
  kept?: string,
  settings: Record<string, string> = {},
): Promise<BenchDatabase & { server: EmbeddedPostgres }> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'tranche-bench-'));
  mkdirSync(folder, { recursive: true });
  // If we are root, the server runs as another user, who has to reach its data.
  chmodSync(folder, 0o711);
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), settings, log });
  const deps = await prepareDatabase(server.url, maxConnections);
  return {
    ...{ url: server.url, pid: server.pid, workers: [], server, deps },
    logFile: join(folder, 'data', 'postgres.log'),
    listPids: async (connection) => [await readPid(connection)],
    async stop() {
      await deps.close();
      await server.stop();
      if (kept === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function readPid(connection: pg.ClientBase): Promise<number> {
  const { rows } = await connection.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
}

/** Migrates a database, and connects to it as the service does. */
export async function prepareDatabase(databaseUrl: string, maxConnections: number): Promise<Deps> {
  const config = readConfig({ MASTER_KEY: masterKey });
  const deps = await createDeps(
    {
      ...config,
      databaseUrl,
      rateLimitStore: 'memory',
      gateways: [
        {
          name: mainGateway,
          protocol: 'stripe',
          environment: 'sandbox',
          secretKey: 'sk_test_bench',
          publicKey: 'pk_test_bench',
        },
      ],
    },
    log,
    // The service asks the database for the time. The bench uses this machine's clock, so that it
    // sends no statements of its own.
    { maxConnections, clock: systemClock },
  );
  await migrate(deps.database, deps);
  await claimInstallation(deps.database.db, 'sandbox', timestamp(deps.clock.now()));
  return deps;
}

/** Creates a merchant whose limits are never reached, though they are checked. */
export async function createAccount(deps: Deps): Promise<Account> {
  const merchant = await createMerchant(deps, 'bench', {
    name: 'Bench',
    territory: 'ZA',
    rules: [{ from_amount: 10_000, to_amount: 2_000_000, terms: [1, 3, 6, 12] }],
  });
  const integration = await createIntegration(deps, 'bench', {
    merchant_id: merchant.id,
    refund_mode: 'manual',
  });
  for (const endpoint of Object.keys(endpointLimits)) {
    await setLimit(deps, 'bench', {
      id: integration.id,
      endpoint,
      max_requests: 1_000_000_000,
      window_seconds: 3600,
    });
  }
  return { ...integration, merchant };
}

export type RunningService = {
  url: string;
  /** The resident memory of each serving process, in MB. */
  memory(): number[];
  /** The processor time that the serving processes have used so far, in milliseconds. */
  processorTime(): number;
  stop(): Promise<void>;
};

/** Runs `tranche serve` as an operator would. */
export async function serve(databaseUrl: string, processes: number): Promise<RunningService> {
  const [port, consolePort, merchantPort, metricsPort] = await freePorts(4);
  const child = spawn(
    fileURLToPath(new URL('../bin/tranche', import.meta.url)),
    ['serve', '--processes', String(processes), '--role', 'web'],
    {
      cwd: new URL('..', import.meta.url),
      env: {
        ...process.env,
        DATABASE_URL: databaseUrl,
        MASTER_KEY: masterKey,
        PORT: String(port),
        CONSOLE_PORT: String(consolePort),
        MERCHANT_CONSOLE_PORT: String(merchantPort),
        METRICS_PORT: String(metricsPort),
        HOST: '127.0.0.1',
        LOG_LEVEL: 'warn',
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const url = `http://127.0.0.1:${port}`;
  await untilReady(child, `${url}/readyz`);
  return {
    url,
    memory: () => servingPids(child, processes).map(residentMegabytes),
    processorTime: () =>
      servingPids(child, processes)
        .map(processorMilliseconds)
        .reduce((sum, time) => sum + time),
    async stop() {
      child.kill('SIGTERM');
      await new Promise((resolve) => child.once('exit', resolve));
    },
  };
}

/** Waits until a program answers this request. */
export async function untilReady(
  child: ChildProcess,
  url: string,
  request: RequestInit = {},
): Promise<void> {
  for (let attempt = 1; attempt <= 4_000; attempt += 1) {
    if (child.exitCode !== null)
      throw new Error(`nothing answers at ${url}: its program has ended`);
    const answer = await fetch(url, request).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  child.kill('SIGTERM');
  throw new Error(`nothing answered at ${url}`);
}

function servingPids(child: ChildProcess, processes: number): number[] {
  const pid = child.pid ?? 0;
  if (processes === 1) return [pid];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.trim().split(' ').map(Number);
}

function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}

export function signedCheckout(
  account: Account,
  url: string,
  notify_url = 'https://shop.example/tranche/callback',
  client_reference_id = 'order-1001',
) {
  const body = JSON.stringify({
    checkout: {
      amount: 150_000,
      currency: 'ZAR',
      client_reference_id,
      notify_url,
      success_url: 'https://shop.example/orders/1001/paid',
      cancel_url: 'https://shop.example/cart',
      customer: {
        email: 'thandi@example.com',
        first_name: 'Thandi',
        last_name: 'Nkosi',
        phone_number: '+27821234567',
      },
      line_items: [
        { name: 'Hiking boots', amount: 120_000, quantity: 1 },
        { name: 'Socks', amount: 15_000, quantity: 2 },
      ],
    },
  });
  return {
    url: `${url}/api/checkouts`,
    method: 'POST' as const,
    body,
    headers: {
      authorization: `Bearer ${account.client_secret}`,
      'content-type': 'application/json',
      'x-signature': createHmac('sha512', account.signing_key).update(body).digest('base64'),
    },
  };
}

export type TestGateway = { url: string; secret_key: string };

/** Makes a token at the test gateway, as its card form does for a shopper. */
export async function createCardToken({ url, secret_key }: TestGateway): Promise<string> {
  const response = await fetch(`${url}/v1/test_helpers/confirmation_tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret_key}` },
    body: new URLSearchParams({ payment_method: 'pm_card_visa' }),
  });
  const { id } = (await response.json()) as { id: string };
  return id;
}
