import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { catalogue } from '#cli/catalogue.ts';
import { alertKinds } from '#platform/shared/alert-kinds.ts';
import { codeSpans, tableRows } from '../../scripts/check-documents.ts';

// Compares lists in the documents with the code. Nothing is started.

const root = path.join(import.meta.dirname, '../..');
const commandLine = 'docs/operators/cli.md';
const commands = catalogue.flatMap((entry) => ('commands' in entry ? entry.commands : [entry]));
const groups = catalogue.flatMap((entry) => ('commands' in entry ? [entry.name] : []));

/** The command that a code span shows; undefined if it shows none. */
const commandOf = (span: string) =>
  commands
    .map(({ name }) => name)
    .filter((name) => `${span} `.startsWith(`${name} `))
    .toSorted((one, other) => other.length - one.length)[0];

const optionsIn = (text: string) =>
  [...text.matchAll(/--([a-z0-9-]+)/g)].map(([, option = '']) => option);

type Part = { text: string; isRow: boolean };

/** The rows of tables and the paragraphs of a document. */
function partsOf(document: string): Part[] {
  const text = readFileSync(path.join(root, document), 'utf8').replace(/^```[\s\S]*?^```$/gm, '');
  return text.split('\n\n').flatMap((block): Part[] => {
    if (!block.startsWith('|')) return [{ text: block.replace(/\s+/g, ' '), isRow: false }];
    return block.split('\n').map((row) => ({ text: row.replaceAll('\\|', '|'), isRow: true }));
  });
}

test('the page about the command line has every command with its options, and no other', async () => {
  const shown = new Map<string, Set<string>>();
  const wrong: string[] = [];
  for (const { text, isRow } of partsOf(commandLine)) {
    const spans = codeSpans(text).map((span) => span.replace(/^tranche /, ''));
    for (const [index, span] of spans.entries()) {
      const name = commandOf(span);
      const [group = '', word = ''] = span.split(' ');
      if (name === undefined) {
        if (groups.includes(group) && /^[a-z]/.test(word)) wrong.push(`there is no ${span}`);
        continue;
      }
      const options = shown.get(name) ?? new Set();
      shown.set(name, options);
      // In a table, the text beside the first command of a row may describe more of its options.
      for (const option of optionsIn(isRow && index === 0 ? text : span)) options.add(option);
    }
  }
  for (const { name, load } of commands) {
    const known = Object.keys((await load()).options ?? {}).filter(
      // The page says once that every list has these two options.
      (option) => option !== 'after' && option !== 'limit',
    );
    const options = shown.get(name);
    if (!options) wrong.push(`${name} is missing`);
    for (const option of known) {
      if (options && !options.has(option)) wrong.push(`${name} lacks --${option}`);
    }
    for (const option of options ?? []) {
      if (!['limit', 'json', ...known].includes(option)) wrong.push(`${name} has no --${option}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test('the runbook has every kind of alert', () => {
  const rows = [...tableRows(root, 'docs/operators/runbook.md', 'Alerts of the service')];
  const kinds = rows.flatMap(([kind]) => codeSpans(kind));
  assert.deepEqual(kinds.toSorted(), Object.keys(alertKinds).toSorted());
});

test('the SDK and the guide to callbacks show the same handlers', () => {
  const handlers = (document: string) =>
    [...tableRows(root, document)].filter(([, how = '']) => how.includes('callbacks.'));
  assert.equal(handlers('sdk/README.md').length, 5);
  assert.deepEqual(handlers('sdk/README.md'), handlers('docs/merchants/callbacks.md'));
});
