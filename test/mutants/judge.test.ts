import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { type Explained, judge } from './judge.ts';
import { modules } from './modules.ts';

const mutant = (from: string, isKilled: boolean, within = 'split') => ({
  ...{ line: 1, mutator: 'EqualityOperator', within, from, to: 'x', isKilled },
});

test('a survivor without a reason fails, and a reason whose mutant is killed is named', () => {
  const reason = 'because';
  const explained: Explained[] = [
    { file: 'a.ts', from: 'lives', to: 'x', within: 'split', reason },
    { file: 'a.ts', from: 'dies', to: 'x', reason },
    { file: 'a.ts', within: 'Schema', reason },
    { file: 'a.ts', within: 'Gone', reason },
    { file: 'b.ts', from: 'new', to: 'x', reason },
  ];
  const mutants = [
    mutant('lives', false),
    mutant('dies', true),
    mutant('lives', false, 'join'),
    mutant('new', false),
    mutant('text', false, 'Schema'),
  ];
  assert.deepEqual(judge('a.ts', mutants, explained), {
    killed: 1,
    excused: 2,
    survivors: [mutants[2], mutants[3]],
    stale: [explained[1], explained[3]],
  });
});

// `npm run mutants` takes long and is not part of the tests. Its tables have to stay true.
test('the tables of mutants name modules and tests that exist', () => {
  const root = path.join(import.meta.dirname, '../..');
  const named = [...Object.keys(modules), ...Object.values(modules).flat()];
  assert.deepEqual(
    named.filter((file) => !fs.existsSync(path.join(root, file))),
    [],
  );
  const explained: Explained[] = JSON.parse(
    fs.readFileSync(path.join(import.meta.dirname, 'explained.json'), 'utf8'),
  );
  for (const { file, reason } of explained) assert.ok(file in modules && reason !== '', file);
});
