import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import {
  chooseAfterFailure,
  earliestDeadline,
  hasTime,
  isLate,
  mayStartFlight,
  type Wait,
} from './choose-commits.ts';
import { FateUnknown, NotBegun } from './transaction.ts';

const withCode = (code: string) => Object.assign(new Error(code), { code });

const locked = withCode('55P03');
const away = Object.assign(new pg.DatabaseError('connection lost', 1, 'error'), {
  severity: 'ERROR',
  routine: 'HandleError',
  code: '08006',
});
const broken = withCode('ECONNRESET');
const inDoubt = new FateUnknown('the connection broke during the COMMIT');
const refused = withCode('23505');

test('what follows a failed write depends on the error, the wait and the size of the batch', () => {
  const cases: [unknown, Wait, number, string][] = [
    [locked, 'shared', 5, 'separate'],
    [locked, 'brief', 1, 'separate'],
    [locked, 'patient', 5, 'requeue'],
    [away, 'shared', 5, 'separate'],
    [away, 'patient', 5, 'requeue'],
    [broken, 'shared', 5, 'requeue'],
    [broken, 'patient', 1, 'requeue'],
    [new NotBegun('too late'), 'shared', 2, 'requeue'],
    [inDoubt, 'shared', 5, 'reject'],
    [inDoubt, 'patient', 1, 'reject'],
    [refused, 'shared', 5, 'write alone'],
    [refused, 'patient', 2, 'write alone'],
    [refused, 'shared', 1, 'reject'],
    ['not an error', 'shared', 1, 'reject'],
  ];
  for (const [error, wait, items, choice] of cases) {
    assert.equal(chooseAfterFailure(error, wait, items), choice, `${error} ${wait} ${items}`);
  }
});

test('a batch leaves if all others in flight are late, and at most three are in flight', () => {
  const cases: [number, number, boolean][] = [
    [0, 0, true],
    [1, 0, false],
    [1, 1, true],
    [2, 1, false],
    [2, 2, true],
    [3, 3, false],
  ];
  for (const [flights, late, may] of cases) {
    assert.equal(mayStartFlight(flights, late), may, `${flights} in flight, ${late} late`);
  }
});

test('an item is refused at its deadline, and is not retried in the last half second', () => {
  const due = (deadline: { endsAt: number; lockEndsAt?: number }) => ({
    deadline: { ...deadline, lookUpEndsAt: deadline.endsAt },
  });
  assert.equal(isLate(undefined, 0), false);
  assert.equal(isLate(due({ endsAt: 1_000 }), 999), false);
  assert.equal(isLate(due({ endsAt: 1_000 }), 1_000), true);
  assert.equal(isLate(due({ endsAt: 1_000, lockEndsAt: 3_000 }), 2_999), false);
  assert.equal(hasTime(due({ endsAt: 1_000 }), 500), true);
  assert.equal(hasTime(due({ endsAt: 1_000 }), 501), false);
});

test('a batch ends at its earliest deadline and is looked up until its latest', () => {
  const batch = [
    { deadline: { endsAt: 5, lookUpEndsAt: 9, lockEndsAt: 30 } },
    { deadline: { endsAt: 7, lookUpEndsAt: 20 } },
  ];
  assert.deepEqual(earliestDeadline(batch), { endsAt: 5, lockEndsAt: 7, lookUpEndsAt: 20 });
});
