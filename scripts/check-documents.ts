import fs from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { slug } from '#operating/docs/markdown.ts';

// Compares what the documents say about the code with the code, so that they cannot drift.

const markdownColumnsMax = 120;
const longLineFiles = ['*.md', '{docs,examples,sdk,src,test-gateway,web}/**/*.md'];

/** Documents whose paths and links are checked. The merchants' guides have their own tests. */
const ownDocuments = [
  '*.md',
  'docs/decisions/*.md',
  'docs/operators/*.md',
  'sdk/*.md',
  '{src,test-gateway,web}/**/README.md',
];

const texts = [
  '*.md',
  '.dependency-cruiser.cjs',
  'migrations/*.sql',
  '{bench,docs,examples,scripts,sdk,src,test,test-gateway,web}/**/*.{cjs,css,grit,js,md,mjs,ts,tsx}',
];

/** Every decision that a text cites by number must have a record. */
export function findBadCitations(root: string): string[] {
  const records = new Set(
    fs
      .globSync('docs/decisions/[0-9]*.md', { cwd: root })
      .map((file) => path.basename(file).slice(0, 4)),
  );
  const problems: string[] = [];
  for (const { file, line, text } of linesOf(root, texts)) {
    for (const number of citedRecords(file, text)) {
      if (!records.has(number))
        problems.push(`${file}:${line} cites decision ${number}: no such record`);
    }
    for (const [number] of text.matchAll(/(?<![\w/+=.#-])D(?:[1-9]|[1-3]\d|40)(?![\w/+=-])/g)) {
      problems.push(`${file}:${line} cites ${number}: cite the record ("decision 0011")`);
    }
  }
  return problems;
}

function* citedRecords(file: string, text: string): Generator<string> {
  const one = String.raw`\[?\d{4}\b\]?(?:\([^)]*\))?`;
  const lists = new RegExp(String.raw`\bdecisions?\s+(${one}(?:(?:,| and| or)\s+${one})*)`, 'gi');
  for (const [, list = ''] of text.matchAll(lists)) {
    for (const [number] of list.replace(/\([^)]*\)/g, '').matchAll(/\d{4}/g)) yield number;
  }
  for (const [, number = ''] of text.matchAll(/\bdecisions\/(\d{4})-/g)) yield number;
  // Records cite each other by the number alone.
  if (!file.startsWith('docs/decisions/')) return;
  for (const [, number = ''] of text.matchAll(/\((0\d{3})\)/g)) yield number;
  for (const [, number = ''] of text.matchAll(/\]\((\d{4})-/g)) yield number;
}

/** The list of records must name each of them, in the order of their numbers. */
export function findUnlistedRecords(root: string): string[] {
  const records = fs
    .globSync('docs/decisions/[0-9]*.md', { cwd: root })
    .map((file) => path.basename(file))
    .sort();
  const list = fs.readFileSync(path.join(root, 'docs/decisions/README.md'), 'utf8');
  const listed = [...list.matchAll(/\]\((\d{4}-[^)]+)\)/g)].map((match) => match[1] ?? '');
  const problems: string[] = [];
  if (!isDeepStrictEqual(listed, [...listed].sort())) {
    problems.push(
      'docs/decisions/README.md does not list the records in the order of their numbers',
    );
  }
  for (const record of records) {
    if (!listed.includes(record)) problems.push(`docs/decisions/README.md does not list ${record}`);
    const title =
      fs.readFileSync(path.join(root, 'docs/decisions', record), 'utf8').split('\n')[0] ?? '';
    if (!list.includes(`[${title.replace('# ', '')}]`)) {
      problems.push(`docs/decisions/README.md lists ${record} under another title than its own`);
    }
  }
  return problems;
}

/**
 * A record that amends another says `Amends: 0012`, and the other says `Amended by: 0020`. Nothing
 * else may stand between the title and the first heading, so that no link is hidden in prose.
 */
