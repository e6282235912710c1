import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import type { Deps } from '#main.ts';
import { FateUnknown, isTransient } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { Fault } from '../../test-gateway/faults.ts';
import { answerChallenge } from '../support/gateway.ts';
import { type Scene, startScene } from '../support/incarnation.ts';
import { askRefund, assertBalanced, cards } from '../support/money.ts';
import { challengeCard, type Shopper, servePages, visa } from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { createPlayer, type Move } from '../support/player.ts';
import { isReplay, playSeeds, type Story } from '../support/seeds.ts';
import { createAccount } from '../support/service.ts';

// A shopper in two tabs, the bank, workers, two processes that die and restart, a gateway that
// fails, and time. Each seed runs them in another order, statement by statement.
// TRANCHE_SEED=17 repeats seed 17.

const gatewayTimeoutMs = 120;

let scenes: Awaited<ReturnType<typeof startScene>>[] = [];
before(async () => {
  scenes = [await startScene(), await startScene()];
});
after(() => Promise.all(scenes.map((scene) => scene.close())));

type Request = { about: string; path: string; body?: object };
type Duration = { seconds?: number; minutes?: number; hours?: number };
type Run = (deps: Deps) => Promise<unknown>;

/** A shopper's attempts of some purposes, with all that may meet them. */
type Setting = {
  seeds: number;
  /** Each of these must occur in at least one run. */
  seen: string[];
  /** How often a process is killed at most, and how often a request fails: one is picked. */
  kills: number[];
  failings: number[];
  faults: readonly Fault['fault'][];
  paths: readonly (readonly [method: string, path: string])[];
  moves: Duration[];
  /** Whether more than seconds may pass while a request travels to the gateway. */
  travelsLong: boolean;
  prepare(story: Story, scene: Scene): Promise<Play>;
};

type Play = {
  shopper: Shopper;
  headers: Record<string, string>;
  events: number;
  /** Chooses the next request of a tab; null if there is nothing to do. */
  choose(): Promise<Request | null>;
  workers: Run[];
  /** Looks at an answer. Returns what the page says, and whether it will change no more. */
  read(page: PayPage, path: string): { description: string; isOver: boolean };
  /** Does all due work once the faults have ended. */
  settle(): Promise<void>;
  check(): Promise<void>;
};

/** Past a retry, past a lease; seldom past the end of an attempt, or the gateway's keys. */
const usual: Duration[] = [{ seconds: 6 }, { seconds: 41 }, { seconds: 81 }];
const often = (times: number) => Array.from({ length: times }, () => usual).flat();

const firstPayments: Setting = {
  seeds: 500,
  seen: ['successful', 'cancelled', 'received', 'invalid_payload', 'kill', 'fault'],
  // Not every run has every fault: late failures need an undisturbed beginning.
  kills: [0, 0, 1, 1, 2, 3],
  failings: [0, 0, 1, 2, 4],
  // Slow faults are rarer: a fast failure reaches the same states.
  faults: [
    ...(['error_before', 'error_before', 'error_after', 'error_after'] as const),
    ...(['drop_before', 'drop_after', 'latency', 'latency_after', 'hold_key'] as const),
  ],
  paths: [
    ['POST', '/v1/customers'],
    ['POST', '/v1/payment_intents'],
    ['POST', '/v1/payment_intents'],
    ['POST', '/v1/payment_intents/:id/cancel'],
    ['GET', '/v1/payment_intents/:id'],
    ['GET', '/v1/payment_intents'],
  ],
  moves: [
    ...often(8),
    { minutes: 14 },
    { minutes: 29, seconds: 59 },
    { minutes: 46 },
    { hours: 25 },
  ],
  travelsLong: true,
  prepare: prepareCheckout,
};

