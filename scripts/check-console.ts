import fs from 'node:fs';
import path from 'node:path';

// Two rules about the console's application that no other tool checks.

/**
 * Files that both sides may run. They have only pure functions, such as the one that formats money.
 */
const sharedRoom = 'src/platform/shared/';

/**
 * The console imports only types from the service: a schema or a use case would bring its own
 * imports into the browser, and its rules would run in two places.
 */
export function findConsoleImports(root: string): string[] {
  const problems: string[] = [];
  for (const file of fs.globSync('web/console/**/*.{ts,tsx}', { cwd: root }).sort()) {
    const from = file.replaceAll(path.sep, '/');
    for (const specifier of valueImports(fs.readFileSync(path.join(root, file), 'utf8'))) {
      const target = specifier.startsWith('#')
        ? `src/${specifier.slice(1)}`
        : path.posix.join(path.posix.dirname(from), specifier);
      if (!target.startsWith('src/') || target.startsWith(sharedRoom)) continue;
      problems.push(`${from} imports ${target}: import only its types ("import type")`);
    }
  }
  return problems;
}

function* valueImports(text: string): Generator<string> {
  const statements = /\b(?:import|export)\s+(type\s)?[^'"`;=()]*?\bfrom\s+'([.#][^']+)'/g;
  for (const [, type, specifier = ''] of text.matchAll(statements)) {
    if (type === undefined) yield specifier;
  }
  for (const [, specifier = ''] of text.matchAll(/\bimport\s*\(?\s*'([.#][^']+)'/g))
    yield specifier;
}

type Packages = Record<string, string>;

/**
 * All of Mantine's packages must have the same exact version, because they are released and tested
 * together.
 */
export function findMantineVersions(root: string): string[] {
  const text = fs.readFileSync(path.join(root, 'package.json'), 'utf8');
  const groups = JSON.parse(text) as Record<string, Packages>;
  const versions = Object.entries({
    ...groups.dependencies,
    ...groups.peerDependencies,
    ...groups.devDependencies,
  }).filter(([name]) => name.startsWith('@mantine/'));
  const [, wanted] = versions.find(([name]) => name === '@mantine/core') ?? versions[0] ?? [];
  return versions.flatMap(([name, version]) => {
    if (!/^\d+\.\d+\.\d+$/.test(version)) return [`package.json: ${name} ${version} is not exact`];
    return version === wanted ? [] : [`package.json: ${name} is ${version}, core is ${wanted}`];
  });
}
