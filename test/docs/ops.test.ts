import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { METHODS } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { resumeMoney } from '#checks/reconciliation/gateway-heartbeat.sql.ts';
import { readConfig } from '#config.ts';
import { mainGateway } from '#gateway/gateway-name.ts';
import { gatherMetrics } from '#hosting/running/process-metrics.ts';
import { stopMilliseconds } from '#main.ts';
import { rollUp } from '#operating/rollups/roll-up.ts';
import { distribution } from '#platform/database/distribute-database.ts';
import { declineRefund } from '#purchases/refunds/review-refund.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { merchantWork } from '#worker.ts';
import { allColumns } from '../../scripts/check-statements.ts';
import { gatewayOf } from '../support/gateway.ts';
import { askRefund, cards, refundNow } from '../support/money.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { createAccount, productionSettings, type Service, testConfig } from '../support/service.ts';
import { until } from '../support/until.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string) => readFile(path.join(root, name), 'utf8');

let paying: Paying;
let service: Service;
let clock: Paying['clock'];
before(async () => {
  paying = await startPaying();
  ({ service, clock } = paying);
});
after(() => paying.close());

/** The groups of figures that the metrics read from the database. */
const readings = ['table_bytes', 'due_ages', 'today', 'states'];

/**
 * The metrics. A slow machine may need more than one scrape to read the figures of the database.
 */
async function listMetrics(): Promise<Map<string, number>> {
  return await until('current figures', async () => {
    const text = await service.deps.metrics.registry.metrics();
    const found = text.matchAll(/^([a-z]\w*(?:\{[^}]*\})?) ([-+.\deNaInf]+)$/gm);
    const metrics = new Map([...found].map(([, name = '', value]) => [name, Number(value)]));
    const ages = readings.map((reading) =>
      metrics.get(`tranche_metric_reading_age_seconds{reading="${reading}"}`),
    );
    return ages.every((age) => age !== undefined && age < 10) && metrics;
  });
}

test('every metric in the alert rules and on the dashboard exists', async () => {
  const supervisor = await gatherMetrics(clock, 1).read();
  const known = new Set([
    ...service.deps.metrics.registry
      .getMetricsAsArray()
      .flatMap(({ name }) => [name, `${name}_bucket`, `${name}_count`, `${name}_sum`]),
    ...[...supervisor.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name),
  ]);
  for (const file of ['ops/prometheus/alerts.yml', 'ops/grafana/tranche.json']) {
    const named = (await read(file)).match(/\b(?:tranche|nodejs)_[a-z_\d]+\b/g) ?? [];
    assert.ok(named.length > 5, file);
    for (const name of new Set(named)) assert.ok(known.has(name), `${file}: ${name}`);
  }
});

test('the metrics show due work, connections, the clock, and what waits for an operator', async () => {
  const metrics = await listMetrics();
  const work = [...metrics.keys()].filter((name) => name.startsWith('tranche_due_oldest_seconds'));
  assert.ok(work.includes('tranche_due_oldest_seconds{work="deliver callbacks"}'), work.join());
  assert.ok(metrics.has('tranche_database_connections{state="wanted"}'));
  assert.ok(metrics.has('tranche_clock_skew_seconds'));
  assert.equal(metrics.get('tranche_state_rows{state="open alerts"}'), 0);
  for (const state of [
    'callbacks to deliver',
    'exhausted callbacks',
    'pending refunds',
    'messages to send',
    'overdue payments',
  ]) {
    assert.equal(metrics.get(`tranche_state_rows{state="${state}"}`), 0, state);
  }
  assert.ok(metrics.has('nodejs_eventloop_lag_p99_seconds'));
  assert.equal(metrics.get('tranche_today_rows{measure="created"}'), 0);
});

