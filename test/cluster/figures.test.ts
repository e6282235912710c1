import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Cut, findFailures } from './figures.ts';
import type { Call } from './load.ts';

const call = (changes: Partial<Call>): Call => ({
  kind: 'create',
  integration: 'one',
  reference: 'one',
  hasKey: true,
  begun: 1_000,
  ended: 2_000,
  statuses: [200],
  isAcknowledged: true,
  detail: null,
  id: 'one',
  ...changes,
});

const find = (one: Call, cuts: Cut[] = []) =>
  findFailures({ name: 'switchover', calls: [one], pause: 0 }, cuts);

test('a connection that closes without an answer is damage, even if a retry succeeds', () => {
  assert.deepEqual(find(call({})), []);
  const repeated = call({ statuses: [0, 200] });
  assert.deepEqual(find(repeated), ['switchover: 1 were cut without an answer']);
  assert.deepEqual(find(repeated, [{ begun: 1_500, ended: 1_600 }]), []);
  assert.equal(find(repeated, [{ begun: 3_000, ended: 4_000 }]).length, 1);
});

test('while a node is killed, a request without a key may stay unanswered, and one with a key may not', () => {
  const cuts = [{ begun: 1_500, ended: 1_600 }];
  const unanswered = { statuses: [0], isAcknowledged: false };
  assert.deepEqual(find(call({ ...unanswered, hasKey: false }), cuts), []);
  assert.match(find(call(unanswered), cuts).join(), /1 failed/);
});
