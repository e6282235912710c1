import { type ChildProcess, fork } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { pino } from 'pino';
import { Agent, request } from 'undici';
import { demoTerms } from '#hosting/sandbox/demo-merchant.ts';
import { startTestGatewayProcess } from '#hosting/sandbox/test-gateway-process.ts';
import type { Deps } from '#main.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import {
  childrenMilliseconds,
  ownMilliseconds,
  processorMilliseconds,
  serverMilliseconds,
} from './processor-time.ts';
import {
  type Account,
  type BenchDatabase,
  createAccount,
  createCardToken,
  masterKey,
  signedCheckout,
  startDatabase,
  type TestGateway,
} from './service.ts';

// A shop with shoppers, for benches of whole sales. The service, the gateway, the shop's server and
// the mail server are separate programs.

/** Processor time in milliseconds. On Citus, the database is the coordinator. */
export type Cost = { service: number; database: number; workers: number };

export const sumOf = ({ service, database, workers }: Cost) => service + database + workers;

export type Shop = {
  /** The merchants, who sell in turns. */
  accounts: Account[];
  gateway: TestGateway;
  /** The bench's own connection, whose time does not count. */
  own: pg.ClientBase;
  databaseUrl: string;
  /** The log of the database's server. */
  logFile: string;
  service: ChildProcess;
  url: string;
  consoleUrl: string;
  deps: Deps;
  /** The processor time of the server for all connections, also that of the bench. */
  readServerCost(): number;
  notifyUrl: string;
  agent: Agent;
  /** The time that the service and its database have used so far. */
  readCost(): Cost;
  /** The time of the shoppers, the gateway, the shop's server and the mail server. */
  readOtherCost(): number;
  close(): Promise<void>;
};

export type Sale = {
  account: Account;
  order: string;
  id: string;
  url: string;
  address: string;
  page: PayPage;
  card_token: string;
};

