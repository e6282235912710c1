import assert from 'node:assert/strict';
import type { Deps } from '#main.ts';
import { moveClock } from '#merchants/merchant.sql.ts';
import { FateUnknown, isTransient } from '#platform/database/transaction.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { Paying } from '../support/payments.ts';
import { type Account, createAccount } from '../support/service.ts';
import { judge } from './judge.ts';
import { createMerchantServer } from './merchant-server.ts';
import { listOperations } from './operators.ts';
import { createShopper } from './shopper.ts';
import type { Actor, Fault, Process } from './stage.ts';
import type { Deed, Move, Story } from './story.ts';
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

/** Callbacks are not delivered here: `test/callbacks` shows that, with kills. */
const works = {
  settle: recoverAttempts,
  collect: collectDueInstalments,
  refunds: processDueRefunds,
  detach: detachReplacedCards,
  messages: sendDueMessages,
} as const;

/** The tables with due rows, and the functions that do their work. */
const dueWork = {
  payment_attempts: recoverAttempts,
  instalments: collectDueInstalments,
  refund_requests: processDueRefunds,
  replaced_cards: detachReplacedCards,
  messages: sendDueMessages,
};

const deedOf = {
  payment_attempts: 'settle',
  instalments: 'collect',
  refund_requests: 'refunds',
  replaced_cards: 'detach',
  messages: 'messages',
} as const;