async function prepareCheckout({ chance, note }: Story, { paying }: Scene): Promise<Play> {
  const { next: random, pick } = chance;
  const { service, gateway, clock } = paying;
  const account = await createAccount(service);
  const email = random() < 0.08 ? 'refused@example.com' : 'thandi@example.com';
  const shopper = await paying.shopper({ amount: 100_001, customer: { email } }, account);
  const terms = [1, 3, 6];
  const bodies = await Promise.all(terms.map((term) => shopper.payBody(term, { token: 'x' })));
  const purse = [
    ...[visa, visa, challengeCard, challengeCard, challengeCard],
    ...['4000000000000002', '4000008260003178'],
  ];
  /** Final statuses that a page showed. */
  const told = new Set<string>();
  const ends = ['successful', 'cancelled', 'invalid_payload'];

  // Some runs begin in the middle, because interesting states are far from the start.
  const beginning = pick([
    ...(['open', 'open', 'challenged', 'challenged', 'approved', 'unheard'] as const),
  ]);
  note('begin', beginning);
  if (beginning === 'challenged' || beginning === 'approved') {
    const { challenge_url } = await shopper.pay(pick(terms), { card: challengeCard });
    if (beginning === 'approved' && challenge_url) await answerChallenge(challenge_url, 'approve');
  } else if (beginning === 'unheard') {
    await gateway.fault({ fault: 'error_after', method: 'POST', path: '/v1/payment_intents' });
    await shopper.pay(pick(terms));
  }

  return {
    shopper,
    headers: {},
    events: 6 + Math.floor(random() * 18),
    async choose() {
      const choice = random();
      if (choice < 0.6) {
        const card = pick(purse);
        const body = pick(bodies);
        const card_token = await gateway.tokenFor(card);
        const about = `${card} in ${body.number_of_payments}`;
        return { about, path: 'pay', body: { ...body, card_token } };
      }
      if (choice < 0.72) return { about: '', path: 'return' };
      if (choice < 0.78) return { about: '', path: 'state' };
      return { about: '', path: 'cancel', body: { number_of_payments: pick(terms) } };
    },
    workers: [recoverAttempts],
    read({ status }) {
      if (ends.includes(status)) told.add(status);
      return { description: status, isOver: ends.includes(status) || status === 'expired' };
    },
    /** Leases and then the deadline pass. */
    async settle() {
      for (let round = 0; round < pick([0, 2]); round += 1) {
        clock.advance({ seconds: 81 });
        await paying.work();
      }
      await untilSettled(paying, async () => clock.advance({ minutes: 50 }));
    },
    async check() {
      assert.deepEqual(await findViolations(service.deps.database, timestamp(clock.now())), []);
      const [checkout] = await shopper.rows('checkouts');
      note(checkout.status);
      const others = [...told].filter((status) => status !== checkout.status);
      assert.deepEqual(others, [], 'a page told another end');
      const page = await shopper.state();
      assert.equal(page.status, checkout.status === 'received' ? 'expired' : checkout.status);
      const instalments = await shopper.rows('instalments');
      const firsts = instalments.filter(({ number }) => number === 1).map(({ amount }) => amount);
      // No run takes a week, so no hold has lapsed.
      assert.deepEqual(await shopper.live(), checkout.status === 'successful' ? firsts : []);
    },
  };
}

const planAttempts: Setting = {
  seeds: 200,
  seen: ['kill', 'fault', 'attempt charged', 'attempt verified', 'attempt voided'],
  kills: [0, 0, 1, 1, 2],
  failings: [0, 0, 1, 2, 3],
  faults: ['error_before', 'error_after', 'drop_before', 'drop_after'],
  paths: [
    ['POST', '/v1/payment_intents'],
    ['POST', '/v1/payment_intents'],
    ['POST', '/v1/setup_intents'],
    ['POST', '/v1/payment_intents/:id/cancel'],
    ['POST', '/v1/payment_methods/:id/detach'],
    ['GET', '/v1/payment_intents/:id'],
    ['GET', '/v1/payment_intents'],
  ],
  moves: [...often(5), { minutes: 14 }, { minutes: 16 }, { hours: 25 }],
  // A charge that arrives after its attempt has ended could not be voided, and no network is so slow.
  travelsLong: false,
  prepare: preparePlan,
};

