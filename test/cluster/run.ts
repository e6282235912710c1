// npm run test:cluster              one event of each kind
// npm run test:cluster -- --long    fifty events
// npm run test:cluster -- --events 3 --rate 60 --only switchover

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { publishableKey, secretKey, startGateway } from '../support/gateway.ts';
import { startReceiver } from '../support/receiver.ts';
import { tranche } from '../support/sandbox-process.ts';
import { createChildren } from './children.ts';
import { type Event, events } from './events.ts';
import { type Call, type Paid, startLoad } from './load.ts';
import { createMerchants } from './merchants.ts';
import { createNetwork } from './network.ts';
import { findParts } from './parts.ts';
import { tryPooler } from './pooler.ts';
import { eventually, serverCount, startServers } from './servers.ts';
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

type Row = { name: string; calls: Call[]; pause: number };
const rows: Row[] = [];
/** When events closed connections without an answer. */
const cuts: { begun: number; ended: number }[] = [];
const damage: string[] = [];
const none = { rate: 0, of: [] };

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-cluster-'));
fs.chmodSync(folder, 0o755);
const children = createChildren(folder);
const network = createNetwork(parts, serverCount);
const gateway = await startGateway();
const receiver = await startReceiver();
let strays = () => [] as number[];
const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => reject(new Error(`interrupted by ${signal}`)));
  }
});
interrupted.catch(() => {});
try {
  await Promise.race([play(), interrupted]);
} catch (error) {
  damage.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
} finally {
  await end();
}
for (const sentence of damage.slice(0, 50)) say(`- ${sentence}`);
if (damage.length > 50) say(`- and ${damage.length - 50} more`);
say(damage.length === 0 ? 'Nothing was lost, doubled or failed.' : `${damage.length} findings.`);
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
  const env = {
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    TEST_GATEWAY_URL: gateway.url,
    STRIPE_SECRET_KEY: secretKey,
    STRIPE_PUBLISHABLE_KEY: publishableKey,
  };
  const service = await startNodes(parts, children, {
    databaseUrls: [servers.proxiedUrl, servers.directUrl],
    env,
  });
  const commandEnv = { ...env, BASE_URL: service.url, DATABASE_URL: servers.proxiedUrl };
  const merchants = await createMerchants(commandEnv);
  const callers = merchants.map(({ caller }) => caller);
  const target = { url: service.url, gateway, receiver };
  const paid: Paid[] = [];
  for (const { id, caller } of merchants) {
    const before = startLoad({ ...target, callers: [caller], rate: 0, shoppers: 4, refunds: none });
    await eventually('some payments', () => before.paid.size >= 4);
    await before.stop();
    for (const checkout of before.paid) paid.push({ id: checkout, caller });
    // Automatic refunds are possible from ten o'clock on the next day.
    await tranche(['clock', 'advance', '--merchant', id, '--by', '2d'], commandEnv);
  }
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
    const { failed, slowest } = figuresOf(row);
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
  damage.push(...(await findDamage(servers.proxiedUrl, load, { gateway, receiver })));
  for (const row of rows) {
    const { failed, errors } = figuresOf(row);
    if (failed.length > 0) {
      const say = ({ kind, statuses, detail }: Call) => `${kind} ${statuses.join()} ${detail}`;
      const reasons = [...new Set(failed.map(say))].slice(0, 5);
      damage.push(`${row.name}: ${failed.length} failed (${reasons.join('; ')})`);
    }
    if (errors > 0) damage.push(`${row.name}: ${errors} answers were errors of the service`);
  }
  report(load.calls);
}

/** Ends all processes that were started, by their ids. */
async function end(): Promise<void> {
  const postgres = strays();
  await children.killAll();
  for (const pid of postgres) {
    try {
      process.kill(pid, 'SIGCONT');
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended with its Patroni.
    }
  }
  network.remove();
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

/** The longest time in which no create was acknowledged, in seconds. */
function pauseOf(calls: Call[], begun: number, ended: number): number {
  const times = calls
    .filter(({ kind, isAcknowledged }) => kind === 'create' && isAcknowledged)
    .map((call) => call.ended ?? 0)
    .filter((time) => time > begun && time < ended)
    .sort((one, other) => one - other);
  const all = [begun, ...times, ended];
  return Math.max(...all.slice(1).map((time, index) => time - (all[index] ?? 0))) / 1_000;
}

function figuresOf({ calls }: Row) {
  const statuses = calls.flatMap((call) => call.statuses);
  const cut = statuses.filter((status) => status === 0).length;
  const errors = statuses.filter((status) => status >= 500).length;
  // Without a key a client cannot retry, and a shopper's page asks for the state instead.
  const isLost = ({ isAcknowledged, begun, ended, hasKey, statuses }: Call) => {
    if (isAcknowledged || ended === null) return false;
    const isCut = cuts.some((cut) => begun < cut.ended && ended > cut.begun);
    return !(isCut && !hasKey && statuses.at(-1) === 0);
  };
  const failed = calls.filter(isLost);
  const slowest = Math.max(0, ...calls.map((call) => (call.ended ?? call.begun) - call.begun));
  return { cut, errors, failed, slowest: (slowest / 1_000).toFixed(1) };
}

function report(calls: Call[]): void {
  say('');
  say('| event | requests | creates paused | 5xx | cut | failed | slowest |');
  say('|---|---|---|---|---|---|---|');
  for (const row of rows) {
    const { errors, cut, failed, slowest } = figuresOf(row);
    const pause = row.pause.toFixed(1);
    const cells = [
      row.name,
      row.calls.length,
      `${pause} s`,
      errors,
      cut,
      failed.length,
      `${slowest} s`,
    ];
    say(`| ${cells.join(' | ')} |`);
  }
  const of = (kind: Call['kind']) =>
    calls.filter((call) => call.kind === kind && call.isAcknowledged).length;
  say('');
  say(`Acknowledged: ${of('create')} creates, ${of('pay')} payments, ${of('refund')} refunds.`);
}
