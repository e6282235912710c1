import assert from 'node:assert/strict';
import type { Deps } from '#main.ts';
import { endpointLimits } from '#platform/http/rate-limits.ts';
import { findNewDisputes } from '#purchases/disputes/check-disputes.ts';
import { isReported } from '../support/expectations.ts';
import type { Paying } from '../support/payments.ts';
import { type Account, createAccount } from '../support/service.ts';
import type { Ordered } from '../support/settlement.ts';
import { judge } from './judge.ts';
import { createMerchantServer } from './merchant-server.ts';
import { earlier, listOperations, type Operation, operations } from './operators.ts';
import { beginSettlement, createIssuer, fundingOf, recountOrders } from './settlement.ts';
import { createShopper } from './shopper.ts';
import type { Actor, Fault, Process } from './stage.ts';
import type { Deed, Move, Story } from './story.ts';
import { createTime, type DueTable, dueWork, isRecurring, nextKind } from './time.ts';
import type { World } from './world.ts';

/** The record of a play. */
export type Played = {
  /** The moves that had an effect, in words. */
  steps: string[];
  /** Every fault with the step that it struck. */
  faults: string[];
  /** Which actors acted while another was in the middle of an action. */
  races: string[];
  transitions: string[];
  /** Every statement and every call, in order. */
  log: string[];
  failure: Error | null;
};

/** Everything that a worker does by itself. Most of it is due work. */
const works = new Map<string, (deps: Deps) => Promise<unknown>>([
  ...Object.values(dueWork).map(({ does, run }) => [does, run] as const),
  ['find disputes', findNewDisputes],
]);

/** A seeded story has at least this many faults. A shrunk one has only those that it needs. */
export const faultsMin = 3;

/** The people behind the operators. */
const people: Record<string, string> = { 'operator 1': 'nomsa', 'operator 2': 'sipho' };

/** Everything that the deeds of one story share. */
export type Scene = {
  world: World;
  story: Story;
  paying: Paying;
  account: Account;
  time: ReturnType<typeof createTime>;
  ordered: Ordered;
  say(text: string): void;
  tell(text: string): void;
};

export async function play(world: World, story: Story, seed: number): Promise<Played> {
  const { stage } = world;
  const played: Played = {
    ...{ steps: [], faults: [], races: [], transitions: [], log: [], failure: null },
  };
  stage.reset();
  world.begin(seed);
  try {
    await playMoves(world, story, played);
  } catch (error) {
    played.failure = error as Error;
  }
  played.log = stage.told();
  played.transitions = await world.takeTransitions().catch(() => []);
  return played;
}

