import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainBadPreselection, preselectedTerm } from './merchant.ts';

test('the page selects the longest term that is at most the merchant’s choice', () => {
  const cases: [preselected: number | null, terms: number[], selected: number][] = [
    [null, [1, 3, 6], 1],
    [3, [1, 3, 6], 3],
    [4, [1, 3, 6], 3],
    [120, [1, 3, 6], 6],
    [1, [3, 6], 3],
    [2, [3], 3],
  ];
  for (const [preselected_term, terms, selected] of cases) {
    assert.equal(preselectedTerm({ preselected_term }, terms), selected);
  }
});

test('a preselected term is an integer from 1 to 120, or none', () => {
  for (const term of [null, 1, 120]) assert.equal(explainBadPreselection(term), null);
  for (const term of [0, 121, 1.5, '3', undefined]) {
    assert.match(explainBadPreselection(term) ?? '', /integer from 1 to 120/);
  }
});
