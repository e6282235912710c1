import fs from 'node:fs';
import path from 'node:path';

// The rules about groups and rooms, the folders of `src/`, that dependency-cruiser cannot see: it
// knows cycles of files, not of folders, and nothing of SQL.

/**
 * The groups of rooms. A group imports values only from itself and from the groups before it. The
 * platform takes no types from the others either.
 */
export const groups = [
  'platform',
  'gateway',
  'record',
  'merchants',
  'purchases',
  'checks',
  'operating',
  'config',
  // The composition root: the files directly in `src/`.
  '',
  'hosting',
  'cli',
];

type Import = {
  file: string;
  target: string;
  names: string[];
  isType: boolean;
};

/** The verbs of functions in `*.sql.ts` files that write; CONTRIBUTING lists them. */
const writingName = /^(new|insert|move|advance|update|delete|claim|release)[A-Z]/;

/** This file erases personal data in every table (decision 0070). */
const erasure = 'purchases/shoppers/erasure.sql.ts';

/** This file puts the runners together, and deletes expired rows for each slice. */
const worker = 'worker.ts';

/** Groups whose own files are a room. In the other groups every folder is a room. */
const groupsThatAreRooms = ['gateway', 'merchants', 'config', 'cli'];

/** Rooms within rooms. Any other folder below a room is part of it. */
const innerRooms = [
  'gateway/adapters',
  'gateway/hyperswitch',
  'gateway/stripe',
  'merchants/integrations',
  'purchases/callbacks/delivery',
  'purchases/messages/sending',
];

/**
 * No group may import values from a later group. The platform may not import types from later
 * groups either.
 */
export function findWrongOrder(root: string): string[] {
  const problems: string[] = [];
  for (const file of sourcesOf(root)) {
    if (!groups.includes(groupOf(file))) problems.push(`group order: ${file} is in no group`);
  }
  for (const { file, target, isType } of readImports(root, true)) {
    if (isType && groupOf(file) !== 'platform') continue;
    if (groups.indexOf(groupOf(target)) <= groups.indexOf(groupOf(file))) continue;
    const above = groupOf(target) || 'the composition root';
    problems.push(`group order: ${file} imports ${target}, but ${above} stands above it`);
  }
  return problems;
}

/** No room may import values from one that imports it back, directly or through others. */
export function findRoomCycles(root: string): string[] {
  const imports = readImports(root).filter((one) => roomOf(one.file) !== roomOf(one.target));
  const edges = new Map<string, Map<string, Import>>();
  for (const one of imports) {
    const targets = edges.get(roomOf(one.file)) ?? new Map<string, Import>();
    if (!targets.has(roomOf(one.target))) targets.set(roomOf(one.target), one);
    edges.set(roomOf(one.file), targets);
  }
  const seen = new Set<string>();
  const problems: string[] = [];
  for (const room of [...edges.keys()].sort()) {
    const cycle = shortestCycle(edges, room);
    if (cycle === null) continue;
    // A cycle would be found once from each of its rooms.
    const name = [...cycle].sort().join(' ');
    if (seen.has(name)) continue;
    seen.add(name);
    const steps = cycle.map((from, index) => {
      const to = cycle[(index + 1) % cycle.length] ?? '';
      const example = edges.get(from)?.get(to);
      return `${from} → ${to} (${example?.file} imports ${example?.target})`;
    });
    problems.push(`room cycle: ${steps.join(', ')}`);
  }
  return problems;
}

