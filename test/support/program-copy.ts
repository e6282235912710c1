import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';

// Makes another version of the program beside this one. Only the sources and the migrations, which
// differ between versions, are copied. Packages, the built page and the rest are links.

const root = path.join(import.meta.dirname, '../..');
const parts = ['src', 'migrations'];
const links = [
  ...['node_modules', 'web', 'docs', 'sdk', 'examples', 'test-gateway'],
  ...['package.json', 'CHANGELOG.md'],
];

async function link(folder: string): Promise<string> {
  for (const name of links) await fs.symlink(path.join(root, name), path.join(folder, name));
  return path.join(folder, 'src/cli/main.ts');
}

/** Copies this program with one more migration. Returns its entry file. */
export async function copyWithMigration(folder: string, migration: string): Promise<string> {
  await fs.mkdir(folder);
  for (const name of parts) {
    await fs.cp(path.join(root, name), path.join(folder, name), { recursive: true });
  }
  const names = await fs.readdir(path.join(folder, 'migrations'));
  const last = Math.max(...names.map((name) => Number.parseInt(name, 10) || 0));
  const name = `${String(last + 1).padStart(4, '0')}_next.sql`;
  await fs.writeFile(path.join(folder, 'migrations', name), migration);
  return await link(folder);
}

const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: root, maxBuffer: 1e9, stdio: ['ignore', 'pipe', 'ignore'] });

/** The commit of the newest release. Null if this clone has no release tag. */
export function findReleasedCommit(): string | null {
  try {
    const tag = git('describe', '--tags', '--abbrev=0', '--match', 'v*').toString().trim();
    return git('rev-parse', '--verify', `${tag}^{commit}`).toString().trim();
  } catch {
    return null;
  }
}

/** Copies the program as it was at a commit, with today's packages and page. */
export async function copyOfCommit(folder: string, commit: string): Promise<string> {
  await fs.mkdir(folder);
  const archive = git('archive', '--format=tar', commit, ...parts);
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  return await link(folder);
}
