import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { reconcile } from '#checks/reconciliation/reconcile.ts';
import { recordLost } from '#checks/reconciliation/record-lost.ts';
import { releaseCheckout } from '#checks/reconciliation/release-checkout.ts';
import { mainGateway } from '#gateway/gateway-name.ts';
import type { Protocol } from '#gateway/settings.ts';
import type { Deps } from '#main.ts';
import { chooseGateways } from '#merchants/choose-gateway.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  acceptDispute,
  resumePlan,
  stageEvidence,
  submitEvidence,
} from '#purchases/disputes/answer-dispute.ts';
import { checkDueDisputes, findNewDisputes } from '#purchases/disputes/check-disputes.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { makeDuePayouts } from '#purchases/payouts/make-payouts.ts';
import type { Payout } from '#purchases/payouts/payout.ts';
import {
  approvePayout,
  confirmPayout,
  exportPayouts,
  payPayout,
  returnPayout,
} from '#purchases/payouts/review-payout.ts';
import { confirmAccount, proposeAccount } from '#purchases/payouts/set-bank-account.ts';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { cancelRest } from '#purchases/refunds/cancel-rest.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import { fundings, refundFees } from '#record/ledger/settlement.ts';
import { assertAgreed } from '../support/agreement.ts';
import { isReported } from '../support/expectations.ts';
import { type Scene, startScene } from '../support/incarnation.ts';
import { cards } from '../support/money.ts';
import { type Paying, type Shopper, secondGateway, visa } from '../support/payments.ts';
import { createPlayer, type Move } from '../support/player.ts';
import { backUp, putBack } from '../support/restore.ts';
import { isReplay, playSeeds, type Story } from '../support/seeds.ts';
import { createAccount, isLong, send } from '../support/service.ts';
import {
  assertDisputes,
  assertPaidOnce,
  bankAccount,
  type Ordered,
  readOrders,
} from '../support/settlement.ts';

// A year of a merchant that the service settles: sales in terms, refunds, disputes that the bank
// opens and decides, evidence, payouts on business days that two operators approve and the bank
// pays or returns. The gateway fails, and processes die between any two statements. In the middle
// of each year the database is restored from a backup. Processes continue, and some die, but no
// money moves until what the gateway did in the meantime is recorded. TRANCHE_SEED=17 repeats seed
// 17.

let scene: Awaited<ReturnType<typeof startScene>>;
before(async () => {
  scene = await startScene();
});
after(() => scene.close());

const purses = [
  visa,
  visa,
  visa,
  cards.laterInsufficientFunds,
  cards.refundPending,
  cards.refundFails,
  // The cardholder disputes every payment of this card.
  '4000000000002685',
  // The bank inquires before it opens a dispute.
  '4000000000001976',
];

const faults: Record<Protocol, [method: string, path: string][]> = {
  stripe: [
    ['POST', '/v1/payment_intents/:id/capture'],
    ['POST', '/v1/payment_intents'],
    ['POST', '/v1/refunds'],
    ['GET', '/v1/disputes'],
    ['GET', '/v1/disputes/:id'],
    ['POST', '/v1/disputes/:id'],
  ],
  hyperswitch: [
    ['POST', '/payments/:id/capture'],
    ['POST', '/payments'],
    ['GET', '/payments/:id'],
    ['POST', '/refunds'],
    ['GET', '/disputes/list'],
    ['GET', '/disputes/:id'],
    ['POST', '/disputes/evidence'],
  ],
};
const faultKinds = ['error_before', 'error_after', 'drop_before', 'drop_after'] as const;

const refusals = [
  // A fault may have struck the first payment, so that its outcome is not known yet.
  /^Only successful checkouts can be refunded\.$/,
  /^Refund amount exceeds the refundable remainder of \d+ cents\.$/,
  /^Orders can only be refunded within 100 days of the purchase date\.$/,
  /^Order can't be refunded on the day of purchase\.$/,
  /^The shopper disputes \d+ cents of this checkout with the bank\./,
];