/** The slice that owns each table: its `*.tables.ts` has the table's type. */
export function readTableOwners(root: string): Map<string, string> {
  const owners = new Map<string, string>();
  for (const file of sourcesOf(root).filter((one) => /(^|[./])tables\.ts$/.test(one))) {
    const text = fs.readFileSync(path.join(root, 'src', file), 'utf8');
    for (const [, table = ''] of text.matchAll(/^ {2,4}([a-z_]+): \{$/gm)) {
      owners.set(table, sliceOf(file));
    }
  }
  return owners;
}

/**
 * Only the owner may write a table. No other slice may write it with SQL or through the owner's SQL
 * functions.
 */
export function findForeignWrites(root: string): string[] {
  const owners = readTableOwners(root);
  const problems: string[] = [];
  for (const { file, target, names } of readImports(root)) {
    if (!target.endsWith('.sql.ts') || sliceOf(file) === sliceOf(target)) continue;
    // A function of `database/` works for any slice, on the table that the slice names.
    if (sliceOf(target) === 'platform/database') continue;
    for (const name of names) {
      if (!writingName.test(name) || (file === worker && name.startsWith('delete'))) continue;
      problems.push(`foreign write: ${file} imports ${name} of ${target}; call a use case instead`);
    }
  }
  for (const file of sourcesOf(root)) {
    const text = withoutComments(fs.readFileSync(path.join(root, 'src', file), 'utf8'));
    for (const table of new Set(writtenTables(text))) {
      const owner = owners.get(table);
      if (owner === undefined || owner === sliceOf(file) || file === erasure) continue;
      problems.push(`foreign write: ${file} writes ${table}, which belongs to ${owner}`);
    }
  }
  return problems;
}

function* writtenTables(text: string): Generator<string> {
  const statements =
    /\b(?:insert\s+into|update|delete\s+from|truncate|merge\s+into)\s+"?([a-z_]+)/gi;
  for (const match of text.matchAll(statements)) yield match[1] ?? '';
  const builders = /\b(?:insertInto|updateTable|deleteFrom|mergeInto)\(\s*['"`]([a-z_]+)/g;
  for (const match of text.matchAll(builders)) yield match[1] ?? '';
}

function shortestCycle(edges: Map<string, Map<string, unknown>>, start: string): string[] | null {
  const queue: string[][] = [[start]];
  const visited = new Set<string>();
  for (const way of queue) {
    for (const next of edges.get(way.at(-1) ?? '')?.keys() ?? []) {
      if (next === start) return way;
      if (visited.has(next)) continue;
      visited.add(next);
      queue.push([...way, next]);
    }
  }
  return null;
}

/**
 * The imports of the product's own files, with paths below `src/`: imports of values only, or all
 * imports.
 */
function readImports(root: string, withTypes = false): Import[] {
  return sourcesOf(root).flatMap((file) => {
    const text = withoutComments(fs.readFileSync(path.join(root, 'src', file), 'utf8'));
    const imports: Import[] = [];
    const add = (specifier: string, names: string[], isType = false) => {
      const target = specifier.startsWith('#')
        ? specifier.slice(1)
        : path.posix.join(path.posix.dirname(file), specifier);
      if (!target.startsWith('..')) imports.push({ file, target, names, isType });
    };
    const statements = /\b(?:import|export)\s+(type\s+)?([^'"`;=()]*?)\bfrom\s+'([.#][^']+)'/g;
    for (const [, type, clause = '', specifier = ''] of text.matchAll(statements)) {
      const inBraces = /\{([^}]*)\}/.exec(clause)?.[1];
      const names = (inBraces ?? '').split(',').map((one) => one.trim());
      const values = names.filter((one) => one !== '' && !one.startsWith('type '));
      const hasOthers = clause.replace(/\{[^}]*\}/, '').replace(/[\s,]/g, '') !== '';
      const isType = type !== undefined || (values.length === 0 && !hasOthers);
      if (isType && !withTypes) continue;
      add(
        specifier,
        values.map((one) => one.split(' ')[0] ?? ''),
        isType,
      );
    }
    for (const [, specifier = ''] of text.matchAll(/\bimport\s+'([.#][^']+)'/g)) add(specifier, []);
    for (const [, specifier = ''] of text.matchAll(/\bawait import\(\s*'([.#][^']+)'/g)) {
      add(specifier, []);
    }
    return imports;
  });
}

function sourcesOf(root: string): string[] {
  return fs
    .globSync('**/*.ts', { cwd: path.join(root, 'src') })
    .map((file) => file.replaceAll(path.sep, '/'))
    .filter((file) => !file.endsWith('.test.ts'))
    .sort();
}

/** A file at the root of `src/` is its own room. */
function roomOf(file: string): string {
  const inner = innerRooms.find((room) => file.startsWith(`${room}/`));
  return inner ?? sliceOf(file);
}

/** The room that owns tables, including its inner rooms. */
function sliceOf(file: string): string {
  const [group = '', room] = file.split('/');
  if (room === undefined) return file;
  if (file.startsWith('merchants/integrations/')) return 'merchants/integrations';
  return groupsThatAreRooms.includes(group) ? group : `${group}/${room}`;
}

function groupOf(file: string): string {
  return file.includes('/') ? (file.split('/')[0] ?? '') : '';
}

/** This is not a parser. It is enough for code that Biome has formatted. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}
