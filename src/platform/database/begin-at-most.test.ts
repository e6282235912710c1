import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beginAtMost } from './begin-at-most.ts';
import { NotBegun } from './transaction.ts';

test('work beyond the limit is refused before it begins, and accepted once other work has ended', async () => {
  const begin = beginAtMost(2);
  const ends: (() => void)[] = [];
  const wait = () => new Promise<void>((resolve) => ends.push(resolve));
  const [first, second] = [begin(wait), begin(wait)];
  await assert.rejects(begin(wait), NotBegun);
  assert.equal(ends.length, 2);
  ends[0]?.();
  await first;
  const failing = begin(() => Promise.reject(new Error('it fails')));
  await assert.rejects(failing, /it fails/);
  const third = begin(wait);
  for (const end of ends) end();
  await Promise.all([second, third]);
});
