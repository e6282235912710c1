import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts, isPortFree } from '#platform/shared/free-ports.ts';
import { chooseAccount, findObstacle, makeSystemFolder, type ServerAccount } from './account.ts';
import { type Binaries, placeBinaries, programIn } from './binaries.ts';
import { dataDirUnusable, EmbeddedPostgresError, messageOf } from './error.ts';
import { nullIfAbsent, readIfPresent, writeOwned } from './files.ts';
import { runProgram, serverEnvironment } from './run-program.ts';

// Prepares what a server needs before it can start: an account to run as, binaries and a folder
// that this account can reach, a cluster with a password, and a free port.

export type Cluster = {
  dataDir: string;
  /** The folder that the server's account owns, with all links resolved. */
  home: string;
  data: string;
  pidFile: string;
  account: ServerAccount;
  binaries: Binaries;
};

/** The part of a pino logger that is used here. */
export type EmbeddedPostgresLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

export const superuser = 'postgres';
const closingMilliseconds = 2_000;

export async function prepareCluster(dataDir: string): Promise<Cluster> {
  const link = path.join(dataDir, 'postgres');
  const account = await chooseAccount(link);
  if ((await fs.lstat(link).catch(nullIfAbsent)) === null) await makeHome(link, account);
  const home = await fs.realpath(link).catch((error: unknown) => {
    throw dataDirUnusable(
      `${link} leads to a folder that is gone. Restore it, or delete ${dataDir} to start afresh.`,
      error,
    );
  });
  if (account !== null) {
    const obstacle = await findObstacle(path.dirname(home), account, 0o1);
    if (obstacle !== null) {
      throw dataDirUnusable(
        `PostgreSQL does not run as root, and user id ${account.uid}, which it runs as, may not enter ${obstacle}. Allow that (chmod o+x), or set DATA_DIR to another folder.`,
      );
    }
    // A start that was killed at this point may have left the folder owned by root.
    await fs.lchown(home, account.uid, account.gid);
  }
  const binaries = await placeBinaries(account);
  const data = path.join(home, 'data');
  return { dataDir, home, data, pidFile: path.join(data, 'postmaster.pid'), account, binaries };
}

async function makeHome(link: string, account: ServerAccount): Promise<void> {
  if (account === null || (await findObstacle(path.dirname(link), account, 0o1)) === null) {
    await fs.mkdir(link, { mode: 0o700 });
    return;
  }
  const elsewhere = path.join(await makeSystemFolder(), randomBytes(8).toString('hex'));
  await fs.mkdir(elsewhere, { mode: 0o700 });
  await fs.symlink(elsewhere, link);
}

/** Makes the cluster if there is none, and returns the superuser's password. */
export async function ensureCluster(
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
      throw dataDirUnusable(
        `The data in ${data} was written by PostgreSQL ${made}, but this is PostgreSQL ${major}. Dump it with the old version, or delete ${dataDir} to start afresh.`,
      );
    }
    if (known === '') {
      throw dataDirUnusable(
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
  // The cluster is created under another name first, so that a folder called `data` is always
  // complete.
  const fresh = path.join(home, 'data.new');
  const initialPassword = path.join(home, 'password.new');
  await fs.rm(fresh, { recursive: true, force: true });
  await writeOwned(initialPassword, `${password}\n`, account);
  try {
    await runProgram(
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
      `The PostgreSQL cluster in ${cluster.dataDir} could not be created: ${messageOf(error)}`,
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

/**
 * Writes the settings at every start, so that the server has those of this version of the code.
 * `alter system` still overrides them.
 */
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
    if (await becomesFree(cluster, remembered)) return remembered;
    log.warn({ port: remembered }, 'The port from the last start is taken. Choosing another');
  }
  const [port = 0] = await freePorts(1);
  return port;
}

/**
 * A server that was killed closes its port a moment after its process is gone. It leaves behind a
 * file with its process id. Waiting for a port that is taken makes sense only if that file exists.
 */
async function becomesFree(cluster: Cluster, port: number): Promise<boolean> {
  const wasKilled = (await readIfPresent(cluster.pidFile)) !== '';
  const deadline = performance.now() + (wasKilled ? closingMilliseconds : 0);
  while (!(await isPortFree(port))) {
    if (performance.now() >= deadline) return false;
    await sleep(20);
  }
  return true;
}
