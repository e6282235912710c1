import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Deps } from '#main.ts';
import { type Incarnation, incarnate, type Scene } from './incarnation.ts';
import type { Story } from './seeds.ts';

export type Move = readonly [weight: number, play: () => Promise<void>];

export type Player = {
  /** One of two processes, or the one that replaced a dead process. */
  living(): Promise<Incarnation>;
  /** Begins an actor's work, whose steps wait to be played. */
  begin(actor: string, acting: Promise<unknown>): void;
  isBusy(actor: string): boolean;
  /** Plays until every actor has ended and `moves` offers nothing more. */
  play(moves: () => Move[]): Promise<void>;
};

const stepWeight = 10;

/**
 * Plays several actors on a stage, statement by statement, in an order that the seed decides.
 * Between any two steps a process may die, or lose its database.
 */
export function createPlayer(
  { chance, note }: Pick<Story, 'chance' | 'note'>,
  { paying, env, stage, processes }: Scene,
  options: {
    isGuarded?: boolean;
    serve: (api: FastifyInstance, deps: Deps) => Promise<void>;
    kills: { count: number; weight: number };
    cuts?: { count: number; weight: number };
    /** Checks what must be true after a process has died. */
    assertWhole(): Promise<void>;
  },
): Player {
  const busy = new Set<string>();
  const failures: unknown[] = [];
  let kills = options.kills.count;
  let cuts = options.cuts?.count ?? 0;

  const stepsOf = (process: Incarnation) =>
    stage.waiting.filter((step) => step.process === process);

  async function kill(): Promise<void> {
    const { process } = chance.pick(stage.waiting);
    const steps = stepsOf(process);
    note('kill', `before ${steps.map((step) => step.name).join(', ')}`);
    kills -= 1;
    // Its last request may be in flight, and may still arrive.
    if (chance.isLucky(0.3)) chance.pick(steps).go();
    await turn();
    process.kill();
    await options.assertWhole();
  }

  async function cut(): Promise<void> {
    const { process } = chance.pick(stage.waiting);
    const steps = stepsOf(process);
    const commit = steps.find((step) => step.name === 'commit');
    note('cut', `before ${steps.map((step) => step.name).join(', ')}`);
    cuts -= 1;
    if (commit && chance.isLucky(0.7)) commit.go();
    await turn();
    process.cut();
  }

  return {
    async living() {
      const index = chance.between(0, 1);
      const process = processes[index];
      if (process?.isAlive()) return process;
      const { isGuarded = false, serve } = options;
      const { databaseUrl } = paying.service;
      const given = { databaseUrl, env, clock: paying.clock, isGuarded, serve };
      const born = await incarnate(stage, given);
      processes[index] = born;
      return born;
    },
    begin(actor, acting) {
      busy.add(actor);
      acting.catch((error) => failures.push(error)).finally(() => busy.delete(actor));
    },
    isBusy: (actor) => busy.has(actor),
    async play(moves) {
      stage.free(false);
      let last = performance.now();
      for (;;) {
        await stage.quiet();
        assert.ok(performance.now() - last < 120_000, `${[...busy].join(' and ')} do not end`);
        if (failures.length > 0) throw failures[0];
        const can: Move[] = stage.waiting.map((step) => [
          stepWeight,
          async () => {
            note('step', step.name);
            step.go();
          },
        ]);
        const isAtStep = stage.waiting.length > 0;
        if (kills > 0 && isAtStep) can.push([options.kills.weight, kill]);
        if (cuts > 0 && isAtStep) can.push([options.cuts?.weight ?? 0, cut]);
        can.push(...moves());
        if (can.length === 0 && busy.size === 0) break;
        if (can.length === 0) continue;
        await chance.weigh(can)();
        last = performance.now();
      }
      stage.free(true);
    },
  };
}
