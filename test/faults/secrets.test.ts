import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { onDatabase } from '../support/database-server.ts';
import { authorised, type Credentials, post, request } from '../support/http.ts';
import { legacyBody, toForm } from '../support/legacy.ts';
import {
  kill,
  liftLimits,
  type Sandbox,
  startSandbox,
  stop,
  tranche,
} from '../support/sandbox-process.ts';
import { checkoutBody } from '../support/service.ts';
import { postmasterPid, temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
before(async () => {
  folder = await temporaryFolder();
  sandbox = await startSandbox(path.join(folder.path, 'data'), { LOG_LEVEL: 'trace' });
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
});
after(async () => {
  await kill(sandbox);
  await folder.remove();
});

const inFolder = (name: string) => path.join(sandbox.dataDir, name);
const readLog = () => fs.readFile(inFolder('tranche.log'), 'utf8');

/** Values that must appear only where the service showed them, by name. */
type Secrets = Map<string, string>;

/** Plays a merchant's day, with its mistakes. */
async function useEverything(secrets: Secrets): Promise<void> {
  const { base_url, integration, merchant } = sandbox.file;
  const keep = (name: string, value: string) => secrets.set(`${name} ${secrets.size}`, value);
  keep('client secret', integration.client_secret);
  keep('signing key', integration.signing_key);
  const url = `${base_url}/api/checkouts`;
  const create = async (
    caller: Credentials,
    headers: Record<string, string> = {},
    body: object = checkoutBody(),
  ) => {
    const answer = await post(url, caller, body, { headers });
    if (answer.status === 200)
      keep('payment token', answer.body.data.payment_url.split('/').at(-1));
    return answer;
  };
  const refused = (answer: { status: number }, status: number) =>
    assert.equal(answer.status, status);

  refused(await create(integration), 200);
  refused(await create(integration, { 'idempotency-key': 'once' }), 200);
  refused(await create(integration, { 'idempotency-key': 'once' }), 200);
  const other = checkoutBody({ amount: 20_000 });
  refused(await create(integration, { 'idempotency-key': 'once' }, other), 422);
  const bad = checkoutBody({ amount: 1, currency: 'USD' });
  refused(await create(integration, { 'idempotency-key': 'bad' }, bad), 422);
  refused(await create(integration, { 'idempotency-key': 'bad' }, bad), 422);

  // Signatures: wrong, made with the wrong secret, and secrets sent instead of a signature.
  const text = JSON.stringify(checkoutBody());
  const withSecret = createHmac('sha512', integration.client_secret).update(text).digest('base64');
  refused(await create(integration, { 'x-signature': 'wrong' }), 400);
  refused(await create(integration, { 'x-signature': withSecret }), 400);
  refused(await create(integration, { 'x-signature': integration.signing_key }), 400);
  refused(await create(integration, { 'x-signature': integration.client_secret }), 400);
  refused(await create(integration, { 'idempotency-key': 'x'.repeat(256) }), 400);
  refused(await create({ ...integration, client_secret: `${integration.client_secret}x` }), 401);
  const elsewhere = integration.client_secret.replace('sandbox', 'production');
  refused(await create({ ...integration, client_secret: elsewhere }), 401);
  refused(await create({ ...integration, client_secret: integration.signing_key }), 401);
  // Secrets where they do not belong: in paths and queries, and in a body that is not JSON.
  const headers = authorised(integration);
  refused(await request(`${base_url}/${integration.client_secret}`, { headers }), 404);
  refused(await request(`${url}/${integration.signing_key}`, { headers }), 404);
  refused(await request(`${url}?page[number]=${integration.signing_key}`, { headers }), 400);
  const broken = `{"signing_key":"${integration.signing_key}"`;
  refused(await request(url, { method: 'POST', headers, body: broken }), 400);
  refused(
    await post(`${base_url}/api/refunds`, integration, { checkout_id: 'none', amount: 5 }),
    404,
  );
  refused(await request(`${base_url}/api/config`, { headers }), 200);

  // An operator's day.
  const { env } = sandbox;
  await useLegacy(keep);
  const second: Credentials = await tranche(
    ['integrations', 'create', '--merchant', merchant.id],
    env,
  );
  keep('client secret', second.client_secret);
  keep('signing key', second.signing_key);
  refused(await create(second), 200);
  const rotate = (credential: string) =>
    tranche(['integrations', 'rotate', second.id, '--credential', credential], env);
  const { client_secret } = await rotate('client_secret');
  const { signing_key } = await rotate('signing_key');
  keep('client secret', client_secret);
  keep('signing key', signing_key);
  await until('the new credentials to work', async () => {
    const { status } = await create({ id: second.id, client_secret, signing_key });
    return status === 200;
  });
  await tranche(['integrations', 'revoke', second.id], env);
  await until('the revocation', async () => (await create(second)).status === 401);

  await useConsole(keep);

  // A failure of the database, with everything that it makes us log.
  const server = await postmasterPid(sandbox.dataDir);
  assert.ok(server !== null);
  process.kill(server, 'SIGKILL');
  // The old server's children may answer for a moment longer, so an answer alone does not prove
  // that the new server runs.
  await until('the new server', async () => {
    const pid = await postmasterPid(sandbox.dataDir);
    if (pid === null || pid === server) return false;
    return await onDatabase(sandbox.file.database_url, async () => true).catch(() => false);
  });
  await until('the service to continue', async () => {
    const { status } = await create(integration).catch(() => ({ status: 0 }));
    return status === 200;
  });
}

/** Uses the one-time link of the sandbox, a session, an invitation, and links that are wrong. */
async function useConsole(keep: (name: string, value: string) => void): Promise<void> {
  const { console_url, console_sign_in_url } = sandbox.file;
  const { env } = sandbox;
  const send = async (path: string, token: string) =>
    await fetch(`${console_url}${path}`, {
      method: 'POST',
      headers: { origin: console_url, 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    });
  const tokenOf = (url: string) => new URL(url).hash.slice(1);
  keep('sign-in link', tokenOf(console_sign_in_url));
  const answer = await send('/api/sign-in/link', tokenOf(console_sign_in_url));
  assert.equal(answer.status, 200);
  const [cookie = ''] = String(answer.headers.getSetCookie()).split(';');
  keep('session', cookie.split('=')[1] ?? '');
  const session = await fetch(`${console_url}/api/session`, { headers: { cookie } });
  assert.equal(session.status, 200);
  const again = await tranche(['console', 'sign-in'], env);
  keep('sign-in link', tokenOf(again.url));
  const invited = ['operators', 'invite', 'nomsa@example.com', '--role', 'viewer'];
  const invitation = await tranche(invited, env);
  keep('invitation', tokenOf(invitation.url));
  assert.equal((await send('/api/invitation', tokenOf(invitation.url))).status, 200);
  assert.equal((await send('/api/invitation', tokenOf(again.url))).status, 404);
  assert.equal((await fetch(`${console_url}/api/${tokenOf(again.url)}`)).status, 404);
}

async function useLegacy(keep: (name: string, value: string) => void): Promise<void> {
  const { base_url, integration, merchant } = sandbox.file;
  const { env } = sandbox;
  const { client_id, client_secret } = await tranche(
    ['integrations', 'v1', integration.id, '--enable'],
    env,
  );
  keep('v1 client secret', client_secret);
  const send = async (path: string, body: object, token?: string) => {
    const isForm = body instanceof URLSearchParams;
    return await request(`${base_url}${path}`, {
      method: 'POST',
      headers: {
        'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: isForm ? body.toString() : JSON.stringify(body),
    });
  };
  const credentials = { client_id, client_secret, merchant_id: merchant.id };
  // Nothing listens there: the callback fails, and its attempt is stored.
  const order = legacyBody({ merchant: { notify_url: 'http://127.0.0.1:9/v1' } });
  for (const as of [(body: object) => body, toForm]) {
    const { status, body } = await send('/login', as(credentials));
    assert.equal(status, 200);
    keep('v1 token', body.token);
    const made = await send('/payment/checkout', as(order), body.token);
    assert.equal(made.status, 200);
    keep('transaction_verify', made.body.transaction_verify);
    keep('payment token', made.body.payment_url.split('/').at(-1));
    await tranche(['sandbox', 'cancel', made.body.id], env);
    assert.equal(
      (await send('/payment/checkout', as({ token: body.token }), body.token)).status,
      422,
    );
    assert.equal((await send('/payment/checkout', {}, `${body.token}x`)).status, 401);
    assert.equal((await send(`/login?token=${body.token}`, { client_secret })).status, 422);
    assert.equal((await send(`/${client_secret}`, {})).status, 404);
    const wrong = { ...credentials, merchant_id: client_secret };
    assert.equal((await send('/login', as(wrong))).status, 401);
    const swapped = { ...credentials, client_id: client_secret, client_secret: client_id };
    assert.equal((await send('/login', as(swapped))).status, 401);
    assert.equal(
      (
        await request(`${base_url}/api/config`, {
          headers: { authorization: `Bearer ${body.token}` },
        })
      ).status,
      401,
    );
  }
  await tranche(['legacy', 'usage'], env);
  await tranche(['integrations', 'v1', integration.id, '--disable'], env);
}

/** The forms in which a value could have been written: as text, or its random part as bytes. */
function spellings(value: string): Buffer[] {
  const text = Buffer.from(value);
  const random = value.replace(/^(cs|sig|v1s|v1t)_[a-z]+_/, '');
  const bytes = /^[0-9a-f]+$/i.test(random)
    ? Buffer.from(random, 'hex')
    : Buffer.from(random, 'base64');
  const all = [text, Buffer.from(random), Buffer.from(text.toString('hex')), bytes];
  all.push(Buffer.from(bytes.toString('hex')), Buffer.from(bytes.toString('base64')));
  return all.filter((one) => one.length >= 12);
}

/**
 * A search for all spellings of all secrets in one pass. There are 140 of them, and more than a
 * hundred megabytes of files.
 */
function searchFor(secrets: Secrets): (content: Buffer, where: string) => void {
  const isBeginning = new Uint8Array(2 ** 24);
  const byBeginning = new Map<number, { name: string; spelling: Buffer }[]>();
  for (const [name, value] of secrets) {
    for (const spelling of spellings(value)) {
      const beginning = spelling.readUIntBE(0, 3);
      isBeginning[beginning] = 1;
      const others = byBeginning.get(beginning) ?? [];
      byBeginning.set(beginning, [...others, { name, spelling }]);
    }
  }
  return function assertAbsent(content, where) {
    let three = 0;
    for (let place = 0; place < content.length; place += 1) {
      three = ((three << 8) | (content[place] ?? 0)) & 0xffffff;
      if (place < 2 || isBeginning[three] === 0) continue;
      const start = place - 2;
      for (const { name, spelling } of byBeginning.get(three) ?? []) {
        const isHere = content.subarray(start, start + spelling.length).equals(spelling);
        assert.equal(isHere, false, `a ${name} is in ${where}`);
      }
    }
  };
}

async function listFiles(): Promise<string[]> {
  const home = await fs.realpath(inFolder('postgres'));
  const files: string[] = [];
  for (const root of new Set([sandbox.dataDir, home])) {
    const entries = await fs.readdir(root, { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      if (entry.isFile()) files.push(path.join(entry.parentPath, entry.name));
    }
  }
  return files;
}

test('every answer carries a request id that is in the log', async () => {
  const { base_url, integration } = sandbox.file;
  const answers = [
    await post(`${base_url}/api/checkouts`, integration, checkoutBody()),
    await post(`${base_url}/api/checkouts`, integration, {}),
    await request(`${base_url}/api/checkouts`),
    await request(`${base_url}/nowhere`),
    await request(`${base_url}/healthz`),
    await request(`${base_url}/readyz`),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 422, 401, 404, 200, 200],
  );
  for (const { headers, status } of answers) {
    const line = await until('the log line', async () =>
      (await readLog())
        .split('\n')
        // The last line of the log may be half written.
        .slice(0, -1)
        .filter((line) => line.includes(String(headers['x-request-id'])))
        .map((line) => JSON.parse(line))
        .find(({ msg }) => msg === 'request'),
    );
    assert.equal(line.request_id, headers['x-request-id']);
    assert.equal(line.status, status);
  }
});

test('metrics are served on a separate loopback port only', async () => {
  const { base_url } = sandbox.file;
  const url = await until(
    'the welcome',
    () => /http:\/\/127\.0\.0\.1:\d+\/metrics/.exec(sandbox.stdout())?.[0],
  );
  const { status, body, headers } = await request(url);
  assert.equal(status, 200);
  assert.match(headers['content-type'] ?? '', /^text\/plain/);
  assert.match(body, /^# TYPE tranche_http_request_seconds histogram$/m);
  assert.equal((await request(url.replace('/metrics', '/'))).status, 404);
  assert.equal((await request(`${base_url}/metrics`)).status, 404);
});

const isLinux = process.platform === 'linux';
test('the test gateway gets none of the settings of the service', { skip: !isLinux }, async () => {
  const { pid, env } = sandbox;
  const children = await fs.readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  const gateways: string[] = [];
  for (const child of children.trim().split(' ')) {
    const command = await fs.readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '');
    if (!command.includes('test-gateway')) continue;
    gateways.push(await fs.readFile(`/proc/${child}/environ`, 'utf8'));
  }
  assert.equal(gateways.length, 1);
  const names = gateways
    .join()
    .split('\0')
    .map((line) => line.split('=')[0] ?? '');
  assert.ok(names.includes('GATEWAY_SECRET_KEY'));
  assert.deepEqual(
    names.filter((name) => name in env),
    [],
  );
});

test('no secret is in the database, in a log or in any other file', async (t) => {
  const secrets: Secrets = new Map();
  await useEverything(secrets);
  secrets.set('master key', (await fs.readFile(inFolder('master.key'), 'utf8')).trim());
  const assertAbsent = searchFor(secrets);
  // A secret that is there must be found, or the search would prove nothing.
  const [[, known = ''] = []] = secrets;
  assert.throws(
    () => assertAbsent(Buffer.from(`a ${known}.`), 'a text'),
    /a client secret 0 is in/,
  );

  for (const name of [
    'master.key',
    'demo.json',
    'sandbox.json',
    'tranche.log',
    'postgres.log',
    'postgres.password',
  ]) {
    const { mode } = await fs.stat(inFolder(name));
    assert.equal((mode & 0o777).toString(8), '600', name);
  }

  // The database as a dump would show it: every column of every table.
  let values = 0;
  await onDatabase(sandbox.file.database_url, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `select quote_ident(table_name) as name from information_schema.tables
       where table_schema = 'public' and table_type = 'BASE TABLE'`,
    );
    assert.ok(tables.length > 10);
    for (const { name } of tables) {
      const { rows } = await client.query({ text: `select * from ${name}`, rowMode: 'array' });
      for (const value of rows.flat()) {
        values += 1;
        const content = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value) ?? '');
        assertAbsent(content, name);
      }
    }
  });

  // Only the welcome shows the demo's credentials.
  const { client_secret, signing_key } = sandbox.file.integration;
  const [welcome = '', rest] = sandbox.stdout().split('Ctrl-C stops the sandbox.');
  assert.ok(rest !== undefined, 'the welcome has its last line');
  assert.ok(welcome.includes(client_secret) && welcome.includes(signing_key));
  await stop(sandbox);
  assertAbsent(Buffer.from(rest + sandbox.stderr()), 'what it printed');

  // This reads everything on disk: logs, tables, indexes, the write-ahead log.
  const holders = new Set(['master.key', 'demo.json'].map(inFolder));
  let bytes = 0;
  for (const file of await listFiles()) {
    if (holders.has(file)) continue;
    const content = await fs.readFile(file);
    bytes += content.length;
    assertAbsent(content, path.relative(sandbox.dataDir, file));
  }
  const trace = await readLog();
  assert.ok(trace.includes('"msg":"request"'));
  for (const personal of ['thandi@example.com', 'shop.example']) {
    assert.equal(trace.includes(personal), false, `${personal} is in the log`);
  }
  t.diagnostic(`${secrets.size} secrets, ${values} values, ${Math.round(bytes / 1e6)} MB of files`);
});
