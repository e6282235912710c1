import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { PayPage } from '#purchases/payments/pay-page.ts';
import { paymentRoutes } from '#purchases/payments/payment.routes.ts';
import { recoverAttempts } from '#purchases/payments/recover-attempts.ts';
import { answerChallenge } from '../support/gateway.ts';
import { type Incarnation, type Scene, startScene } from '../support/incarnation.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { type Act, createPlayer } from '../support/player.ts';
import { isReplay, playSeeds, type Story } from '../support/seeds.ts';
import { createAccount } from '../support/service.ts';

// A shopper in two tabs, the bank, two processes that die and restart, a worker, a gateway that
// fails, and time. Each seed runs them in another order, statement by statement.
// TRANCHE_SEED=17 repeats seed 17.

const gatewayTimeoutMs = 120;

let scenes: Awaited<ReturnType<typeof startScene>>[] = [];
before(async () => {
  scenes = [await startScene(), await startScene()];
});
after(() => Promise.all(scenes.map((scene) => scene.close())));

const cards = [
  visa,
  visa,
  challengeCard,
  challengeCard,
  challengeCard,
  '4000000000000002',
  '4000008260003178',
];
// Slow faults are rarer: a fast failure reaches the same states.
const faults = [
  'error_before',
  'error_before',
  'error_after',
  'error_after',
  'drop_before',
  'drop_after',
  'latency',
  'latency_after',
  'hold_key',
] as const;
const paths = [
  ['POST', '/v1/customers'],
  ['POST', '/v1/payment_intents'],
  ['POST', '/v1/payment_intents'],
  ['POST', '/v1/payment_intents/:id/cancel'],
  ['GET', '/v1/payment_intents/:id'],
  ['GET', '/v1/payment_intents'],
] as const;
/** Past a retry, past a lease; seldom past the half hour, the deadline, or the gateway's keys. */
const moves: Temporal.DurationLike[] = [
  ...Array.from({ length: 8 }, () => [{ seconds: 6 }, { seconds: 41 }, { seconds: 81 }]).flat(),
  { minutes: 14 },
  { minutes: 29, seconds: 59 },
  { minutes: 46 },
  { hours: 25 },
];
const ends = ['successful', 'cancelled', 'invalid_payload'];

test('in any order of events a checkout has at most one outcome, and the gateway holds what it says', async (t) => {
  const count = await playSeeds(t, 500, scenes, async (story, scene) => {
    try {
      await play(story, scene);
    } finally {
      scene.stage.free(true);
      await scene.paying.clearFaults();
    }
  });
  if (isReplay()) return;
  for (const seen of ['successful', 'cancelled', 'received', 'invalid_payload', 'kill', 'fault']) {
    assert.ok((count[seen] ?? 0) > 0, `no run came upon ${seen}`);
  }
});

