import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { findLockGaps } from '../../scripts/check-lock.ts';
import { request, temporaryFolder, until } from '../support/sandbox-process.ts';
import { createTestDatabase } from '../support/service.ts';

const root = path.join(import.meta.dirname, '../..');

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
before(async () => {
  folder = await temporaryFolder();
});
after(() => folder.remove());

type Lock = { packages: Record<string, object> };

/** Links what `npm ci` would install, because a test must not need a registry. */
async function installFromHere(release: string): Promise<void> {
  const lock: Lock = JSON.parse(await fs.readFile(path.join(release, 'package-lock.json'), 'utf8'));
  const modules = path.join(release, 'node_modules');
  const installed: Lock = JSON.parse(
    await fs.readFile(path.join(root, 'node_modules/.package-lock.json'), 'utf8'),
  );
  const kept = Object.entries(installed.packages).filter(([place]) => place in lock.packages);
  for (const [place] of kept) {
    const name = place.replace(/^node_modules\//, '');
    // A package within another one comes with that one.
    if (name.includes('node_modules/')) continue;
    await fs.mkdir(path.dirname(path.join(modules, name)), { recursive: true });
    await fs.symlink(path.join(root, place), path.join(modules, name));
  }
  await fs.writeFile(
    path.join(modules, '.package-lock.json'),
    JSON.stringify({ packages: Object.fromEntries(kept) }),
  );
}

test('a release serves its pages without the packages that build, test or check', async (t) => {
  const archive = path.join(folder.path, 'release.tar.gz');
  execFileSync(process.execPath, [path.join(root, 'scripts/release.mjs'), archive], {
    stdio: 'ignore',
  });
  execFileSync('tar', ['-xzf', archive, '-C', folder.path]);
  const [name = ''] = (await fs.readdir(folder.path)).filter((one) => /^tranche-\d/.test(one));
  const release = path.join(folder.path, name);
  assert.deepEqual(findLockGaps(release), []);
  await installFromHere(release);
  const exists = (file: string) =>
    fs.access(path.join(release, file)).then(
      () => true,
      () => false,
    );
  assert.equal(await exists('node_modules/fastify'), true);
  for (const file of [
    'node_modules/vite',
    'node_modules/preact',
    'node_modules/knip',
    'test',
    '.git',
  ]) {
    assert.equal(await exists(file), false, file);
  }
  const tests = (await fs.readdir(path.join(release, 'src'), { recursive: true })).filter((file) =>
    file.endsWith('.test.ts'),
  );
  assert.deepEqual(tests, []);

  const database = await createTestDatabase();
  t.after(database.drop);
  const { PATH, HOME } = process.env;
  const child = spawn(path.join(release, 'bin/tranche'), ['serve'], {
    cwd: release,
    env: {
      PATH,
      HOME,
      PORT: '0',
      DATABASE_URL: database.url,
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      STRIPE_SECRET_KEY: 'sk_test_of_tests',
      STRIPE_PUBLISHABLE_KEY: 'pk_test_of_tests',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const line = await until('the release to serve', () => {
    assert.equal(child.exitCode, null, stderr);
    return stdout.split('\n').find((text) => text.includes('the service is ready'));
  });
  const { base_url, console_url } = JSON.parse(line);
  const page = await request(`${base_url}/pay/unknown`);
  assert.equal(page.status, 404);
  assert.match(page.body, /<h1[^>]*>This link leads nowhere/);
  const [asset] = await fs.readdir(path.join(release, 'web/dist/pay/assets'));
  assert.equal((await request(`${base_url}/pay/assets/${asset}`)).status, 200);
  assert.equal((await request(`${base_url}/docs`)).status, 200);
  assert.match((await request(`${console_url}/`)).body, /<script type="module"/);
  assert.equal(stderr, '', 'the bootstrap had nothing to install, to build or to say');
  child.kill('SIGTERM');
  assert.equal(await exited, 0, stderr);
});