test('callbacks, calls to the gateway and commits move their metrics', async () => {
  const first = await listMetrics();
  const moved = async (name: string) =>
    ((await listMetrics()).get(name) ?? 0) - (first.get(name) ?? 0);
  const shopper = await paying.shopper({ notify_url: `${paying.receiver.url}/metrics` });
  const { answer } = paying.receiver;
  paying.receiver.answer = (_, count) => ({ status: count === 1 ? 500 : 200 });
  await shopper.pay(3);
  const attempts = 'tranche_callback_attempts_total';
  await until('the first attempt', () => moved(`${attempts}{outcome="failed"}`));
  await paying.pass({ days: 1 });
  paying.receiver.answer = answer;
  assert.equal(await moved(`${attempts}{outcome="failed"}`), 1);
  assert.equal(await moved(`${attempts}{outcome="delivered"}`), 1);
  const calls = 'tranche_gateway_call_seconds_count';
  assert.equal(await moved(`${calls}{gateway="main",operation="begin",outcome="answered"}`), 1);
  assert.equal(await moved('tranche_commit_batch_items_count{commit="checkouts"}'), 1);
  assert.equal(await moved('tranche_commit_batch_items_sum{commit="checkouts"}'), 1);
  for (const commit of ['callback attempts opened', 'callback attempts recorded']) {
    assert.equal(await moved(`tranche_commit_batch_items_sum{commit="${commit}"}`), 2, commit);
  }
});

test('the metrics follow alerts and the check of the books', async () => {
  const { deps } = service;
  const { pool, db } = deps.database;
  const sinceProof = 'tranche_state_seconds{state="since the books were proved"}';
  const started = clock.now().subtract({ hours: 3 }).toString();
  await pool.query(
    `insert into installation (environment, created_at) values ('sandbox', $1)
     on conflict do nothing`,
    [started],
  );
  const account = await createAccount(service);
  const merchant_id = account.merchant.id;
  await raiseAlert(deps, db, { kind: 'card_testing', merchant_id, detail: 'A test.' });
  // The figures are reused for ten seconds.
  clock.advance({ seconds: 11 });
  const unproved = await listMetrics();
  assert.equal(unproved.get('tranche_state_rows{state="open alerts"}'), 1);
  assert.equal(unproved.get(sinceProof), 3 * 3600 + 11, 'counted from the first start');
  const stopped = 'tranche_state_rows{state="stops of money"}';
  assert.equal(unproved.get(stopped), 0);
  await pool.query(`update gateway_heartbeat set stopped_at = now(), stopped_reason = 'A test.'`);
  const { rowCount } = await pool.query('update audit set proved_at = $1, proved_differences = 2', [
    clock.now().toString(),
  ]);
  assert.equal(rowCount, 1);
  clock.advance({ seconds: 20 });
  const proved = await listMetrics();
  assert.equal(proved.get(sinceProof), 20);
  assert.equal(proved.get('tranche_state_rows{state="differences in the books"}'), 2);
  assert.equal(proved.get(stopped), 1);
  await resumeMoney(db);
});

/** The figures of the business that an action moves, and by how much. */
async function movedBy(run: () => Promise<unknown>): Promise<Record<string, number>> {
  const settle = async () => {
    while ((await rollUp(service.deps, 0)) > 0);
    clock.advance({ seconds: 11 });
    return await listMetrics();
  };
  const first = await settle();
  await run();
  await paying.work();
  const last = await settle();
  const moved: Record<string, number> = {};
  for (const [name, value] of last) {
    const [, label] = /^tranche_(?:today|state)_(?:rows|cents)\{\w+="(.*)"\}$/.exec(name) ?? [];
    const change = value - (first.get(name) ?? 0);
    if (label !== undefined && change !== 0) moved[label] = change;
  }
  return moved;
}

test('a payment moves what was opened, tried, approved, paid and sold; its capture moves what was collected', async () => {
  const shopper = await paying.shopper();
  assert.deepEqual(await movedBy(() => shopper.pay(3)), {
    // These shoppers pay through the page's protocol without opening the page. Such a payment
    // counts as opened.
    opened: 1,
    tried: 1,
    approved: 1,
    paid: 1,
    sold: 150_000,
    // These are the reminders of the later payments.
    'messages to send': 2,
  });
  const payments = await shopper.rows('instalments');
  const { due_at } = payments.find(({ number }) => number === 1);
  await paying.pass(Temporal.Instant.from(due_at).subtract({ minutes: 1 }).toString());
  assert.deepEqual(await movedBy(() => paying.pass({ minutes: 2 })), { collected: 50_000 });
});