/** The collector charges, a refund is approved and processed, and an operator retries meanwhile. */
async function preparePlan({ chance, note }: Story, { paying }: Scene): Promise<Play> {
  const { pick } = chance;
  const { service, clock } = paying;
  const account = await createAccount(service);
  const shopper = await paying.shopper({ amount: chance.between(30_000, 90_000) }, account);
  await shopper.pay(3, { card: pick([visa, visa, cards.laterInsufficientFunds, cards.laterLost]) });
  clock.advance({ hours: 48 });
  await paying.work();
  // At 08:00 of the second payment, when the collector would charge it.
  const { due_at } = (await shopper.rows('instalments')).find(({ number }) => number === 2);
  clock.set(Temporal.Instant.from(due_at).subtract({ minutes: 1 }).toString());
  await paying.work();
  if (chance.isLucky(0.7)) clock.set(due_at);
  if (chance.isLucky(0.5)) await paying.work();
  const refund_id = await askRefund(paying, shopper, chance.between(1, 90) * 300, account);
  const acting = await actingOn(paying, shopper);
  const purse = [
    null,
    null,
    visa,
    '5555555555554444',
    challengeCard,
    challengeCard,
    '4000000000000002',
  ];

  const beginning = pick([
    'open',
    'open',
    'challenged',
    'approved',
    'card',
    'card approved',
  ] as const);
  note('begin', beginning);
  if (beginning !== 'open') {
    const { attempt } = beginning.startsWith('card')
      ? await acting.replaceCard(challengeCard)
      : await acting.pay('rest', { card: challengeCard });
    if (attempt?.challenge_url && beginning.endsWith('approved')) {
      await answerChallenge(attempt.challenge_url, 'approve');
    }
  }
  const operate = async (run: () => Promise<unknown>) => {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
    }
  };

  return {
    shopper,
    headers: acting.headers,
    events: chance.between(5, 16),
    async choose() {
      const card = pick(purse);
      if (chance.isLucky(0.15)) return { about: '', path: 'return' };
      if (chance.isLucky(0.35)) {
        const body = await acting.cardBody(card ?? visa);
        return { about: `${card}`, path: 'plan/card', body };
      }
      const { plan } = await acting.state();
      const has = (status: string) => plan?.payments.some((one) => one.status === status);
      const parts = [has('late') && 'late', has('next') && 'next', 'rest'];
      const what = pick(parts.filter((part) => part !== false)) as 'late' | 'next' | 'rest';
      const keep = card !== null && what !== 'rest' && has('planned') && chance.isLucky(0.5);
      const options = { ...(card && { card }), ...(keep && { keep }) };
      const body = await acting.payBody(what, options);
      if (body.payments.length === 0) return null;
      return { about: `${what} with ${card}`, path: 'plan/pay', body };
    },
    workers: [
      collectDueInstalments,
      collectDueInstalments,
      recoverAttempts,
      recoverAttempts,
      processDueRefunds,
      detachReplacedCards,
      (deps) => operate(() => approveRefund(deps, 'ops', refund_id)),
      (deps) => operate(() => retryInstalment(deps, 'ops', `${shopper.id}:2`)),
    ],
    read: ({ attempt }) => ({
      description: `${attempt?.refusal ?? attempt?.status}`,
      isOver: false,
    }),
    /** Leases run out, unknown outcomes are settled, the plan goes on to its end. */
    async settle() {
      await untilSettled(paying, async () => {
        clock.advance({ seconds: 81 });
        await paying.work();
        clock.advance({ minutes: 30 });
      });
      for (let month = 0; month < 2; month += 1) {
        clock.advance({ hours: 24 * 35 });
        await paying.work();
      }
    },
    async check() {
      for (const { status } of await shopper.planAttempts()) note(`attempt ${status}`);
      await assertBalanced(paying, shopper);
    },
  };
}

async function untilSettled(paying: Scene['paying'], pass: () => Promise<void>): Promise<void> {
  for (let round = 0; ; round += 1) {
    await pass();
    await paying.work();
    const { rows } = await paying.service.deps.database.pool.query(
      'select 1 from payment_attempts where due_at is not null limit 1',
    );
    if (rows.length === 0) return;
    assert.ok(round < 40, 'an attempt stays open');
  }
}

for (const [guarantee, setting] of [
  ['a checkout has at most one outcome, and the gateway holds what it says', firstPayments],
  ['each payment of a plan is charged once, and the books agree with the gateway', planAttempts],
] as const) {
  test(`in any order of events ${guarantee}`, async (t) => {
    const count = await playSeeds(t, setting.seeds, scenes, async (story, scene) => {
      try {
        await play(story, scene, setting);
      } finally {
        scene.stage.free(true);
        await scene.paying.clearFaults();
      }
    });
    if (isReplay()) return;
    for (const seen of setting.seen) {
      assert.ok((count[seen] ?? 0) > 0, `no run came upon ${seen}`);
    }
  });
}

