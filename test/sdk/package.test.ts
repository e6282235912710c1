import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import manifest from '../../sdk/package.json' with { type: 'json' };
import { type Account, createAccount, type Service, startService } from '../support/service.ts';

// The archive that a service serves, as a merchant's developer installs it: in an empty project,
// without a registry.

const run = promisify(execFile);
const root = path.join(import.meta.dirname, '../..');

/** The pinned Node, and the first other one on the PATH, which may be the oldest supported. */
async function findNodes(): Promise<Map<string, string>> {
  const nodes = new Map([[process.version, process.execPath]]);
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const program = path.join(folder, 'node');
    if (folder.includes('node_modules') || !existsSync(program)) continue;
    const version = (await run(program, ['--version'])).stdout.trim();
    if (Number.parseInt(version.slice(1), 10) >= 20) nodes.set(version, program);
  }
  return nodes;
}

const program = `
import { callbackHandlers, sign, Tranche, TrancheError, verifyCallback } from '@tranche/merchant';

const { TRANCHE_URL, CLIENT_SECRET, SIGNING_KEY } = process.env;
const tranche = new Tranche({
  baseUrl: TRANCHE_URL, clientSecret: CLIENT_SECRET, signingKey: SIGNING_KEY,
});
const { id } = await tranche.checkouts.create({
  amount: 150000, currency: 'ZAR', client_reference_id: 'order-1001',
  notify_url: 'https://shop.example/callback', success_url: 'https://shop.example/paid',
  cancel_url: 'https://shop.example/cart', customer: { email: 'thandi@example.com' },
});
const listed = [];
for await (const checkout of tranche.checkouts.list()) listed.push(checkout.id);
const refused = await tranche.checkouts.get('nothing').catch((error) => error);
const body = '{"status":"successful","amount":150000,"currency":"ZAR","client_reference_id":"order-1001","number_of_payments":3}';
const signature = await sign(body, SIGNING_KEY);
const callback = await verifyCallback(body, signature, [SIGNING_KEY], { requireTimestamp: false });
const handlers = callbackHandlers({
  signingKey: SIGNING_KEY, requireTimestamp: false, onCallback: () => {},
});
const answer = await handlers.fetch(new Request('http://shop.example/callback', {
  method: 'POST', body, headers: { 'X-Signature': signature },
}));
console.log(JSON.stringify({
  id, listed, refused: refused instanceof TrancheError && refused.status,
  status: callback.status, answer: answer.status,
}));
`;

const typed = `
import { type Callback, callbackHandlers, Tranche, verifyCallback } from '@tranche/merchant';
import type { PaymentLink, PaymentLinkCreateRequest } from '@tranche/merchant';
import { createServer } from 'node:http';

const tranche = new Tranche({ baseUrl: '', clientSecret: '', signingKey: '' });
const { payment_url } = await tranche.checkouts.create({
  amount: 1, currency: 'ZAR', client_reference_id: 'a', notify_url: '', success_url: '',
  cancel_url: '', customer: { email: '' }, line_items: [{ name: '', amount: 1, quantity: 1 }],
});
const where: string = payment_url;
// @ts-expect-error: an amount is a number of cents.
await tranche.refunds.create({ checkout_id: where, amount: '1' });
for await (const refund of tranche.refunds.list()) {
  const status: 'requested' | 'pending' | 'complete' | 'failed' = refund.attributes.status;
  console.log(status);
}
const wanted: PaymentLinkCreateRequest = { currency: 'ZAR', client_reference_id: 'a', amount: 1 };
const link: PaymentLink = await tranche.paymentLinks.create(wanted);
console.log(link.attributes.url);
const callback: Callback = await verifyCallback(new Uint8Array(), null, ['a', 'b']);
const handlers = callbackHandlers({
  signingKey: 'a',
  onCallback: async ({ status }) => (status === 'successful' ? { redirect_url: '' } : undefined),
});
createServer(handlers.node);
console.log(callback.number_of_payments);
`;

