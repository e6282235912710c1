import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startWorker } from '#worker.ts';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import {
  assertSound,
  challengeCard,
  commandsOf,
  type Paying,
  startPaying,
} from '../support/payments.ts';
import {
  type Account,
  commandSettings,
  createAccount,
  createTestDatabase,
  send,
} from '../support/service.ts';

const start = '2026-11-15T08:00:00.000Z';
const at = (duration: Temporal.DurationLike) =>
  Temporal.Instant.from(start)
    .toZonedDateTimeISO('UTC')
    .add(duration)
    .toInstant()
    .toString({ fractionalSecondDigits: 3 });

// The real clock stands still here; only merchants' clocks move.
let paying: Paying;
let tranche: Tranche;
before(async () => {
  paying = await startPaying({ start });
  tranche = commandsOf(paying);
});
after(async () => {
  try {
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

const show = ({ merchant }: Account) => tranche.json('clock', 'show', '--merchant', merchant.id);
const advance = ({ merchant }: Account, ...how: string[]) =>
  tranche.json('clock', 'advance', '--merchant', merchant.id, ...how);

async function timesOf(account: Account): Promise<{ created_at: string; expires_at: string }> {
  const { id } = await paying.shopper({}, account);
  const { body } = await send(paying.service, account, 'GET', `/api/checkouts/${id}`);
  return body.data.attributes;
}

test("a merchant's clock moves by the given duration, and no other merchant's moves", async () => {
  const [moved, other] = [await createAccount(paying.service), await createAccount(paying.service)];
  const id = moved.merchant.id;
  assert.deepEqual(await show(moved), {
    merchant_id: id,
    now: start,
    next_event_at: null,
    next_event: null,
  });
  const answer = await advance(moved, '--by', '90m');
  assert.deepEqual(answer, {
    merchant_id: id,
    now: at({ minutes: 90 }),
    next_event_at: null,
    next_event: null,
  });
  await advance(moved, '--by', '36h');
  assert.equal((await show(moved)).now, at({ hours: 37, minutes: 30 }));
  assert.equal((await show(other)).now, start);

  // A server that has the merchant in its cache also uses the new time.
  const times = await timesOf(moved);
  assert.equal(times.created_at, at({ hours: 37, minutes: 30 }));
  assert.equal(times.expires_at, at({ hours: 38 }));
  assert.equal((await timesOf(other)).created_at, start);
  await advance(moved, '--by', '99d');
  assert.equal((await timesOf(moved)).created_at, at({ days: 99, hours: 37, minutes: 30 }));
});

test('a checkout expires by its merchant’s clock', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await advance(account, '--by', '29m');
  assert.equal((await shopper.state()).status, 'open');
  await advance(account, '--by', '1m');
  assert.equal((await shopper.state()).status, 'expired');
});

test('due work happens at its own time while a clock moves, not at the end', async () => {
  const account = await createAccount(paying.service);
  const other = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  const waiting = await paying.shopper({}, other);
  await shopper.pay(3, { card: challengeCard });
  await waiting.pay(3, { card: challengeCard });
  const answer = await advance(account, '--by', '5d');
  assert.deepEqual([answer.now, answer.next_event_at], [at({ days: 5 }), null]);
  const [attempt] = await shopper.attempts();
  assert.equal(attempt?.status, 'voided');
  assert.equal(attempt?.settled_at, at({ minutes: 45, seconds: 0, milliseconds: 1 }));
  assert.ok((attempt?.attempts ?? 0) > 10, 'the challenge was looked up while the clock moved');
  assert.equal((await waiting.state()).status, 'challenge');
});

test('a challenge that was approved in time completes while the clock moves, at the time of the approval', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3, { card: challengeCard });
  await shopper.decide('approve');
  const { next_event_at } = await show(account);
  await advance(account, '--by', '99d');
  assert.equal((await shopper.state()).status, 'successful');
  const [{ completed_at }] = await shopper.rows('checkouts');
  assert.equal(completed_at, next_event_at);
  assert.match((await shopper.callback()) ?? '', /"successful"/);
});

test('due work is done in the order of its due times', async () => {
  const account = await createAccount(paying.service);
  const first = await paying.shopper({}, account);
  await first.pay(3, { card: challengeCard });
  await advance(account, '--by', '10m');
  const second = await paying.shopper({}, account);
  await second.pay(1, { card: challengeCard });
  await advance(account, '--by', '20m');
  const third = await paying.shopper({}, account);
  await third.pay(1, { card: challengeCard });
  await third.decide('approve');
  await advance(account, '--by', '2h');
  const settled = await Promise.all(
    [first, second, third].map(async (shopper) => (await shopper.attempts())[0]),
  );
  assert.deepEqual(
    settled.map((attempt) => [attempt?.status, attempt?.settled_at]),
    [
      ['voided', at({ minutes: 45, milliseconds: 1 })],
      ['voided', at({ minutes: 55, milliseconds: 1 })],
      ['authorised', at({ minutes: 30, seconds: 20 })],
    ],
  );
});

