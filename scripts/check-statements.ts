import fs from 'node:fs';
import path from 'node:path';

// PostgreSQL refuses a prepared statement whose result has a new column (0A000). A migration that
// adds a column must not break the programs that run, so a prepared statement names its columns.

/** A named statement, in the driver's form. */
const named =
  /\bname: (['`])(?<name>[^'`]+)\1,(?:(?!\bname:)[\s\S])*?\btext:\s*(?<text>'[^']*'|`[^`]*`)/g;

/**
 * All columns of a table. The alias `i` is allowed: it stands for the statement's own parameters
 * (`rowGroup`), not for a table.
 */
export const allColumns = /(?:\bselect|\breturning|,)\s+(?!i\.)(?:[\w"]+\.)?\*/i;

/** Prepared statements that return all columns of a table. */
export function findAllColumns(root: string): string[] {
  const problems: string[] = [];
  for (const file of fs.globSync('src/**/*.ts', { cwd: root }).sort()) {
    const source = fs.readFileSync(path.join(root, file), 'utf8');
    for (const { groups } of source.matchAll(named)) {
      if (allColumns.test(groups?.text ?? '')) problems.push(describe(file, groups?.name ?? ''));
    }
  }
  return problems;
}

const describe = (file: string, name: string) =>
  `${file}: the prepared statement ${name} returns all columns; name them.`;