describe('the packed package', () => {
  let folder: string;
  let service: Service;
  let account: Account;
  let baseUrl: string;

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tranche-sdk-'));
    service = await startService();
    baseUrl = await service.app.listen({ host: '127.0.0.1', port: 0 });
    account = await createAccount(service);
    await writeFile(path.join(folder, 'package.json'), '{"type":"module","private":true}');
    const noRegistry = '--registry=http://127.0.0.1:9';
    const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
    await run('npm', ['install', `${baseUrl}/docs/sdk/latest.tgz`, noRegistry, ...quiet], {
      cwd: folder,
    });
  });
  after(async () => {
    service.app.server.closeAllConnections();
    await service.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('contains what is needed and nothing else', async () => {
    const installed = path.join(folder, 'node_modules/@tranche/merchant');
    assert.deepEqual((await readdir(installed)).sort(), [
      'LICENSE',
      'README.md',
      'dist',
      'package.json',
    ]);
    const files = await readdir(path.join(installed, 'dist'));
    const packed = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: path.join(root, 'sdk'),
    });
    const [{ files: expected }] = JSON.parse(packed.stdout);
    assert.deepEqual(
      [...files.map((name) => `dist/${name}`), 'LICENSE', 'README.md', 'package.json'].sort(),
      expected.map((file: { path: string }) => file.path).sort(),
    );
    assert.ok(files.includes('index.js') && files.includes('index.d.ts'));
    assert.ok(files.every((name) => /^[\w-]+(\.js|\.d\.ts)$/.test(name)));
    assert.deepEqual(await readdir(path.join(folder, 'node_modules')), [
      '.package-lock.json',
      '@tranche',
    ]);
  });

  test('has a name with its version, and the hash that npm records', async () => {
    const about = (await service.app.inject('/docs/sdk/latest.json')).json();
    const lock = JSON.parse(await readFile(path.join(folder, 'package-lock.json'), 'utf8'));
    assert.equal(lock.packages['node_modules/@tranche/merchant'].integrity, about.integrity);
    const { version } = manifest;
    assert.deepEqual(about, {
      name: '@tranche/merchant',
      version,
      url: `${service.deps.baseUrl}/docs/sdk/tranche-merchant-${version}.tgz`,
      integrity: about.integrity,
    });
    const stays = await fetch(`${baseUrl}${new URL(about.url).pathname}`);
    assert.equal(stays.headers.get('content-type'), 'application/gzip');
    const bytes = Buffer.from(await stays.arrayBuffer());
    assert.equal(`sha512-${createHash('sha512').update(bytes).digest('base64')}`, about.integrity);
  });

  test('works against the service on every installed Node', async () => {
    for (const [version, node] of await findNodes()) {
      await writeFile(path.join(folder, 'first.mjs'), program);
      const { stdout } = await run(node, ['first.mjs'], {
        cwd: folder,
        env: {
          TRANCHE_URL: baseUrl,
          CLIENT_SECRET: account.client_secret,
          SIGNING_KEY: account.signing_key,
        },
      });
      const { id, listed, ...rest } = JSON.parse(stdout);
      assert.equal(listed[0], id, version);
      assert.deepEqual(rest, { refused: 404, status: 'successful', answer: 200 }, version);
    }
  });

  test('has types that stand on their own', async () => {
    await writeFile(path.join(folder, 'first.ts'), typed);
    const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
    const roots = path.join(root, 'node_modules/@types');
    const options = '--noEmit --strict --exactOptionalPropertyTypes --target es2022';
    const modules = '--module nodenext --types node';
    // Check the package's own declarations too.
    const args = [...`${options} ${modules}`.split(' '), '--typeRoots', roots, 'first.ts'];
    const { stdout } = await run(process.execPath, [compiler, ...args], { cwd: folder }).catch(
      (error) => error,
    );
    assert.equal(stdout, '');
  });
});
