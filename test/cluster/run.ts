// npm run test:cluster              one event of each kind
// npm run test:cluster -- --long    fifty events
// npm run test:cluster -- --events 3 --rate 60 --only switchover
// npm run test:cluster -- --only Citus

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { publishableKey, secretKey, startGateway } from '../support/gateway.ts';
import { startReceiver } from '../support/receiver.ts';
import { createChildren } from './children.ts';
import { citusEvents, playCitus } from './citus.ts';
import { type Event, events } from './events.ts';
import { type Cut, figuresOf, findFailures, pauseOf, type Row, report } from './figures.ts';
import { startLoad } from './load.ts';
import { createMerchants, payCheckouts } from './merchants.ts';
import { createNetwork } from './network.ts';
import { findParts } from './parts.ts';
import { tryPooler } from './pooler.ts';
import { serverCount, startServers } from './servers.ts';
import { startNodes } from './service.ts';
import { findDamage } from './verdict.ts';

const { values } = parseArgs({
  options: {
    long: { type: 'boolean', default: false },
    events: { type: 'string' },
    rate: { type: 'string', default: '60' },
    shoppers: { type: 'string', default: '6' },
    /** Only the events whose name contains this. */
    only: { type: 'string', default: '' },
    keep: { type: 'boolean', default: false },
  },
});

const say = (line: string) => process.stdout.write(`${line}\n`);
const found = findParts();
if ('missing' in found) {
  say('The cluster tests are skipped:');
  for (const sentence of found.missing) say(`  - ${sentence}`);
  process.exit(0);
}
const { parts } = found;

const rows: Row[] = [];
const cuts: Cut[] = [];
const damage: string[] = [];

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-cluster-'));
fs.chmodSync(folder, 0o755);
const children = createChildren(folder);
const network = createNetwork(parts, serverCount);
const settings = {
  MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  STRIPE_SECRET_KEY: secretKey,
  STRIPE_PUBLISHABLE_KEY: publishableKey,
};
let gateway = await startGateway();
let receiver = await startReceiver();
let strays = () => [] as number[];
let citusChildren: ReturnType<typeof createChildren> | null = null;
const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => reject(new Error(`interrupted by ${signal}`)));
  }
});
interrupted.catch(() => {});
try {
  if (events.some(({ name }) => name.includes(values.only))) {
    await Promise.race([play(), interrupted]);
    await endPlay();
  }
  const chosen = citusEvents.filter(({ name }) => name.includes(values.only));
  if (!parts.hasCitus) {
    say('The tests on Citus are skipped: this PostgreSQL does not have the extension citus.');
  } else if (chosen.length > 0) await Promise.race([playOnCitus(chosen), interrupted]);
} catch (error) {
  damage.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
} finally {
  await end();
}
for (const sentence of damage.slice(0, 50)) say(`- ${sentence}`);
if (damage.length > 50) say(`- and ${damage.length - 50} more`);
say(damage.length === 0 ? 'No losses, duplicates or failures.' : `${damage.length} problems.`);
process.exit(damage.length === 0 ? 0 : 1);

