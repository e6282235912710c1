import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { judgeSignatures, judgeVulnerabilities, readTimes } from '../../scripts/audit.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = path.join(import.meta.dirname, '../..');
const times = readTimes(fs.readFileSync(path.join(root, 'SECURITY.md'), 'utf8'));

test('SECURITY.md has a time for every severity, and the severe ones fail a build', () => {
  assert.deepEqual([...times.keys()], ['critical', 'high', 'moderate', 'low']);
  const days = [...times.values()].map((time) => time.days);
  assert.deepEqual(
    days,
    days.toSorted((a, b) => a - b),
  );
  assert.deepEqual(
    [...times].filter(([, time]) => time.fails).map(([severity]) => severity),
    ['critical', 'high'],
  );
});

test('a vulnerability fails a build by its severity, and only within a release', () => {
  const at = (name: string, severity: string) => ({
    [name]: { name, severity, via: ['a reason'], nodes: [`node_modules/${name}`] },
  });
  const released = new Set(['node_modules/a', 'node_modules/b', 'node_modules/c']);
  const { failures, notes } = judgeVulnerabilities(
    {
      vulnerabilities: {
        ...at('a', 'high'),
        ...at('b', 'moderate'),
        // A severity that SECURITY.md does not list is treated as serious.
        ...at('c', 'catastrophic'),
        ...at('tool', 'critical'),
      },
    },
    released,
    times,
  );
  assert.deepEqual(
    failures.map((line) => line.split(':')[0]),
    ['a', 'c'],
  );
  assert.deepEqual(
    notes.map((line) => line.split(':')[0]),
    ['b', 'tool'],
  );
});

test('a wrong signature fails a build, a missing one is reported', () => {
  const one = (name: string) => ({ name, version: '1.0.0' });
  assert.deepEqual(judgeSignatures({ invalid: [one('a')], missing: [one('b')] }), {
    failures: ['a@1.0.0: its signature is wrong'],
    notes: ['b@1.0.0: the registry has no signature for it'],
  });
});

test('a registry that knows of a severe vulnerability fails the audit, which also reads the lock file of the mutants, and no release is made', async (t) => {
  const advisory = {
    id: 1,
    url: 'https://advisories.example/1',
    title: 'A hole',
    severity: 'high',
    vulnerable_versions: '<999',
  };
  const tools = { '@stryker-mutator/core': [advisory] };
  // A release begins with an audit.
  const { code, stderr } = await audit(
    t,
    (url) =>
      url === '/-/npm/v1/security/advisories/bulk' ? { fastify: [advisory], ...tools } : null,
    'scripts/release.mjs',
  );
  assert.match(stderr, /did not answer about signatures/);
  assert.match(stderr, /No release is made from packages that the audit refuses/);
  assert.match(stderr, /fastify: high, to be fixed within 7 days \(A hole/);
  assert.match(stderr, /@stryker-mutator\/core: high, not in a release \(A hole/);
  assert.equal(code, 1);
});

test('a registry that does not answer fails nothing, and the audit says so', async (t) => {
  const { code, stderr } = await audit(t, () => null);
  assert.match(stderr, /did not answer about vulnerabilities/);
  assert.match(stderr, /did not answer about signatures/);
  assert.equal(code, 0);
});

/** Runs the audit against a registry that gives this answer, or a 503 if the answer is null. */
async function audit(
  t: TestContext,
  answer: (url: string) => object | null,
  program = 'scripts/audit.ts',
) {
  const folder = await temporaryFolder();
  t.after(folder.remove);
  const server = http.createServer((request, response) => {
    const body = answer(request.url ?? '');
    request.resume();
    response.writeHead(body === null ? 503 : 200, { 'content-type': 'application/json' });
    response.end(body === null ? undefined : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const child = spawn(
    process.execPath,
    [path.join(root, program), path.join(folder.path, 'file')],
    {
      env: {
        ...process.env,
        npm_config_registry: `http://127.0.0.1:${port}/`,
        npm_config_cache: folder.path,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let stderr = '';
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, stderr };
}
