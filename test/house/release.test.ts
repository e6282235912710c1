import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { findLockGaps } from '../../scripts/check-lock.ts';
import { request } from '../support/http.ts';
import { createTestDatabase } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const root = path.join(import.meta.dirname, '../..');

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let archive: string;
before(async () => {
  folder = await temporaryFolder();
  archive = path.join(folder.path, 'release.tar.gz');
  const program = path.join(root, 'scripts/release.mjs');
  // A test must not need a registry: `npm audit` fails at once, and nothing answers at the address
  // of the registry.
  await placeNpm(path.join(folder.path, 'bin'));
  const PATH = [path.join(folder.path, 'bin'), process.env.PATH].join(path.delimiter);
  const env = { ...process.env, PATH, npm_config_registry: 'http://127.0.0.1:9/' };
  execFileSync(process.execPath, [program, archive], { stdio: 'ignore', env });
});
after(() => folder.remove());

/** Makes an npm that fails to audit, as one without a registry does, and is otherwise the real one. */
async function placeNpm(bin: string): Promise<void> {
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  await fs.mkdir(bin);
  const lines = ['#!/bin/sh', '[ "$1" = audit ] && exit 1', `exec '${npm}' "$@"`];
  await fs.writeFile(path.join(bin, 'npm'), lines.join('\n'), { mode: 0o755 });
}

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
  const place = path.join(folder.path, 'a folder with spaces');
  await fs.mkdir(place);
  execFileSync('tar', ['-xzf', archive, '-C', place]);
  const [name = ''] = await fs.readdir(place);
  const release = path.join(place, name);
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
  const served = await serveRelease(release, database.url);
  t.after(served.kill);
  const { base_url, console_url } = JSON.parse(served.line);
  const page = await request(`${base_url}/pay/unknown`);
  assert.equal(page.status, 404);
  assert.match(page.body, /<h1[^>]*>This link leads nowhere/);
  const [asset] = await fs.readdir(path.join(release, 'web/dist/pay/assets'));
  assert.equal((await request(`${base_url}/pay/assets/${asset}`)).status, 200);
  assert.equal((await request(`${base_url}/docs`)).status, 200);
  assert.match((await request(`${console_url}/`)).body, /<script type="module"/);
  assert.equal(served.stderr(), '', 'the bootstrap had nothing to install, to build or to say');
  served.child.kill('SIGTERM');
  assert.equal(await served.exited, 0, served.stderr());
});

/**
 * Starts a release as a container does, with its secrets in files, and returns the line in which it
 * says that it is ready.
 */
