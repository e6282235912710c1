import fs from 'node:fs';
import path from 'node:path';

/** Earlier migrations are history and were written before these rules (decision 0090). */
const firstChecked = 30;

const rules: { says: string; breaks(statement: string, created: Set<string>): boolean }[] = [
  {
    says: 'builds an index that blocks writes; use create index concurrently in a migration of its own',
    breaks: (statement, created) => {
      const on = /^create (?:unique )?index (?!concurrently).*? on (?:only )?(\w+)/s.exec(
        statement,
      );
      return on !== null && !created.has(on[1] ?? '');
    },
  },
  {
    says: 'rewrites or scans a whole table under a lock',
    breaks: (statement, created) => {
      const table = /^alter table (?:if exists )?(?:only )?(\w+)/.exec(statement)?.[1];
      if (table === undefined || created.has(table)) return false;
      return (
        /\balter (?:column )?\w+ (?:set data )?type\b/.test(statement) ||
        /\bset not null\b/.test(statement) ||
        /\badd (?:constraint \w+ )?(?:check|foreign key)\b(?!.*not valid)/s.test(statement) ||
        // `using index` takes an index that was built concurrently before.
        /\badd (?:constraint \w+ )?(?:unique|primary key|exclude)\b(?!\s+using index)/.test(
          statement,
        ) ||
        /\bset (?:un)?logged\b/.test(statement) ||
        /\badd column\b[^,;]*\bdefault\b[^,;]*\b(?:random|now|clock_timestamp|gen_)/.test(
          statement,
        ) ||
        /\badd column\b(?![^,;]*\bdefault\b)[^,;]*\bnot null\b/.test(statement) ||
        /\badd column\b[^,;]*\b(?:generated|serial|unique|primary key|check)\b/.test(statement)
      );
    },
  },
  {
    says: 'locks a whole table for as long as it takes to write it anew',
    breaks: (statement) =>
      /^(?:vacuum\b[^;]*\bfull\b|cluster\b)/.test(statement) ||
      /^reindex\b(?!.*\bconcurrently\b)/s.test(statement),
  },
  {
    says: 'changes every row of a table in one statement; let due work do it in batches',
    breaks: (statement) => /^(?:update|delete from)\b(?!.*\bwhere\b)/s.test(statement),
  },
];

const contracting = /^(?:drop (?:table|view)|alter table .*\b(?:drop column|rename)\b)/s;

/** New migrations that would stop a service which runs, or break older programs unannounced. */
export function findUnsafeMigrations(root: string, first = firstChecked): string[] {
  const folder = path.join(root, 'migrations');
  const names = fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const unsafe = names
    .filter((name) => Number(name.slice(0, 4)) >= first)
    .flatMap((name) =>
      findUnsafe(fs.readFileSync(path.join(folder, name), 'utf8')).map(
        (problem) => `migrations/${name} ${problem}.`,
      ),
    );
  return [...findEqualNumbers(names), ...unsafe];
}

/** Two migrations with one number: whichever comes second is never applied. */
export function findEqualNumbers(names: string[]): string[] {
  const numbers = Map.groupBy(names, (name) => name.slice(0, 4));
  return [...numbers.values()]
    .filter((same) => same.length > 1)
    .map((same) => `migrations ${same.join(' and ')} have the same number.`);
}

export function findUnsafe(text: string): string[] {
  const statements = text
    .replaceAll(/^\s*--.*$/gm, '')
    .toLowerCase()
    .split(/;\s*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
  const created = new Set(
    statements.flatMap(
      (statement) =>
        /^create (?:unlogged )?table (?:if not exists )?(\w+)/.exec(statement)?.[1] ?? [],
    ),
  );
  const isConcurrent = /^-- concurrently$/m.test(text);
  const found = rules
    .filter(({ breaks }) => statements.some((statement) => breaks(statement, created)))
    .map(({ says }) => says);
  if (!/^-- contract \d{4}$/m.test(text) && statements.some((one) => contracting.test(one))) {
    found.push('takes away what older programs use; say so with "-- contract NNNN"');
  }
  if (isConcurrent && !statements.every((one) => /\bconcurrently\b/.test(one))) {
    found.push('mixes other statements with concurrent ones; they would not be one transaction');
  }
  if (!isConcurrent && statements.some((one) => /\bindex concurrently\b/.test(one))) {
    found.push('builds an index concurrently and does not begin with "-- concurrently"');
  }
  return found;
}
