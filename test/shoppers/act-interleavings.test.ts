import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import type { Deps } from '#main.ts';
import { FateUnknown, isTransient } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import type { PayPage } from '#purchases/payments/pay-page.ts';
import { paymentRoutes } from '#purchases/payments/payment.routes.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import { approveRefund } from '#purchases/refunds/review-refund.ts';
import { recoverActs } from '#purchases/shoppers/act-on-plan.ts';
import type { ShopperAttempt } from '#purchases/shoppers/shopper-attempt.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { actingOn } from '../support/acts.ts';
import { answerChallenge } from '../support/gateway.ts';
import { type Incarnation, type Scene, startScene } from '../support/incarnation.ts';
import { askRefund, assertBalanced, cards } from '../support/money.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { type Act, createPlayer } from '../support/player.ts';
import { isReplay, playSeeds, type Story } from '../support/seeds.ts';
import { createAccount } from '../support/service.ts';

// A shopper in two tabs pays and replaces the card, while the collector charges, a refund is
// approved and processed, an operator retries, the bank answers, the gateway fails, and processes
// die. Each seed runs them in another order, statement by statement. TRANCHE_SEED=17 repeats 17.

const gatewayTimeoutMs = 120;

let scenes: Awaited<ReturnType<typeof startScene>>[] = [];
before(async () => {
  scenes = [await startScene(), await startScene()];
});
after(() => Promise.all(scenes.map((scene) => scene.close())));

const purse = [
  null,
  null,
  visa,
  '5555555555554444',
  challengeCard,
  challengeCard,
  '4000000000000002',
];
const faults = ['error_before', 'error_after', 'drop_before', 'drop_after'] as const;
const paths = [
  ['POST', '/v1/payment_intents'],
  ['POST', '/v1/payment_intents'],
  ['POST', '/v1/setup_intents'],
  ['POST', '/v1/payment_intents/:id/cancel'],
  ['POST', '/v1/payment_methods/:id/detach'],
  ['GET', '/v1/payment_intents/:id'],
  ['GET', '/v1/payment_intents'],
] as const;
/** Past a retry, past a lease; seldom past the challenge's time or the gateway's keys. */
const moves: { seconds?: number; minutes?: number; hours?: number }[] = [
  ...Array.from({ length: 5 }, () => [{ seconds: 6 }, { seconds: 41 }, { seconds: 81 }]).flat(),
  { minutes: 14 },
  { minutes: 16 },
  { hours: 25 },
];

test('in any order of events each payment of a plan is charged once, and the books agree with the gateway', async (t) => {
  const count = await playSeeds(t, 200, scenes, async (story, scene) => {
    try {
      await play(story, scene);
    } finally {
      scene.stage.free(true);
      await scene.paying.clearFaults();
    }
  });
  if (isReplay()) return;
  for (const seen of ['kill', 'fault', 'attempt charged', 'attempt verified', 'attempt voided']) {
    assert.ok((count[seen] ?? 0) > 0, `no run came upon ${seen}`);
  }
});

