import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import readline from 'node:readline';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from './server.ts';

const isRoot = process.getuid?.() === 0;
const isLinux = process.platform === 'linux';
const isLong = Boolean(process.env.TRANCHE_TEST_LONG);
const quiet = { info: () => {}, warn: () => {}, error: () => {} };
// The tests kill processes, not the machine, so nothing has to be on disk.
const settings = { fsync: 'off' };

describe('the embedded PostgreSQL', () => {
  let folder: string;
  let dataDir: string;
  let servers: EmbeddedPostgres[];
  let children: ChildProcess[];
  let model: string;
  /** The results of the two starts that made the model. */
  let firstStarts: PromiseSettledResult<string[]>[];

  before(async () => {
    model = await fs.mkdtemp(path.join(os.tmpdir(), 'tranche-embedded-'));
    await fs.chmod(model, 0o711);
    const dataDir = path.join(model, 'data');
    await fs.mkdir(path.join(dataDir, 'postgres/data.new/base'), { recursive: true });
    await fs.writeFile(path.join(dataDir, 'postgres/data.new/PG_VERSION'), '18\n');
    const startFirst = async () => {
      const server = await startEmbeddedPostgres({ dataDir, log: quiet, settings });
      return await recall(server.url).finally(() => server.stop());
    };
    firstStarts = await Promise.allSettled([startFirst(), startFirst()]);
    await fs.rm(path.join(dataDir, 'postgres.port'));
  });
  after(() => fs.rm(model, { recursive: true }));

  /**
   * Making a cluster takes longer than a test. So a test that needs an existing cluster starts with
   * a copy of this one.
   */
  async function copyModel(): Promise<void> {
    if ((await fs.stat(dataDir).catch(() => null)) !== null) return;
    // `cp -a` keeps the owner, which is another user if root runs the tests.
    assert.equal(spawnSync('cp', ['-a', path.join(model, 'data'), dataDir]).status, 0);
  }

  beforeEach(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'tranche-embedded-'));
    await fs.chmod(folder, 0o711);
    dataDir = path.join(folder, 'data');
    servers = [];
    children = [];
  });

  afterEach(async () => {
    for (const child of children) await kill(child);
    for (const server of servers) await server.stop();
    // One more start and stop removes what a killed starter left behind.
    const home = await fs.realpath(path.join(dataDir, 'postgres')).catch(() => null);
    if (home !== null) {
      const left = await fs.stat(path.join(home, 'data/postmaster.pid')).catch(() => null);
      if (left !== null)
        await (await startEmbeddedPostgres({ dataDir, log: quiet, settings })).stop();
      await fs.rm(home, { recursive: true, force: true });
    }
    await fs.rm(folder, { recursive: true, force: true });
  });

  async function start(options: Partial<EmbeddedPostgresOptions> = {}) {
    await copyModel();
    const server = await startEmbeddedPostgres({ dataDir, log: quiet, settings, ...options });
    servers.push(server);
    return server;
  }

  /** Starts a separate process, which starts the server and then does nothing. */
  async function startElsewhere(account: { uid: number; gid: number } | null = null) {
    await copyModel();
    const program = `
      const { startEmbeddedPostgres } = await import(${JSON.stringify(import.meta.resolve('./server.ts'))});
      const log = { info() {}, warn() {}, error() {} };
      const server = await startEmbeddedPostgres({ ...${JSON.stringify({ dataDir, settings })}, log });
      process.stdin.resume().on('end', () => server.stop());
      console.log(JSON.stringify({ url: server.url, pid: server.pid }));
    `;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      cwd: folder,
      stdio: ['pipe', 'pipe', 'inherit'],
      ...account,
    });
    children.push(child);
    for await (const line of readline.createInterface(child.stdout)) {
      return { child, ...(JSON.parse(line) as { url: string; pid: number }) };
    }
    throw new Error('The other process could not start the server.');
  }

  test('refuses a second start within one process, keeps its data and its address from one start to the next, and moves to another port when its own was taken in the meantime', async () => {
    const first = await start();
    await remember(first.url, 'kept');
    await assert.rejects(start(), { code: 'data_dir_in_use', holderPid: process.pid });
    assert.deepEqual(await recall(first.url), ['kept']);
    await first.stop();
    const second = await start();
    assert.equal(second.url, first.url);
    assert.deepEqual(await recall(second.url), ['kept']);
    await second.stop();
    const squatter = net.createServer().listen(Number(new URL(first.url).port), '127.0.0.1');
    await once(squatter, 'listening');
    try {
      const third = await start();
      assert.notEqual(third.url, first.url);
      assert.deepEqual(await recall(third.url), ['kept']);
    } finally {
      squatter.close();
    }
  });

  test('refuses a second start on the same folder, names the holder and harms nothing; stops when its starter is killed, and starts again', async () => {
    const holder = await startElsewhere();
    await remember(holder.url, 'unharmed');
    await assert.rejects(start(), (error) => {
      assert(error instanceof EmbeddedPostgresError);
      assert.equal(error.code, 'data_dir_in_use');
      assert.equal(error.holderPid, holder.child.pid);
      assert.match(error.message, new RegExp(`in use by process ${holder.child.pid}\\b.*DATA_DIR`));
      return true;
    });
    assert.deepEqual(await recall(holder.url), ['unharmed']);
    await kill(holder.child);
    // Windows has no watcher: there the next start stops the server.
    if (process.platform !== 'win32') await eventually(() => !isAlive(holder.pid));
    const again = await start();
    assert.equal(again.url, holder.url);
    assert.deepEqual(await recall(again.url), ['unharmed']);
  });

  test('of two first starts at the same moment, after one that was killed half-way, one serves and the other is refused', () => {
    const refused = firstStarts.filter((outcome) => outcome.status === 'rejected');
    assert.deepEqual(
      refused.map((outcome) => outcome.reason.code),
      ['data_dir_in_use'],
    );
    const served = firstStarts.filter((outcome) => outcome.status === 'fulfilled');
    assert.deepEqual(
      served.map((outcome) => outcome.value),
      [[]],
    );
  });

  const crashes: {
    name: string;
    onlyLinux?: boolean;
    onlyLong?: boolean;
    crash: (other: { child: ChildProcess; pid: number }) => Promise<unknown>;
  }[] = [
    { name: 'its starter was killed', onlyLong: true, crash: ({ child }) => kill(child) },
    {
      name: 'its starter and its watcher were killed, and it runs on as an orphan',
      onlyLinux: true,
      crash: async ({ child, pid }) => {
        process.kill(await findWatcher(pid), 'SIGKILL');
        await kill(child);
        assert(isAlive(pid));
      },
    },
    {
      name: 'its starter and its postmaster were killed',
      onlyLong: true,
      crash: async ({ child, pid }) => {
        child.kill('SIGSTOP');
        process.kill(pid, 'SIGKILL');
        await kill(child);
      },
    },
    {
      name: 'the process id in postmaster.pid belongs to another program',
      crash: async ({ child, pid }) => {
        child.kill('SIGSTOP');
        process.kill(pid, 'SIGKILL');
        await kill(child);
        const stranger = spawn(process.execPath, ['-e', 'process.stdin.resume()']);
        children.push(stranger);
        const file = path.join(dataDir, 'postgres/data/postmaster.pid');
        const text = await fs.readFile(file, 'utf8');
        await fs.writeFile(file, text.replace(/^\d+/, String(stranger.pid)));
      },
    },
  ];
  for (const { name, onlyLinux, onlyLong, crash } of crashes) {
    test(`starts again with everything committed when ${name}`, {
      skip: (onlyLinux && !isLinux) || (onlyLong && !isLong && 'only in npm run test:long'),
    }, async () => {
      const other = await startElsewhere();
      await remember(other.url, 'committed');
      await crash(other);
      const server = await start();
      assert.equal(server.url, other.url);
      assert.deepEqual(await recall(server.url), ['committed']);
      assert(!isAlive(other.pid));
    });
  }

  test('is restarted with everything committed after every kill, and can be stopped during a restart', async () => {
    let restarts = 0;
    const server = await start({
      onRestart: () => {
        restarts += 1;
      },
    });
    await remember(server.url, 'committed');
    // A client in the middle of a statement keeps a child of the killed server busy for a while.
    const busy = await connect(server.url);
    const statement = busy.query('select pg_sleep(60)').catch(() => {});
    for (let round = 1; round <= (isLong ? 3 : 2); round += 1) {
      const killed = server.pid;
      process.kill(killed, 'SIGKILL');
      await eventually(() => restarts === round);
      assert.notEqual(server.pid, killed);
      assert.deepEqual(await recall(server.url), ['committed']);
    }
    await statement;
    await busy.end().catch(() => {});
    const last = server.pid;
    process.kill(last, 'SIGKILL');
    await eventually(() => !isAlive(last));
    await server.stop();
    assert(!isAlive(server.pid));
    assert.deepEqual(await recall((await start()).url), ['committed']);
  });

  test('chooses another port when another program takes the chosen one before the server starts', async () => {
    const squatter = net.createServer();
    let taken = 0;
    // Takes the port right after the server has checked that it is free.
    const squat = (message: unknown) => {
      const { server } = message as { server: net.Server };
      if (server === squatter || taken !== 0) return;
      taken = (server.address() as net.AddressInfo).port;
      server.once('close', () => squatter.listen(taken, '127.0.0.1'));
    };
    diagnostics.subscribe('tracing:net.server.listen:asyncEnd', squat);
    try {
      const server = await start();
      assert.ok(squatter.listening);
      assert.notEqual(taken, 0);
      assert.notEqual(Number(new URL(server.url).port), taken);
      assert.deepEqual(await recall(server.url), []);
    } finally {
      diagnostics.unsubscribe('tracing:net.server.listen:asyncEnd', squat);
      squatter.close();
    }
  });

  test('refuses a wrong password, and only the owner can read the password file; writes neither statements nor values nor its password to its log; and stops while clients are in transactions', async () => {
    const server = await start();
    const wrong = new URL(server.url);
    wrong.password = 'wrong';
    await assert.rejects(connect(wrong.href), { code: '28P01' });
    for (const file of ['postgres.password', 'postgres.log', 'lock']) {
      const { mode } = await fs.stat(path.join(dataDir, file));
      assert.equal(mode & 0o077, 0, file);
    }
    const client = await connect(server.url);
    await client.query('create table checked (secret text check (length(secret) < 3))');
    await assert.rejects(client.query('insert into checked values ($1)', ['cs_sandbox_bound']));
    await assert.rejects(client.query("insert into checked values ('cs_sandbox_literal')"));
    await assert.rejects(client.query("select 'cs_sandbox_cast'::integer"));
    await client.query('begin');
    await client.query("insert into checked values ('a')");
    await Promise.all([server.stop(), server.stop()]);
    assert(!isAlive(server.pid));
    await client.end().catch(() => {});
    const log = await fs.readFile(path.join(dataDir, 'postgres.log'), 'utf8');
    assert.match(log, /ready to accept connections/);
    assert.doesNotMatch(log, /cs_sandbox|insert into/);
    assert(!log.includes(new URL(server.url).password));
  });

  test('names the problem when the folder cannot be used', async () => {
    await fs.writeFile(dataDir, 'not a folder');
    await assert.rejects(start(), { code: 'data_dir_unusable', message: /cannot be used/ });
    await fs.rm(dataDir);
  });

  test('runs for an ordinary user', { skip: !isRoot }, async (context) => {
    const account = { uid: 65534, gid: 65534 };
    const visible = spawnSync(process.execPath, ['--version'], { cwd: folder, ...account });
    if (visible.status !== 0) return context.skip('this checkout is closed to other users');
    await fs.mkdir(dataDir);
    await fs.chown(dataDir, account.uid, account.gid);
    const other = await startElsewhere(account);
    await remember(other.url, 'theirs');
    assert.equal((await fs.stat(path.join(dataDir, 'postgres/data'))).uid, account.uid);
    other.child.stdin?.end();
    await once(other.child, 'exit');
    // Root may start this server later. It still runs as the user who owns the files.
    const server = await start();
    assert.deepEqual(await recall(server.url), ['theirs']);
  });

  test('runs for root below a private folder, and starts afresh when the data folder is deleted', {
    skip: !isRoot,
  }, async () => {
    await fs.chmod(folder, 0o700);
    await fs.mkdir(dataDir);
    const first = await start();
    await remember(first.url, 'elsewhere');
    await first.stop();
    const again = await start();
    assert.deepEqual(await recall(again.url), ['elsewhere']);
    await again.stop();
    const home = await fs.realpath(path.join(dataDir, 'postgres'));
    assert(!home.startsWith(folder));
    await fs.rm(dataDir, { recursive: true });
    await fs.mkdir(dataDir);
    try {
      const fresh = await start();
      assert.deepEqual(await recall(fresh.url), []);
    } finally {
      await fs.rm(home, { recursive: true });
    }
  });
});

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function remember(url: string, word: string): Promise<void> {
  const client = await connect(url);
  await client.query('create table if not exists words (word text)');
  await client.query('insert into words values ($1)', [word]);
  await client.end();
}

async function recall(url: string): Promise<string[]> {
  const client = await connect(url);
  await client.query('create table if not exists words (word text)');
  const { rows } = await client.query<{ word: string }>('select word from words');
  await client.end();
  return rows.map((row) => row.word);
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** The watcher of the server with this id. */
async function findWatcher(serverPid: number): Promise<number> {
  for (const entry of await fs.readdir('/proc')) {
    const text = await fs.readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => '');
    const args = text.split('\0');
    if (args.includes('tranche-watch') && args.includes(String(serverPid))) return Number(entry);
  }
  throw new Error(`Process ${serverPid} has no watcher.`);
}

async function eventually(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!condition()) {
    assert(performance.now() < deadline, `not within two minutes: ${condition}`);
    await sleep(5);
  }
}

/** A zombie counts as gone. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    if (!isLinux) return true;
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