test('--to-next-event moves to the next event and no further, until there is none', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3, { card: challengeCard });
  const { next_event_at } = await show(account);
  assert.equal(next_event_at, at({ seconds: 20 }));
  const first = await advance(account, '--to-next-event');
  assert.equal(first.now, next_event_at);
  assert.equal((await shopper.state()).status, 'challenge');
  await shopper.decide('approve');
  const second = await advance(account, '--to-next-event');
  assert.equal(second.now, first.next_event_at);
  assert.equal((await shopper.state()).status, 'successful');
  const events = [second.next_event_at];
  for (let event = second; event.next_event_at !== null; ) {
    event = await advance(account, '--to-next-event');
    if (event.next_event_at !== null) events.push(event.next_event_at);
  }
  assert.deepEqual(events, [
    // The hold is captured in the night. Then each payment has a reminder and a charge.
    '2026-11-16T00:00:00.000Z',
    '2026-12-12T06:00:00.000Z',
    '2026-12-15T06:00:00.000Z',
    '2027-01-12T06:00:00.000Z',
    '2027-01-15T06:00:00.000Z',
  ]);
  await tranche.refused(
    1,
    /Nothing is scheduled for this merchant/,
    ...['clock', 'advance', '--merchant', account.merchant.id, '--to-next-event'],
  );
});

test('two moves at once both take effect, and all due work is done once, at its own time', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3, { card: challengeCard });
  await Promise.all([advance(account, '--by', '1h'), advance(account, '--by', '2h')]);
  // The second move may have begun while the first was in progress.
  const { now } = await show(account);
  assert.ok(now >= at({ hours: 2 }) && now <= at({ hours: 3 }), now);
  const [attempt] = await shopper.attempts();
  assert.deepEqual(
    [attempt?.status, attempt?.settled_at],
    ['voided', at({ minutes: 45, milliseconds: 1 })],
  );
  const { rows } = await paying.service.deps.database.pool.query(
    'select operator, action from operator_actions where subject_id = $1 and action = $2',
    [account.merchant.id, 'clock advance'],
  );
  assert.deepEqual(rows, Array(2).fill({ operator: 'nomsa', action: 'clock advance' }));
});

test('a worker that runs at the same time changes no result', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3, { card: challengeCard });
  const worker = startWorker(paying.service.deps);
  const answer = await advance(account, '--by', '1d');
  await worker.stop();
  assert.equal(answer.now, at({ days: 1 }));
  const [attempt] = await shopper.attempts();
  assert.deepEqual(
    [attempt?.status, attempt?.settled_at],
    ['voided', at({ minutes: 45, milliseconds: 1 })],
  );
});

test('a clock is never moved back, nor without a duration', async () => {
  const { merchant } = await createAccount(paying.service);
  const move = ['clock', 'advance', '--merchant', merchant.id];
  await tranche.refused(2, /--by is "-1h" and must be a duration/, ...move, '--by=-1h');
  await tranche.refused(2, /--by is "1y"/, ...move, '--by', '1y');
  await tranche.refused(2, /either --by DURATION or --to-next-event/, ...move);
  await tranche.refused(
    2,
    /either --by DURATION or --to-next-event/,
    ...[...move, '--by', '1h', '--to-next-event'],
  );
  await tranche.refused(2, /--merchant is missing/, 'clock', 'advance', '--by', '1h');
  const { now } = await tranche.json(...move, '--by', '0');
  assert.equal(now, start);
});

test('an unknown merchant has no clock', async () => {
  for (const id of [unknownId, 'nonsense']) {
    await tranche.refused(1, /There is no merchant/, 'clock', 'show', '--merchant', id);
    const by = ['--by', '1h'];
    await tranche.refused(1, /There is no merchant/, 'clock', 'advance', '--merchant', id, ...by);
  }
});

test('no clock is moved in production', async (t) => {
  const database = await createTestDatabase();
  t.after(() => database.drop());
  const production = commandLine({ ...commandSettings, DATABASE_URL: database.url });
  const merchant = ['--merchant', unknownId];
  const sentence = /Production runs on real time/;
  await production.refused(1, sentence, 'clock', 'advance', ...merchant, '--by', '1h');
  await production.refused(1, sentence, 'clock', 'advance', ...merchant, '--to-next-event');
});

test('without --json the output is text for people', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3, { card: challengeCard });
  const { stdout, code } = await tranche.run('clock', 'show', '--merchant', account.merchant.id);
  assert.equal(code, 0);
  assert.match(stdout, /^Merchant +[0-9a-f-]{36}$/m);
  assert.match(stdout, /^Merchant's time +15 November 2026, 08:00 UTC$/m);
  assert.match(stdout, /^Next event +15 November 2026.*: look up the outcome of a payment$/m);
  assert.match(stdout, new RegExp(`^ +order .*, checkout ${shopper.id}$`, 'm'));
  const { next_event, next_event_at } = await tranche.json(
    'clock',
    'show',
    '--merchant',
    account.merchant.id,
  );
  assert.deepEqual([next_event.at, next_event.checkout_id], [next_event_at, shopper.id]);
  const moved = await tranche.run(
    'clock',
    'advance',
    '--merchant',
    account.merchant.id,
    '--by',
    '1d',
  );
  assert.match(moved.stdout, /^Next event +nothing is due$/m);
});