async function play(story: Story, scene: Scene): Promise<void> {
  const { chance, note } = story;
  const { paying, stage } = scene;
  const { pick } = chance;
  const { service, gateway, clock } = paying;
  const { database } = service.deps;
  const account = await createAccount(service);
  const shopper = await paying.shopper({ amount: chance.between(30_000, 90_000) }, account);
  await shopper.pay(3, { card: pick([visa, visa, cards.laterInsufficientFunds, cards.laterLost]) });
  clock.advance({ hours: 48 });
  await paying.work();
  // At 08:00 of the second payment, when the collector would charge it.
  const { due_at } = (await shopper.rows('instalments')).find(({ number }) => number === 2);
  clock.set(Temporal.Instant.from(due_at).subtract({ minutes: 1 }).toString());
  await paying.work();
  const isDue = chance.isLucky(0.7);
  if (isDue) clock.set(due_at);
  if (chance.isLucky(0.5)) await paying.work();
  const refund_id = await askRefund(paying, shopper, chance.between(1, 90) * 300, account);
  const acting = await actingOn(paying, shopper);

  let events = chance.between(5, 16);
  const kills = { count: pick([0, 0, 1, 1, 2]), weight: 1 };
  let failings = pick([0, 0, 1, 2, 3]);

  /** Checks what must be true at every moment, not only when no due work is left. */
  async function assertWhole(): Promise<void> {
    const violations = await findViolations(database, timestamp(clock.now()));
    assert.deepEqual(
      violations.filter(({ name }) => name !== 'W1'),
      [],
    );
  }
  const serve = paymentRoutes;
  const player = createPlayer(story, scene, { gatewayTimeoutMs, serve, kills, assertWhole });
  const { living, begin } = player;
  const call = async (process: Incarnation, path: string, body?: object) => {
    const sent = process.app.inject({
      method: body ? 'POST' : 'GET',
      url: `${shopper.url}/${path}`,
      headers: acting.headers,
      ...(body && { payload: body }),
    });
    const answer = await Promise.race([sent, process.died]);
    if (answer === null) return note('unanswered', path);
    if (answer.statusCode !== 200) return note('answer', `${path} ${answer.statusCode}`);
    const { act } = answer.json<PayPage>();
    note(`answer ${act?.refusal ?? act?.status}`, path);
  };
  const shop = async (tab: string): Promise<void> => {
    const process = await living();
    const card = pick(purse);
    if (chance.isLucky(0.15)) return begin(tab, call(process, 'return'));
    if (chance.isLucky(0.35)) {
      const body = await acting.cardBody(card ?? visa);
      note('replace', `${card}, ${tab}`);
      return begin(tab, call(process, 'plan/card', body));
    }
    const { plan } = await acting.state();
    const has = (status: string) => plan?.payments.some((one) => one.status === status);
    const what = pick(
      [has('late') && 'late', has('next') && 'next', 'rest'].filter((w) => w !== false),
    );
    const keep = card !== null && what !== 'rest' && has('planned') && chance.isLucky(0.5);
    const body = await acting.payBody(what as 'late' | 'next' | 'rest', {
      ...(card && { card }),
      ...(keep && { keep }),
    });
    if (body.payments.length === 0) return;
    note('pay', `${what} with ${card}, ${tab}`);
    begin(tab, call(process, 'plan/pay', body));
  };
  const runners = [
    collectDueInstalments,
    collectDueInstalments,
    recoverActs,
    recoverActs,
    processDueRefunds,
    detachReplacedCards,
    (deps: Deps) => operate(() => approveRefund(deps, 'ops', refund_id)),
    (deps: Deps) => operate(() => retryInstalment(deps, 'ops', `${shopper.id}:2`)),
  ];
  const operate = async (run: () => Promise<unknown>) => {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
    }
  };
  /** A worker notes that its work failed, and runs again. */
  const work = async (worker: string) => {
    const process = await living();
    const run = pick(runners);
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
    const attempts: ShopperAttempt[] = await shopper.rows('shopper_attempts');
    const url = attempts.find(({ challenge_url }) => challenge_url !== null)?.challenge_url;
    if (!url) return;
    const decision = pick(['approve', 'approve', 'approve', 'decline', 'close'] as const);
    note('bank', decision);
    await answerChallenge(url, decision);
  };
  const fail = async () => {
    const [method, path] = pick(paths);
    const fault = pick(faults);
    const times = pick([1, 2, 2, 4]);
    failings -= 1;
    note('fault', `${times} × ${fault} at ${method} ${path}`);
    await gateway.fault({ fault, method, path, times });
  };
  const move = async () => {
    const by = pick(moves);
    // A request that travels for a day would find its key forgotten, and no network is that slow.
    const isAtGateway = stage.isAsking() || stage.waiting.some(({ to }) => to === 'gateway');
    if (isAtGateway && !('seconds' in by)) return;
    note('clock', JSON.stringify(by));
    clock.advance(by);
  };
  // Some runs begin in the middle, because interesting states are far from the start.
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
    const isCard = beginning.startsWith('card');
    const { act } = isCard
      ? await acting.replaceCard(challengeCard)
      : await acting.pay('rest', { card: challengeCard });
    if (act?.challenge_url && beginning.endsWith('approved')) {
      await answerChallenge(act.challenge_url, 'approve');
    }
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
      ...idle('first worker', 'second worker').map((worker) => may(3, () => work(worker))),
      may(3, bank),
      ...(failings > 0 ? [may(1, fail)] : []),
      may(1, move),
    ];
  });

  await paying.clearFaults();
  await stage.answered();
  await assertWhole();
  // Leases run out, unknown outcomes are settled, the plan goes on to its end.
  for (let round = 0; ; round += 1) {
    clock.advance({ seconds: 81 });
    await paying.work();
    clock.advance({ minutes: 30 });
    await paying.work();
    const { rows } = await database.pool.query(
      'select 1 from shopper_attempts where due_at is not null limit 1',
    );
    if (rows.length === 0) break;
    assert.ok(round < 40, 'an attempt stays open');
  }
  for (let month = 0; month < 2; month += 1) {
    clock.advance({ hours: 24 * 35 });
    await paying.work();
  }
  for (const { status } of await shopper.rows('shopper_attempts')) note(`attempt ${status}`);
  await assertBalanced(paying, shopper);
  const { payment_intents } = await shopper.books();
  const names = payment_intents.map(({ metadata }) => metadata.attempt_id);
  assert.equal(new Set(names).size, names.length, 'a request was carried out twice');
}