async function play(story: Story, scene: Scene): Promise<void> {
  const { chance, note } = story;
  const { paying } = scene;
  const { next: random, pick } = chance;
  const { service, gateway, clock } = paying;
  const account = await createAccount(service);
  const email = random() < 0.08 ? 'refused@example.com' : 'thandi@example.com';
  const shopper = await paying.shopper({ amount: 100_001, customer: { email } }, account);
  const terms = [1, 3, 6];
  const bodies = await Promise.all(terms.map((term) => shopper.payBody(term, { token: 'x' })));
  /** Final statuses that a page showed. */
  const told = new Set<string>();

  let events = 6 + Math.floor(random() * 18);
  // Not every run has every fault: late failures need an undisturbed beginning.
  const kills = { count: pick([0, 0, 1, 1, 2, 3]), weight: 2 };
  let failings = pick([0, 0, 1, 2, 4]);

  /** Checks what must be true at every moment, not only when no due work is left. */
  async function assertWhole(): Promise<void> {
    const violations = await findViolations(service.deps.database, timestamp(clock.now()));
    assert.deepEqual(
      violations.filter(({ name }) => name !== 'W1'),
      [],
    );
  }
  const serve = paymentRoutes;
  const player = createPlayer(story, scene, { gatewayTimeoutMs, serve, kills, assertWhole });
  const { living, begin } = player;

  const call = async (process: Incarnation, action: string, body?: object) => {
    const sent = process.app.inject({
      method: body ? 'POST' : 'GET',
      url: `${shopper.url}/${action}`,
      ...(body && { payload: body }),
    });
    const answer = await Promise.race([sent, process.died]);
    if (answer === null) return note('unanswered', action);
    assert.notEqual(answer.statusCode, 500, `${action}: ${answer.body}`);
    if (answer.statusCode !== 200) return note('answer', `${action} ${answer.statusCode}`);
    const { status } = answer.json<PayPage>();
    note('answer', `${action} ${status}`);
    if (ends.includes(status)) told.add(status);
    // A few steps after the end are enough.
    if (ends.includes(status) || status === 'expired') events = Math.min(events, 3);
  };

  // Two tabs and a worker act concurrently, each one step after another.
  const shop = async (tab: string): Promise<void> => {
    const process = await living();
    const choice = random();
    if (choice < 0.6) {
      const card = pick(cards);
      const body = pick(bodies);
      note('pay', `${card} in ${body.number_of_payments}, ${tab}`);
      const card_token = await gateway.tokenFor(card);
      begin(tab, call(process, 'pay', { ...body, card_token }));
    } else if (choice < 0.72) begin(tab, call(process, 'return'));
    else if (choice < 0.78) begin(tab, call(process, 'state'));
    else {
      note('cancel', tab);
      begin(tab, call(process, 'cancel', { number_of_payments: pick(terms) }));
    }
  };
  const work = async () => {
    const process = await living();
    note('work');
    begin('worker', Promise.race([recoverAttempts(process.deps), process.died]));
  };
  const bank = async () => {
    const urls = (await shopper.attempts()).flatMap(({ challenge_url }) => challenge_url ?? []);
    const decision = pick(['approve', 'approve', 'approve', 'decline', 'close'] as const);
    const url = pick(urls);
    // There is no challenge yet: that was no event.
    events += url === undefined ? 1 : 0;
    if (url === undefined) return;
    note('bank', decision);
    await answerChallenge(url, decision);
  };
  const fail = async () => {
    const [method, path] = pick(paths);
    const fault = pick(faults);
    const times = pick([1, 2, 2, 4]);
    failings -= 1;
    note('fault', `${times} × ${fault} at ${method} ${path}`);
    await gateway.fault({ fault, method, path, times, ms: gatewayTimeoutMs + 30 });
  };
  const move = async () => {
    const by = pick(moves);
    note('clock', JSON.stringify(by));
    clock.advance(by);
  };
  // Some runs begin in the middle, because interesting states are far from the start.
  const beginning = pick([
    'open',
    'open',
    'challenged',
    'challenged',
    'approved',
    'unheard',
  ] as const);
  note('begin', beginning);
  if (beginning === 'challenged' || beginning === 'approved') {
    const { challenge_url } = await shopper.pay(pick(terms), { card: challengeCard });
    if (beginning === 'approved' && challenge_url) await answerChallenge(challenge_url, 'approve');
  } else if (beginning === 'unheard') {
    await gateway.fault({ fault: 'error_after', method: 'POST', path: '/v1/payment_intents' });
    await shopper.pay(pick(terms));
  }

  await player.play(() => {
    if (events <= 0) return [];
    const may = (weight: number, act: () => Promise<void>): Act => [
      weight,
      async () => {
        events -= 1;
        await act();
      },
    ];
    const idle = (...actors: string[]) => actors.filter((actor) => !player.isBusy(actor));
    return [
      ...idle('first tab', 'second tab').map((tab) => may(4, () => shop(tab))),
      ...idle('worker').map(() => may(2, work)),
      may(4, bank),
      ...(failings > 0 ? [may(1, fail)] : []),
      may(1, move),
    ];
  });

  await assertWhole();
  await paying.clearFaults();
  await settle(random() < 0.5);
  await check();

  /** Lets leases and then the deadline pass, and does all due work. */
  async function settle(inTime: boolean): Promise<void> {
    if (inTime) {
      for (let round = 0; round < 2; round += 1) {
        clock.advance({ seconds: 81 });
        await paying.work();
      }
    }
    for (let round = 0; ; round += 1) {
      clock.advance({ minutes: 50 });
      await paying.work();
      const { rows } = await service.deps.database.pool.query(
        'select 1 from payment_attempts where due_at is not null limit 1',
      );
      if (rows.length === 0) return;
      assert.ok(round < 40, 'an attempt stays open');
    }
  }

  async function check(): Promise<void> {
    assert.deepEqual(await findViolations(service.deps.database, timestamp(clock.now())), []);
    const [checkout] = await shopper.rows('checkouts');
    note(checkout.status);
    assert.deepEqual(
      [...told].filter((status) => status !== checkout.status),
      [],
      'a page told another end',
    );
    const page = await shopper.state();
    assert.equal(page.status, checkout.status === 'received' ? 'expired' : checkout.status);
    const instalments = await shopper.rows('instalments');
    const firsts = instalments.filter(({ number }) => number === 1).map(({ amount }) => amount);
    // No run takes a week, so no hold has lapsed.
    assert.deepEqual(await shopper.live(), checkout.status === 'successful' ? firsts : []);
    const { payment_intents } = await shopper.books();
    const attempts = payment_intents.map(({ metadata }) => metadata.attempt_id);
    assert.equal(
      new Set(attempts).size,
      attempts.length,
      'an attempt was made twice at the gateway',
    );
  }
}
