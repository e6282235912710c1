import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import Fastify, { type FastifyInstance } from 'fastify';
import type pg from 'pg';
import { pino } from 'pino';
import { openGateways } from '#gateway/adapters/create-gateway.ts';
import { type Gateway, OutcomeUnknown } from '#gateway/gateway.ts';
import { eachGateway } from '#gateway/gateways.ts';
import { createDeps, type Deps } from '#main.ts';
import { openDatabase } from '#platform/database/database.ts';
import { handleErrors } from '#platform/http/errors.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Fault as GatewayFault } from '../../test-gateway/faults.ts';
import type { GatewayUnderTest } from '../support/gateway.ts';
import { gatewayEnv } from '../support/payments.ts';
import type { Receiver } from '../support/receiver.ts';
import { log, testConfig } from '../support/service.ts';
import { type StoryClock, storyClock, turnsMin } from './clock.ts';

// Processes of the service on one stage. Each statement and each call to the gateway is a step that
// waits until the schedule starts it, so a story decides their order, and where a process dies.
// No step depends on real time: a lost connection, a late answer and a sleep are steps as well.

/**
 * A fault at a step. At a statement an error is a lost connection, and a late answer is a pause.
 */
export const faults = [
  'pause',
  'kill before',
  'kill after',
  'lose before',
  'lose after',
  'error before',
  'error after',
  'late',
  'decline',
] as const;
export type Fault = (typeof faults)[number];

type Step = {
  name: string;
  to: 'database' | 'gateway' | 'shop' | 'sleep';
  go(fault: Fault | null): void;
};

type Running = { pid: number | null };

/** An actor that acts through a process: a tab, a worker, the merchant's server, an operator. */
export type Actor = {
  name: string;
  about: string;
  process: Process;
  waiting: Step[];
  /** Steps that were started and have not ended; a statement has its backend's pid. */
  running: Set<Running>;
  /** Whether all running steps waited for locks when the stage last looked. */
  isStuck: boolean;
  /** Whether the caller has an answer. Work that continues after it belongs to the actor too. */
  isAnswered: boolean;
  failure: unknown;
};

export type Process = {
  app: FastifyInstance;
  deps: Deps;
  isAlive(): boolean;
  died: Promise<null>;
  /**
   * Ends the process as SIGKILL does: open transactions are rolled back, and it does nothing more.
   */
  kill(): Promise<void>;
};

export type State = 'at a step' | 'done' | 'blocked';
export type Stage = ReturnType<typeof createStage>;

/** The faults of the test gateway. */
const gatewayFaults: Partial<Record<Fault, GatewayFault['fault']>> = {
  'error before': 'error_before',
  'error after': 'error_after',
  'lose before': 'drop_before',
  'lose after': 'drop_after',
  decline: 'decline',
};

/** The servers that a process talks to, and its settings. */
type Surroundings = { gateway: GatewayUnderTest; receiver: Receiver; env: NodeJS.ProcessEnv };

/** These functions of the port send no request. */
const localCalls = new Set(['isAnswering', 'readEvent']);

/**
 * A money guard that never stops money. `test/money/settlement-years.test.ts` tests restored
 * databases.
 */
export const neverStopped = {
  problem: async () => null,
  accountProblem: async () => null,
  stopReason: async () => null,
  raiseHeartbeatNow: async () => null,
  accessProblem: async () => null,
} as unknown as Deps['money'];

/** A shared promise would keep everything that ever awaited it in memory. */
const never = () => new Promise<never>(() => {});
/**
 * A new connection costs as much as a hundred statements. So when a process dies or loses a
 * connection, its transaction and locks end as the server would end them, and the next process gets
 * the connection. Tests in test/faults close real ones.
 */
const forgetting = 'rollback; select pg_advisory_unlock_all()';
const lost = () => new Error('Connection terminated unexpectedly');
/**
 * After this many turns of the event loop, an actor counts as waiting for another one in its
 * process.
 */
const turnsMax = 3_000;
/** A statement that takes longer may wait for a lock. */
const lookMilliseconds = 10;
const stepsMax = 600;

