import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { checkLedger } from '#checks/books/audit-books.ts';
import { findDifferences, findViolations } from '#checks/invariants/invariants.ts';
import type { Deps } from '#main.ts';
import { useMerchantApi } from '#merchants/integrations/merchant-api.ts';
import { moveClock } from '#merchants/merchant.sql.ts';
import { FateUnknown, isTransient } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import { refundRoutes } from '#purchases/refunds/refund.routes.ts';
import type { RefundRequest } from '#purchases/refunds/refund.ts';
import { approveRefund, declineRefund, retryRefund } from '#purchases/refunds/review-refund.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { PayablePart } from '#purchases/shoppers/plan-attempt.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { Fault } from '../../test-gateway/faults.ts';
import { assertAgreed } from '../support/agreement.ts';
import { answerChallenge } from '../support/gateway.ts';
import { type Incarnation, type Scene, startScene } from '../support/incarnation.ts';
import { cards } from '../support/money.ts';
import { challengeCard, type Paying, type Shopper, servePages, visa } from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { createPlayer, type Move } from '../support/player.ts';
import { isReplay, playSeeds, type Story } from '../support/seeds.ts';
import { type Account, createAccount, send } from '../support/service.ts';

// A year of a merchant. Shoppers pay in terms, pay late, early or all at once, and replace their
// cards, refunds are requested, reviewed and retried, cards are declined, time passes slowly or jumps, the gateway fails at every kind of call. Most of it
// runs freely. At some moments two processes, a merchant and two operators act at once, statement
// by statement, and a process dies or loses its database between any two statements.
// TRANCHE_SEED=17 repeats seed 17.

const gatewayTimeoutMs = 120;
const zone = 'Africa/Johannesburg';

let scenes: Awaited<ReturnType<typeof startScene>>[] = [];
before(async () => {
  scenes = [await startScene(), await startScene()];
});
after(() => Promise.all(scenes.map((scene) => scene.close())));

const serve = async (api: FastifyInstance, deps: Deps) => {
  api.register(async (scope) => {
    useMerchantApi(scope, deps);
    await refundRoutes(scope, deps);
  });
  await servePages(api, deps);
};

/** The fate of a commit is unknown: the service closes the connection (decision 0013). */
function isClosed(error: Error & { code?: string }): null {
  if (error.code !== 'LIGHT_ECONNRESET') throw error;
  return null;
}

const mastercard = '5555555555554444';
const brokeAfterChallenge = '4000008260003178';
const purses = [
  visa,
  visa,
  visa,
  challengeCard,
  brokeAfterChallenge,
  cards.laterInsufficientFunds,
  cards.laterLost,
  cards.laterNeedsShopper,
  cards.refundPending,
  cards.refundPending,
  cards.refundFails,
  cards.refundFails,
];

/** The calls to the gateway, and the look-up that follows a failure of each. */
const calls = {
  capture: ['/v1/payment_intents/:id/capture', '/v1/payment_intents/:id'],
  void: ['/v1/payment_intents/:id/cancel', '/v1/payment_intents/:id'],
  charge: ['/v1/payment_intents', '/v1/payment_intents'],
  refund: ['/v1/refunds', '/v1/refunds'],
  watch: [null, '/v1/refunds/:id'],
  verify: ['/v1/setup_intents', '/v1/setup_intents'],
} as const;
const prompt = ['error_before', 'error_after', 'error_after', 'drop_before', 'drop_after'] as const;
/** Slow faults are rare, because the fast ones reach the same states. */
const slow = ['latency', 'latency_after', 'hold_key'] as const;
const declineCodes = ['insufficient_funds', 'generic_decline', 'lost_card', 'expired_card'];

const refusals = [
  /^Refund amount exceeds the refundable remainder of \d+ cents\.$/,
  /^Orders can only be refunded within 100 days of the purchase date\.$/,
  /^Order can't be refunded on the day of purchase\.$/,
];

