import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { mannerOf } from '#platform/database/migrate.ts';

/**
 * The newest release: its last migration, and the digest of its append-only.ts. Change it with each
 * release. A migration may remove only what the programs of that release no longer use. It is null
 * until the first release.
 */
type Release = { migration: number; guards: string };
const lastReleased: Release | null = null;

/** The table of an `alter table`, and its actions. */
type Alteration = { table: string; actions: string[] };

function readAlteration(statement: string): Alteration | null {
  const [, table, actions] =
    /^alter table (?:if exists )?(?:only )?([\w."]+) \*? ?(.*)$/.exec(statement) ?? [];
  if (table === undefined || actions === undefined) return null;
  return { table: table.replaceAll('"', ''), actions: splitActions(actions) };
}

/** Splits actions at commas, except in parentheses and strings. */
function splitActions(text: string): string[] {
  const actions = [''];
  let depth = 0;
  for (const [part] of text.matchAll(/'(?:[^']|'')*'|[(),]|[^'(),]+/g)) {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    if (part === ',' && depth === 0) actions.push('');
    else actions[actions.length - 1] += part;
  }
  return actions.map((action) => action.trim());
}

/** The definition of a column that an action adds. The word COLUMN is optional. */
function readAddedColumn(action: string): string | null {
  if (/^add (?:constraint|check|foreign key|unique|primary key|exclude)\b/.test(action))
    return null;
  return /^add (?:column )?(?:if not exists )?\S+ (.*)$/.exec(action)?.[1] ?? null;
}

function blocksTable(action: string): boolean {
  const column = readAddedColumn(action);
  if (column !== null) return rewritesForColumn(column);
  return (
    /^alter (?:column )?\S+ (?:set data )?type\b/.test(action) ||
    /^alter (?:column )?\S+ set not null\b/.test(action) ||
    /^alter (?:column )?\S+ add generated\b/.test(action) ||
    /^add (?:constraint \S+ )?(?:check|foreign key)\b(?!.*\bnot valid\b)/.test(action) ||
    // `using index` uses an index that was built concurrently before.
    /^add (?:constraint \S+ )?(?:unique|primary key|exclude)\b(?! using index)/.test(action) ||
    /^set (?:logged|unlogged|tablespace|access method)\b/.test(action)
  );
}

function rewritesForColumn(definition: string): boolean {
  const column = definition.replaceAll(/'(?:[^']|'')*'/g, "''");
  const value = /\bdefault (.*)$/.exec(column)?.[1];
  if (value === undefined && /\bnot null\b/.test(column)) return true;
  // It is not known here whether a function is volatile, so a default must be a constant.
  if (/(?<!::)\b\w+ ?\(|\bcurrent_|\blocaltime/.test(value ?? '')) return true;
  return /\b(?:generated|(?:small|big)?serial|unique|primary key|check|references)\b/.test(column);
}

/** Whether older programs may still use what an action removes. */
function contracts(action: string): boolean {
  return /^(?:drop (?!constraint\b)|rename\b)/.test(action);
}

const rules: { description: string; breaks(statement: string, created: Set<string>): boolean }[] = [
  {
    description:
      'builds an index that blocks writes; use create index concurrently in a migration of its own',
    breaks: (statement, created) => {
      const on = /^create (?:unique )?index (?!concurrently).*? on (?:only )?(\w+)/.exec(statement);
      return on !== null && !created.has(on[1] ?? '');
    },
  },
  {
    description: 'rewrites or scans a whole table under a lock',
    breaks: (statement, created) => {
      const alteration = readAlteration(statement);
      if (alteration === null || created.has(alteration.table)) return false;
      return alteration.actions.some(blocksTable);
    },
  },
  {
    description: 'locks a whole table for as long as it takes to rewrite it',
    breaks: (statement) =>
      /^(?:vacuum\b[^;]*\bfull\b|cluster\b)/.test(statement) ||
      /^reindex\b(?!.*\bconcurrently\b)/.test(statement),
  },
  {
    description:
      'builds or drops an index concurrently in a way that cannot be repeated after a crash; use ' +
      'if not exists, or if exists',
    breaks: (statement) =>
      /^(?:create (?:unique )?index concurrently (?!if not exists )|drop index concurrently (?!if exists ))/.test(
        statement,
      ),
  },
  {
    description: 'changes every row of a table in one statement; let due work do it in batches',
    breaks: (statement) => /^(?:update|delete from)\b(?!.*\bwhere\b)/.test(statement),
  },
];