export function createStage(databaseUrl: string, random: Random) {
  const acting = new AsyncLocalStorage<Actor>();
  /** Statements and callbacks of a process without faults. No sleep ends before they have ended. */
  const busy = new Set<Promise<unknown>>();
  const clock: StoryClock = storyClock((milliseconds, signal) => {
    const actor = acting.getStore();
    return actor ? sleepOf(actor, milliseconds, signal) : null;
  }, busy);
  const shared = openDatabase(databaseUrl, {
    log,
    maxConnections: 24,
    queryTimeoutMilliseconds: 600_000,
    stallMilliseconds: 600_000,
  });
  const observer = openDatabase(databaseUrl, { log, maxConnections: 1 });
  for (const { pool } of [shared, observer]) connectInAnyTime(pool);
  /** Calls that the gateway has yet to receive, though their callers have given up. */
  let travelling: (() => Promise<unknown>)[] = [];
  let actors: Actor[] = [];
  let told: string[] = [];
  const errors = pino(
    { level: 'error' },
    { write: (line) => void told.push(`log: ${line.trim()}`) },
  );
  let heard: (() => void) | null = null;
  const noted = new WeakSet<pg.PoolClient>();
  /** The connections of all processes. */
  const taken = new Set<pg.PoolClient>();
  /**
   * The process that uses a connection now, whether it has lost it, and whether a BEGIN is unsent.
   */
  const holders = new WeakMap<
    pg.PoolClient,
    { process: Process; isLost: boolean; begins: boolean }
  >();
  /** The last statement of each connection: a server runs them in order. */
  const lasts = new WeakMap<pg.ClientBase, Promise<unknown>>();

  async function sleepOf(actor: Actor, milliseconds: number, signal?: AbortSignal): Promise<void> {
    const aborted = new Promise<void>((resolve) => {
      if (signal?.aborted) resolve();
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
    const step = waitAt(actor, `waits ${milliseconds} ms`, 'sleep');
    await Promise.race([step.gone, aborted]);
    step.leave();
    if (!actor.process.isAlive()) await never();
  }

  function waitAt(actor: Actor, name: string, to: Step['to']) {
    let leave = () => {};
    const gone = new Promise<Fault | null>((resolve) => {
      const step: Step = { name, to, go: resolve };
      leave = () => {
        const index = actor.waiting.indexOf(step);
        if (index >= 0) actor.waiting.splice(index, 1);
      };
      step.go = (fault) => {
        leave();
        told.push(`${actor.name}: ${name}${fault ? ` [${fault}]` : ''}`);
        resolve(fault);
      };
      actor.waiting.push(step);
      heard?.();
    });
    return { gone, leave };
  }

  /**
   * Runs a step of the current actor when the schedule starts it. Without an actor it runs at once.
   */
  async function step<T>(
    at: Pick<Step, 'name' | 'to'>,
    pid: number | null,
    run: (fault: Fault | null, running: Running) => Promise<T>,
  ): Promise<T> {
    const actor = acting.getStore();
    if (!actor) return await run(null, { pid });
    const fault = await waitAt(actor, at.name, at.to).gone;
    if (!actor.process.isAlive()) return never();
    return await during(actor, pid, (running) => run(fault, running));
  }

  async function during<T>(
    actor: Actor | undefined,
    pid: number | null,
    run: (running: Running) => Promise<T>,
  ): Promise<T> {
    const one = { pid };
    actor?.running.add(one);
    try {
      return await run(one);
    } finally {
      actor?.running.delete(one);
      heard?.();
    }
  }

  async function occupy<T>(work: Promise<T>): Promise<T> {
    busy.add(work);
    return await work.finally(() => busy.delete(work));
  }

  shared.pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    const { processID: pid } = client as unknown as { processID: number };
    query('set lock_timeout = 0; set statement_timeout = 0').catch(() => {});
    client.query = ((...args: unknown[]) => {
      const holder = holders.get(client as pg.PoolClient);
      const text = typeof args[0] === 'string' ? args[0] : (args[0] as { text: string }).text;
      if (holder?.isLost) return Promise.reject(lost());
      if (!holder) return query(...args);
      // BEGIN is sent together with the next statement. A time limit on locks that came with it is
      // left out, because only the schedule ends a wait for a lock.
      if (/^begin\b/.test(text)) {
        holder.begins = true;
        return Promise.resolve();
      }
      const sendAll = () => {
        if (holder.begins) query('begin').catch(() => {});
        holder.begins = false;
        return query(...args);
      };
      if (!acting.getStore()) return sendAll();
      const { process } = holder;
      const lose = async () => {
        holder.isLost = true;
        await query(forgetting);
      };
      const send = () => (holder.isLost ? Promise.reject(lost()) : sendAll());
      const run = () =>
        step({ to: 'database', name: describe(text) }, pid, (fault, running) =>
          atStatement(process, running, { send, lose }, fault),
        );
      const answer = mortal(process, () => (lasts.get(client) ?? Promise.resolve()).then(run));
      lasts.set(
        client,
        answer.catch(() => {}),
      );
      return answer;
    }) as typeof client.query;
  });

  /** Ends what a dead process did on this connection, as the server would. */
  async function forget(client: pg.PoolClient, isBusy: boolean): Promise<void> {
    const { processID } = client as unknown as { processID: number };
    if (isBusy) await observer.pool.query('select pg_cancel_backend($1)', [processID]);
    // The cancellation may come after its statement has ended, and cancel this one instead.
    await client.query(forgetting).catch(() => client.query(forgetting));
  }

  async function atStatement<T>(
    process: Process,
    running: Running,
    { send, lose }: { send(): Promise<T>; lose(): Promise<void> },
    fault: Fault | null,
  ): Promise<T> {
    switch (fault) {
      case 'kill after':
        await send().catch(() => {});
        running.pid = null;
        await process.kill();
        return never();
      case 'lose before':
      case 'error before':
        await lose();
        throw lost();
      case 'lose after':
      case 'error after':
        await send();
        await lose();
        throw lost();
      default:
        return await send();
    }
  }

  async function incarnate(
    { gateway, receiver, env }: Surroundings,
    serve: (api: FastifyInstance, deps: Deps) => Promise<void>,
  ): Promise<Process> {
    const config = testConfig(databaseUrl, { ...gatewayEnv(gateway), ...env });
    for (const one of config.gateways) one.timeoutMs = 600_000;
    const deps = await createDeps(config, errors, { clock, random, maxConnections: 1 });
    const held = new Set<pg.PoolClient>();
    let isAlive = true;
    let die: (nothing: null) => void = () => {};
    const died = new Promise<null>((resolve) => {
      die = resolve;
    });
    const connect = async (): Promise<pg.PoolClient> => {
      const client = await shared.pool.connect();
      if (!isAlive) {
        client.release();
        return never();
      }
      const holder = { process: self, isLost: false, begins: false };
      holders.set(client, holder);
      lasts.delete(client);
      held.add(client);
      taken.add(client);
      const { release } = client;
      client.release = (error) => {
        held.delete(client);
        taken.delete(client);
        holders.delete(client);
        release.call(client, holder.isLost ? undefined : error);
      };
      return client;
    };
    const { pool } = deps.database;
    pool.connect = (() =>
      mortal(self, () => during(acting.getStore(), null, connect))) as typeof pool.connect;
    // The pool's own `query` passes a callback to `connect`, which the function above ignores.
    pool.query = (async (...args: Parameters<typeof pool.query>) => {
      const client = await pool.connect();
      try {
        const result = await client.query(...args);
        client.release();
        return result;
      } catch (error) {
        client.release(error as Error);
        throw error;
      }
    }) as typeof pool.query;
    let app: FastifyInstance | null = null;
    const self: Process = {
      // The app is made when it is first used, because a process that is only a worker needs none.
      get app() {
        app ??= serveOn(self.deps, serve);
        return app;
      },
      deps: { ...deps, gateways: staged(gateway, config, deps), money: neverStopped },
      isAlive: () => isAlive,
      died,
      async kill() {
        if (!isAlive) return;
        isAlive = false;
        for (const actor of actors) if (actor.process === self) actor.waiting = [];
        for (const client of held) {
          const { processID } = client as unknown as { processID: number };
          const isBusy = actors.some(
            ({ process, running }) =>
              process === self && [...running].some(({ pid }) => pid === processID),
          );
          holders.delete(client);
          // The process may have cut the connection itself.
          const isCut = await forget(client, isBusy).then(
            () => false,
            () => true,
          );
          client.release(isCut);
        }
        for (const actor of actors) if (actor.process === self) actor.running.clear();
        deps.database.close().catch(() => {});
        die(null);
      },
    };
    const { sendCallback } = self.deps;
    self.deps.sendCallback = (message) =>
      mortal(self, () =>
        step({ to: 'shop', name: 'post callback' }, null, (fault) =>
          atReceiver(self, receiver, () => sendCallback(message), fault),
        ),
      );
    return self;
  }

  /**
   * The adapters with their limits. Each call is a step, at which the gateway or the network fails.
   */
  function staged(
    test: GatewayUnderTest,
    config: ReturnType<typeof testConfig>,
    deps: Deps,
  ): Deps['gateways'] {
    return eachGateway(openGateways(config.gateways, deps), (gateway) => {
      const called = Object.entries(gateway).map(([name, member]) => {
        if (typeof member !== 'function' || localCalls.has(name)) return [name, member];
        const call = member as (...args: unknown[]) => Promise<unknown>;
        return [
          name,
          (...args: unknown[]) =>
            step({ to: 'gateway', name: `gateway.${name}` }, null, (fault) =>
              atGateway(test, () => call(...args), fault),
            ),
        ];
      });
      return Object.fromEntries(called) as Gateway;
    });
  }

  async function atGateway<T>(
    gateway: GatewayUnderTest,
    call: () => Promise<T>,
    fault: Fault | null,
  ): Promise<T> {
    const process = acting.getStore()?.process;
    if (fault === 'late') {
      travelling.push(call);
      throw new OutcomeUnknown('the gateway did not answer in time');
    }
    const kind = fault && gatewayFaults[fault];
    const armed = kind ? await gateway.fault({ fault: kind, times: 1 }) : null;
    const answer = call();
    // A call that sends nothing leaves its fault behind, which must not strike the next call.
    if (armed !== null) {
      await answer.catch(() => {});
      await gateway.call('DELETE', `/_test/faults/${armed}`);
    }
    if (fault === 'kill after') {
      await answer.catch(() => {});
      await process?.kill();
      return never();
    }
    const result = await answer;
    return process && !process.isAlive() ? never() : result;
  }

  /** Whether the statements of an actor all wait for locks. */
  async function isBlocked(actor: Actor): Promise<boolean> {
    const pids = [...actor.running].map(({ pid }) => pid);
    if (pids.includes(null)) return false;
    const { rows } = await observer.pool.query(
      'select 1 from unnest($1::int[]) pid where cardinality(pg_blocking_pids(pid)) = 0 limit 1',
      [pids],
    );
    return pids.length > 0 && rows.length === 0;
  }

  /**
   * Waits until an actor is at a step, has ended, or is blocked by a lock. Its parallel work
   * reaches its steps within a few turns of the event loop.
   */
  async function settled(actor: Actor): Promise<State> {
    for (let turns = 0; turns < turnsMax; turns += 1) {
      if (actor.running.size > 0) {
        turns = 0;
        // One part of its work may wait for another part, which is at a step.
        if (await isHeldUp(actor)) {
          return actor.waiting.some(({ to }) => to !== 'sleep') ? 'at a step' : 'blocked';
        }
      } else if (turns >= turnsMin) {
        if (!actor.process.isAlive()) return 'done';
        if (actor.waiting.length > 0) return 'at a step';
        if (actor.isAnswered) return 'done';
      }
      await turn();
    }
    return 'blocked';
  }

  /** Waits for what an actor has started. Returns whether the actor waits for locks alone. */
  async function isHeldUp(actor: Actor): Promise<boolean> {
    // The server says at once whether an actor that waited for a lock still does.
    if (actor.isStuck) actor.isStuck = await isBlocked(actor);
    if (actor.isStuck || actor.running.size === 0) return actor.isStuck;
    const isLong = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(resolve, lookMilliseconds, true);
      heard = () => {
        clearTimeout(timer);
        resolve(false);
      };
    });
    heard = null;
    actor.isStuck = isLong && actor.running.size > 0 && (await isBlocked(actor));
    return actor.isStuck;
  }

  const isOver = ({ isAnswered, waiting, running, process }: Actor) =>
    !process.isAlive() || (isAnswered && waiting.length === 0 && running.size === 0);

  const others = (actor: Actor) => actors.filter((one) => one !== actor && !isOver(one));

  /** Plays an actor to its end, or up to the fault at its n-th step. Returns the fault's place. */
  async function play(actor: Actor, at: number, fault: Fault | null): Promise<string | null> {
    for (let count = 1; count < stepsMax; count += 1) {
      const state = await settled(actor);
      if (actor.failure) throw actor.failure;
      if (state !== 'at a step') return null;
      const next = actor.waiting.toSorted(byTurn)[0];
      assert.ok(next);
      // An action calls the gateway once or twice, so a decline waits for the next call.
      const isHere =
        fault !== null &&
        (fault === 'decline' ? count >= at && next.to === 'gateway' : count === at);
      if (isHere && isPause(fault, next)) return `pauses before ${next.name}`;
      if (isHere && fault === 'kill before') {
        told.push(`${actor.name}: ${next.name} [kill before]`);
        await actor.process.kill();
      } else next.go(isHere ? fault : null);
      // An actor that this step unblocked comes to its own next step before anything else happens.
      for (const other of others(actor)) if (other.running.size > 0) await settled(other);
      if (isHere) {
        await settled(actor);
        if (!fault.startsWith('kill')) await play(actor, 0, null);
        return `${fault} ${next.name}`;
      }
    }
    throw new Error(`${actor.name} does not end`);
  }

  return {
    clock,
    shared,
    incarnate,
    play,
    told: () => told,
    isReleased: () => taken.size === 0,
    actors: () => actors.filter((actor) => !isOver(actor)),
    /** Whether a request may be on its way to the gateway. */
    isTravelling: () =>
      travelling.length > 0 ||
      actors.some(({ waiting }) => waiting.some(({ to }) => to === 'gateway')),
    begin(name: string, about: string, process: Process, work: () => Promise<unknown>): Actor {
      const actor: Actor = {
        ...{ name, about, process, waiting: [], running: new Set<Running>() },
        ...{ isStuck: false, isAnswered: false, failure: null },
      };
      actors.push(actor);
      acting
        .run(actor, () => Promise.race([work(), process.died]))
        .catch((error) => {
          actor.failure = error;
        })
        .finally(() => {
          actor.isAnswered = true;
          heard?.();
        });
      return actor;
    },
    /**
     * Writes the statements of a process without faults into the log, except those of the story.
     */
    note(client: pg.PoolClient): void {
      if (noted.has(client)) return;
      noted.add(client);
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      client.query = ((...args: unknown[]) => {
        const [first] = args as (string | { text: string; name?: string })[];
        const { text, name } =
          typeof first === 'string' ? { text: first, name: '' } : (first ?? {});
        if (text !== undefined && !name?.startsWith('story'))
          told.push(`service: ${describe(text)}`);
        const answer = query(...args);
        if (answer instanceof Promise) occupy(answer).catch(() => {});
        return answer;
      }) as typeof client.query;
    },
    post: occupy,
    /** The gateway receives what was on its way. No caller waits for the answers. */
    async arrive(): Promise<void> {
      const calls = travelling;
      travelling = [];
      for (const call of calls) await call().catch(() => {});
    },
    /** Prepares for another story. All actors of the last one have ended. */
    reset(): void {
      actors = [];
      travelling = [];
      told = [];
    },
    async close(): Promise<void> {
      for (const { process } of actors) await process.kill();
      await shared.close();
      await observer.close();
    },
  };
}

