import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import Fastify, { type FastifyInstance } from 'fastify';
import type pg from 'pg';
import { createMoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { openGateways } from '#gateway/adapters/create-gateway.ts';
import type { Gateway } from '#gateway/gateway.ts';
import { eachGateway } from '#gateway/gateways.ts';
import { guardGateways } from '#gateway/guard-gateway.ts';
import { createDeps, type Deps } from '#main.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { handleErrors } from '#platform/http/errors.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { type GatewayUnderTest, startGateway } from './gateway.ts';
import { useHyperswitch } from './hyperswitch.ts';
import { bothEnv, continueOn, type Paying, startPaying } from './payments.ts';
import { log, testConfig } from './service.ts';

// A stage on which several processes of the service act, one step at a time. Each statement and
// each call to the gateway waits until the test starts it. So the test decides their order, and
// between which two steps a process dies.

const never = new Promise<never>(() => {});

/** The next step of a process: a statement or a call to the gateway. */
export type Step = {
  name: string;
  to: 'database' | 'gateway';
  process: Incarnation;
  go(): void;
};

export type Stage = ReturnType<typeof createStage>;

/** A step that was started and has not ended. A number is the pid of a statement's backend. */
type Running = { process: Incarnation; by: number | 'gateway' | 'pool' };

export function createStage(observer: () => Pick<pg.Pool, 'query'>) {
  const waiting: Step[] = [];
  const running = new Set<Running>();
  const asking = new Set<Promise<unknown>>();
  let isFree = true;
  let heard: (() => void)[] = [];

  /** Whether every running step is waiting for another one. Mere slowness does not count. */
  async function isHeldUp(): Promise<boolean> {
    const all = [...running];
    // The gateway answers every call by itself.
    if (all.some(({ by, process }) => by === 'gateway' || (by === 'pool' && !isQueued(process)))) {
      return false;
    }
    const pids = all.flatMap(({ by }) => (typeof by === 'number' ? by : []));
    const { rows } = await observer().query(
      'select 1 from unnest($1::int[]) pid where cardinality(pg_blocking_pids(pid)) = 0 limit 1',
      [pids],
    );
    return rows.length === 0;
  }

  /** Whether every step of the process that needs a connection waits until one is released. */
  function isQueued(process: Incarnation): boolean {
    const wanting = [...running].filter((one) => one.by === 'pool' && one.process === process);
    return process.deps.database.pool.waitingCount >= wanting.length;
  }

  return {
    waiting,
    /** From now on steps either run freely, or each waits until it is started. */
    free(value: boolean): void {
      isFree = value;
      if (isFree) for (const step of [...waiting]) step.go();
    },
    async step<T>(
      process: Incarnation,
      at: Pick<Step, 'name' | 'to'>,
      by: Running['by'],
      run: () => Promise<T>,
    ): Promise<T> {
      if (!isFree) {
        await new Promise<void>((resolve) => {
          const step = {
            ...at,
            process,
            go() {
              waiting.splice(waiting.indexOf(step), 1);
              resolve();
            },
          };
          waiting.push(step);
        });
      }
      return process.isAlive() ? await this.during(process, by, run) : never;
    },
    async during<T>(process: Incarnation, by: Running['by'], run: () => Promise<T>): Promise<T> {
      const one = { process, by };
      running.add(one);
      try {
        return await run();
      } finally {
        running.delete(one);
        for (const hear of heard.splice(0)) hear();
      }
    },
    /** Records a call to the gateway in flight. It may outlive the process that sent it. */
    sent<T>(call: Promise<T>): Promise<T> {
      asking.add(call);
      call.catch(() => {}).finally(() => asking.delete(call));
      return call;
    },
    isAsking: () => asking.size > 0,
    /** Waits until every call to the gateway is answered, including those of dead processes. */
    async answered(): Promise<void> {
      while (asking.size > 0) await Promise.allSettled(asking);
    },
    forget(process: Incarnation): void {
      for (const one of running) if (one.process === process) running.delete(one);
      for (const step of waiting.filter((one) => one.process === process)) {
        waiting.splice(waiting.indexOf(step), 1);
      }
    },
    /**
     * Waits until every actor is at a step, has ended, or waits for another one: for a lock, or for
     * a connection.
     */
    async quiet(): Promise<void> {
      for (;;) {
        for (let turns = 0; turns < 6; turns += 1) await turn();
        if (running.size === 0) return;
        const isLong = await Promise.race([
          new Promise<false>((resolve) => heard.push(() => resolve(false))),
          pause(6, true),
        ]);
        if (!isLong) continue;
        heard = [];
        if (await isHeldUp()) return;
      }
    },
  };
}

export type Incarnation = {
  app: FastifyInstance;
  deps: Deps;
  isAlive(): boolean;
  /** Resolves to null when the process dies, for callers that wait for an answer. */
  died: Promise<null>;
  /**
   * Ends the process as SIGKILL does: its connections close, open transactions are rolled back,
   * what it sent may or may not arrive, and it does nothing more.
   */
  kill(): void;
  /** Closes the connections to the database. The process lives, but does not know what arrived. */
  cut(): void;
};

export async function incarnate(
  stage: Stage,
  options: {
    databaseUrl: string;
    env: NodeJS.ProcessEnv;
    clock: Clock;
    /** Whether each call that moves money first asks the money guard (decision 0097). */
    isGuarded?: boolean;
    /** The part of the API that a test is about. */
    serve: (api: FastifyInstance, deps: Deps) => Promise<void>;
  },
): Promise<Incarnation> {
  const config = testConfig(options.databaseUrl, options.env);
  for (const one of config.gateways) one.timeoutMs = 600_000;
  const end = new AbortController();
  const clock: Clock = {
    ...options.clock,
    // A process's sleeps end with it, so that no test waits for a dead process.
    sleep: (milliseconds, signal) =>
      mortal(() =>
        options.clock.sleep(
          milliseconds,
          AbortSignal.any(signal ? [signal, end.signal] : [end.signal]),
        ),
      ),
  };
  const deps = await createDeps(config, log, { clock, maxConnections: 6 });
  const clients = new Set<pg.PoolClient>();
  let alive = true;
  let die: (nothing: null) => void = () => {};
  const died = new Promise<null>((resolve) => {
    die = resolve;
  });

  /** A dead process neither acts nor receives anything. */
  async function mortal<T>(work: () => Promise<T>): Promise<T> {
    if (!alive) return never;
    try {
      const result = await work();
      return alive ? result : never;
    } catch (error) {
      if (!alive) return never;
      throw error;
    }
  }
  const step = <T>(
    at: Pick<Step, 'name' | 'to'>,
    by: Running['by'],
    run: () => Promise<T>,
  ): Promise<T> => mortal(() => stage.step(self, at, by, run));

  const { pool } = deps.database;
  const connect = pool.connect.bind(pool) as () => Promise<pg.PoolClient>;
  pool.connect = (() => mortal(() => stage.during(self, 'pool', connect))) as typeof pool.connect;
  pool.on('connect', (client) => {
    clients.add(client as pg.PoolClient);
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    // A server runs the statements of a connection in order, even those sent together.
    let last: Promise<unknown> | null = null;
    client.query = ((...args: unknown[]) => {
      const text = typeof args[0] === 'string' ? args[0] : (args[0] as { text: string }).text;
      // BEGIN is sent together with the next statement, with or without a setting.
      if (/^begin\b/.test(text)) return mortal(() => query(...args));
      const name = text.trim().replace(/\s+/g, ' ').slice(0, 60);
      const { processID } = client as unknown as { processID: number };
      const run = () => step({ to: 'database', name }, processID, () => query(...args));
      const answer = last === null ? run() : last.then(run);
      const ended = answer.catch(() => {});
      last = ended;
      void ended.then(() => {
        if (last === ended) last = null;
      });
      return answer;
    }) as typeof client.query;
  });
  pool.on('remove', (client) => clients.delete(client as pg.PoolClient));
  const disconnect = () => {
    for (const client of clients) {
      (
        client as unknown as { connection: { stream: { destroy(): void } } }
      ).connection.stream.destroy();
    }
  };
  // Each call to a gateway is a step. The money guard wraps these gateways, so that its statements
  // and its reading of the gateway's heartbeats are separate steps.
  const stepped = eachGateway(
    openGateways(config.gateways, { clock, log }),
    (gateway) =>
      Object.fromEntries(
        Object.entries(gateway).map(([name, member]) => [
          name,
          typeof member === 'function' && name !== 'isAnswering'
            ? (...args: unknown[]) =>
                step({ to: 'gateway', name }, 'gateway', () =>
                  stage.sent((member as (...args: unknown[]) => Promise<unknown>)(...args)),
                )
            : member,
        ]),
      ) as Gateway,
  );
  const money = createMoneyGuard({
    ...deps,
    gateways: stepped,
    environment: config.environment,
    endAccess: endAllAccess,
    // The guard reads its row again when the test's time has moved, because real time differs
    // between runs.
    clock: { ...clock, monotonic: elapsedOn(clock) },
  });
  const acting = options.isGuarded
    ? { money, gateways: guardGateways(stepped, money) }
    : { gateways: stepped };

  const app = Fastify();
  handleErrors(app, deps.metrics);
  const self: Incarnation = {
    app,
    deps: { ...deps, ...acting },
    isAlive: () => alive,
    died,
    kill() {
      alive = false;
      end.abort();
      stage.forget(self);
      disconnect();
      // This stops watching its connections, which would keep the test process alive.
      deps.database.close().catch(() => {});
      die(null);
    },
    cut: disconnect,
  };
  app.setValidatorCompiler(() => () => true);
  app.addHook('onRequest', async (request, reply) => {
    // An injected request has no real socket, so closing its socket destroys the response instead:
    // the caller then gets no answer.
    Object.assign(request.raw.socket, { destroy: () => reply.raw.destroy() });
  });
  app.register((api) => options.serve(api, self.deps));
  // The first request makes the app ready. Most processes only do due work, and die before that.
  return self;
}

/**
 * How far a test's time has moved. The next story begins at an earlier time, which also counts as a
 * move.
 */
function elapsedOn(clock: Clock): () => number {
  let last = clock.now().epochMilliseconds;
  let elapsed = 0;
  return () => {
    const now = clock.now().epochMilliseconds;
    elapsed += Math.abs(now - last);
    last = now;
    return elapsed;
  };
}

/** A service with two gateways, a stage for its processes, and all processes so far. */
export type Scene = {
  paying: Paying;
  /** The service and its shoppers at the second gateway. */
  second: Paying;
  env: NodeJS.ProcessEnv;
  stage: Stage;
  processes: Incarnation[];
};

export async function startScene(): Promise<Scene & { close(): Promise<void> }> {
  const started = await startGateway();
  const other: GatewayUnderTest = { ...started, ...useHyperswitch(started.url) };
  const paying = await startPaying({ second: other });
  const processes: Incarnation[] = [];
  return {
    paying,
    second: continueOn({ ...paying, gateway: other }, paying.service),
    env: bothEnv(paying.gateway, other),
    stage: createStage(() => paying.service.deps.database.pool),
    processes,
    async close() {
      for (const process of processes) process.kill();
      await paying.close();
      await other.close();
    },
  };
}
