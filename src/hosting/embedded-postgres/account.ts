import fs from 'node:fs/promises';
import path from 'node:path';
import { dataDirUnusable, messageOf } from './error.ts';
import { nullIfAbsent, readIfPresent } from './files.ts';
import { runProgram, serverEnvironment } from './run-program.ts';

// The account that the server runs as, and the folders that this account can reach.

/** The server's account if we are root. Null if the server runs under our own account. */
export type ServerAccount = { uid: number; gid: number } | null;

const systemFolder = '/var/lib/tranche';

/** PostgreSQL refuses to run as root, so root always runs it as the same other account. */
export async function chooseAccount(home: string): Promise<ServerAccount> {
  if (!isRoot()) return null;
  const owner = await fs.stat(home).catch(nullIfAbsent);
  if (owner !== null && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account =
    (await findAccount('postgres')) ??
    (await findAccount('tranche')) ??
    (await createAccount('tranche')) ??
    (await findAccount('nobody'));
  if (account === null) {
    throw dataDirUnusable(
      'PostgreSQL does not run as root, and there is no other account to run it as. Start Tranche as an ordinary user, or set DATABASE_URL.',
    );
  }
  return account;
}

async function findAccount(name: string): Promise<ServerAccount> {
  for (const line of (await readIfPresent('/etc/passwd')).split('\n')) {
    const [login, , uid, gid] = line.split(':');
    if (login === name && Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  // Accounts on macOS and in directory services are not in that file.
  try {
    const uid = await runProgram('id', ['-u', name], { env: serverEnvironment });
    const gid = await runProgram('id', ['-g', name], { env: serverEnvironment });
    const account = { uid: Number.parseInt(uid.stdout, 10), gid: Number.parseInt(gid.stdout, 10) };
    return account.uid > 0 ? account : null;
  } catch {
    return null;
  }
}

async function createAccount(name: string): Promise<ServerAccount> {
  const commands: [string, string[]][] = [
    ['useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', name]],
    ['adduser', ['-S', '-D', '-H', '-s', '/bin/false', name]],
  ];
  for (const [command, args] of commands) {
    try {
      await runProgram(command, args, { env: serverEnvironment });
      return await findAccount(name);
    } catch {
      // This system has another command for this, or none. Continue with the next candidate.
    }
  }
  return null;
}

export async function makeSystemFolder(): Promise<string> {
  try {
    await fs.mkdir(systemFolder, { recursive: true });
    await fs.chmod(systemFolder, 0o755);
    return systemFolder;
  } catch (error) {
    throw dataDirUnusable(
      `PostgreSQL does not run as root, and ${systemFolder} cannot be created for the account that it runs as: ${messageOf(error)}. Set DATA_DIR to a folder outside private home directories, or set DATABASE_URL.`,
      error,
    );
  }
}

/**
 * The first folder on the path that the account may not enter, or the target itself if the account
 * lacks one of `rights` there (4 read, 1 execute or enter). Null if the account can reach it.
 */
export async function findObstacle(
  target: string,
  account: NonNullable<ServerAccount>,
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

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}