test('a declined payment moves what was tried, the declines and its reason', async () => {
  const shopper = await paying.shopper();
  const decline = () => shopper.pay(1, { card: '4000000000009995' });
  assert.deepEqual(await movedBy(decline), {
    opened: 1,
    tried: 1,
    declined: 1,
    'declined: insufficient_funds': 1,
  });
});

test('a refund moves from its review to what was refunded, or to nothing', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(1);
  await paying.work();
  let id = '';
  const ask = async () => {
    id = await askRefund(paying, shopper, 10_000);
  };
  assert.deepEqual(await movedBy(ask), { 'refunds to review': 1 });
  const decline = () => declineRefund(service.deps, 'nomsa', id, 'Not agreed.');
  assert.deepEqual(await movedBy(decline), { 'refunds to review': -1 });
  assert.deepEqual(await movedBy(() => refundNow(paying, shopper, 20_000)), { refunded: 20_000 });
});

test('a refund that the gateway has not confirmed is pending until it is', async () => {
  const shopper = await paying.shopper();
  await shopper.pay(1, { card: cards.refundPending });
  await paying.pass({ days: 2 });
  const begin = () => refundNow(paying, shopper, 20_000);
  assert.deepEqual(await movedBy(begin), { 'pending refunds': 1 });
  const confirm = () => paying.pass({ hours: 4 });
  assert.deepEqual(await movedBy(confirm), { 'pending refunds': -1, refunded: 20_000 });
});

test('no statement that a program names itself returns all columns of a table', async () => {
  await (await paying.shopper()).pay(1);
  await paying.work();
  const { pool } = service.deps.database;
  const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
  try {
    const found = await Promise.all(
      clients.map((client) => client.query('select name, statement from pg_prepared_statements')),
    );
    // Other statements have hashes as names, and run again if the columns of their result change.
    const prepared = found.flatMap(({ rows }) => rows).filter(({ name }) => /^[a-z-]+$/.test(name));
    assert.ok(prepared.some(({ name }) => name === 'callback-attempts-end'));
    for (const { name, statement } of prepared) assert.doesNotMatch(statement, allColumns, name);
  } finally {
    for (const client of clients) client.release();
  }
});

/** Every value that a label may have. Each new one is a series that is stored for ever. */
const labelValues: Record<string, (value: string) => boolean> = {
  method: (value) => METHODS.includes(value),
  route: (value) => value === 'unknown' || METHODS.some((method) => hasRoute(method, value)),
  status: (value) => /^[1-5]\d\d$/.test(value),
  gateway: (value) => value === mainGateway,
  operation: (value) => value in gatewayOf(service.deps),
  outcome: oneOf(
    ...['answered', 'refused', 'no_answer', 'too_many', 'undecided', 'unknown'],
    ...['delivered', 'failed', 'collected', 'declined', 'lapsed', 'lost', 'sent'],
  ),
  kind: oneOf('capture', 'charge'),
  commit: oneOf('checkouts', 'callback attempts opened', 'callback attempts recorded'),
  table: oneOf(...distribution.map(({ table }) => table)),
  work: oneOf(...merchantWork.map(({ name }) => name)),
  reading: oneOf(...readings),
  event: oneOf('authentication_refused', 'sign_in_refused', 'permission_refused'),
  // The reasons of declines are ours, not the gateway's.
  measure: (value) => /^(?:[a-z]+|declined: [a-z_]+)$/.test(value),
  state: (value) => /^[a-z ]+$/.test(value),
  le: (value) => value === '+Inf' || Number(value) > 0,
};

function oneOf(...values: string[]) {
  return (value: string) => values.includes(value);
}

function hasRoute(method: string, url: string): boolean {
  return service.app.hasRoute({ method, url } as Parameters<typeof service.app.hasRoute>[0]);
}