/** Everything that the deeds of one story share. */
export type Scene = {
  world: World;
  story: Story;
  paying: Paying;
  account: Account;
  time: ReturnType<typeof createTime>;
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
  const account = await createAccount(paying.service, { refund_mode: story.refunds });
  const time = createTime(world, story, paying, account);
  const say = (text: string) => void played.steps.push(text);
  const tell = (text: string) => void stage.told().push(text);
  const scene: Scene = { world, story, paying, account, time, say, tell };
  const shop = createMerchantServer(scene);
  const shopper = createShopper(scene, shop);
  const processes: (Process | undefined)[] = [];

  async function living(who: string): Promise<Process> {
    const index = who.endsWith('2') ? 1 : 0;
    const known = processes[index];
    if (known?.isAlive()) return known;
    const born = await world.incarnate(paying);
    processes[index] = born;
    return born;
  }

  /** Work that an actor begins, or null if there is nothing to do. */
  async function workOf({ does, pick }: Move): Promise<Work | null> {
    switch (does) {
      case 'create':
        return shop.create();
      case 'ask':
        return await shop.ask(pick);
      case 'repeat':
        return shop.repeat();
      case 'approve':
      case 'decline':
      case 'retry refund':
      case 'retry payment':
        return await operationOf(scene, does, pick);
      case 'pay':
      case 'cancel':
      case 'return':
      case 'look':
        return await shopper.onPage(does, pick);
      case 'plan':
      case 'card':
        return await shopper.onPlan(does, pick);
      default: {
        const run: (deps: Deps) => Promise<unknown> = works[does as keyof typeof works];
        return { about: `does due work: ${does}`, run: ({ deps }) => run(deps) };
      }
    }
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

  /** Asserts what must be true at every moment, when a process has died. */
  async function assertWhole(): Promise<void> {
    const violations = await world.violations(account);
    assert.deepEqual(
      violations.filter(({ name }) => name !== 'W1'),
      [],
    );
  }

  async function begin(given: Move): Promise<void> {
    // A mail that fails is given up after a while: `test/messages` shows that.
    const move = given.does === 'messages' ? { ...given, fault: null } : given;
    const busy = stage.actors().find(({ name }) => name === move.who);
    if (busy) {
      say(`${move.who} goes on`);
      return await playActor(busy, move.at, move.fault);
    }
    const work = await workOf(move);
    if (work === null) return;
    say(`${move.who} ${work.about}`);
    const process = await living(move.who);
    const about = `${move.who.replace(/ \d$/, '')} ${move.does}`;
    const actor = stage.begin(move.who, about, process, () =>
      move.who.startsWith('worker') || move.who.startsWith('operator')
        ? tolerant(scene, work.run(process))
        : work.run(process),
    );
    await playActor(actor, move.at, move.fault);
  }

  /** Every actor continues to its end, and the gateway receives what was on its way. */
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

  const others: Partial<Record<Deed, (pick: number) => Promise<void>>> = {
    bank: (pick) => shopper.bank(pick),
    confirm: (pick) => shopper.confirm(pick),
    persist: async () => {
      await calm();
      await shopper.persist();
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
  await finish(scene, async (due) => {
    const isEnough = played.faults.length >= 3 || due === 'messages';
    const next = isEnough ? undefined : rest.shift();
    if (next) await begin({ who: 'worker 1', does: deedOf[due], pick: 0, ...next });
    await resume();
  });
  for (const process of processes) await process?.kill();
  await judge(scene, shopper, shop, await world.violations(account));
}

export type Work = { about: string; run(process: Process): Promise<unknown> };

async function operationOf(scene: Scene, does: Deed, pick: number): Promise<Work | null> {
  const all = (await listOperations(scene)).filter((one) => one.does === does);
  const one = all[pick % Math.max(1, all.length)];
  return one ? { about: one.about, run: ({ deps }) => one.run(deps) } : null;
}

/** Failures that a worker logs or an operator sees, and that leave nothing half done. */
async function tolerant({ tell }: Scene, work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const isKnown =
      error instanceof OperatorError || error instanceof FateUnknown || isTransient(error);
    if (!isKnown) throw error;
    tell(`told: ${(error as Error).message}`);
  }
}

/** No more faults: every refund is reviewed and all due work is done, to the last payment. */
async function finish(
  scene: Scene,
  fail: (due: keyof typeof dueWork) => Promise<void>,
): Promise<void> {
  const { paying, time } = scene;
  for (let round = 0; ; round += 1) {
    assert.ok(round < 300, 'the story ends');
    const [due] = await time.listDue();
    if (due) await fail(due);
    await time.work();
    const open = (await listOperations(scene)).filter(
      ({ does }) => does === 'approve' || does === 'decline',
    );
    if (open[0]) await tolerant(scene, open[0].run(paying.service.deps));
    const next = await time.findDue();
    if (next === null && open.length === 0) return;
    if (next !== null) await time.passUntil(next.add({ milliseconds: 1 }));
  }
}

/** The time of the story: the real clock, or mostly the merchant's own. */
function createTime(world: World, story: Story, { service }: Paying, { merchant }: Account) {
  const { clock, stage } = world;
  const { database } = service.deps;
  let ahead = 0;
  const now = () => clock.now().add({ milliseconds: ahead });

  async function pass(milliseconds: number): Promise<void> {
    const own = story.ownClock ? Math.max(0, milliseconds - 61_000) : 0;
    if (own > 0) {
      ahead += own;
      await moveClock(database.db, merchant.id, ahead);
    }
    // Some real time passes too, so that cached merchants expire.
    clock.advance({ milliseconds: Math.max(milliseconds - own, 1_000) });
  }
  const passUntil = (time: Temporal.Instant) =>
    pass(Math.max(0, time.epochMilliseconds - now().epochMilliseconds));

  const dueRows = Object.entries(dueWork)
    .map(
      ([table]) => `select '${table}' as name, due_at, leased_until from ${table}
        where merchant_id = $1 and due_at is not null
        ${table === 'instalments' ? 'and not paused' : ''}`,
    )
    .join(' union all ');

  /** The tables with rows that are due and free. */
  async function listDue(): Promise<(keyof typeof dueWork)[]> {
    const { rows } = await database.pool.query({
      name: 'story work',
      text: `select distinct name from (${dueRows}) due where due_at <= $2
               and (leased_until is null or leased_until <= $3) order by name`,
      values: [merchant.id, now().toString(), clock.now().toString()],
    });
    return rows.map(({ name }) => name);
  }

  /** Does all due work until none is left, as a worker without faults does. */
  async function work(): Promise<void> {
    for (let round = 0; ; round += 1) {
      assert.ok(round < 100, 'due work comes to an end');
      const due = await listDue();
      if (due.length === 0) return;
      for (const name of due) await dueWork[name](service.deps);
    }
  }

  /** When a row falls due, or the lease of a dead process runs out. */
  async function findDue(): Promise<Temporal.Instant | null> {
    const { rows } = await database.pool.query({
      name: 'story due',
      text: `select min(due_at) as due_at, min(leased_until) as leased_until from (${dueRows}) due`,
      values: [merchant.id],
    });
    const { due_at, leased_until } = rows[0];
    if (due_at === null) return null;
    const due = Temporal.Instant.from(due_at);
    if (Temporal.Instant.compare(due, now()) > 0) return due;
    const free = leased_until && Temporal.Instant.from(leased_until).add({ milliseconds: ahead });
    return free && Temporal.Instant.compare(free, now()) > 0 ? free : now();
  }

  const lateHours = [0, 0, 0, 0, 0, 0, 3, 22, 25, 24 * 3, 24 * 8, 24 * 33];
  const short = [6, 41, 81, 6, 41, 81, 14 * 60];
  const long = [25 * 3_600, 8 * 24 * 3_600];
  const begun = clock.now();
  return {
    ...{ now, begun, pass, passUntil, findDue, listDue, work },
    async wait(pick: number, isUnanswered: boolean): Promise<void> {
      const mayBeLong = !stage.isTravelling() && !isUnanswered && pick > 900;
      const list = mayBeLong ? long : short;
      const seconds = list[pick % list.length] ?? 6;
      await pass(seconds * 1000);
    },
    async nextDue(pick: number): Promise<void> {
      const due = (await findDue()) ?? now().add({ hours: 24 * 20 });
      await passUntil(due.add({ hours: lateHours[pick % lateHours.length] ?? 0 }));
    },
  };
}
