import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shortTime } from './format.ts';

const zone = 'Africa/Johannesburg';
const times: [at: string, now: string, shown: string][] = [
  ['2026-12-14T09:00:00Z', '2026-12-20T09:00:00Z', '14 Dec, 11:00'],
  ['2027-01-14T06:00:00Z', '2027-02-05T09:00:00Z', '14 Jan, 08:00'],
  ['2026-12-14T09:00:00Z', '2027-02-05T09:00:00Z', '14 Dec 2026, 11:00'],
];
for (const [at, now, shown] of times) {
  test(`a time leaves out the year of the clock that it is read by: ${shown}`, () => {
    assert.equal(shortTime(at, zone, Date.parse(now)), shown);
  });
}