async function playMoves(world: World, story: Story, played: Played): Promise<void> {
  const { stage, clock } = world;
  clock.set(
    Temporal.Instant.from('2026-01-01T07:00:00Z')
      .add({ hours: 24 * story.day })
      .toString(),
  );
  const paying = await world.paying(story.protocol);
  paying.receiver.received.length = 0;
  paying.receiver.answer = () => ({});
  await paying.clearFaults();
  const account = await createStoryAccount(paying, story);
  const time = createTime(world, story, paying, account);
  const say = (text: string) => void played.steps.push(text);
  const tell = (text: string) => void stage.told().push(text);
  const ordered: Ordered = new Map();
  const scene: Scene = { world, story, paying, account, time, ordered, say, tell };
  const shop = createMerchantServer(scene);
  const shopper = createShopper(scene, shop);
  const issuer = createIssuer(scene);
  if (story.theme !== 'plain') await beginSettlement(paying, account, story);
  const processes: (Process | undefined)[] = [];
  let laters = 0;

  async function living(who: string): Promise<Process> {
    const index = who.endsWith('2') ? 1 : 0;
    const known = processes[index];
    if (known?.isAlive()) return known;
    const born = await world.incarnate(paying);
    processes[index] = born;
    return born;
  }

  /** Work that an actor begins, or null if there is nothing to do. */
  async function workOf({ who, does, pick }: Move): Promise<Work | null> {
    const isOperation = (operations as readonly string[]).includes(does);
    if (isOperation) return await operationOf(scene, { who, does, pick }, { arrange, calm, later });
    switch (does) {
      case 'create':
        return shop.create();
      case 'ask':
        return await shop.ask(pick);
      case 'repeat':
        return shop.repeat();
      case 'announce':
        return await issuer.announce(pick);
      case 'pay':
      case 'cancel':
      case 'return':
      case 'look':
        return await shopper.onPage(does, pick);
      case 'plan':
      case 'card':
        if (pick % 2 === 0) await untilLate();
        return await shopper.onPlan(does, pick);
      default: {
        const chosen = await chooseWork(does, pick);
        const run = works.get(chosen);
        assert.ok(run, chosen);
        const about = `does due work: ${chosen}`;
        return { about, does: chosen, run: ({ deps }) => run(deps) };
      }
    }
  }

  /**
   * Chooses the work of a worker. If it would find nothing, it does other work that is due, or
   * waits until there is some.
   */
  async function chooseWork(does: Deed, pick: number): Promise<string> {
    const isPatient = !['settle', 'callbacks', 'messages', 'find disputes'].includes(does);
    for (let rounds = 0; rounds < 2; rounds += 1) {
      const seen = await time.look();
      // Payouts are almost always due, and only some stories are about them.
      const others = seen.names.filter(
        (table) => story.theme === 'payouts' || dueWork[table].does === does || !isRecurring(table),
      );
      const due = others.map((table) => dueWork[table].does);
      const same = due.find((one) => one === does);
      if (same) return same;
      // Some workers wait for their own work while another worker is in the middle of the due work.
      const insists = isPatient && rounds === 0 && pick % 3 === 0;
      if (due.length > 0 && !insists) return due[pick % due.length] as Deed;
      if (!isPatient || stage.isTravelling() || shop.isUnanswered()) break;
      if (seen.next === null) break;
      await time.nextDue(insists ? nextKind : 0, seen.due);
    }
    return does;
  }

  async function playActor(actor: Actor, at: number, fault: Fault | null): Promise<void> {
    for (const other of stage.actors()) {
      if (other !== actor) played.races.push(`${other.about} × ${actor.about}`);
    }
    const struck = await stage.play(actor, at, fault);
    if (struck !== null) say(`  … at step ${at}: ${struck}`);
    if (struck === null || struck.startsWith('pauses')) return;
    played.faults.push(`${fault} ${struck.slice((fault ?? '').length + 1)}`);
    if (!actor.process.isAlive()) await assertWhole();
  }

  /** Asserts, after a process has died, what must be true at every moment. */
  async function assertWhole(): Promise<void> {
    const violations = await world.violations(account);
    assert.deepEqual(
      violations.filter(({ name }) => name !== 'W1'),
      [],
    );
  }

  async function begin(move: Move): Promise<void> {
    const busy = stage.actors().find(({ name }) => name === move.who);
    if (busy) {
      say(`${move.who} continues`);
      return await playActor(busy, move.at, busy.about.endsWith('messages') ? null : move.fault);
    }
    const work = await workOf(move);
    if (work === null) return;
    say(`${move.who} ${work.about}`);
    const process = await living(move.who);
    const does = work.does ?? move.does;
    const about = `${move.who.replace(/ \d$/, '')} ${does}`;
    const actor = stage.begin(move.who, about, process, () =>
      /^(worker|operator)/.test(move.who) ? tolerant(scene, work.run(process)) : work.run(process),
    );
    // The service gives up on a mail that keeps failing: `test/messages` shows that.
    await playActor(actor, move.at, does === 'messages' ? null : move.fault);
  }

  /** Lets every actor continue to its end, and the gateway receive what was on its way. */
  async function resume(): Promise<void> {
    for (let rounds = 0; stage.actors().length > 0; rounds += 1) {
      assert.ok(rounds < 60, `${stage.actors().map(({ name }) => name)} do not end`);
      for (const actor of stage.actors()) await playActor(actor, 0, null);
    }
    await stage.arrive();
  }
  const calm = async () => {
    await resume();
    await shop.repeatAll();
  };

  /** Lets time pass until work is due, and does it. Returns false if nothing would change. */
  async function later(): Promise<boolean> {
    await calm();
    const { next, due } = await time.look();
    if (next === null && story.theme !== 'payouts') return false;
    await time.nextDue(0, due);
    // Other stories have payouts now and then, so that some payments are disputed after a payout.
    const pays = story.theme === 'payouts' || laters % 4 === 0;
    laters += 1;
    await time.work([], pays);
    if (story.theme === 'disputes') await findNewDisputes(paying.service.deps);
    return true;
  }

  /** Lets time pass until a payment is overdue, if one will be. */
  async function untilLate(): Promise<void> {
    for (let rounds = 0; rounds < 8 && shopper.willBeLate(); rounds += 1) {
      const all = await listOperations(scene);
      if (all.some(({ does }) => does === 'retry payment') || !(await later())) return;
    }
  }

  /** Makes the merchant, the cardholder or time produce something for an operator to act on. */
  async function arrange(does: Deed, pick: number): Promise<void> {
    if (does === 'retry payment') await untilLate();
    // A refund fails only if money went back to the card: the whole amount, after the capture.
    const isWhole = does === 'retry refund';
    for (let rounds = 0; isWhole && rounds < 4 && !(await issuer.isPaid()); rounds += 1)
      if (!(await later())) break;
    if (isWhole) await issuer.refuseRefund();
    if (isWhole || does === 'approve' || does === 'decline') {
      const of = { pick: isWhole ? 1 : pick, at: 1, fault: null };
      await begin({ who: 'merchant', does: 'ask', ...of });
    }
    if (story.theme !== 'disputes' || !/^(stage|submit|accept)$/.test(does)) return;
    await others.dispute?.(pick);
    await findNewDisputes(paying.service.deps);
  }

  const others: Partial<Record<Deed, (pick: number) => Promise<void>>> = {
    bank: (pick) => shopper.bank(pick),
    dispute: async (pick) => {
      // Only a payment that was collected can be disputed.
      for (let rounds = 0; rounds < 6 && !(await issuer.dispute(pick)); rounds += 1)
        if (!(await later())) break;
    },
    decide: (pick) => issuer.decide(pick),
    confirm: (pick) => shopper.confirm(pick),
    persist: async (pick) => {
      await calm();
      await shopper.persist(pick);
    },
    arrive: () => stage.arrive(),
    resume,
    wait: (pick) => time.wait(pick, shop.isUnanswered()),
    'next due': async (pick) => {
      // A request that travels for days would find its key forgotten.
      if (stage.isTravelling() || shop.isUnanswered()) await calm();
      await time.nextDue(pick);
    },
  };

  for (const move of story.moves) {
    const other = others[move.does];
    if (other) await other(move.pick);
    else await begin(move);
    if (move.does === 'create') {
      await calm();
      await shopper.open();
    }
  }
  await calm();
  const rest = [...story.rest];
  const takeFault = () => (played.faults.length < faultsMin ? rest.shift() : undefined);
  await finish(scene, issuer, async () => {
    if (rest.length <= faultsMin || played.faults.length >= faultsMin) return null;
    const { names } = await time.look();
    const [due] = names;
    if (!due || due === 'messages') return null;
    const next = takeFault();
    if (next) await begin({ who: 'worker 1', does: dueWork[due].does, pick: 0, ...next });
    await resume();
    return due;
  });
  // In a short story there is too little due work for three faults. The missing faults strike here,
  // while the merchant repeats a request or a worker looks for due work. The code above leaves the
  // last three entries of `rest` unused. Three are enough, because each fault strikes at the first
  // step, and every action has a first step.
  let hasRepeated = false;
  for (let next = takeFault(); next; next = takeFault()) {
    const who = shop.repeat() ? ['merchant', 'repeat'] : ['worker 1', 'collect'];
    await begin({ who: who[0], does: who[1], pick: 0, ...next, at: 1 } as Move);
    await calm();
    hasRepeated = true;
  }
  // A refund that was refused before may have been accepted now.
  if (hasRepeated) await finish(scene, issuer, async () => null);
  for (const process of processes) await process?.kill();
  assert.ok(stage.isReleased(), 'a dead process has no connection');
  await judge(scene, shopper, shop, await world.violations(account));
  await world.leave(paying, account);
}

