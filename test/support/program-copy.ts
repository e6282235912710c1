import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

// Makes another version of the program beside this one. Of an older one the sources and the
// migrations are copied. Packages, the built page and the rest are links.

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

/**
 * Makes this program with one more migration. Returns the settings with which this program runs as
 * that one: a copy of the sources would have to be compiled.
 */
export async function withMigration(folder: string, migration: string): Promise<NodeJS.ProcessEnv> {
  const migrations = path.join(folder, 'migrations');
  await fs.cp(path.join(root, 'migrations'), migrations, { recursive: true });
  const names = await fs.readdir(migrations);
  const last = Math.max(...names.map((name) => Number.parseInt(name, 10) || 0));
  const name = `${String(last + 1).padStart(4, '0')}_next.sql`;
  await fs.writeFile(path.join(migrations, name), migration);
  const own = "new URL('../../../migrations/', import.meta.url)";
  const reader = path.join(root, 'src/platform/database/migrate.ts');
  assert.ok((await fs.readFile(reader, 'utf8')).includes(own));
  const hook = path.join(folder, 'newer.mjs');
  const there = JSON.stringify(`${pathToFileURL(migrations)}/`);
  await fs.writeFile(
    hook,
    `import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (url !== ${JSON.stringify(String(pathToFileURL(reader)))}) return loaded;
    const source = String(loaded.source).replace(${JSON.stringify(own)}, 'new URL(' + ${JSON.stringify(there)} + ')');
    return { ...loaded, source };
  },
});
`,
  );
  return { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${pathToFileURL(hook)}` };
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