async function play(story: Story, scene: Scene, setting: Setting): Promise<void> {
  const { note, chance } = story;
  const { pick } = chance;
  const { paying, stage } = scene;
  const { service, gateway, clock } = paying;
  const scenario = await setting.prepare(story, scene);
  const { shopper, headers } = scenario;
  let { events } = scenario;
  let failings = pick(setting.failings);

  /** Checks what must be true at every moment, not only when no due work is left. */
  async function assertWhole(): Promise<void> {
    const violations = await findViolations(service.deps.database, timestamp(clock.now()));
    assert.deepEqual(
      violations.filter(({ name }) => name !== 'W1'),
      [],
    );
  }
  const kills = { count: pick(setting.kills), weight: 2 };
  const options = { gatewayTimeoutMs, serve: servePages, kills, assertWhole };
  const player = createPlayer(story, scene, options);
  const { living, begin } = player;

  const shop = async (tab: string): Promise<void> => {
    const process = await living();
    const request = await scenario.choose();
    if (request === null) return;
    const { about, path, body } = request;
    note('ask', `${path} ${about}, ${tab}`);
    const send = async () => {
      const sent = process.app.inject({
        method: body ? 'POST' : 'GET',
        url: `${shopper.url}/${path}`,
        headers,
        ...(body && { payload: body }),
      });
      const answer = await Promise.race([sent, process.died]);
      if (answer === null) return note('unanswered', path);
      assert.notEqual(answer.statusCode, 500, `${path}: ${answer.body}`);
      if (answer.statusCode !== 200) return note('answer', `${path} ${answer.statusCode}`);
      const { description, isOver } = scenario.read(answer.json<PayPage>(), path);
      note('answer', `${path} ${description}`);
      // A few steps after the end are enough.
      if (isOver) events = Math.min(events, 3);
    };
    begin(tab, send());
  };
  /** A worker logs that its work failed, and runs again. */
  const work = async (worker: string) => {
    const process = await living();
    const run = pick(scenario.workers);
    note('work', run.name);
    const tolerant = async () => {
      try {
        await Promise.race([run(process.deps), process.died]);
      } catch (error) {
        if (!isTransient(error) && !(error instanceof FateUnknown)) throw error;
      }
    };
    begin(worker, tolerant());
  };
  const bank = async () => {
    const attempts = [...(await shopper.attempts()), ...(await shopper.planAttempts())];
    const url = pick(attempts.flatMap(({ challenge_url }) => challenge_url ?? []));
    // There is no challenge yet: that was no event.
    events += url === undefined ? 1 : 0;
    if (url === undefined) return;
    const decision = pick(['approve', 'approve', 'approve', 'decline', 'close'] as const);
    note('bank', decision);
    await answerChallenge(url, decision);
  };
  const fail = async () => {
    const [method, path] = pick(setting.paths);
    const fault = pick(setting.faults);
    const times = pick([1, 2, 2, 4]);
    failings -= 1;
    note('fault', `${times} × ${fault} at ${method} ${path}`);
    await gateway.fault({ fault, method, path, times, ms: gatewayTimeoutMs + 30 });
  };
  const move = async () => {
    const by = pick(setting.moves);
    const isTravelling = stage.isAsking() || stage.waiting.some(({ to }) => to === 'gateway');
    if (isTravelling && !setting.travelsLong && by.seconds === undefined) return;
    note('clock', JSON.stringify(by));
    clock.advance(by);
  };

  await player.play(() => {
    if (events <= 0) return [];
    const may = (weight: number, play: () => Promise<void>): Move => [
      weight,
      async () => {
        events -= 1;
        await play();
      },
    ];
    const idle = (...actors: string[]) => actors.filter((actor) => !player.isBusy(actor));
    return [
      ...idle('first tab', 'second tab').map((tab) => may(4, () => shop(tab))),
      ...idle('first worker', 'second worker').map((worker) => may(2, () => work(worker))),
      may(4, bank),
      ...(failings > 0 ? [may(1, fail)] : []),
      may(1, move),
    ];
  });

  await paying.clearFaults();
  await stage.answered();
  await assertWhole();
  await scenario.settle();
  await scenario.check();
  const { payment_intents } = await shopper.books();
  const names = payment_intents.map(({ metadata }) => metadata.attempt_id);
  assert.equal(new Set(names).size, names.length, 'a request was carried out twice');
}