/** Creates a merchant without rate limits. One statement lifts all of them, which is cheaper. */
async function createStoryAccount({ service }: Paying, { refunds }: Story): Promise<Account> {
  const account = await createAccount(service, { refund_mode: refunds, limits: 'spec' });
  await service.deps.database.pool.query({
    name: 'story limits',
    text: `insert into integration_limits (integration_id, endpoint, max_requests, window_seconds)
           select $1, endpoint, 1000000, 1 from unnest($2::text[]) endpoint`,
    values: [account.id, Object.keys(endpointLimits)],
  });
  return account;
}

export type Work = {
  about: string;
  /** The deed, if it is not the one that the move names. */
  does?: string;
  run(process: Process): Promise<unknown>;
};

/** An operation for the rows as they are, or as they soon will be if all goes well. */
async function operationOf(
  scene: Scene,
  { who, does, pick }: Pick<Move, 'who' | 'does' | 'pick'>,
  by: {
    calm(): Promise<void>;
    later(): Promise<boolean>;
    arrange(does: Deed, pick: number): Promise<void>;
  },
): Promise<Work | null> {
  const operator = people[who] ?? 'nomsa';
  for (let rounds = 0; ; rounds += 1) {
    const all = await listOperations(scene);
    const found = all.filter((one) => one.does === does);
    const one = found[pick % Math.max(1, found.length)];
    if (one) return { about: one.about, run: ({ deps }) => one.run(deps, operator) };
    if (rounds === 7) return null;
    if (rounds === 0) await by.arrange(does, pick);
    const before = all.filter((other) => earlier[does]?.includes(other.does));
    const first = before[pick % Math.max(1, before.length)];
    if (first) {
      await by.calm();
      await prepare(scene, first, who);
    } else if (!((await isHopeful(scene, does)) && (await by.later())) && rounds > 0) return null;
  }
}