/** Opens the shop for this many shoppers at once, in a new database or in this one. */
export async function openShop(
  shoppers: number,
  database: Promise<BenchDatabase> = startDatabase(),
  merchants = 1,
): Promise<Shop> {
  const folder = mkdtempSync(join(tmpdir(), 'tranche-bench-gateway-'));
  const { url: databaseUrl, pid, workers, logFile, deps, listPids, stop } = await database;
  const gateway = await startTestGatewayProcess(
    { ...deps, log: pino({ level: 'warn' }) },
    {
      dataDir: folder,
      port: 0,
      pageOrigin: 'http://localhost',
      webhookUrl: null,
      protocol: 'stripe',
    },
  );
  const receiver = await startProgram(new URL('receiver.ts', import.meta.url), ['1']);
  const mail = await startProgram(new URL('mail-server.ts', import.meta.url));
  const own = await deps.database.pool.connect();
  const agent = new Agent({ connections: shoppers });
  const accounts: Account[] = [];
  while (accounts.length < merchants) {
    const account = await createAccount(deps);
    await setTerms(deps, 'bench', account.merchant.id, demoTerms);
    accounts.push(account);
  }
  const service = await startServing(databaseUrl, gateway, mail.message as number);
  const ownPids = await listPids(own);
  return {
    ...{ accounts, gateway, own, agent, url: service.url, service: service.child },
    ...{ deps, consoleUrl: service.consoleUrl },
    readServerCost: () => serverMilliseconds(pid, []),
    ...{ databaseUrl, logFile },
    notifyUrl: `http://127.0.0.1:${(receiver.message as number[])[0]}/callback`,
    readCost: () => ({
      service: processorMilliseconds(service.child.pid ?? 0),
      database: serverMilliseconds(pid, ownPids),
      workers: workers.reduce((sum, worker) => sum + serverMilliseconds(worker, ownPids), 0),
    }),
    readOtherCost: () => ownMilliseconds() + childrenMilliseconds([pid, service.child.pid ?? 0]),
    async close() {
      await agent.close();
      own.release();
      for (const { child } of [service, receiver, mail]) child.disconnect();
      await gateway.stop();
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startServing(
  databaseUrl: string,
  gateway: TestGateway & { publishable_key: string },
  mailPort: number,
): Promise<{ child: ChildProcess; url: string; consoleUrl: string }> {
  const [port = 0, consolePort = 0] = await freePorts(2);
  const tranche = readFileSync(new URL('../bin/tranche', import.meta.url), 'utf8');
  const flags = /^v8_flags='(.*)'$/m.exec(tranche)?.[1]?.split(' ');
  if (!flags) throw new Error('bin/tranche has no V8 flags');
  const program = new URL('sale-service.ts', import.meta.url);
  const { child } = await startProgram(program, [], flags, {
    DATABASE_URL: databaseUrl,
    MASTER_KEY: masterKey,
    PORT: String(port),
    CONSOLE_PORT: String(consolePort),
    HOST: '127.0.0.1',
    TRUST_PROXY: '1',
    TEST_GATEWAY_URL: gateway.url,
    STRIPE_SECRET_KEY: gateway.secret_key,
    STRIPE_PUBLISHABLE_KEY: gateway.publishable_key,
    MAIL_URL: `smtp://127.0.0.1:${mailPort}`,
    MAIL_FROM: 'pay@example.com',
  });
  return {
    child,
    url: `http://127.0.0.1:${port}`,
    consoleUrl: `http://127.0.0.1:${consolePort}`,
  };
}

async function startProgram(
  program: URL,
  args: string[] = [],
  execArgv: string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<{ child: ChildProcess; message: unknown }> {
  const child = fork(fileURLToPath(program), args, { execArgv, env: { ...process.env, ...env } });
  const message = await new Promise<unknown>((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error(`${program.pathname} ended`)));
  });
  return { child, message };
}

let shopperNumber = 0;

export async function createSale({ accounts, url, notifyUrl, agent }: Shop): Promise<Sale> {
  shopperNumber += 1;
  const account = accounts[shopperNumber % accounts.length] as Account;
  const order = `order-${process.pid}-${shopperNumber}`;
  const { url: address, ...create } = signedCheckout(account, url, notifyUrl, order);
  const answer = await request(address, { ...create, dispatcher: agent });
  const text = await answer.body.text();
  if (answer.statusCode === 503) throw new Refused(text);
  if (answer.statusCode !== 200) throw new Error(`a create was refused: ${text}`);
  const found = /"payment_url":"[^"]*?(\/pay\/[^"]+)"/.exec(text)?.[1];
  if (found === undefined) throw new Error(`a create without a link: ${text}`);
  const octets = [16, 8, 0].map((bits) => (shopperNumber >> bits) & 255);
  return {
    account,
    order,
    id: JSON.parse(text).data.id,
    url: url + found,
    address: `10.${octets.join('.')}`,
    page: {} as PayPage,
    card_token: '',
  };
}

/** Makes a card token, as the gateway's form does after the shopper has typed a card. */
export async function enterCard(shop: Shop, sale: Sale): Promise<void> {
  sale.card_token = await createCardToken(shop.gateway);
}

/** The service cannot do it now (503), and has done nothing. */
export class Refused extends Error {}

async function ask(
  { agent }: Shop,
  sale: Sale,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<string> {
  const answer = await request(sale.url + path, {
    method,
    dispatcher: agent,
    // Every shopper has their own address, as behind a proxy.
    headers: {
      'x-forwarded-for': sale.address,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  const problem = `${method} ${path}: ${answer.statusCode} ${text}`;
  if (answer.statusCode === 503) throw new Refused(problem);
  if (answer.statusCode !== 200) throw new Error(problem);
  return text;
}

export async function visit(shop: Shop, sale: Sale): Promise<void> {
  await ask(shop, sale, 'GET', '');
}

export async function readState(shop: Shop, sale: Sale): Promise<void> {
  sale.page = JSON.parse(await ask(shop, sale, 'GET', '/state')) as PayPage;
}

function paymentOf({ page, card_token }: Sale): object {
  const plan = page.plans.find((one) => one.number_of_payments === 3);
  const consent = { version: page.consent_version, payments: plan?.payments };
  return { number_of_payments: 3, card_token, consent };
}

/** Pays, and returns the status even if the service refuses. */
export async function tryPay(
  { agent }: Shop,
  sale: Sale,
): Promise<{ status: number; retryAfter: boolean; milliseconds: number }> {
  const start = performance.now();
  const { statusCode, headers, body } = await request(`${sale.url}/pay`, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'x-forwarded-for': sale.address, 'content-type': 'application/json' },
    body: JSON.stringify(paymentOf(sale)),
  });
  await body.dump();
  const milliseconds = performance.now() - start;
  return { status: statusCode, retryAfter: headers['retry-after'] !== undefined, milliseconds };
}

export async function paySale(shop: Shop, sale: Sale): Promise<void> {
  const paid = await ask(shop, sale, 'POST', '/pay', paymentOf(sale));
  const { status } = JSON.parse(paid) as PayPage;
  if (status !== 'successful') throw new Error(`a payment ended as ${status}`);
}

type Refund = { merchant_id: string; id: string };

/** Requests a refund of part of a sale, as the merchant. */
export async function askRefund({ url, agent }: Shop, { account, ...sale }: Sale): Promise<Refund> {
  const body = JSON.stringify({ checkout_id: sale.id, amount: 60_000 });
  const answer = await request(`${url}/api/refunds`, {
    method: 'POST',
    dispatcher: agent,
    body,
    headers: {
      authorization: `Bearer ${account.client_secret}`,
      'content-type': 'application/json',
      'x-signature': createHmac('sha512', account.signing_key).update(body).digest('base64'),
    },
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`a refund was refused: ${text}`);
  return { merchant_id: account.merchant.id, id: JSON.parse(text).data.id };
}

/** Approves a refund, as an operator; the service completes it. */
export async function approveRefund({ service }: Shop, { merchant_id, id }: Refund): Promise<void> {
  const status = await new Promise<string>((resolve) => {
    const listen = (message: { id: string; status: string }) => {
      if (message.id !== id) return;
      service.off('message', listen);
      resolve(message.status);
    };
    service.on('message', listen);
    service.send({ merchant_id, id });
  });
  if (status !== 'complete') throw new Error(`a refund ended as ${status}`);
}

/**
 * Makes the payments with this number due, waits until they are collected, and dates the
 * collections after the due day, as the check of the books requires.
 */
export async function collectNow(shop: Shop, sales: Sale[], number: number): Promise<void> {
  const ids = sales.map(({ id }) => id);
  await shop.own.query(
    `update instalments set due_at = now()
     where number = $1 and due_at is not null and checkout_id = any ($2::uuid[])`,
    [number, ids],
  );
  await untilSettled(shop);
  await shop.own.query(
    // In an UPDATE, Citus refuses expressions that depend on a setting, such as the session's time
    // zone.
    `update collections set created_at = ${later('created_at')}, asked_at = ${later('asked_at')},
       settled_at = ${later('settled_at')}
     where instalment = $1 and checkout_id = any ($2::uuid[])`,
    [number, ids],
  );
}

const later = (column: string) =>
  `(${column} at time zone 'UTC' + $1 * interval '31 days') at time zone 'UTC'`;

/**
 * Waits until every callback is delivered, every due payment is collected, and every due mail is
 * sent. Reminders are not due yet.
 */
export async function untilSettled({ own }: Shop): Promise<void> {
  for (let round = 0; ; round += 1) {
    const { rows } = await own.query<{ left: number }>(
      `select (select count(*) from callbacks where due_at is not null)
         + (select count(*) from instalments where due_at <= now() and not paused)
         + (select count(*) from messages where due_at <= now()) as left`,
    );
    if (rows[0]?.left === 0) return;
    if (round === 600) throw new Error('callbacks, payments or mails were not settled');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