export function findOneWayLinks(root: string): string[] {
  const problems: string[] = [];
  const links = { Amends: new Set<string>(), 'Amended by': new Set<string>() };
  const files = fs.globSync('docs/decisions/[0-9]*.md', { cwd: root }).sort();
  for (const file of files) {
    const number = path.basename(file).slice(0, 4);
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    const head = text.split('\n## ')[0]?.split('\n').slice(1) ?? [];
    for (const line of head.filter((each) => each !== '')) {
      const link = /^(Amends|Amended by): (\d{4}(?:, \d{4})*)$/.exec(line);
      if (link === null) {
        problems.push(
          `${file}: before the first heading write only "Amends:" or "Amended by:" with numbers`,
        );
      } else {
        const kind = link[1] === 'Amends' ? 'Amends' : 'Amended by';
        for (const other of (link[2] ?? '').split(', ')) links[kind].add(`${number} ${other}`);
      }
    }
  }
  for (const file of files) {
    const number = path.basename(file).slice(0, 4);
    for (const other of othersOf(links.Amends, number)) {
      if (links['Amended by'].has(`${other} ${number}`)) continue;
      problems.push(`${file} amends ${other}, which does not say "Amended by: ${number}"`);
    }
    for (const other of othersOf(links['Amended by'], number)) {
      if (links.Amends.has(`${other} ${number}`)) continue;
      problems.push(`${file} is amended by ${other}, which does not say "Amends: ${number}"`);
    }
  }
  return problems.sort();
}

function othersOf(links: Set<string>, number: string): string[] {
  return [...links].filter((link) => link.startsWith(number)).map((link) => link.slice(5));
}

/**
 * A line of Markdown may have at most 120 columns, except in tables, because of a link, or in an
 * answer that is shown unchanged.
 */
export function findLongLines(root: string): string[] {
  const problems: string[] = [];
  let fence: string | null = null;
  for (const { file, line, text } of linesOf(root, longLineFiles)) {
    const language = /^\s*```(\w*)/.exec(text)?.[1];
    if (language !== undefined) fence = fence === null ? language : null;
    if (/^\s*\|/.test(text) || fence === 'json') continue;
    const withoutLinks = text.replace(/\]\([^)]*\)/g, ']').replace(/https?:\/\/\S+/g, '');
    const columns = [...withoutLinks].length;
    if (columns > markdownColumnsMax) problems.push(`${file}:${line} has ${columns} columns`);
  }
  return problems;
}

/**
 * Files that a document names by path, and documents and headings that it links to, must exist. A
 * README beside the code names the files of its folder without their path.
 */
export function findDeadPaths(root: string): string[] {
  const problems: string[] = [];
  const paths =
    /`((?:bench|docs|examples|migrations|scripts|sdk|src|test|test-gateway|web)\/[\w.*/-]+)`/g;
  for (const { file, line, text } of linesOf(root, ownDocuments)) {
    for (const [, name = ''] of text.matchAll(paths)) {
      // The results of a build may be missing, and NNNN stands for a number.
      if (/\/dist(\/|$)|NNNN/.test(name)) continue;
      if (fs.globSync(name, { cwd: root }).length === 0) {
        problems.push(`${file}:${line} names ${name}, which does not exist`);
      }
    }
    if (/^(src|test-gateway|web)\//.test(file)) {
      for (const [, name = ''] of text.matchAll(
        /`((?!(?:src|test|web)\/)[\w./-]+\.(?:mjs|tsx?))`/g,
      )) {
        if (!fs.existsSync(path.join(root, path.dirname(file), name))) {
          problems.push(`${file}:${line} names ${name}, which is not in its folder`);
        }
      }
    }
    for (const [, link = '', anchor] of text.matchAll(/\]\(([\w./-]*)(?:#([^)]*))?\)/g)) {
      const target = link === '' ? file : path.join(path.dirname(file), link);
      if (!fs.existsSync(path.join(root, target))) {
        problems.push(`${file}:${line} links to ${link}, which does not exist`);
      } else if (anchor !== undefined && !hasHeading(root, target, anchor)) {
        problems.push(`${file}:${line} links to ${link}#${anchor}, which is not a heading there`);
      }
    }
  }
  return problems;
}