test('no request adds a value to a label that is not in a fixed set', async () => {
  const hostile = '%7Bx%3D%22y%22%7D';
  for (const url of [
    `/${hostile}`,
    `/api/${hostile}`,
    `/api/checkouts/${hostile}`,
    `/api/checkouts?filter[${hostile}]=${hostile}`,
    `/pay/${hostile}/state`,
    `/docs/${hostile}`,
    '/../../etc/passwd',
  ]) {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS'] as const) {
      await service.app.inject({ method, url });
    }
  }
  const names = [...(await listMetrics()).keys()].filter((name) => name.startsWith('tranche_'));
  const labels = names.flatMap((name) => [...name.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]);
  assert.ok(labels.some(([, label, value]) => label === 'route' && value === 'unknown'));
  for (const [, label = '', value = ''] of labels) {
    assert.ok(labelValues[label]?.(value), `${label}="${value}"`);
  }
});

test('every log line and every kind of work that the runbook quotes exists', async () => {
  const source = globSync('src/**/*.ts', { cwd: root })
    .map((name) => readFileSync(path.join(root, name), 'utf8'))
    .join();
  const quoted = (await read('docs/operators/runbook.md')).matchAll(/`([^`]+)`/g);
  const lines = [...quoted]
    .map(([, text = '']) => text.replaceAll(/\s+/g, ' '))
    .filter((text) => /^[a-z][a-z ]* [a-z]+$/.test(text) && !/^(?:tranche|systemctl) /.test(text));
  assert.ok(lines.includes('a run of due work failed') && lines.includes('reconcile the gateway'));
  for (const line of lines) assert.ok(source.includes(`'${line}`), line);
});

