import assert from 'node:assert/strict';
import { test } from 'node:test';
import { customers, planSeason } from './season.ts';

test('a seed always plans the same season, and another seed a different one', () => {
  assert.deepEqual(planSeason(7), planSeason(7));
  assert.notDeepEqual(planSeason(7).days, planSeason(8).days);
  assert.deepEqual(planSeason(7, 2).days, planSeason(7).days.slice(0, 14));
});

test('every season has three hundred orders, with every course, from all forty shoppers', () => {
  for (const seed of [1, 2, 9_999]) {
    const { days, orders } = planSeason(seed);
    const all = days.flatMap((day) => day.orders);
    assert.equal(orders, 300);
    assert.equal(new Set(all.map(({ reference }) => reference)).size, 300);
    const courses = new Set(all.map(({ course }) => course));
    assert.equal(courses.size, 26);
    assert.equal(new Set(all.map(({ customer }) => customer.email)).size, customers.length);
  }
});

test('the amounts are within the bands of the demo merchant', () => {
  for (const { amount } of planSeason(3).days.flatMap((day) => day.orders)) {
    assert(amount >= 10_000 && amount <= 2_000_000, String(amount));
  }
});
