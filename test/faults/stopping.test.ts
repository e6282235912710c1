import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { after, afterEach, before, describe, type TestContext, test } from 'node:test';
import { commandLine } from '../support/cli.ts';
import { onDatabase } from '../support/database-server.ts';
import { post, request } from '../support/http.ts';
import {
  findDamage,
  kill,
  launch,
  liftLimits,
  type Program,
  type Sandbox,
  startLoad,
  startSandbox,
  stop,
} from '../support/sandbox-process.ts';
import { checkoutBody, isLong, productionSettings } from '../support/service.ts';
import { postmasterPid, temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const programs: Program[] = [];
before(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  for (const program of programs.splice(0)) await kill(program);
});
after(() => folder.remove());

const dataDir = () => path.join(folder.path, 'data');

type Timed = Sandbox & { startSeconds: number };

async function start(settings: NodeJS.ProcessEnv = {}): Promise<Timed> {
  const begun = performance.now();
  const sandbox = await startSandbox(dataDir(), settings);
  programs.push(sandbox);
  return { ...sandbox, startSeconds: (performance.now() - begun) / 1000 };
}

/** Starts a sandbox that must refuse to start. Returns its exit code. */
async function startRefused(
  settings: NodeJS.ProcessEnv,
): Promise<Program & { code: number | null }> {
  const program = launch(['sandbox'], { DATA_DIR: dataDir(), PORT: '0', ...settings });
  programs.push(program);
  const { code } = await program.exited;
  return { ...program, code };
}

const exists = (file: string) =>
  fs.stat(file).then(
    () => true,
    () => false,
  );

async function assertCleanEnd(sandbox: Timed, signal: NodeJS.Signals): Promise<number> {
  const server = await postmasterPid(sandbox.dataDir);
  const { code, seconds } = await stop(sandbox, signal);
  assert.equal(code, 0, sandbox.stderr());
  // Idle connections would keep the sandbox running for 60 seconds. A stop takes about as long as a
  // start.
  const limit = Math.max(45, 8 * sandbox.startSeconds);
  assert.ok(seconds < limit, `${seconds} seconds; it started in ${sandbox.startSeconds}`);
  assert.equal(await exists(path.join(sandbox.dataDir, 'sandbox.json')), false);
  assert.equal(await postmasterPid(sandbox.dataDir), null, 'the database was shut down cleanly');
  assert.ok(server !== null);
  assert.throws(() => process.kill(server, 0), { code: 'ESRCH' });
  assert.equal(sandbox.stderr(), '');
  return seconds;
}

function assertSameDemo(second: Sandbox, { file: { merchant, integration } }: Sandbox): void {
  assert.deepEqual(second.file.merchant, merchant);
  assert.deepEqual(second.file.integration, integration);
  assert.ok(second.stdout().includes(integration.client_secret));
  assert.ok(second.stdout().includes(integration.signing_key));
}

/**
 * Asserts that a second start is refused with one sentence, and that the sandbox that runs is
 * unharmed.
 */
async function refuseSecond(first: Sandbox): Promise<void> {
  const second = await startRefused({});
  assert.equal(second.code, 1);
  assert.match(second.stderr(), new RegExp(`in use by process ${first.pid}\\b`));
  assert.match(second.stderr(), /set DATA_DIR to another folder/);
  assert.equal(second.stderr().trim().split('\n').length, 1, 'one sentence, no stack');
  assert.equal(second.stdout(), '');
  const { base_url, integration } = first.file;
  const created = await post(`${base_url}/api/checkouts`, integration, checkoutBody());
  assert.equal(created.status, 200);
  assert.equal(await exists(path.join(dataDir(), 'sandbox.json')), true);
}

/**
 * Stops the sandbox while one request waits for a lock, and only a part of another was sent. Ctrl-C
 * comes twice at once, as npm passes it on.
 */
async function stopWhileBusy(t: TestContext, sandbox: Timed): Promise<void> {
  const { base_url, integration, database_url } = sandbox.file;
  const url = `${base_url}/api/checkouts`;
  assert.equal((await post(url, integration, checkoutBody())).status, 200);
  const socket = net.connect(Number(new URL(base_url).port), '127.0.0.1').on('error', () => {});
  t.after(() => socket.destroy());
  socket.write(
    'POST /api/checkouts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n' +
      `Authorization: Bearer ${integration.client_secret}\r\n\r\n{`,
  );
  await onDatabase(database_url, async (client) => {
    await client.query('begin');
    await client.query('select from list_totals for update');
    const waiting = post(url, integration, checkoutBody()).then(
      ({ status }) => status,
      () => 'no answer',
    );
    await onDatabase(database_url, async (second) => {
      await until('the request to wait', async () => {
        const { rowCount } = await second.query(
          `select from pg_stat_activity where wait_event_type = 'Lock'`,
        );
        return rowCount;
      });
    });
    assert.equal((await request(`${base_url}/healthz`)).status, 200);
    sandbox.child.kill('SIGINT');
    const seconds = await assertCleanEnd(sandbox, 'SIGINT');
    t.diagnostic(`${seconds.toFixed(2)} seconds`);
    // A 200 would be wrong. A 500 is allowed only if nothing is ever committed.
    assert.notEqual(await waiting, 200);
  }).catch((error) => {
    // The end of the server closes our own connection too.
    if (!/terminat|closed/i.test(String(error))) throw error;
  });
}