test('after a year of faults, kills, refunds and declines the books agree with the gateway to the cent, and nothing moved twice', async (t) => {
  const count = await playSeeds(t, 300, scenes, async (story, scene) => {
    try {
      await play(story, scene);
    } finally {
      scene.stage.free(true);
      await scene.paying.clearFaults();
    }
  });
  for (const { paying } of scenes) {
    const { differences } = await checkLedger(paying.service.deps);
    assert.deepEqual(differences, []);
  }
  if (isReplay()) return;
  const seldom = ['lapsed', 'lost', 'returned', 'put_back'];
  const always = [
    'kill',
    'cut',
    'struck',
    'refund complete',
    'refund failed',
    'payment overdue',
    'plan attempt charged',
    'plan attempt verified',
  ];
  for (const seen of process.env.TRANCHE_TEST_LONG ? [...always, ...seldom] : always) {
    assert.ok((count[seen] ?? 0) > 0, `no history came upon ${seen}`);
  }
});

async function play(story: Story, scene: Scene): Promise<void> {
  const { paying, stage } = scene;
  const { chance, note } = story;
  const { service, gateway, clock } = paying;
  const { database } = service.deps;
  clock.set(
    Temporal.Instant.from('2026-01-01T00:00:00Z')
      .add({ minutes: chance.between(0, 800 * 24 * 60) })
      .toString(),
  );
  const begun = clock.now();
  const refund_mode = chance.pick(['manual', 'auto'] as const);
  const account = await createAccount(service, { refund_mode });
  const { merchant } = account;
  // Some stories move the merchant's clock alone: then a jump ends no lease (decision 0017).
  const hasOwnClock = chance.isLucky(0.3);
  let ahead = 0;
  const now = () => clock.now().add({ milliseconds: ahead });

  /** Moves the real clock, or mostly the merchant's clock. */
  async function pass(duration: Temporal.Duration): Promise<void> {
    const milliseconds = duration.total('milliseconds');
    const own = hasOwnClock ? Math.max(0, milliseconds - 61_000) : 0;
    if (own > 0) {
      ahead += own;
      await moveClock(database.db, merchant.id, ahead);
    }
    // Some real time passes too, so that cached merchants expire.
    clock.advance({ milliseconds: Math.max(milliseconds - own, 1_000) });
  }
  const passUntil = (time: Temporal.Instant) => pass(time.since(now(), { largestUnit: 'hours' }));

  const shoppers: Shopper[] = [];
  for (let left = chance.pick([1, 1, 1, 2, 2, 2, 3, 3, 4]); left > 0; left -= 1) {
    shoppers.push(await shop());
    if (chance.isLucky(0.5)) await pass(Temporal.Duration.from({ hours: chance.between(0, 12) }));
  }
  const ids = shoppers.map(({ id }) => id).sort();

  async function shop(): Promise<Shopper> {
    const term = chance.pick([1, 1, 1, 3, 3, 3, 3, 3, 6, 6, 12]);
    const amount = chance.between(term > 3 ? 100_000 : 10_000, term > 3 ? 300_000 : 99_999);
    const shopper = await paying.shopper({ amount }, account);
    const card = chance.pick(purses);
    note('paid', `${amount} in ${term} with ${card}`);
    const page = await shopper.pay(term, { card });
    if (page.challenge_url) {
      await shopper.decide('approve');
      await shopper.comeBack();
    }
    if (card === brokeAfterChallenge) await shopper.pay(term);
    assert.equal((await shopper.state()).status, 'successful');
    return shopper;
  }

  // The merchant's server requests refunds. Without an answer it repeats a request by its key.

  type Asked = { key: string; body: { checkout_id: string; amount: number }; id?: string };
  const asked: Asked[] = [];
  const unanswered = new Set<Asked>();

  async function newAsk(): Promise<Asked> {
    const { id: checkout_id } = chance.pick(shoppers);
    const { checkout, remainder } = await refundable(checkout_id);
    const amount = chance.weigh([
      [2, remainder],
      [5, chance.between(1, Math.max(1, remainder))],
      [3, Math.min(remainder, chance.between(1, checkout.amount))],
      [2, Math.ceil(checkout.amount / checkout.number_of_payments)],
      [1, remainder + 1],
    ] as const);
    const one = { key: `${asked.length + 1}`, body: { checkout_id, amount: Math.max(1, amount) } };
    asked.push(one);
    return one;
  }

  async function refundable(checkout_id: string) {
    const { rows } = await database.pool.query(
      `select c.amount, c.number_of_payments, c.completed_at,
         coalesce((select sum(case status when 'failed' then kept else amount end)
           from refund_requests where checkout_id = c.id), 0)::bigint as taken
       from checkouts c where c.id = $1`,
      [checkout_id],
    );
    const [checkout] = rows;
    return { checkout, remainder: checkout.amount - checkout.taken };
  }

  async function ask(one: Asked, process: { app: Incarnation['app']; died?: Promise<null> }) {
    unanswered.add(one);
    const sent = send(process, account, 'POST', '/api/refunds', {
      body: one.body,
      headers: { 'idempotency-key': one.key },
    });
    const heard = sent.catch(isClosed);
    const answer = await (process.died ? Promise.race([heard, process.died]) : heard);
    // A 500 or 503 is safe to repeat, says the contract. Without an answer the key makes it safe.
    if (answer === null || answer.status >= 500) return note('unanswered', one.key);
    unanswered.delete(one);
    if (answer.status === 200) one.id = answer.body.data.id;
    const said = answer.status === 200 ? '' : answer.body.errors[0].detail;
    note(answer.status === 200 ? 'asked' : 'refused', `${one.body.amount} ${said}`);
    assert.ok(answer.status === 200 || refusals.some((one) => one.test(said)), said);
    return answer.status === 200 ? 'accepted' : said;
  }

  /** No other actor runs, so the answer is known beforehand. */
  async function askAlone(one: Asked): Promise<void> {
    const { checkout, remainder } = await refundable(one.body.checkout_id);
    const date = Temporal.Instant.from(checkout.completed_at).toZonedDateTimeISO(zone);
    const local = now().toZonedDateTimeISO(zone);
    const days = date.toPlainDate().until(local.toPlainDate(), { largestUnit: 'days' }).days;
    const isEarly = refund_mode === 'auto' && (days === 0 || (days === 1 && local.hour < 10));
    const expected =
      days > 100
        ? 'Orders can only be refunded within 100 days of the purchase date.'
        : isEarly
          ? "Order can't be refunded on the day of purchase."
          : one.body.amount > remainder
            ? `Refund amount exceeds the refundable remainder of ${remainder} cents.`
            : 'accepted';
    assert.equal(await ask(one, service), expected);
  }

  // Shoppers pay on the plan page and replace their cards, through the bank's challenge.

  const actings = new Map(
    await Promise.all(shoppers.map(async (one) => [one.id, await actingOn(paying, one)] as const)),
  );

  async function newPlanRequest(): Promise<{ id: string; path: string; body: object } | null> {
    const { id, rows } = chance.pick(shoppers);
    const acting = actings.get(id);
    assert.ok(acting);
    // A link stops showing an order that is long finished.
    const payments: Instalment[] = await rows('instalments');
    if (!payments.some(({ status }) => ['scheduled', 'overdue'].includes(status))) return null;
    const { plan } = await acting.state();
    const has = (...statuses: string[]) =>
      plan?.payments.some(({ status }) => statuses.includes(status)) ?? false;
    const card = chance.pick([null, visa, mastercard, challengeCard, cards.laterInsufficientFunds]);
    if (!has('late', 'next', 'planned')) return null;
    if (chance.isLucky(0.3) && (plan?.payments.length ?? 0) > 1) {
      const body = await acting.cardBody(card ?? challengeCard);
      return { id, path: 'plan/card', body };
    }
    const what = chance.weigh<PayablePart>([
      [has('late') ? 4 : 0, 'late'],
      [has('next') ? 3 : 0, 'next'],
      [1, 'rest'],
    ]);
    const isKept = card !== null && what === 'late' && has('next') && chance.isLucky(0.6);
    const options = { ...(card && { card }), ...(isKept && { keep: true }) };
    const body = await acting.payBody(what, options);
    return { id, path: 'plan/pay', body };
  }

  async function payOnPlan(process: { app: Incarnation['app']; died?: Promise<null> }) {
    const request = await newPlanRequest();
    if (request === null) return;
    const { id, path, body } = request;
    const { headers } = actings.get(id) ?? {};
    const { url } = paying.open(id, account);
    const sent = process.app
      .inject({ method: 'POST', url: `${url}/${path}`, headers: headers ?? {}, payload: body })
      .catch(isClosed);
    const answer = await (process.died ? Promise.race([sent, process.died]) : sent);
    if (answer === null || answer.statusCode !== 200) {
      return note(
        'plan attempt unanswered',
        `${path} ${answer?.statusCode} ${answer?.body.slice(0, 200)}`,
      );
    }
    const { attempt: done } = answer.json<PayPage>();
    note(`plan attempt told ${done?.refusal ?? done?.status}`, path);
    if (done?.challenge_url && chance.isLucky(0.8)) {
      const decision = chance.pick(['approve', 'approve', 'approve', 'decline'] as const);
      note('bank', decision);
      await answerChallenge(done.challenge_url, decision);
    }
  }

  // Operators act on what they see, which may have changed before they act.

  type Operation = { description: string; run(deps: Deps): Promise<unknown> };

  async function seen(): Promise<Operation[]> {
    const { rows: refunds } = await database.pool.query<RefundRequest>(
      `select * from refund_requests
       where merchant_id = $1 and status in ('requested', 'failed') order by number`,
      [merchant.id],
    );
    const { rows: overdue } = await database.pool.query<Instalment>(
      `select i.* from instalments i join checkouts c on c.id = i.checkout_id
       where i.merchant_id = $1 and i.status = 'overdue' order by c.number, i.number`,
      [merchant.id],
    );
    return [
      ...refunds.flatMap(({ id, status, approved_at }): Operation[] => {
        if (status === 'failed') {
          return [{ description: 'retry refund', run: (deps) => retryRefund(deps, 'ops', id) }];
        }
        const approve = {
          description: 'approve',
          run: (deps: Deps) => approveRefund(deps, 'ops', id),
        };
        const decline = {
          description: 'decline',
          run: (deps: Deps) => declineRefund(deps, 'ops', id, 'No.'),
        };
        return approved_at === null ? [approve, approve, approve, decline] : [];
      }),
      ...overdue.map(({ checkout_id, number }) => ({
        description: 'retry payment',
        run: (deps: Deps) => retryInstalment(deps, 'ops', `${checkout_id}:${number}`),
      })),
    ];
  }

  async function operate(
    operation: Operation,
    process: { deps: Deps; died?: Promise<null> },
  ): Promise<void> {
    note('operate', operation.description);
    try {
      const done = operation.run(process.deps);
      await (process.died ? Promise.race([done, process.died]) : done);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      note('told', error.message);
    }
  }

  /** Sets faults at the calls that the gateway receives next. */
  async function arm(at: Partial<Fault> = {}): Promise<void> {
    const { rows } = await database.pool.query<{ status: string }>(
      `select distinct status from instalments where merchant_id = $1 and due_at is not null
       union all
       select distinct status from refund_requests where merchant_id = $1
         and (due_at is not null or status = 'requested')`,
      [merchant.id],
    );
    const has = (...statuses: string[]) => rows.some(({ status }) => statuses.includes(status));
    const isRefunding = has('requested', 'pending');
    const call = chance.weigh<keyof typeof calls>([
      [has('authorised') ? 3 : 0, 'capture'],
      [has('authorised') && isRefunding ? 3 : 0, 'void'],
      [has('scheduled') ? 2 : 0, 'charge'],
      [has('scheduled') ? 0.3 : 0, 'verify'],
      [isRefunding ? 5 : 0, 'refund'],
      [has('complete', 'failed') ? 1 : 0, 'watch'],
      [0.1, 'refund'],
    ]);
    const [request, look] = calls[call];
    const declines = { charge: 0.3, refund: 0.4, capture: 0, void: 0, watch: 0, verify: 0.3 }[call];
    const fault: Fault['fault'] = chance.isLucky(declines) ? 'decline' : chance.pick(prompt);
    const times = chance.pick([1, 2, 2, 4]);
    const skip = chance.pick([0, 0, 0, 1, 2]);
    const given = {
      fault,
      times,
      skip,
      ms: gatewayTimeoutMs + 30,
      decline_code: chance.pick(declineCodes),
      ...at,
    };
    if (request !== null) await strike({ ...given, method: 'POST', path: request });
    if (request === null || chance.isLucky(0.3)) {
      await strike({ ...given, fault: chance.pick(prompt), method: 'GET', path: look });
    }
  }

  async function strike(fault: Partial<Fault>): Promise<void> {
    note('fault', `${fault.times} × ${fault.fault} at ${fault.method} ${fault.path}`);
    await gateway.fault(fault);
  }

  /**
   * Waits until no request is in flight to the gateway. Needed before long jumps of time: a request
   * that travels for a day would find its key forgotten, and no network is that slow.
   */
  async function calm(): Promise<void> {
    const { body } = await gateway.call('GET', '/_test/faults');
    for (const { fault, method, path, struck } of body.data as Fault[]) {
      if (struck > 0) note('struck', `${struck} × ${fault} at ${method} ${path}`);
    }
    await paying.clearFaults();
    await stage.answered();
  }

  async function work(): Promise<void> {
    for (let round = 0; ; round += 1) {
      assert.ok(round < 100, 'due work comes to an end');
      const collected = await collectDueInstalments(service.deps);
      const acted = await recoverAttempts(service.deps);
      const processed = await processDueRefunds(service.deps);
      const detached = await detachReplacedCards(service.deps);
      const sent = await sendDueMessages(service.deps);
      if (collected + acted + processed + detached + sent === 0) return;
    }
  }

  /** When a row falls due, or the lease of a dead process runs out. */
  async function nextDue(): Promise<Temporal.Instant | null> {
    const { rows } = await database.pool.query(
      `select min(due_at) as due_at, min(leased_until) as leased_until
       from (select due_at, leased_until from instalments
             where merchant_id = $1 and due_at is not null and not paused
             union all
             select due_at, leased_until from refund_requests
             where merchant_id = $1 and due_at is not null
             union all
             select due_at, leased_until from payment_attempts
             where merchant_id = $1 and due_at is not null
             union all
             select due_at, leased_until from replaced_cards
             where merchant_id = $1 and due_at is not null
             union all
             select due_at, leased_until from messages
             where merchant_id = $1 and due_at is not null) due`,
      [merchant.id],
    );
    const { due_at, leased_until } = rows[0];
    if (due_at === null) return null;
    const due = Temporal.Instant.from(due_at);
    if (Temporal.Instant.compare(due, now()) > 0) return due;
    const free = leased_until && Temporal.Instant.from(leased_until).add({ milliseconds: ahead });
    return free && Temporal.Instant.compare(free, now()) > 0 ? free : now();
  }

  async function move(): Promise<void> {
    const due = (await nextDue()) ?? now().add({ hours: 24 * 20 });
    const hours = chance.weigh([
      [8, 0],
      [2, chance.between(1, 22)],
      [2, 25],
      [1, 24 * 3],
      [1, 24 * 8],
      [1, 24 * 33],
    ] as const);
    // Exactly on time, or so late that other rows fall due meanwhile.
    const to = due.add({ hours });
    note('clock', `${to} (late by ${hours} h)`);
    await passUntil(to);
  }

  /** Checks what must be true at every moment, not only when no due work is left. */
  async function assertWhole(): Promise<void> {
    const [first = '', last = ''] = [ids[0], ids.at(-1)];
    assert.deepEqual(await findDifferences(database, first, last), []);
  }

  /** All actors at once, step by step. */
  async function interleave(): Promise<void> {
    if (chance.isLucky(0.7)) await move();
    let events = chance.between(4, 10);
    const kills = { count: chance.pick([0, 1, 1, 2]), weight: 0.6 };
    const cuts = { count: chance.pick([0, 0, 1]), weight: 0.6 };
    let isSlow = false;
    let isLong = false;
    for (let left = chance.pick([0, 1, 1, 2]); left > 0; left -= 1) await arm();

    const player = createPlayer(story, scene, {
      gatewayTimeoutMs,
      serve,
      kills,
      cuts,
      assertWhole,
    });
    const { living, begin } = player;
    /** A worker notes that its work failed, and runs again. */
    const tolerant = async (process: Incarnation, work: Promise<unknown>) => {
      try {
        await Promise.race([work, process.died]);
      } catch (error) {
        if (!isTransient(error) && !(error instanceof FateUnknown)) throw error;
        note('work failed', (error as Error).message);
      }
    };
    const actors = [
      'first worker',
      'second worker',
      'merchant',
      'shopper',
      'operator',
      'other operator',
    ];
    const enter = async (actor: string): Promise<void> => {
      const process = await living();
      if (actor.endsWith('worker')) {
        const [description, run] = chance.pick([
          ['collect', collectDueInstalments],
          ['collect', collectDueInstalments],
          ['refund', processDueRefunds],
          ['refund', processDueRefunds],
          ['settle', recoverAttempts],
          ['detach', detachReplacedCards],
        ] as const);
        note('work', `${description} by the ${actor}`);
        begin(actor, tolerant(process, run(process.deps)));
      } else if (actor === 'shopper') begin(actor, payOnPlan(process));
      else if (actor === 'merchant') begin(actor, ask(await newAsk(), process));
      else {
        const operations = await seen();
        if (operations.length === 0) return;
        begin(actor, tolerant(process, operate(chance.pick(operations), process)));
      }
    };
    const fail = async () => {
      const isRare = chance.isLucky(0.15) && !isLong;
      isSlow ||= isRare;
      await arm(isRare ? { fault: chance.pick(slow), times: 1 } : {});
    };
    const wait = async () => {
      const isAtGateway = stage.isAsking() || stage.waiting.some(({ to }) => to === 'gateway');
      const mayBeLong = !isSlow && !isAtGateway && unanswered.size === 0;
      const seconds = chance.weigh([
        [6, 6],
        [6, 41],
        [4, 81],
        [1, 14 * 60],
        [mayBeLong ? 2 : 0, 25 * 60 * 60],
        [mayBeLong ? 1 : 0, 8 * 24 * 60 * 60],
      ] as const);
      isLong ||= seconds > 3_600;
      note('wait', `${seconds} s`);
      await pass(Temporal.Duration.from({ seconds }));
    };

    note('stage');
    await player.play(() => {
      if (events <= 0) return [];
      const may = (weight: number, play: () => Promise<void>): Move => [
        weight,
        async () => {
          events -= 1;
          await play();
        },
      ];
      return [
        ...actors
          .filter((actor) => !player.isBusy(actor))
          .map((actor) => may(4, () => enter(actor))),
        may(1, fail),
        may(2, wait),
      ];
    });
    await calm();
    for (const one of unanswered) await ask(one, service);
    assert.equal(unanswered.size, 0);
    await assertWhole();
  }

  let asks = chance.between(1, 7);
  let stages = chance.pick([1, 2, 3, 4]);
  let operations = 12;
  let failings = chance.between(0, 6);
  let actions = chance.between(0, 5);
  const isYear = () => now().since(begun).total('hours') < 24 * 365;
  while (isYear() && ((await nextDue()) !== null || operations > 8)) {
    await chance.weigh<() => Promise<void>>([
      [
        6,
        async () => {
          await move();
          if (chance.isLucky(0.85)) await work();
        },
      ],
      [
        // Later than that only an operator's retry refunds anything.
        asks > 0 ? (now().since(begun).total('hours') < 24 * 100 ? 4 : 0.5) : 0,
        async () => {
          asks -= 1;
          await askAlone(await newAsk());
        },
      ],
      [
        operations > 0 ? 2 : 0,
        async () => {
          operations -= 1;
          const all = await seen();
          if (all.length > 0) await operate(chance.pick(all), service);
        },
      ],
      [
        actions > 0 ? 2 : 0,
        async () => {
          actions -= 1;
          await payOnPlan(service);
        },
      ],
      [
        failings > 0 ? 2 : 0,
        async () => {
          failings -= 1;
          await arm();
        },
      ],
      [
        stages > 0 ? 2 : 0,
        async () => {
          stages -= 1;
          await interleave();
        },
      ],
    ])();
  }

  // The end: no more faults, every request is reviewed, all due work is done.
  await calm();
  for (let round = 0; ; round += 1) {
    assert.ok(round < 500, 'the year ends');
    await work();
    const open = (await seen()).filter(
      ({ description }) => description === 'approve' || description === 'decline',
    );
    if (open.length > 0) await operate(chance.pick(open), service);
    const due = await nextDue();
    if (due === null && open.length === 0) break;
    if (due !== null) await passUntil(due.add({ milliseconds: 1 }));
  }

  assert.deepEqual(await findViolations(database, timestamp(clock.now())), []);
  for (const shopper of shoppers) await assertAgreed(paying, shopper, note);
  for (const shopper of shoppers) await assertHeard(shopper);
  await assertTold(paying, account, asked, note);
}

