import { createMoneyGuard, type MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { reportMissingGateways } from '#checks/reconciliation/report-missing-gateways.ts';
import { openGateways } from '#gateway/adapters/create-gateway.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { guardGateways } from '#gateway/guard-gateway.ts';
import type { NamedSettings } from '#gateway/settings.ts';
import { createCallers } from '#merchants/integrations/callers.ts';
import type { ConsoleDeps } from '#operating/console/route.ts';
import { atMerchants, buildConsole } from '#operating/console/server.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { mailsToMerchants } from '#operating/people/mail-merchant.ts';
import { readStates, readToday } from '#operating/search/states.sql.ts';
import { type Database, openDatabase } from '#platform/database/database.ts';
import { type DatabaseClock, followDatabaseClock } from '#platform/database/database-clock.ts';
import { listDueAges } from '#platform/database/due-work.sql.ts';
import { traceCommit } from '#platform/database/group-commit.ts';
import { programVersion, refuseNewerDatabase } from '#platform/database/migrate.ts';
import { announceNode } from '#platform/database/nodes.ts';
import { listTableBytes } from '#platform/database/table-bytes.sql.ts';
import { watchFlights } from '#platform/http/in-flight.ts';
import { type FurtherAddress, listen } from '#platform/http/listen.ts';
import { createMetrics, type Metrics } from '#platform/http/metrics.ts';
import { redisRateLimitStore } from '#platform/http/rate-limits.redis.ts';
import { postgresRateLimitStore } from '#platform/http/rate-limits.sql.ts';
import {
  createRateLimits,
  memoryRateLimitStore,
  type RateLimitStore,
} from '#platform/http/rate-limits.ts';
import { tlsAt } from '#platform/http/server-options.ts';
import { type Clock, systemClock, timestamp, within } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { type Random, systemRandom } from '#platform/shared/random.ts';
import { createSealing } from '#platform/shared/sealing.ts';
import { createOtlpExporter } from '#platform/tracing/otlp-exporter.ts';
import { createTracer } from '#platform/tracing/trace.ts';
import { attemptCommits } from '#purchases/callbacks/delivery/attempt-commits.ts';
import { writeDestinationStatistics } from '#purchases/callbacks/delivery/destination-statistics.ts';
import {
  type CallbackSenderOptions,
  createCallbackSender,
} from '#purchases/callbacks/delivery/send-callback.ts';
import { checkoutCommits } from '#purchases/checkouts/create-checkout.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import type { MailTransport } from '#purchases/messages/sending/mail.ts';
import { openMailTransport } from '#purchases/messages/sending/open-transport.ts';
import { type AppDeps, buildApp } from './app.ts';
import { type Config, type Role, settingsOf } from './config.ts';
import { merchantWork, startWorker, type WorkerDeps } from './worker.ts';

export type Deps = AppDeps & WorkerDeps & ConsoleDeps & QueueDeps & { close(): Promise<void> };

/**
 * Settings with every choice made: the database, the master key, the rate limit store and the
 * gateways.
 */
export type ReadyConfig = Config & {
  databaseUrl: string;
  rateLimitStore: 'memory' | 'postgres' | 'redis';
  gateways: NamedSettings[];
};

/** Parts that a test or a simulation supplies itself. */
type Given = {
  /** The time, for a simulation. If absent, the time comes from the database. */
  clock?: Clock;
  /** This machine's clock, with which the database's is compared. */
  machineClock?: Clock;
  random?: Random;
  maxConnections?: number;
  callbackSender?: CallbackSenderOptions;
};

type Base = { database: Database; clock: Clock; random: Random; log: Logger };

/** The composition root: turns the settings into everything that the slices need. */
export async function createDeps(
  config: ReadyConfig,
  log: Logger,
  given: Given = {},
): Promise<Deps> {
  const { base, databaseClock } = await openBase(config, log, given);
  const { clock, random, database } = base;
  const sealing = createSealing(config.masterKeys, random, config.sealingCipher);
  const tracer =
    config.traces &&
    createTracer(base, createOtlpExporter(base, config.traces), config.traces.ratio);
  const store = await openRateLimitStore(config, base);
  const metrics = openMetrics(base, databaseClock);
  const traced = tracer === null ? <T>(commit: T) => commit : traceCommit;
  const observeBatch = (items: number) => metrics.observeBatch('checkouts', items);
  const commitCheckout = traced(checkoutCommits({ ...base, observeBatch }));
  const mailing = mailsToMerchants({ random, sendsMessages: config.sendsMessages });
  const attempts = attemptCommits({ ...base, ...mailing, sealing, metrics });
  const { openAttempt, recordAttempt, sentExchanges } = attempts;
  const allowed = config.callbackAllow;
  const sender = createCallbackSender({ clock, allowed, ...given.callbackSender });
  const mail = countMails(openMailTransport(config, base), metrics.countMail);
  if (mail === null)
    log.warn('no mail server is set (MAIL_URL): shoppers get no messages, not even receipts');
  return {
    ...base,
    ...settingsOf(config),
    ...openGuarded(config, base, metrics),
    merchantWork,
    ...mailing,
    mail,
    draining: false,
    clockProblem: () => databaseClock?.problem() ?? null,
    sealing,
    metrics,
    tracer,
    rateLimits: createRateLimits(store),
    callers: createCallers({ ...base, sealing }),
    commitCheckout,
    openAttempt: traced(openAttempt),
    recordAttempt: traced(recordAttempt),
    sentExchanges,
    sendCallback: sender.send,
    async close() {
      databaseClock?.stop();
      // Requests whose clients are gone may still be in flight. They end before the database
      // closes.
      await store.close?.();
      await commitCheckout.settled();
      await sender.close();
      sentExchanges.close();
      await recordAttempt.settled();
      await writeDestinationStatistics(base).catch(() => {});
      await mail?.close();
      await tracer?.close();
      await database.close();
    },
  };
}

/** Opens the database. Its clock is the service's, unless a simulation supplies another. */
async function openBase(
  config: ReadyConfig,
  log: Logger,
  given: Given,
): Promise<{ base: Base; databaseClock: DatabaseClock | null }> {
  const { random = systemRandom, maxConnections = 12, machineClock = systemClock } = given;
  const isTraced = config.traces !== null;
  const database = openDatabase(config.databaseUrl, { log, maxConnections, isTraced });
  if (given.clock) {
    return { base: { database, clock: given.clock, random, log }, databaseClock: null };
  }
  try {
    const clock = await followDatabaseClock({ database, log }, machineClock);
    return { base: { database, clock, random, log }, databaseClock: clock };
  } catch (error) {
    await database.close();
    throw error;
  }
}

function openMetrics({ database, clock }: Base, databaseClock: DatabaseClock | null): Metrics {
  const { db, pool } = database;
  return createMetrics({
    clock,
    listTableBytes: () => listTableBytes(db),
    listDueAges: () => listDueAges(db, merchantWork, timestamp(clock.now())),
    readToday: () => readToday(db, timestamp(clock.now())),
    readStates: () => readStates(db, timestamp(clock.now())),
    connections: () => ({
      open: pool.totalCount,
      idle: pool.idleCount,
      wanted: pool.waitingCount,
    }),
    clockSkewMilliseconds: () => databaseClock?.skewMilliseconds() ?? 0,
  });
}

/**
 * Opens the gateways within their limits, and the guard that keeps money from moving after a
 * restore.
 */
function openGuarded(
  { gateways: settings, environment }: ReadyConfig,
  base: Base,
  metrics: Metrics,
): { gateways: Gateways; money: MoneyGuard } {
  const gateways = openGateways(settings, base, metrics.observeGateway);
  const money = createMoneyGuard({ ...base, gateways, environment, endAccess: endAllAccess });
  return { gateways: guardGateways(gateways, money), money };
}

function countMails(
  mail: MailTransport | null,
  count: (outcome: string) => void,
): MailTransport | null {
  return (
    mail && {
      ...mail,
      async send(one) {
        const sent = await mail.send(one);
        count(sent.outcome);
        return sent;
      },
    }
  );
}

async function openRateLimitStore(
  config: ReadyConfig,
  deps: { database: Database; clock: Clock; log: Logger },
): Promise<RateLimitStore> {
  switch (config.rateLimitStore) {
    case 'memory':
      return memoryRateLimitStore(deps.clock);
    case 'postgres':
      return postgresRateLimitStore(deps);
    case 'redis':
      return await redisRateLimitStore(config.redisUrl ?? '', deps.log);
  }
}

/** The time that a process needs to stop, in addition to the time for its requests in flight. */
export const stopMilliseconds = 3_000;

/** Builds the staff's console and, if there is one, the merchants'. */
function buildConsoles({ console, merchantConsole: own, tls }: ReadyConfig, deps: Deps) {
  const staff = { app: buildConsole(deps, tlsAt(tls, console.host)), at: console };
  if (own === null) return [staff];
  const app = buildConsole(atMerchants(deps, own.url), tlsAt(tls, own.host));
  return [staff, { app, at: own }];
}

/** Announces this process. Refuses if a migration has broken its program while it started. */
async function announceProcess(deps: Deps): Promise<{ stop(): Promise<void> }> {
  const node = await announceNode(deps, await programVersion());
  try {
    await refuseNewerDatabase(deps.database);
  } catch (error) {
    await node.stop();
    throw error;
  }
  return node;
}

/** Starts one process of the service, on a database that is ready. */
export async function startProcess(
  config: ReadyConfig,
  role: Role,
  log: Logger,
): Promise<{
  deps: Deps;
  /** Requests in flight have this long to finish. */
  stop(graceMilliseconds?: number): Promise<void>;
}> {
  const deps = await createDeps(config, log);
  const node = await announceProcess(deps).catch(async (error) => {
    await deps.close();
    throw error;
  });
  const app = role === 'worker' ? null : buildApp(deps);
  const consoles = role === 'worker' ? [] : buildConsoles(config, deps);
  const further: FurtherAddress[] = [];
  const close = () =>
    Promise.all([app, ...consoles.map((one) => one.app), ...further].map((one) => one?.close()));
  try {
    if (app) further.push(...(await listen(app, config, 1024)));
    for (const one of consoles) further.push(...(await listen(one.app, one.at)));
  } catch (error) {
    await close();
    await node.stop();
    await deps.close();
    throw error;
  }
  const servers = [app, ...consoles.map((one) => one.app)].flatMap((one) => one?.server ?? []);
  const flights = watchFlights(servers);
  const worker = startWorker(deps, { isOwnOnly: role === 'web' });
  // Notice a restore before the first payment and the first sign-in.
  for (const asked of [deps.money.problem(), deps.money.accessProblem()]) asked.catch(() => {});
  reportMissingGateways(deps).catch((error) =>
    log.error({ err: error }, 'the gateways that were used could not be listed'),
  );
  return {
    deps,
    async stop(graceMilliseconds = config.requestDeadlineSeconds * 1_000) {
      // Load balancers must stop sending before we stop serving. Due work does not have to wait for
      // that.
      deps.draining = true;
      const idle = worker.stop();
      if (app) await deps.clock.sleep(config.drainSeconds * 1_000);
      const closed = close();
      // Requests in flight may finish. Connections that stay open after that are cut.
      const ended = new AbortController();
      const cut = Promise.all([
        deps.clock.sleep(2_000, ended.signal),
        within(deps.clock, graceMilliseconds, flights.settled()),
      ]).then(() => {
        if (ended.signal.aborted) return;
        if (flights.count() > 0) {
          log.warn({ requests: flights.count() }, 'requests in flight were cut off by the stop');
        }
        for (const server of servers) server.closeAllConnections();
        return within(deps.clock, 500, closed);
      });
      // The stop does not wait for a statement that waits for a lock, or for a database that does
      // not answer.
      await Promise.all([Promise.race([closed, cut]), within(deps.clock, 2_500, idle)]);
      ended.abort();
      await within(deps.clock, 500, node.stop());
      await within(deps.clock, 1_000, deps.close());
    },
  };
}