/** Parallel steps come in the order of their names; sleeps end when nothing else can happen. */
const byTurn = (one: Step, other: Step) =>
  Number(one.to === 'sleep') - Number(other.to === 'sleep') ||
  (one.name < other.name ? -1 : Number(one.name > other.name));

const isPause = (fault: Fault, { to }: Step) =>
  fault === 'pause' || (to !== 'gateway' && fault === 'late');

/** The merchant's receiver fails before or after it has read the callback, or it answers. */
async function atReceiver<T>(
  process: Process,
  receiver: Receiver,
  post: () => Promise<T>,
  fault: Fault | null,
): Promise<T> {
  const isLost = fault === 'lose before' || fault === 'lose after';
  const isRead = fault !== 'lose before' && fault !== 'error before';
  receiver.answer = (received) => {
    if (!isRead) receiver.received.splice(receiver.received.indexOf(received), 1);
    return isLost ? 'close' : { status: fault?.startsWith('error') ? 500 : 200 };
  };
  const exchange = await post();
  receiver.answer = () => ({});
  if (fault !== 'kill after') return exchange;
  await process.kill();
  return never();
}

/** Lifts the time limit for connecting, because a pause of the machine must not fail a story. */
export function connectInAnyTime(pool: pg.Pool): void {
  pool.options.connectionTimeoutMillis = 0;
}