/** The shopper was told of every change, once. */
async function assertHeard(shopper: Shopper): Promise<void> {
  const messages = await shopper.rows('messages');
  const sent = messages.filter(({ status }) => status === 'sent');
  const told = (kind: string) => sent.filter((message) => message.kind === kind);
  const collections = await shopper.rows('collections');
  assert.deepEqual(
    told('charged')
      .flatMap(({ facts }) => facts.instalments ?? [facts.instalment])
      .sort(),
    // The capture of a hold is no news: the shopper has the receipt.
    collections
      .filter(({ status, kind }) => status === 'collected' && kind !== 'capture')
      .map(({ instalment }) => instalment)
      .sort(),
    'a message for every charge',
  );
  assert.equal(told('receipt').length, 1);

  const payments = await shopper.rows('instalments');
  const refunds = await shopper.rows('refund_requests');
  // A refund may have cancelled a payment for a while.
  const isUnpaid = (number: number) =>
    refunds.length === 0 &&
    payments.some((one) => one.number === number && /scheduled|overdue/.test(one.status));
  const declines = collections.filter(
    ({ status, kind }) => status === 'declined' && kind === 'charge',
  );
  for (const { instalment, number } of declines) {
    const about = `payment ${instalment}, attempt ${number}`;
    const message = messages.find((one) => one.kind === 'declined' && one.about === about);
    // A decline that was not told in time is skipped once the payment is paid or cancelled.
    assert.match(message?.status ?? 'none', isUnpaid(instalment) ? /^sent$/ : /^(sent|skipped)$/);
  }
  assert.deepEqual(
    told('refunded')
      .map(({ about }) => about)
      .sort(),
    refunds
      .filter(({ completed_at }) => completed_at !== null)
      .map(({ id }) => `refund ${id}`)
      .sort(),
    'a message for every refund',
  );
  const attempts = await shopper.planAttempts();
  assert.deepEqual(
    told('card_replaced')
      .map(({ about }) => about)
      .sort(),
    attempts
      .filter(({ status, consent }) => consent !== null && /^(charged|verified)$/.test(status))
      .map(({ card_ref }) => card_ref)
      .sort(),
    'a message for every card',
  );
  const isPlain = payments.length > 1 && payments.every(({ status }) => status === 'collected');
  // A refund may end a plan without a charge.
  if (isPlain && refunds.length === 0) assert.equal(told('plan_finished').length, 1);
  assert.ok(told('plan_finished').length <= 1);
}

/** Every refund that the merchant was answered exists, and no other. The API shows our rows. */
async function assertTold(
  { service }: Paying,
  account: Account,
  asked: { id?: string; body: { checkout_id: string; amount: number } }[],
  note: Story['note'],
): Promise<void> {
  const { rows } = await service.deps.database.pool.query<RefundRequest>(
    'select * from refund_requests where merchant_id = $1',
    [account.merchant.id],
  );
  const acknowledged = asked.flatMap(({ id }) => id ?? []);
  assert.deepEqual(rows.map(({ id }) => id).sort(), acknowledged.sort());
  for (const { id, body } of asked) {
    if (id === undefined) continue;
    const refund = rows.find((row) => row.id === id);
    assert.ok(refund);
    const answer = await send(service, account, 'GET', `/api/refunds/${id}`);
    const { amount, status, checkout_id } = answer.body.data.attributes;
    assert.deepEqual({ checkout_id, amount }, body);
    assert.equal(status, refund.status);
    assert.ok(['complete', 'failed'].includes(status), `a refund is left ${status}`);
    note(`refund ${status}`);
  }
}