async function play(): Promise<void> {
  say(`Starting the cluster in ${folder}${network.hasCables ? '' : ' (no network namespaces)'}.`);
  const servers = await startServers(parts, network, children);
  strays = () =>
    Array.from({ length: serverCount }, (_, node) => {
      try {
        return servers.postgresPids(node);
      } catch {
        return [];
      }
    }).flat();
  await createDatabase(servers.proxiedUrl);
  const env = { ...settings, TEST_GATEWAY_URL: gateway.url };
  const service = await startNodes(parts, children, {
    databaseUrls: [servers.proxiedUrl, servers.directUrl],
    env,
  });
  const commandEnv = { ...env, BASE_URL: service.url, DATABASE_URL: servers.proxiedUrl };
  const merchants = await createMerchants(commandEnv);
  const callers = merchants.map(({ caller }) => caller);
  const target = { url: service.url, gateway, receiver };
  const paid = await payCheckouts(commandEnv, merchants, target);
  const load = startLoad({
    ...target,
    callers,
    rate: Number(values.rate),
    shoppers: Number(values.shoppers),
    refunds: { rate: 2, of: paid },
  });
  const measure = async (name: string, event: Event | null, work: () => Promise<void>) => {
    const from = load.calls.length;
    const begun = performance.now();
    await work();
    await sleep(3_000);
    const ended = performance.now();
    const row = { name, calls: load.calls.slice(from), pause: pauseOf(load.calls, begun, ended) };
    rows.push(row);
    if (event?.cutsRequests) cuts.push({ begun, ended });
    const { failed, slowest } = figuresOf(row, cuts);
    say(`${name}: ${failed.length} failed, paused ${row.pause.toFixed(1)} s, slowest ${slowest} s`);
  };
  try {
    await measure('no event', null, () => sleep(10_000));
    for (const [round, event] of chooseEvents(network.hasCables).entries()) {
      await measure(event.name, event, () => event.run({ servers, service, network }, round));
    }
  } finally {
    await load.stop();
  }
  if (parts.pgbouncer !== null) {
    const pooled = { databaseUrl: servers.proxiedUrl, baseUrl: service.url, env };
    const tried = await tryPooler({ ...parts, pgbouncer: parts.pgbouncer }, children, pooled);
    damage.push(...tried.damage);
    if (tried.url === null) say(`PgBouncer ${tried.version} is too old, and the service says so.`);
    else {
      const from = load.calls.length;
      const through = startLoad({
        ...{ ...target, url: tried.url, callers },
        ...{ rate: Number(values.rate), shoppers: 2, refunds: { rate: 2, of: paid } },
      });
      await sleep(15_000);
      await servers.switchover();
      await sleep(15_000);
      await through.stop();
      load.calls.push(...through.calls);
      for (const id of through.paid) load.paid.add(id);
      rows.push({
        name: `switchover behind PgBouncer ${tried.version}`,
        calls: load.calls.slice(from),
        pause: pauseOf(through.calls, through.calls[0]?.begun ?? 0, performance.now()),
      });
    }
    await servers.healthy();
  }
  for (const name of [...servers.casualties(), ...service.casualties()]) {
    damage.push(`${name} has ended and needs a restart`);
  }
  damage.push(...(await findDamage(commandEnv, load, { gateway, receiver })));
  for (const row of rows) damage.push(...findFailures(row, cuts));
  for (const line of report(rows, cuts, load.calls)) say(line);
}

/** Citus is another installation, with books of its own at the gateway. */
async function playOnCitus(chosen: typeof citusEvents): Promise<void> {
  await gateway.close();
  await receiver.close();
  gateway = await startGateway();
  receiver = await startReceiver();
  const own = path.join(folder, 'citus');
  fs.mkdirSync(own);
  citusChildren = createChildren(own);
  const found = await playCitus(parts, citusChildren, {
    events: Array.from({ length: values.long ? 3 : 1 }, () => chosen).flat(),
    rate: Number(values.rate),
    shoppers: Number(values.shoppers),
    env: { ...settings, TEST_GATEWAY_URL: gateway.url },
    ...{ gateway, receiver, say },
  });
  damage.push(...found);
}

/** Ends all processes of the cluster, by their ids. */
async function endPlay(): Promise<void> {
  const postgres = strays();
  strays = () => [];
  await children.killAll();
  for (const pid of postgres) {
    try {
      process.kill(pid, 'SIGCONT');
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended with its Patroni.
    }
  }
  network.remove();
}

async function end(): Promise<void> {
  await endPlay();
  await citusChildren?.killAll();
  await gateway.close();
  await receiver.close();
  if (values.keep || damage.length > 0) say(`The logs are in ${folder}.`);
  else fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

function chooseEvents(hasCables: boolean): Event[] {
  const possible = events.filter(
    ({ name, needsCables }) => name.includes(values.only) && (hasCables || !needsCables),
  );
  const count = Number(values.events ?? (values.long ? 50 : possible.length));
  return Array.from({ length: count }, (_, index) => possible[index % possible.length] as Event);
}

async function createDatabase(url: string): Promise<void> {
  const server = new URL(url);
  server.pathname = '/postgres';
  const client = new pg.Client({ connectionString: server.href });
  await client.connect();
  await client.query('create database tranche');
  await client.end();
}