const isContracting = (statement: string) =>
  /^drop (?:table|(?:materialized )?view)\b/.test(statement) ||
  (readAlteration(statement)?.actions.some(contracts) ?? false);

/**
 * Migrations that would stop a running service, or break older programs without an announcement.
 */
export function findUnsafeMigrations(root: string): string[] {
  const folder = path.join(root, 'migrations');
  const names = fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const unsafe = names.flatMap((name) =>
    findUnsafe(
      fs.readFileSync(path.join(folder, name), 'utf8'),
      Number(name.slice(0, 4)),
      lastReleased?.migration ?? null,
    ).map((problem) => `migrations/${name} ${problem}.`),
  );
  const last = Number(names.at(-1)?.slice(0, 4) ?? 0);
  const guards = fs.readFileSync(path.join(import.meta.dirname, '..', guardsFile), 'utf8');
  return [...findEqualNumbers(names), ...findStaleGuards(guards, last, lastReleased), ...unsafe];
}

const guardsFile = 'src/platform/database/append-only.ts';

export const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** A database renews the triggers of append-only tables only together with a new migration. */
export function findStaleGuards(text: string, last: number, released: Release | null): string[] {
  if (released === null || last > released.migration || digestOf(text) === released.guards) {
    return [];
  }
  return [
    `${guardsFile} has changed since the release, and databases keep their triggers. Add a ` +
      'migration, or the new digest to scripts/check-migrations.ts if no trigger changes.',
  ];
}

/** If two migrations have the same number, the second one is never applied. */
export function findEqualNumbers(names: string[]): string[] {
  const numbers = Map.groupBy(names, (name) => name.slice(0, 4));
  return [...numbers.values()]
    .filter((same) => same.length > 1)
    .map((same) => `migrations ${same.join(' and ')} have the same number.`);
}

/** Problems in the text of a migration, in its number, and in the last migration of a release. */
export function findUnsafe(text: string, number: number, released: number | null): string[] {
  const statements = text
    .replaceAll(/(?<!\S)--.*$/gm, '')
    .toLowerCase()
    .split(/;\s*(?:\n|$)/)
    .map((statement) => statement.replaceAll(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '');
  const created = new Set(
    statements.flatMap(
      (statement) =>
        /^create (?:unlogged )?table (?:if not exists )?(\w+)/.exec(statement)?.[1] ?? [],
    ),
  );
  const { isConcurrent, oldestProgram } = mannerOf(text);
  const found = rules
    .filter(({ breaks }) => statements.some((statement) => breaks(statement, created)))
    .map(({ description }) => description);
  if (oldestProgram === null && statements.some(isContracting)) {
    found.push('takes away what older programs use; say so with "-- contract NNNN"');
  }
  // Expand in one release and contract in a later one. Otherwise every running node breaks at once.
  if (oldestProgram !== null && oldestProgram > Math.min(released ?? 0, number - 1)) {
    const last = released === null ? 'no program is released' : `the last release has ${released}`;
    found.push(
      `needs programs of migration ${oldestProgram}, and ${last}; contract in a later one`,
    );
  }
  if (isConcurrent && !statements.every((one) => /\bconcurrently\b/.test(one))) {
    found.push('mixes other statements with concurrent ones; they would not be one transaction');
  }
  if (!isConcurrent && statements.some((one) => /\bindex concurrently\b/.test(one))) {
    found.push('builds an index concurrently and does not begin with "-- concurrently"');
  }
  return found;
}
