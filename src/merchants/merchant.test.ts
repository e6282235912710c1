import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeBands, explainBadPreselection, isWider, preselectedTerm } from './merchant.ts';

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

test('bands are wider if they take an amount in a term that they did not take before', () => {
  const before = [
    { from_amount: 10_000, to_amount: 99_999, terms: [1, 3] },
    { from_amount: 100_000, to_amount: 200_000, terms: [3, 6] },
  ];
  const cases: [isWiderNow: boolean, from_amount: number, to_amount: number, terms: number[]][] = [
    [false, 10_000, 99_999, [1]],
    [false, 50_000, 150_000, [3]],
    [true, 50_000, 150_000, [1, 3]],
    [true, 9_999, 99_999, [1]],
    [true, 10_000, 200_001, [3]],
    [true, 100_000, 200_000, [12]],
    [true, 300_000, 400_000, [3]],
  ];
  for (const [wider, from_amount, to_amount, terms] of cases) {
    assert.equal(isWider([{ from_amount, to_amount, terms }], before), wider);
  }
  assert.equal(isWider(before, before), false);
  assert.equal(isWider([{ from_amount: 1, to_amount: 2, terms: [1] }], []), true);
});

test('bands are described as the amounts between which a checkout is accepted', () => {
  const band = (from_amount: number, to_amount: number) => ({ from_amount, to_amount, terms: [1] });
  const whole = 'between 5000 and 20000 cents';
  assert.equal(describeBands([band(5000, 9999), band(10000, 20000)]), whole);
  assert.match(describeBands([]), /^between the limits of a band, and this merchant has no bands$/);
});
