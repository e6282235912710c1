import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';
import { drillChecks } from '#hosting/sandbox/drill.ts';
import { commandLine } from '../support/cli.ts';
import { kill, startSandbox } from '../support/sandbox-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const server = path.join(import.meta.dirname, '../../examples/shop/server.js');

test('the demo shop passes the go-live drill, with both keys of a rotation', async (t) => {
  const folder = await temporaryFolder();
  const sandbox = await startSandbox(path.join(folder.path, 'data'));
  t.after(async () => {
    await kill(sandbox);
    await folder.remove();
  });
  const { base_url, merchant, integration } = sandbox.file;
  const tranche = commandLine({ DATA_DIR: sandbox.dataDir, MASTER_KEY: '' });
  const rotate = ['rotate', integration.id, '--credential', 'signing_key'];
  const { signing_key } = await tranche.json('integrations', ...rotate);

  const shop = spawn(process.execPath, [server], {
    env: {
      TRANCHE_URL: base_url,
      CLIENT_SECRET: integration.client_secret,
      SIGNING_KEY: `${signing_key},${integration.signing_key}`,
      SHOP_PORT: '0',
      SHOP_FILE: path.join(folder.path, 'shop.json'),
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => shop.kill());
  const [first] = await once(shop.stdout, 'data');
  const { url } = JSON.parse(String(first));

  // A shopper fills the cart and goes to the payment page.
  let cookie = '';
  const submit = async (action: string, fields: Record<string, string>) => {
    const answer = await fetch(`${url}${action}`, {
      method: 'POST',
      headers: { origin: url, cookie },
      body: new URLSearchParams(fields),
      redirect: 'manual',
    });
    cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? cookie;
    return answer.headers.get('location') ?? '';
  };
  const home = await (await fetch(url)).text();
  const [, product = ''] = /\/products\/([\w-]+)/.exec(home) ?? [];
  await submit('/cart', { product });
  assert.match(await submit('/orders', { email: 'thandi@example.com' }), /\/pay\//);

  const args = ['--merchant', merchant.id, '--notify-url', `${url}/callback`];
  const report = await tranche.json(
    ...['sandbox', 'drill', ...args, '--order-url', `${url}/orders/{reference}`],
  );
  assert.deepEqual(
    report.checks.map(({ name, result, problem }: Record<string, string>) => [
      name,
      result,
      problem,
    ]),
    drillChecks.map(({ name }) => [name, 'pass', null]),
  );
  assert.equal(report.is_known_order, true);
});