test('after a year of disputes, fees and payouts all accounts agree with the gateway, nothing is paid twice, and no refund leaves during a dispute', async (t) => {
  const count = await playSeeds(t, { usual: 3, long: 30 }, [scene], play);
  if (isReplay()) return;
  // Three seeds need not show every kind of event. Thirty must.
  const always = ['restored', 'dispute lost', 'gateway fees', 'at main', 'at peach'];
  const often = [
    ...['recorded', 'dispute accepted'],
    ...['dispute won', 'fee returned', 'fee kept', 'holiday skipped', 'debt carried'],
    ...['fault struck', 'kill', 'payout paid'],
  ];
  for (const seen of isLong ? [...always, ...often] : always) {
    assert.ok((count[seen] ?? 0) > 0, `no year had: ${seen}`);
  }
});

async function play(story: Story, scene: Scene): Promise<void> {
  const { note } = story;
  let { chance } = story;
  const { paying, stage } = scene;
  const { service, clock } = paying;
  // The seed chooses the gateway: the first, the second, or both.
  const chosen = [[paying], [scene.second], [paying, scene.second]][story.seed % 3] as Paying[];
  const at = (name: string) => (name === secondGateway ? scene.second : paying);
  const { pool } = service.deps.database;
  const start = Temporal.Instant.from('2026-01-01T06:00:00Z').add({
    hours: chance.between(0, 600 * 24),
  });
  clock.set(start.toString());
  const account = await createAccount(service, { refund_mode: 'auto' });
  const { id: merchant_id } = account.merchant;
  const funding = chance.pick(fundings);
  const refund_fee = refundFees[story.seed % refundFees.length] as (typeof refundFees)[number];
  await setTerms(service.deps, 'nomsa', merchant_id, {
    from_on: null,
    funding,
    basis_points: chance.pick([250, 535]),
    fixed: chance.pick([0, 199]),
    vat_basis_points: chance.pick([0, 1_500]),
    // Seeds alternate, so that even a few have both.
    refund_fee,
    reserve_basis_points: chance.pick([0, 0, 1_000]),
    reserve_days: 30,
  });
  await proposeAccount(service.deps, 'nomsa', merchant_id, bankAccount);
  await confirmAccount(service.deps, 'sipho', merchant_id, { number: 1, ...bankAccount });

  const shoppers: Shopper[] = [];
  const sides = new Map<Shopper, Paying>();
  /** The gateway's charges without a payment, by the id of the transaction. */
  const accountFees = new Map<string, number>();
  /**
   * Refunds from before this time were already compared with the disputes, some rows of which the
   * restore then lost.
   */
  let restoredAt = '';
  const ordered: Ordered = new Map();

  const rowsOf = async <T>(statement: string): Promise<T[]> =>
    (await pool.query(statement, [merchant_id])).rows;

  /** Awaits an action, and allows failures that the service reports and carries on from. */
  async function tolerant(what: string, acting: Promise<unknown>): Promise<void> {
    try {
      await acting;
    } catch (error) {
      if (!isReported(error)) throw error;
      note('refused', `${what}: ${(error as Error).message}`);
    }
  }

  async function shop(): Promise<void> {
    const term = chance.pick([1, 3, 3, 6]);
    const amount = chance.between(term > 3 ? 100_000 : 30_000, term > 3 ? 300_000 : 99_999);
    const side = chance.pick(chosen);
    const name = side === paying ? mainGateway : secondGateway;
    const choice = { id: merchant_id, gateway: name, second_gateway: null };
    await chooseGateways(service.deps, 'nomsa', choice);
    // A process caches a merchant for a second.
    clock.advance({ seconds: 2 });
    const shopper = await side.shopper({ amount }, account);
    const card = chance.pick(purses);
    note('paid', `${amount} in ${term} with ${card} at ${name}`);
    note(`at ${name}`);
    await shopper.pay(term, { card });
    shoppers.push(shopper);
    sides.set(shopper, side);
  }

  async function pass(): Promise<void> {
    const days = chance.pick([1, 2, 4, 12, 30]);
    note('pass', `${days} days`);
    // A worker that did not run for long finds everything due at once.
    if (days <= 5) await paying.pass({ days });
    else clock.advance({ hours: 24 * days });
    await learn(service.deps);
    await paying.work();
  }

  const learn = (deps: Deps) => tolerant('find disputes', findNewDisputes(deps));

  async function ask(): Promise<void> {
    const { id: checkout_id } = chance.pick(shoppers);
    const amount = chance.between(1, 100_000);
    const answer = await send(service, account, 'POST', '/api/refunds', {
      body: { checkout_id, amount },
    });
    const said = answer.status === 200 ? 'accepted' : answer.body.errors[0].detail;
    note('asked', `${amount} ${said}`);
    assert.ok(answer.status === 200 || refusals.some((one) => one.test(said)), said);
  }

  async function dispute(): Promise<void> {
    const collected = await rowsOf<Instalment>(
      `select * from instalments where merchant_id = $1 and status = 'collected'
       order by checkout_id, number`,
    );
    if (collected.length === 0) return;
    const { payment_ref, gateway: name } = chance.pick(collected);
    const { status } = await at(name).gateway.call('POST', '/_test/disputes', {
      payment_intent: payment_ref ?? '',
    });
    note(status === 200 ? 'disputed' : 'not disputed', payment_ref ?? '');
    if (chance.isLucky(0.5)) await learn(service.deps);
  }

  async function decide(isLast = false): Promise<void> {
    const open = await rowsOf<Dispute>(
      'select * from disputes where merchant_id = $1 and closed_at is null order by created_at, dispute_ref',
    );
    for (const { dispute_ref, gateway: name } of isLast ? open : open.slice(0, 1)) {
      const outcome = chance.pick(['won', 'lost']);
      await at(name).gateway.call('POST', `/_test/disputes/${dispute_ref}/resolve`, { outcome });
      note('decided', outcome);
    }
  }

  /**
   * The actions that operators could take now. They choose from what they see, which may have
   * changed.
   */
  async function seen(): Promise<[description: string, run: (deps: Deps) => Promise<unknown>][]> {
    const operator = chance.pick(['nomsa', 'sipho']);
    const disputes = await rowsOf<Dispute>(
      'select * from disputes where merchant_id = $1 and is_pausing order by created_at, dispute_ref',
    );
    const payouts = await rowsOf<Payout>(
      'select * from payouts where merchant_id = $1 order by number',
    );
    const some = <T>(list: T[], of: (one: T) => [string, (deps: Deps) => Promise<unknown>]) =>
      list.length === 0 ? [] : [of(chance.pick(list))];
    const inState = (...states: string[]) =>
      payouts.filter(({ status }) => states.includes(status));
    return [
      ...some(
        disputes.filter(({ closed_at }) => closed_at === null),
        ({ id }) => {
          const what = chance.pick(['stage', 'stage', 'submit', 'accept'] as const);
          const answer = { stage: stageEvidence, submit: submitEvidence, accept: acceptDispute };
          return [what, (deps) => answer[what](deps, operator, id)];
        },
      ),
      ...some(
        disputes.filter(({ status }) => status === 'lost'),
        ({ id }) =>
          chance.isLucky(0.5)
            ? ['rest due', (deps) => resumePlan(deps, operator, id)]
            : ['rest cancelled', (deps) => cancelRest(deps, operator, id)],
      ),
      ...some(inState('draft'), ({ id }) => [
        'approve',
        (deps) => approvePayout(deps, operator, id),
      ]),
      ...some(
        payouts.filter(({ compare_since }) => compare_since !== null),
        ({ id }) => ['confirm', (deps) => confirmPayout(deps, operator, id, 'not at the bank')],
      ),
      ...some(inState('approved'), () => ['export', (deps) => order(deps, operator)]),
      ...some(inState('exported'), ({ id }) => [
        'paid',
        (deps) => payPayout(deps, operator, id, 'FT'),
      ]),
      ...(chance.isLucky(0.2)
        ? some(inState('exported', 'paid'), ({ id }) => [
            'returned',
            (deps) => returnPayout(deps, operator, id, 'account closed'),
          ])
        : []),
    ];
  }

  async function order(deps: Deps, operator: string): Promise<void> {
    const { file } = await exportPayouts(deps, operator, 'csv');
    readOrders(ordered, file);
  }

  async function operate(): Promise<void> {
    const all = await seen();
    if (all.length === 0) return;
    const [description, run] = chance.pick(all);
    note('operate', description);
    await tolerant(description, run(service.deps));
  }

  /** Lets a cardholder dispute a payment, and an operator accept the dispute. */
  async function giveUp(): Promise<void> {
    await dispute();
    await learn(service.deps);
    // A dispute whose deadline has passed is lost at the gateway, and takes no answer.
    await paying.work();
    const [open] = await rowsOf<Dispute>(
      `select * from disputes where merchant_id = $1 and submitted_at is null
       and submitting_at is null and status in ('needs_response', 'inquiry')
       order by created_at desc, dispute_ref desc limit 1`,
    );
    if (!open) return;
    await tolerant('accept', acceptDispute(service.deps, 'nomsa', open.id));
    const [after] = await rowsOf<Dispute>(
      `select * from disputes where merchant_id = $1 and id = '${open.id}'`,
    );
    if (after?.status === 'lost') note('dispute accepted');
  }

  /**
   * Restores the database from a backup. Everything after it is lost here but was done at the
   * gateway: collections, refunds, disputes. Payouts of that time were not exported: a restore
   * cannot know what the bank was told (decision 0098).
   */
  async function restore(): Promise<void> {
    const { deps, databaseUrl } = service;
    const raiseHeartbeat = async () => {
      clock.advance({ minutes: 2 });
      await deps.money.raiseHeartbeat();
    };
    await clearFaults();
    await raiseHeartbeat();
    const backup = await backUp(databaseUrl);
    try {
      const lost: typeof events = [
        [4, pass],
        [3, ask],
        [2, dispute],
        [1, () => decide()],
        [1, fail],
      ];
      await pass();
      for (let left = chance.between(2, 5); left > 0; left -= 1) await chance.weigh(lost)();
      await clearFaults();
      await stage.answered();
      await raiseHeartbeat();
      // Only the lost rows say when a dispute of that time ended.
      for (const shopper of shoppers) await assertNoneDuring(shopper);
      restoredAt = timestamp(clock.now());
      await putBack(databaseUrl, backup);
    } finally {
      await backup.drop();
    }
    clock.advance({ seconds: 2 });
    // Processes that worked with the lost database now find the restored one, and some die
    // meanwhile.
    const done = await readGateway();
    await interleave(true);
    assert.deepEqual(await readGateway(), done, 'no money moves');
    assert.match((await deps.money.problem()) ?? '', /reconcile --record/, 'money is stopped');
    const { recorded, differences } = await recordLost(deps, 'nomsa');
    note('restored', `${recorded} recorded, ${differences.map(({ kind }) => kind).join(', ')}`);
    if (recorded > 0) note('recorded');
    clock.advance({ seconds: 2 });
    assert.equal(await deps.money.problem(), null);
    // The gateway does not say why a hold ended. The operator has looked, and the service resumes.
    const blocked = await rowsOf<{ checkout_id: string }>(
      `select distinct checkout_id from gateway_blocks
       where merchant_id = $1 and cleared_at is null order by checkout_id`,
    );
    for (const { checkout_id } of blocked) {
      note('released');
      await releaseCheckout(deps, 'nomsa', checkout_id, 'compared with the gateway');
    }
    await learn(deps);
    await assertWhole();
  }

  /** All payments and refunds of the year, as the gateway has them. */
  async function readGateway(): Promise<string[]> {
    const moved: string[] = [];
    for (const shopper of shoppers) {
      const { payment_intents, refunds } = await shopper.books();
      for (const { id, status, amount_received } of payment_intents) {
        moved.push(`${id} ${status} ${amount_received}`);
      }
      for (const { id, status } of refunds) moved.push(`${id} ${status}`);
    }
    return moved;
  }

  /**
   * Lets the gateway charge for a service of the account. The second gateway does not report its
   * fees.
   */
  async function chargeAccount(cents: number): Promise<void> {
    if (!chosen.includes(paying)) return;
    const headers = {
      'Tranche-Merchant': merchant_id,
      'Tranche-Merchant-Time': timestamp(clock.now()),
    };
    const form = { type: 'stripe_fee', amount: String(-cents) };
    const path = '/_test/balance_transactions';
    const { body } = await paying.gateway.call('POST', path, form, headers);
    accountFees.set(body.id, cents);
  }

  async function clearFaults(): Promise<void> {
    for (const side of chosen) {
      const { body } = await side.gateway.call('GET', '/_test/faults');
      for (const { struck } of body.data as { struck: number }[])
        if (struck > 0) note('fault struck');
      await side.clearFaults();
    }
  }

  async function fail(): Promise<void> {
    const { gateway } = chance.pick(chosen);
    const [method, path] = chance.pick(faults[gateway.protocol ?? 'stripe']);
    const fault = chance.pick(faultKinds);
    note('fault', `${fault} at ${method} ${path}`);
    await gateway.fault({ fault, method, path, times: chance.pick([1, 2]) });
  }

  /**
   * Two workers and two operators act at once, statement by statement. While money is stopped, only
   * workers that do not know it yet act.
   */
  async function interleave(isStopped = false): Promise<void> {
    const whole = chance;
    // Real time also decides which step is next, because it decides who gets a lock first. With a
    // fork, the rest of the story does not depend on how many steps there were.
    chance = whole.fork();
    let events = chance.between(2, 5);
    const kills = { count: 1, weight: 1 };
    const player = createPlayer({ chance, note }, scene, {
      isGuarded: true,
      serve: async () => {},
      kills,
      assertWhole,
    });
    const moving = [
      ['collect', collectDueInstalments],
      ['refund', processDueRefunds],
    ] as const;
    const works = [
      ...moving,
      ['payout', makeDuePayouts],
      ['find disputes', findNewDisputes],
      ['check disputes', checkDueDisputes],
    ] as const;
    const enter = async (actor: string): Promise<void> => {
      const { deps, died } = await player.living();
      const all = isStopped ? moving : actor.endsWith('worker') ? works : await seen();
      if (all.length === 0) return;
      const [description, run] = chance.pick(all as [string, (deps: Deps) => Promise<unknown>][]);
      note('action', `${description} by the ${actor}`);
      // Either the bank's order is complete or it was not made: a killed export does not count.
      player.begin(actor, tolerant(description, Promise.race([run(deps), died])));
    };
    clock.advance({ hours: chance.pick([1, 12, 30]) });
    const workers = ['first worker', 'second worker'];
    const actors = isStopped ? workers : [...workers, 'operator', 'other operator'];
    await player.play(() =>
      events <= 0
        ? []
        : actors
            .filter((actor) => !player.isBusy(actor))
            .map(
              (actor): Move => [
                4,
                async () => {
                  events -= 1;
                  await enter(actor);
                },
              ],
            ),
    );
    await stage.answered();
    await assertWhole();
    await recount();
    chance = whole;
  }

  /** Counts the exports whose answers were lost: one was made if its rows say so. */
  async function recount(): Promise<void> {
    const exported = await rowsOf<Payout>(
      'select * from payouts where merchant_id = $1 and export_id is not null',
    );
    for (const { id, amount } of exported) ordered.set(id, ordered.get(id) ?? amount);
  }

  /** Checks what must be true at every moment. */
  async function assertWhole(): Promise<void> {
    const names = ['M1', 'M5', 'M6', 'M7', 'M8', 'P1', 'P2', 'P3', 'P4', 'A2'];
    const now = timestamp(clock.now());
    assert.deepEqual(await findViolations(service.deps.database, now, names), []);
  }

  const events: [weight: number, play: () => Promise<void>][] = [
    [3, shop],
    [5, pass],
    [3, ask],
    [2, dispute],
    [2, () => decide()],
    [5, operate],
    [1, fail],
    [1, interleave],
  ];
  await chargeAccount(2_500 + story.seed);
  await shop();
  await shop();
  const length = chance.between(20, 30);
  const middle = chance.between(8, length - 4);
  for (let left = length; left > 0; left -= 1) {
    if (left === middle) await restore();
    await chance.weigh(shoppers.length < 5 ? events : events.slice(1))();
  }
  await interleave();
  await clearFaults();
  await stage.answered();
  await giveUp();

  // The end: the gateway works, the bank decides every dispute, operators decide about every plan
  // and pay every payout, and all due work is done.
  for (let round = 0; ; round += 1) {
    assert.ok(round < 60, 'the year ends');
    await learn(service.deps);
    await decide(true);
    clock.advance({ hours: 24 * 20 });
    await paying.work();
    await learn(service.deps);
    const lost = await rowsOf<Dispute>(
      `select * from disputes where merchant_id = $1 and status = 'lost' and is_pausing`,
    );
    for (const { id } of lost) {
      await tolerant('rest', resumePlan(service.deps, 'sipho', id));
    }
    const left = await rowsOf(
      `select 1 from instalments
       where merchant_id = $1 and status in ('authorised', 'scheduled') and due_at is not null
       union all
       select 1 from refund_requests where merchant_id = $1 and status in ('requested', 'pending')
       union all
       select 1 from disputes where merchant_id = $1 and (closed_at is null or is_pausing)`,
    );
    if (left.length === 0) break;
  }
  clock.advance({ hours: 24 * 40 });
  await paying.work();
  for (const { id } of await rowsOf<Payout>(
    'select * from payouts where merchant_id = $1 and compare_since is not null',
  )) {
    await confirmPayout(service.deps, 'nomsa', id, 'not at the bank');
  }
  for (const { id } of await rowsOf<Payout>(
    `select * from payouts where merchant_id = $1 and status = 'draft'`,
  )) {
    for (const operator of ['nomsa', 'sipho']) {
      await tolerant('approve', approvePayout(service.deps, operator, id));
    }
  }
  await order(service.deps, 'nomsa');
  for (const { id } of await rowsOf<Payout>(
    `select * from payouts where merchant_id = $1 and status = 'exported'`,
  )) {
    await payPayout(service.deps, 'nomsa', id, 'FT');
  }
  await paying.work();

  await chargeAccount(700 + story.seed);
  await reconcile(service.deps, { from: timestamp(start), to: null });
  assert.deepEqual(await findViolations(service.deps.database, timestamp(clock.now())), []);
  const sum = { received: 0, refunded: 0, withdrawn: 0 };
  for (const shopper of shoppers) {
    const side = sides.get(shopper) ?? paying;
    await assertAgreed(side, shopper, note);
    const { taken, statuses } = await assertDisputes(side, shopper);
    for (const status of statuses) note(`dispute ${status}`);
    await assertNoneDuring(shopper);
    const { payment_intents, refunds } = await shopper.books();
    for (const intent of payment_intents) {
      if (intent.status === 'succeeded') sum.received += intent.amount_received;
    }
    for (const { status, amount } of refunds) if (status === 'succeeded') sum.refunded += amount;
    sum.withdrawn += taken;
  }
  await assertSettled(sum);
  await assertCleared();
  for (const { status } of await assertPaidOnce(paying, merchant_id, ordered)) {
    note(`payout ${status}`);
  }
  await noteSeen();
  // Later histories have other merchants, whose payouts this one's due days would slow down.
  await pool.query('delete from payout_days where merchant_id = $1', [merchant_id]);

  async function assertNoneDuring(shopper: Shopper): Promise<void> {
    const own: Dispute[] = await shopper.rows('disputes');
    for (const { created } of (await shopper.books()).refunds) {
      const at = timestamp(Temporal.Instant.fromEpochMilliseconds(created * 1000));
      const isDuring = own.some(
        ({ created_at, closed_at }) => at > created_at && at < (closed_at ?? '9'),
      );
      assert.ok(at < restoredAt || !isDuring, 'a refund left during a dispute');
    }
  }

  /** Counts the events of this year, so that a set of seeds shows all kinds. */
  async function noteSeen(): Promise<void> {
    const [had] = await rowsOf<{ refunds: boolean; holidays: boolean; debts: boolean }>(
      `select
         exists (select from settlement_entries where merchant_id = $1 and kind = 'refund')
           as refunds,
         exists (
           select from holidays h
           where extract(isodow from h.on_date) < 6
             and h.on_date > (
               select min(at)::date from settlement_entries where merchant_id = $1)
             and h.on_date < (
               select max(business_on) from payouts where merchant_id = $1)) as holidays,
         exists (
           select from (select sum(net) over (order by at, id) as balance
             from settlement_entries where merchant_id = $1) b where balance < 0) as debts`,
    );
    if (had?.refunds) note(`fee ${refund_fee}`);
    if (had?.holidays) note('holiday skipped');
    if (had?.debts) note('debt carried');
  }

  /** Asserts that the amount that the merchant was owed equals the gateway's books. */
  async function assertSettled(at: typeof sum): Promise<void> {
    const entries = await rowsOf<{ kind: string; gross: number }>(
      `select kind, gross from settlement_entries where merchant_id = $1
       and kind not in ('reserve', 'reserve_released', 'paid_out', 'payout_returned')`,
    );
    const owed = entries.reduce((total, { gross }) => total + gross, 0);
    if (funding === 'as_collected') {
      assert.equal(owed, at.received - at.refunded - at.withdrawn);
      return;
    }
    const [books] = await rowsOf<{ left: number }>(
      `select coalesce(sum(case when debit in ('outstanding', 'collected') then amount else 0 end
         - case when credit in ('outstanding', 'collected') then amount else 0 end), 0)::bigint as left
       from postings p where merchant_id = $1 and exists (
         select from postings f where f.merchant_id = p.merchant_id
           and f.checkout_id = p.checkout_id and f.kind in ('captured', 'collected'))`,
    );
    assert.equal(owed, books?.left);
  }

  /**
   * The gateway's balance of these payments. The fees of a gateway that does not report them are
   * left out.
   */
  async function sumTransactions({ gateway }: Paying, payments: string[]) {
    const sum = { cleared: 0, fees: 0 };
    const { knowsFees } = gateway.gateway.capabilities;
    const gte = String(Math.floor(start.epochMilliseconds / 1000));
    for (let page = 0, after: string | undefined; ; page += 1) {
      assert.ok(page < 200, 'the list of transactions ends');
      const form = { limit: '100', 'expand[]': 'data.source', 'created[gte]': gte };
      const { body } = await gateway.call('GET', '/v1/balance_transactions', {
        ...form,
        ...(after !== undefined && { starting_after: after }),
      });
      for (const { amount, net, fee, source } of body.data) {
        if (!payments.includes(source?.payment_intent)) continue;
        sum.cleared += knowsFees ? net : amount;
        sum.fees += knowsFees ? fee : 0;
      }
      after = body.data.at(-1)?.id;
      if (!body.has_more) return sum;
    }
  }

  /** Asserts that the books have the gateway's charges and our balance there to the cent. */
  async function assertCleared(): Promise<void> {
    const [books] = await rowsOf<{ cleared: number; fees: number; payments: string[] }>(
      `select
         coalesce(sum(case when debit in ('collected', 'clearing') then amount else 0 end
           - case when credit in ('collected', 'clearing') then amount else 0 end), 0)::bigint
           as cleared,
         coalesce(sum(case debit when 'gateway_fees' then amount else 0 end
           - case credit when 'gateway_fees' then amount else 0 end), 0)::bigint as fees,
         array(select distinct payment_ref from collections
           where merchant_id = $1 and payment_ref is not null) as payments
       from postings where merchant_id = $1`,
    );
    assert.ok(books);
    const there = { cleared: 0, fees: 0 };
    for (const side of chosen) {
      const found = await sumTransactions(side, books.payments);
      there.cleared += found.cleared;
      there.fees += found.fees;
    }
    const { cleared, fees } = books;
    assert.deepEqual({ cleared, fees }, there, "the gateway's balance");
    if (fees > 0) note('gateway fees');
    const { rows } = await pool.query(
      'select transaction_ref, fee from gateway_account_fees where transaction_ref = any ($1)',
      [[...accountFees.keys()]],
    );
    const posted = new Map(rows.map((row) => [row.transaction_ref, row.fee]));
    assert.deepEqual(posted, accountFees, "the gateway's account fees");
  }
}