/** A dead process neither acts nor receives anything. */
async function mortal<T>(process: Process, work: () => Promise<T>): Promise<T> {
  if (!process.isAlive()) return never();
  try {
    const result = await work();
    return process.isAlive() ? result : never();
  } catch (error) {
    if (!process.isAlive()) return never();
    throw error;
  }
}

function serveOn(
  deps: Deps,
  serve: (api: FastifyInstance, deps: Deps) => Promise<void>,
): FastifyInstance {
  const app = Fastify({ exposeHeadRoutes: false });
  handleErrors(app, deps.metrics);
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  app.addHook('onRequest', async (request, reply) => {
    // An injected request has no real socket, so closing its socket destroys the response instead:
    // the caller then gets no answer.
    Object.assign(request.raw.socket, { destroy: () => reply.raw.destroy() });
  });
  app.register(named((api: FastifyInstance) => serve(api, deps)));
  return app;
}

/** Names a plugin. For one without a name, Fastify searches all modules. */
export const named = <Plugin extends object>(plugin: Plugin): Plugin =>
  Object.assign(plugin, { [Symbol.for('fastify.display-name')]: 'story' });

const described = new Map<string, string>();
function describe(text: string): string {
  const known = described.get(text);
  if (known !== undefined) return known;
  const made = text.trim().replace(/\s+/g, ' ').replaceAll('"', '').slice(0, 70);
  described.set(text, made);
  return made;
}
