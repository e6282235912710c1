import assert from 'node:assert/strict';
import type { Deps } from '#main.ts';
import { moveClock } from '#merchants/merchant.sql.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { checkDueDisputes } from '#purchases/disputes/check-disputes.ts';
import { collectDueInstalments } from '#purchases/instalments/collect-instalments.ts';
import { detachReplacedCards } from '#purchases/instalments/detach-cards.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import { makeDueMonthlyStatements } from '#purchases/payouts/make-monthly-statements.ts';
import { makeDuePayouts } from '#purchases/payouts/make-payouts.ts';
import { processDueRefunds } from '#purchases/refunds/process-refunds.ts';
import type { Paying } from '../support/payments.ts';
import type { Account } from '../support/service.ts';
import type { Story } from './story.ts';
import type { World } from './world.ts';

/** The tables with due rows, the deeds of a worker that does their work, and how it is done. */
export const dueWork = {
  payment_attempts: { does: 'settle', run: recoverAttempts },
  callbacks: { does: 'callbacks', run: deliverDueCallbacks },
  instalments: { does: 'collect', run: collectDueInstalments },
  refund_requests: { does: 'refunds', run: processDueRefunds },
  replaced_cards: { does: 'detach', run: detachReplacedCards },
  messages: { does: 'messages', run: sendDueMessages },
  disputes: { does: 'check disputes', run: checkDueDisputes },
  payout_days: { does: 'payouts', run: makeDuePayouts },
  statement_months: { does: 'statements', run: makeDueMonthlyStatements },
} as const satisfies Record<string, { does: string; run(deps: Deps): Promise<unknown> }>;
export type DueTable = keyof typeof dueWork;

/** Tables whose rows fall due again and again. Their due rows do not keep a story from ending. */
const recurring: DueTable[] = ['payout_days', 'statement_months'];
export const isRecurring = (table: DueTable) => recurring.includes(table);

const dueRows = Object.keys(dueWork)
  .map(
    (table) => `select '${table}' as name, due_at, leased_until from ${table}
      where merchant_id = $1 and due_at is not null
      ${table === 'instalments' ? 'and not paused' : ''}`,
  )
  .join(' union all ');

/** The due rows of one table: the earliest time, and whether one is due and free now. */
type Due = { name: DueTable; due_at: string; leased_until: string | null; is_due: boolean };

type Next = Temporal.Instant | null;

/** Few delays exceed a week: a hold lapses after a week, and few stories should end like that. */
const lateHours = [
  ...[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  ...[3, 3, 22, 22, 25, 25, 24 * 3, 24 * 8, 24 * 33],
];
/** The pick that lets several kinds of work fall due at once. */
export const nextKind = 3;
const short = [6, 41, 81, 6, 41, 81, 14 * 60];
const long = [25 * 3_600, 8 * 24 * 3_600];

/** Moves the time of the story: the service's clock, or mostly the merchant's own clock. */
export function createTime(world: World, story: Story, { service }: Paying, { merchant }: Account) {
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
    // The service's clock moves too, so that cached merchants expire.
    clock.advance({ milliseconds: Math.max(milliseconds - own, 1_000) });
  }
  const passUntil = (time: Temporal.Instant) =>
    pass(Math.max(0, time.epochMilliseconds - now().epochMilliseconds));

  async function readDue(): Promise<Due[]> {
    const { rows } = await database.pool.query<Due>({
      name: 'story due',
      text: `select name, min(due_at) as due_at, min(leased_until) as leased_until,
               bool_or(due_at <= $2 and (leased_until is null or leased_until <= $3)) as is_due
             from (${dueRows}) due group by name order by name`,
      values: [merchant.id, now().toString(), clock.now().toString()],
    });
    return rows;
  }
  const namesOf = (due: Due[]) => due.filter(({ is_due }) => is_due).map(({ name }) => name);

  /**
   * Does all due work until none is left, as a worker without faults does. Returns the tables whose
   * work was done, when work falls due next, and in which tables. `known` are the tables with due
   * work, if the caller knows them. Payouts and monthly statements are made only if `pays` is true,
   * because a third of all statements to the database would otherwise be about them.
   */
  async function work(
    known: DueTable[] = [],
    pays = false,
  ): Promise<{ next: Next; names: DueTable[]; done: Set<DueTable> }> {
    const done = new Set<DueTable>();
    for (let round = 0; ; round += 1) {
      assert.ok(round < 100, 'due work comes to an end');
      const due = round === 0 && known.length > 0 ? null : await readDue();
      const names = due ? namesOf(due).filter((name) => pays || !isRecurring(name)) : known;
      if (due && names.length === 0) {
        return { next: nextOf(due), names: namesAt(due, nextOf(due)), done };
      }
      for (const name of names) {
        await dueWork[name].run(service.deps);
        done.add(name);
      }
    }
  }
  const namesAt = (due: Due[], next: Next) =>
    due
      .filter(({ due_at, leased_until }) => {
        const at = Temporal.Instant.from(due_at);
        return next && leased_until === null && Temporal.Instant.compare(at, next) <= 0;
      })
      .map(({ name }) => name)
      .filter((name) => !isRecurring(name));

  /**
   * Returns when work falls due, or when the lease of a dead process runs out. `place` 2 is the
   * third kind of work, so that several kinds are due at once.
   */
  function nextOf(all: Due[], place = 0): Next {
    const due = all
      .filter(({ name }) => !isRecurring(name))
      .map(({ due_at, leased_until }) => ({
        due: Temporal.Instant.from(due_at),
        free: leased_until && Temporal.Instant.from(leased_until).add({ milliseconds: ahead }),
      }))
      .sort((one, other) => Temporal.Instant.compare(one.due, other.due));
    const first = due[Math.min(place, due.length - 1)];
    if (!first) return null;
    if (Temporal.Instant.compare(first.due, now()) > 0) return first.due;
    const [free] = due
      .flatMap((one) => one.free || [])
      .sort((one, other) => Temporal.Instant.compare(one, other));
    return free && Temporal.Instant.compare(free, now()) > 0 ? free : now();
  }

  const begun = clock.now();
  return {
    ...{ now, begun, pass, passUntil, work },
    /** The tables with rows that are due and free, when work falls due next, and all due rows. */
    async look() {
      const due = await readDue();
      return { names: namesOf(due), next: nextOf(due), due };
    },
    async wait(pick: number, isUnanswered: boolean): Promise<void> {
      const mayBeLong = !stage.isTravelling() && !isUnanswered && pick > 900;
      const list = mayBeLong ? long : short;
      const seconds = list[pick % list.length] ?? 6;
      await pass(seconds * 1000);
    },
    /** Lets time pass until work is due. `known` are the due rows, if the caller has read them. */
    async nextDue(pick: number, known?: Due[]): Promise<void> {
      const due =
        nextOf(known ?? (await readDue()), pick % 5 >= nextKind ? 2 : 0) ??
        now().add({ hours: 24 * 20 });
      await passUntil(due.add({ hours: lateHours[pick % lateHours.length] ?? 0 }));
    },
  };
}