describe('a sandbox that gets a signal to stop', () => {
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
  for (const signal of isLong ? signals : signals.slice(0, 1)) {
    test(`shuts down cleanly on ${signal} under load, with idle connections open, and has the same demo credentials at the next start, which a second one leaves unharmed, and then stops in time while a request waits for a lock and a client is sending`, async (t) => {
      const sandbox = await start();
      const { base_url, integration, database_url } = sandbox.file;
      await liftLimits(database_url, integration.id);
      const idle = new http.Agent({ keepAlive: true });
      t.after(() => idle.destroy());
      await request(`${base_url}/healthz`, { agent: idle });
      const silent = net.connect(Number(new URL(base_url).port), '127.0.0.1').on('error', () => {});
      t.after(() => silent.destroy());
      const load = startLoad({ baseUrl: () => base_url, callers: [integration] });
      t.after(load.stop);
      await until('checkouts to be created', () => load.acknowledged() >= 50);
      const seconds = await assertCleanEnd(sandbox, signal);
      await load.stop();
      t.diagnostic(`${seconds.toFixed(2)} seconds, ${load.acknowledged()} acknowledged`);
      const answers = new Set(load.attempts.flatMap(({ statuses }) => statuses));
      assert.deepEqual([...answers], [200], 'requests in flight were finished');
      const again = await start();
      assert.deepEqual(await findDamage(again.file.database_url, load.attempts), []);
      await until('the welcome', () => again.stdout().includes('Ctrl-C stops the sandbox.'));
      assertSameDemo(again, sandbox);
      await refuseSecond(again);
      await stopWhileBusy(t, again);
    });
  }

  // npm runs the sandbox in a shell. SIGTERM ends this shell, and SIGKILL ends npm alone.
  const toNpm = ['SIGKILL', 'SIGTERM'] as const;
  for (const signal of isLong ? toNpm : toNpm.slice(0, 1)) {
    test(`shuts down cleanly when npm gets ${signal}`, async () => {
      const { npm_execpath } = process.env;
      assert.ok(npm_execpath, 'npm runs the tests');
      const npm = await startSandbox(dataDir(), {}, (env) => launch(['start'], env, npm_execpath));
      programs.push(npm);
      const server = await postmasterPid(npm.dataDir);
      assert.ok(server !== null);
      npm.child.kill(signal);
      // Its output ends when the sandbox has ended.
      await until('the sandbox to end', npm.hasExited);
      assert.equal(await exists(path.join(npm.dataDir, 'sandbox.json')), false);
      assert.equal(await postmasterPid(npm.dataDir), null, 'the database was shut down cleanly');
      assert.throws(() => process.kill(server, 0), { code: 'ESRCH' });
    });
  }
});

describe('a start that is refused', () => {
  for (const name of isLong ? ['PORT', 'METRICS_PORT'] : ['PORT']) {
    test(`on a taken ${name} names the port, and leaves nothing running`, async (t) => {
      const holder = net.createServer();
      await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
      t.after(() => holder.close());
      const { port } = holder.address() as net.AddressInfo;
      // The default ports next to this one may be in use by other tests.
      const others = { GATEWAY_PORT: '0', SHOP_PORT: '0', METRICS_PORT: '0' };
      const program = await startRefused({ ...others, [name]: String(port) });
      assert.equal(program.code, 1);
      assert.match(program.stderr(), new RegExp(`Port ${port} is in use`));
      assert.equal(program.stderr().trim().split('\n').length, 1, program.stderr());
      assert.equal(await postmasterPid(dataDir()), null, 'its database was stopped');
      assert.equal(await exists(path.join(dataDir(), 'sandbox.json')), false);
    });
  }

  test('lists all bad settings, and touches nothing', async () => {
    const untouched = path.join(folder.path, 'untouched');
    const env = { DATA_DIR: untouched, PORT: 'web', LOG_LEVEL: 'loud' };
    await commandLine(env).refused(1, /PORT is "web"[\s\S]*LOG_LEVEL is "loud"/, 'sandbox');
    assert.equal(await exists(untouched), false);
  });

  test('of a sandbox in production names the command for production', async () => {
    const env = { DATA_DIR: dataDir(), PORT: '0', ...productionSettings };
    await commandLine(env).refused(2, /tranche serve/, 'sandbox');
  });
});
