import fs from 'node:fs';
import path from 'node:path';

type Lock = { packages: Record<string, LockEntry> };

type LockEntry = {
  version?: string;
  resolved?: string;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
};

/** The systems that a fresh clone must start on. */
const systems = [
  { os: 'linux', cpu: 'x64' },
  { os: 'linux', cpu: 'arm64' },
  { os: 'darwin', cpu: 'arm64' },
  { os: 'darwin', cpu: 'x64' },
  { os: 'win32', cpu: 'x64' },
];

/**
 * The lock file must have what `npm ci` needs on each of these systems. If the registry lacks the
 * packages of other systems, npm silently writes a lock without them.
 */
export function findLockGaps(root: string): string[] {
  return fs
    .globSync(['package-lock.json', 'test/mutants/package-lock.json'], { cwd: root })
    .flatMap((file) => findGaps(JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'))));
}

function findGaps(lock: Lock): string[] {
  const problems: string[] = [];
  for (const [place, entry] of Object.entries(lock.packages)) {
    const name = place === '' ? 'the project' : place.replace(/^.*node_modules\//, '');
    if (/^https?:/.test(entry.resolved ?? '')) {
      problems.push(`package-lock.json: ${name} names a registry; .npmrc leaves it out`);
    }
    const wanted = { ...entry.dependencies, ...entry.optionalDependencies };
    const found: LockEntry[] = [];
    for (const dependency of Object.keys(wanted)) {
      const target = findPlace(lock, place, dependency);
      if (target === undefined) {
        problems.push(`package-lock.json: ${dependency}, which ${name} depends on, is missing`);
      } else if (entry.optionalDependencies?.[dependency] !== undefined) {
        found.push(lock.packages[target] ?? {});
      }
    }
    problems.push(...findMissingSystems(name, found));
  }
  return problems;
}

/** A package that comes as one binary per system must have one for each of ours. */
function findMissingSystems(name: string, optional: LockEntry[]): string[] {
  const binaries = optional.filter((entry) => entry.os !== undefined && entry.cpu !== undefined);
  // One or two binaries are extras for single systems, such as fsevents for macOS.
  if (binaries.length < 3) return [];
  return systems
    .filter(({ os, cpu }) => !binaries.some((entry) => fits(entry.os, os) && fits(entry.cpu, cpu)))
    .map(({ os, cpu }) => `package-lock.json: ${name} has no binary for ${os}-${cpu}`);
}

function fits(list: string[] | undefined, value: string): boolean {
  return list === undefined || list.includes(value);
}

/** The place where Node would find a dependency of the package at this place. */
export function findPlace(lock: Lock, place: string, dependency: string): string | undefined {
  let from = place;
  while (true) {
    const candidate = `${from === '' ? '' : `${from}/`}node_modules/${dependency}`;
    if (candidate in lock.packages) return candidate;
    if (from === '') return undefined;
    from = from.replace(/(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/, '');
  }
}