/** Whether the rows for an operation may appear while time passes. */
async function isHopeful(scene: Scene, does: Deed): Promise<boolean> {
  const { paying, account, story } = scene;
  if (story.theme === 'payouts' && /payout|export|paid/.test(does)) return await isOwed(scene);
  if (story.theme === 'disputes' && /stage|submit|accept|plan|rest/.test(does)) return true;
  if (does !== 'retry refund') return false;
  const { rows } = await paying.service.deps.database.pool.query({
    name: 'story hopes',
    text: 'select 1 from refund_requests where merchant_id = $1 and due_at is not null limit 1',
    values: [account.merchant.id],
  });
  return rows.length > 0;
}

/** Whether the merchant is owed money now, or will be once a payment is taken. */
async function isOwed({ paying, account, story }: Scene): Promise<boolean> {
  const { rows } = await paying.service.deps.database.pool.query({
    name: 'story owed',
    text: `select coalesce(sum(net), 0) > 0 or exists (
             select from instalments where merchant_id = $1
               and (status = 'authorised' or status = 'scheduled' and $2)) as is_owed
           from settlement_entries
           where merchant_id = $1 and payout_id is null and kind <> 'paid_out'`,
    values: [account.merchant.id, fundingOf(story) === 'as_collected'],
  });
  return rows[0].is_owed;
}

/**
 * Lets both people carry out the operation, except the return of a payout: only the first person
 * states it here, and the second person has yet to confirm it.
 */
async function prepare(scene: Scene, operation: Operation, second: string): Promise<void> {
  const { paying, account, ordered, say } = scene;
  say(`operators: ${operation.about}`);
  await recountOrders(paying, account, ordered);
  for (const [name, operator] of Object.entries(people)) {
    if (operation.does === 'note return' && name === second) continue;
    await tolerant(scene, operation.run(paying.service.deps, operator));
  }
}

/**
 * Awaits work. Tolerates failures that a worker logs or an operator sees, and that leave nothing
 * half done.
 */
async function tolerant({ tell }: Scene, work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isReported(error)) throw error;
    tell(`told: ${(error as Error).message}`);
  }
}

/** The operations that remain at the end of a story. Others happen only if the story wants them. */
const remaining = ['approve', 'resume plan', 'approve payout', 'compare', 'export', 'note paid'];

/**
 * No more faults: every refund is reviewed, the bank decides every dispute, and all due work is
 * done, to the last payment. Then every payout is approved and paid.
 */
async function finish(
  scene: Scene,
  issuer: ReturnType<typeof createIssuer>,
  fail: () => Promise<DueTable | null>,
): Promise<void> {
  const { paying, account, story, time, ordered } = scene;
  const { deps } = paying.service;
  const isDisputed = story.theme === 'disputes';
  await recountOrders(paying, account, ordered);
  if (isDisputed) await findNewDisputes(deps);
  let due: DueTable[] = [];
  let hasOpen = true;
  for (let round = 0; ; round += 1) {
    // A refund may wait a week for a hold that the acquirer refused to capture.
    assert.ok(round < 1_000, 'the story ends');
    const failed = await fail();
    if (isDisputed) await issuer.decideAll(story.day);
    const known = await time.work(due);
    // A payment that was just collected may be disputed already.
    const isNew = isDisputed && (failed === 'instalments' || known.done.has('instalments'));
    if (isNew) await findNewDisputes(deps);
    // Only disputes bring more to do while time passes.
    const open: Operation[] = hasOpen ? await listRemaining(scene) : [];
    hasOpen = isDisputed || open.length > 0;
    for (const operation of open) {
      const two = Object.values(people);
      const some = operation.does === 'approve payout' ? two : [two[round % 2] ?? ''];
      for (const operator of some) await tolerant(scene, operation.run(deps, operator));
    }
    const isKnown = !isNew && open.length === 0;
    const { next } = isKnown ? known : await time.look();
    due = isKnown ? known.names : [];
    if (next === null && open.length === 0) {
      const { done } = story.theme === 'plain' ? known : await time.work([], true);
      if (![...done].some(isRecurring)) return await recountOrders(paying, account, ordered);
      hasOpen = true;
    }
    if (next !== null) await time.passUntil(next.add({ milliseconds: 1 }));
  }
}

/** The first of each operation that remains. One export takes all payouts. */
async function listRemaining(scene: Scene): Promise<Operation[]> {
  const all = await listOperations(scene);
  return remaining.flatMap((does) => all.find((one) => one.does === does) ?? []);
}