async function serveRelease(release: string, databaseUrl: string) {
  const { PATH, HOME } = process.env;
  const secrets = {
    DATABASE_URL: databaseUrl,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    GATEWAY_MAIN_STRIPE_SECRET_KEY: 'sk_test_of_tests',
  };
  const files: Record<string, string> = {};
  for (const [name, secret] of Object.entries(secrets)) {
    files[`${name}_FILE`] = path.join(folder.path, name);
    await fs.writeFile(path.join(folder.path, name), `${secret}\n`);
  }
  const child = spawn(path.join(release, 'bin/tranche'), ['serve'], {
    cwd: release,
    env: {
      ...{ PATH, HOME, PORT: '0', ...files },
      GATEWAYS: 'main',
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
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  const isReady = (text: string) => text.includes('the service is ready');
  const line = await until('the release to serve', () =>
    child.exitCode === null ? stdout.split('\n').find(isReady) : 'it has ended',
  ).catch(async (error) => {
    await kill();
    throw error;
  });
  if (isReady(line)) return { child, line, stderr: () => stderr, exited, kill };
  await exited;
  // The release chose free ports, and another program took one before it listened there.
  assert.match(stderr, /Port \d+ is in use/);
  return await serveRelease(release, databaseUrl);
}

test('a user who may not write the folder is told so, beside a lock that a killed start left', async () => {
  const place = path.join(folder.path, 'locked');
  const steps = path.join(place, 'scripts/bootstrap');
  await fs.cp(path.join(root, 'scripts/bootstrap'), steps, { recursive: true });
  await fs.writeFile(path.join(place, '.install.lock'), '999999999\n');
  await fs.chmod(place, 0o555);
  const take = `
    if (process.getuid() === 0) process.seteuid(65534);
    const { withLock } = await import(${JSON.stringify(path.join(steps, 'lock.mjs'))});
    await withLock(() => console.log('taken')).catch(({ message }) => console.log(message));`;
  const args = ['--input-type=module', '--eval', take];
  const said = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 120_000 });
  await fs.chmod(place, 0o755);
  assert.match(said, /cannot be written \(EACCES\).* as the user who owns the folder\.$/m);
});

type Component = { name: string; version: string; properties: { name: string; value: string }[] };

test('the bill of materials names every package of a release, installed or built in', async () => {
  const bill = JSON.parse(await fs.readFile(`${archive}.cdx.json`, 'utf8'));
  assert.equal(bill.bomFormat, 'CycloneDX');
  assert.equal(bill.metadata.component.name, 'tranche');
  const named = (place: string) =>
    bill.components
      .filter(({ properties }: Component) => properties.some(({ value }) => value === place))
      .map(({ name, version }: Component) => `${name}@${version}`);
  const { peerDependencies, version } = JSON.parse(
    await fs.readFile(path.join(root, 'package.json'), 'utf8'),
  );
  const lock: Lock = JSON.parse(
    execFileSync('tar', ['-xzOf', archive, `tranche-${version}/package-lock.json`], {
      encoding: 'utf8',
    }),
  );
  const installed = Object.entries(lock.packages)
    .filter(([place]) => place !== '')
    .map(([place, entry]) => {
      const { version } = entry as { version: string };
      return `${place.replace(/^.*node_modules\//, '')}@${version}`;
    });
  assert.deepEqual(new Set(named('installed')), new Set(installed));
  const built = named('built into the pages').map((one: string) => one.replace(/@[^@]*$/, ''));
  // Vite and TypeScript build the pages; everything else is within them.
  assert.deepEqual(
    Object.keys(peerDependencies).filter((name) => !built.includes(name)),
    ['typescript', 'vite'],
  );
});

test('the statement names the commit, the lock file, the builder and both files, and that no registry answered', async () => {
  const statement = JSON.parse(await fs.readFile(`${archive}.provenance.json`, 'utf8'));
  assert.deepEqual(statement.subject, [
    { name: 'release.tar.gz', digest: { sha256: await sha256(archive) } },
    { name: 'release.tar.gz.cdx.json', digest: { sha256: await sha256(`${archive}.cdx.json`) } },
  ]);
  const { buildDefinition, runDetails } = statement.predicate;
  assert.equal(buildDefinition.internalParameters.isAudited, false);
  const [source, lock] = buildDefinition.resolvedDependencies;
  assert.equal(source.digest.gitCommit, git('rev-parse', 'HEAD'));
  assert.equal(source.annotations.isModified, git('status', '--porcelain') !== '');
  assert.equal(lock.digest.sha256, await sha256(path.join(root, 'package-lock.json')));
  assert.equal(runDetails.builder.version.node, process.version);
});

test('a changed file, bill of materials or statement does not pass for the release', async () => {
  const notCommitted = 'The statement names changes that were not committed.';
  const faults = git('status', '--porcelain') === '' ? [] : [notCommitted];
  assert.deepEqual(verify(archive), faults);

  const changed = path.join(folder.path, 'changed.tar.gz');
  const unpacked = path.join(folder.path, 'changed');
  await fs.mkdir(unpacked);
  execFileSync('tar', ['-xzf', archive, '-C', unpacked]);
  const [name = ''] = await fs.readdir(unpacked);
  await fs.appendFile(path.join(unpacked, name, 'src/main.ts'), '// one more line\n');
  await fs.appendFile(path.join(unpacked, name, 'web/dist/stamp'), 'x');
  const tar = execFileSync('tar', ['-cf', '-', '-C', unpacked, name], { maxBuffer: 1e9 });
  await fs.writeFile(changed, gzipSync(tar, { level: 1 }));
  const statement = await fs.readFile(`${archive}.provenance.json`, 'utf8');
  await fs.copyFile(`${archive}.cdx.json`, `${changed}.cdx.json`);
  await fs.appendFile(`${changed}.cdx.json`, '\n');
  // Even a statement with the right digest does not hide what differs from the commit.
  const forged = statement
    .replaceAll('release.tar.gz', 'changed.tar.gz')
    .replace(await sha256(archive), await sha256(changed));
  await fs.writeFile(`${changed}.provenance.json`, forged);
  assert.deepEqual(verify(changed), [
    `${changed}.cdx.json does not have the SHA-256 that the statement names.`,
    ...faults,
    'src/main.ts differs.',
    'web/dist/stamp differs.',
  ]);

  const elsewhere = forged.replace(git('rev-parse', 'HEAD'), 'f'.repeat(40));
  await fs.writeFile(`${changed}.provenance.json`, elsewhere);
  const commit = `The statement names commit ${'f'.repeat(40)}; check it out first.`;
  assert.deepEqual(verify(changed), [commit]);
});

async function sha256(file: string): Promise<string> {
  return createHash('sha256')
    .update(await fs.readFile(file))
    .digest('hex');
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

/** Returns what an operator's check of a release finds wrong. */
function verify(file: string): string[] {
  const program = path.join(root, 'scripts/verify-release.mjs');
  const { status, stderr } = spawnSync(process.execPath, [program, file], { encoding: 'utf8' });
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => line.replace('tranche: ', ''));
  if (status !== 0) return lines;
  assert.deepEqual(lines, [`${file} is what this commit makes.`]);
  return [];
}
