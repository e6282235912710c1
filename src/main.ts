import type { AppDeps } from './app.ts';
import { checkoutCommits } from './checkouts/create-checkout.ts';
import type { Config } from './config.ts';
import { openDatabase } from './database/database.ts';
import { createMetrics } from './http/metrics.ts';
import { createRateLimits, memoryRateLimitStore, type RateLimitStore } from './http/rate-limits.ts';
import { postgresRateLimitStore } from './http/rate-limits.sql.ts';
import { createCallers } from './integrations/callers.ts';
import { type Clock, systemClock } from './shared/clock.ts';
import type { Logger } from './shared/logger.ts';
import { type Random, systemRandom } from './shared/random.ts';
import { createSealing } from './shared/sealing.ts';

export type Deps = AppDeps & { close(): Promise<void> };

/** The composition root: settings in, everything that the slices need out. */
export function createDeps(
  config: Config & { databaseUrl: string },
  log: Logger,
  options: {
    rateLimitStore?: 'memory' | 'postgres';
    maxConnections?: number;
    clock?: Clock;
    random?: Random;
  } = {},
): Deps {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const database = openDatabase(config.databaseUrl, {
    log,
    maxConnections: options.maxConnections ?? 12,
  });
  const sealing = createSealing(config.masterKeys, random);
  const store: RateLimitStore =
    (options.rateLimitStore ?? config.rateLimitStore) === 'memory'
      ? memoryRateLimitStore(clock)
      : postgresRateLimitStore({ database, clock });
  const base = { database, clock, random, log };
  return {
    ...base,
    environment: config.environment,
    baseUrl: config.baseUrl,
    trustProxy: config.trustProxy,
    callbackAllow: config.callbackAllow,
    sealing,
    metrics: createMetrics(),
    rateLimits: createRateLimits(store),
    callers: createCallers({ ...base, sealing }),
    commitCheckout: checkoutCommits(base),
    close: () => database.close(),
  };
}
