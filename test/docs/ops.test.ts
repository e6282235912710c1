import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { type Service, startService } from '../support/service.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string) => readFile(path.join(root, name), 'utf8');

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.close());

async function listMetrics(): Promise<Map<string, number>> {
  const text = await service.deps.metrics.registry.metrics();
  return new Map(
    [...text.matchAll(/^([a-z]\w*(?:\{[^}]*\})?) ([-+.\deNaInf]+)$/gm)].map(([, name, value]) => [
      name ?? '',
      Number(value),
    ]),
  );
}

test('every metric in the alert rules and on the dashboard exists', async () => {
  await service.app.inject('/healthz');
  service.deps.metrics.observeGateway('capture', 'answered', 12);
  service.deps.metrics.observeBatch('checkouts', 3);
  const known = new Set([...(await listMetrics()).keys()].map((name) => name.split('{')[0]));
  // These need rows, which a new database does not have.
  known.add('tranche_state').add('tranche_today');
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
  assert.equal(metrics.get('tranche_state{state="open alerts"}'), 0);
  assert.equal(metrics.get('tranche_today{measure="created"}'), 0);
});

test('every alert rule has an entry in the runbook, and every entry a rule', async () => {
  const rules = [...(await read('ops/prometheus/alerts.yml')).matchAll(/- alert: (\w+)/g)];
  const entries = [...(await read('docs/operators/runbook.md')).matchAll(/^## (\w+)$/gm)];
  assert.deepEqual(
    rules.map(([, name]) => name).toSorted(),
    entries.map(([, name]) => name).toSorted(),
  );
});