function hasHeading(root: string, document: string, anchor: string): boolean {
  const text = fs
    .readFileSync(path.join(root, document), 'utf8')
    .replace(/^```[\s\S]*?^```$/gm, '');
  return [...text.matchAll(/^#+ (.+)$/gm)].some(([, title = '']) => slug(title) === anchor);
}

/**
 * Every setting that the service reads must be in the table of settings, and every setting in the
 * table must be read. Where the table gives a default as a value, setting that value must change
 * nothing.
 */
export function findUndocumentedSettings(
  root: string,
  readConfig: (env: Record<string, string>) => unknown,
): string[] {
  const document = 'docs/operators/settings.md';
  const sources = fs.globSync(
    ['src/config.ts', 'src/config/*.ts', 'src/gateway/{adapters,hyperswitch,stripe}/*settings.ts'],
    { cwd: root },
  );
  const source = sources.map((file) => fs.readFileSync(path.join(root, file), 'utf8')).join('\n');
  const read = new Set(
    [...source.matchAll(/'([A-Z][A-Z0-9_]{3,})'/g)].map((match) => match[1] ?? ''),
  );
  const documented = new Map<string, string>();
  for (const row of tableRows(root, document)) {
    const name = /^`([A-Z0-9_]+)`$/.exec(row[0] ?? '')?.[1];
    if (name !== undefined) documented.set(name, row[1] ?? '');
  }
  const problems: string[] = [];
  for (const name of read) {
    if (!documented.has(name))
      problems.push(`src/config.ts reads ${name}, which ${document} does not have`);
  }
  for (const [name, text] of documented) {
    if (!read.has(name))
      problems.push(`${document} has ${name}, which src/config.ts does not read`);
    const value = /^`([^`]*)`$/.exec(text)?.[1];
    if (value === undefined) continue;
    if (!isDeepStrictEqual(readConfig({ [name]: value }), readConfig({}))) {
      problems.push(`${document}: ${value} is not the default of ${name}`);
    }
  }
  for (const { file, line, text } of linesOf(root, ['src/**/*.ts'])) {
    if (sources.includes(file) || file.endsWith('.test.ts')) continue;
    if (/\bprocess\.env(\.|\[)/.test(text)) {
      problems.push(`${file}:${line} reads the environment; src/config.ts is the only reader`);
    }
  }
  return problems;
}

/** ARCHITECTURE must list the groups of `src/` and the rooms of each. */
export function findUnlistedRooms(root: string): string[] {
  const document = 'ARCHITECTURE.md';
  const listed = new Set<string>();
  for (const row of tableRows(root, document, 'Rooms')) {
    for (const group of codeSpans(row[0])) {
      listed.add(group);
      for (const room of codeSpans(row[1])) listed.add(`${group}${room}/`);
    }
  }
  const found = new Set<string>();
  for (const entry of fs.readdirSync(path.join(root, 'src'), { withFileTypes: true })) {
    found.add(entry.isDirectory() ? `${entry.name}/` : entry.name);
    if (!entry.isDirectory()) continue;
    const group = path.join(root, 'src', entry.name);
    for (const room of fs.readdirSync(group, { withFileTypes: true })) {
      if (room.isDirectory()) found.add(`${entry.name}/${room.name}/`);
    }
  }
  return [
    ...[...found]
      .filter((room) => !listed.has(room))
      .map((room) => `${document} does not list the room ${room}`),
    ...[...listed]
      .filter((room) => !found.has(room))
      .map((room) => `${document} lists the room ${room}, which does not exist`),
  ];
}

/**
 * The README of the invariants must list every invariant that SQL checks. For any other invariant
 * it must name a test.
 */
export function findWrongInvariants(root: string): string[] {
  const document = 'src/checks/invariants/README.md';
  const checked = new Set<string>();
  for (const { text } of linesOf(root, ['src/checks/**/*.ts'])) {
    const name = /^\s*name: '([A-Z]\d+)',$/.exec(text)?.[1];
    if (name !== undefined) checked.add(name);
  }
  const problems: string[] = [];
  const listed = new Set<string>();
  for (const row of tableRows(root, document)) {
    const name = row[0] ?? '';
    if (!/^[A-Z]\d+$/.test(name)) continue;
    listed.add(name);
    const hasTest = codeSpans(row[3]).some((span) => /^(src|test)\/.*\.test\.ts$/.test(span));
    if (!checked.has(name) && !hasTest) {
      problems.push(`${document} lists ${name}: no statement checks it and no test is named`);
    }
  }
  if (checked.size === 0) problems.push('src/checks has no named invariant');
  for (const name of checked) {
    if (!listed.has(name)) problems.push(`${document} does not list the invariant ${name}`);
  }
  return problems;
}

type Line = { file: string; line: number; text: string };

function* linesOf(root: string, patterns: string[]): Generator<Line> {
  const exclude = ['**/node_modules/**', '**/dist/**'];
  for (const file of fs.globSync(patterns, { cwd: root, exclude }).sort()) {
    const lines = fs.readFileSync(path.join(root, file), 'utf8').split('\n');
    for (const [index, text] of lines.entries()) {
      yield { file: file.replaceAll(path.sep, '/'), line: index + 1, text };
    }
  }
}

/** The cells of the tables of a document, or of the section with this heading. */
export function* tableRows(root: string, document: string, heading?: string): Generator<string[]> {
  let isWithin = heading === undefined;
  for (const { text } of linesOf(root, [document])) {
    if (heading !== undefined && /^#/.test(text)) isWithin = text.replace(/^#+ /, '') === heading;
    if (!isWithin || !text.startsWith('|')) continue;
    yield text
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
  }
}

export function codeSpans(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
}
