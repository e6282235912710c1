import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#platform/shared/clock.ts';
import { withDeadline } from './deadline.ts';
import { groupCommit } from './group-commit.ts';
import { isTransient } from './transaction.ts';

// A fake write shows the moments between two batches, which a database rarely hits.

const deps = { clock: systemClock };
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('a commit that follows another one at once is written', async () => {
  const commit = groupCommit(
    deps,
    async (items: number[]) => {
      await nextTurn();
      return items;
    },
    10,
  );
  // The flight ends a few microtasks after its answers. Try each of these moments.
  for (let microtasks = 0; microtasks < 12; microtasks += 1) {
    assert.equal(await commit(1), 1);
    for (let passed = 0; passed < microtasks; passed += 1) await null;
    assert.equal(await commit(2), 2);
    await nextTurn();
  }
  await commit.settled();
});

/** Makes a write that does not end until the test calls `end`. */
function openWrite() {
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const written: string[] = [];
  const write = async (items: string[]) => {
    await promise;
    written.push(...items);
    return items;
  };
  return { write, written, end };
}

test('a write that waits for its turn ends at its deadline and is not written', async (t) => {
  // Keep the process alive, as a connection does in the service.
  const alive = setInterval(() => {}, 60_000);
  t.after(() => clearInterval(alive));
  const { write, written, end } = openWrite();
  const commit = groupCommit(deps, write, 1);
  const inFlight = ['first', 'second', 'third'].map(commit);
  const endsAt = systemClock.monotonic() + 100;
  const late = withDeadline({ endsAt, lookUpEndsAt: endsAt }, () => commit('late'));
  await assert.rejects(late, isTransient);
  end();
  await Promise.all(inFlight);
  await commit.settled();
  assert.deepEqual(written, ['first', 'second', 'third']);
});

test('a write that arrives after a batch became late does not wait for the batch', async () => {
  const stuck = openWrite();
  const timers: (() => void)[] = [];
  const clock = {
    ...systemClock,
    after(_milliseconds: number, run: () => void) {
      timers.push(run);
      return () => {};
    },
  };
  const commit = groupCommit(
    { clock },
    async (items: string[]) => (items.includes('stuck') ? await stuck.write(items) : items),
    10,
  );
  const first = commit('stuck');
  await nextTurn();
  for (const becomeLate of timers.splice(0)) becomeLate();
  for (const item of ['one', 'two']) assert.equal(await commit(item), item);
  stuck.end();
  assert.equal(await first, 'stuck');
  assert.equal(await commit('after'), 'after');
});

test('beyond ten thousand queued writes, the next one is refused and may be retried', async () => {
  const { write, end } = openWrite();
  const commit = groupCommit(deps, write, 200);
  const queued = Array.from({ length: 10_000 }, (_, index) => commit(String(index)));
  await assert.rejects(commit('one more'), isTransient);
  end();
  await Promise.all(queued);
  assert.equal(await commit('later'), 'later');
});

test('a watch over a write does not keep a process alive', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const cancel = systemClock.after(60_000, () => {});
  assert.equal(timers(), before);
  cancel();
});