test('every alert rule has an entry in the runbook, and every entry a rule', async () => {
  const rules = [...(await read('ops/prometheus/alerts.yml')).matchAll(/- alert: (\w+)/g)];
  const entries = [...(await read('docs/operators/runbook.md')).matchAll(/^## (\w+)$/gm)];
  assert.deepEqual(
    rules.map(([, name]) => name).toSorted(),
    entries.map(([, name]) => name).toSorted(),
  );
});

test('no panel of the dashboard overlaps another, and each queries Prometheus', async () => {
  type Panel = {
    id: number;
    title: string;
    gridPos: { x: number; y: number; w: number; h: number };
    datasource: { type: string; uid: string };
    targets: { refId: string; expr: string }[];
  };
  const { panels }: { panels: Panel[] } = JSON.parse(await read('ops/grafana/tranche.json'));
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const [index, one] of panels.entries()) {
    assert.equal(one.datasource.type, 'prometheus');
    assert.match(one.datasource.uid, /^\$\{source\}$/);
    assert.ok(one.targets.length > 0 && one.targets.every(({ expr }) => expr !== ''), one.title);
    const { x, y, w, h } = one.gridPos;
    assert.ok(x >= 0 && x + w <= 24, one.title);
    for (const other of panels.slice(index + 1)) {
      const { x: left, y: top, w: width, h: height } = other.gridPos;
      const isApart = x + w <= left || left + width <= x || y + h <= top || top + height <= y;
      assert.ok(isApart, `${one.title} overlaps ${other.title}`);
    }
  }
});

/** Runs a program of the system, or skips the test where it is missing. */
function runTool(t: TestContext, program: string, args: string[], cwd: string): void {
  const { error, status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
    t.skip(`${program} is not installed`);
    return;
  }
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stdout}${stderr}`);
}

test('promtool accepts the configuration and the rules, and their tests pass', (t) => {
  const folder = path.join(root, 'ops/prometheus');
  runTool(t, 'promtool', ['check', 'config', 'prometheus.yml'], folder);
  runTool(t, 'promtool', ['test', 'rules', 'alerts.test.yml'], folder);
});

test('systemd accepts the unit', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'tranche-unit-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  // Tranche is not installed here, so another program stands in for it.
  const unit = await read('ops/systemd/tranche.service');
  assert.match(unit, /^ExecStart=\/opt\/tranche\/bin\/tranche serve/m);
  const file = path.join(folder, 'tranche.service');
  await writeFile(file, unit.replace('/opt/tranche/bin/tranche', '/bin/true'));
  runTool(t, 'systemd-analyze', ['verify', file], folder);
});

test('the unit lets the program start, and stop in its own time', async () => {
  const unit = await read('ops/systemd/tranche.service');
  const settings = new Map(
    [...unit.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, text]) => [name, text]),
  );
  // Fastify lists the network interfaces when it listens on every address: that takes netlink.
  assert.deepEqual(settings.get('RestrictAddressFamilies')?.split(' ').toSorted(), [
    'AF_INET',
    'AF_INET6',
    'AF_NETLINK',
    'AF_UNIX',
  ]);
  for (const name of ['MemoryDenyWriteExecute', 'SystemCallFilter', 'ProcSubset']) {
    assert.equal(settings.get(name), undefined, `${name} was not tried with Node`);
  }
  const { drainSeconds, requestDeadlineSeconds } = testConfig('postgres://localhost/tranche', {
    TRANCHE_ENV: 'production',
  });
  const needed = drainSeconds + requestDeadlineSeconds + stopMilliseconds / 1000;
  assert.ok(needed > 40);
  const compose = await read('ops/container/compose.yaml');
  const [, grace] = /stop_grace_period: (\d+)s/.exec(compose) ?? [];
  for (const given of [settings.get('TimeoutStopSec'), grace]) {
    assert.ok(Number(given) >= needed + 5, `${given} seconds`);
  }
});

test('Compose, HAProxy and Prometheus name the same nodes', async () => {
  const names = async (file: string, pattern: RegExp) =>
    [...new Set([...(await read(file)).matchAll(pattern)].map(([, name]) => name))].toSorted();
  const services = await names('ops/container/compose.yaml', /^ {2}([\w-]+): [*]node$/gm);
  assert.deepEqual(services, ['node-1', 'node-2']);
  for (const port of ['3000', '3003']) {
    const pattern = new RegExp(`^ {2}server \\S+ ([\\w-]+):${port}$`, 'gm');
    assert.deepEqual(await names('ops/container/haproxy.cfg', pattern), services);
  }
  const targets = await names('ops/prometheus/prometheus.yml', /"([\w-]+):3009"/g);
  assert.deepEqual(targets, services);
});

test('a node accepts the settings of Compose, its console has an address, and containers restart', async () => {
  const compose = await read('ops/container/compose.yaml');
  const [node = ''] = compose.split(/^services:$/m);
  const given: NodeJS.ProcessEnv = { ...productionSettings, POSTGRES_PASSWORD: 'secret' };
  const settings: NodeJS.ProcessEnv = {};
  for (const [, name = '', value = ''] of node.matchAll(/^ {4}([A-Z_]+): "?([^"\n]*)"?$/gm)) {
    settings[name] = value.replaceAll(
      /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)\}/g,
      (_, one, byDefault) => given[one] ?? byDefault ?? assert.fail(`${one} is not set`),
    );
  }
  const config = readConfig(settings);
  assert.equal(config.environment, 'production');
  // Another container reaches it, and its port is published on this machine only.
  assert.equal(config.console.host, '0.0.0.0');
  assert.match(compose, new RegExp(`"127\\.0\\.0\\.1:${config.console.port}:3003"`));
  const containers = compose.match(/^ {2,4}(?:build|image):/gm) ?? [];
  assert.equal(containers.length, 4);
  assert.equal(compose.match(/^ {2,4}restart: unless-stopped$/gm)?.length, containers.length);
});

test('HAProxy accepts its configuration', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'tranche-haproxy-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  // The certificate does not exist here, so it is left out. Neither do the nodes' host names, but
  // HAProxy starts without them.
  const text = (await read('ops/container/haproxy.cfg')).replace(/ ssl crt \S+/, '');
  await writeFile(path.join(folder, 'haproxy.cfg'), text);
  runTool(t, 'haproxy', ['-c', '-f', 'haproxy.cfg'], folder);
});
