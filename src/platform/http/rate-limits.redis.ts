import type { Logger } from '#platform/shared/logger.ts';
import type { RateLimitStore } from './rate-limits.ts';

// A script is one round trip and has no race. The first hit opens the window, and Redis ends it.
const countHit = `
  local count = redis.call('INCRBY', KEYS[1], ARGV[2])
  if redis.call('PTTL', KEYS[1]) == -1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
  return { count, redis.call('PTTL', KEYS[1]) }`;

/** Counts in Redis or Valkey, shared by all processes that use the same one. */
export async function redisRateLimitStore(url: string, log: Logger): Promise<RateLimitStore> {
  // Most installations use no Redis, so load the client only here.
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, { maxRetriesPerRequest: 2, commandTimeout: 2_000 });
  redis.on('error', (error) => log.warn({ err: error }, 'Redis does not answer'));
  return {
    async hit(key, windowSeconds, weight = 1) {
      const [count, resetsInMilliseconds] = (await redis.eval(
        countHit,
        1,
        `tranche:limit:${key}`,
        windowSeconds * 1000,
        weight,
      )) as [number, number];
      return { count, resetsInMilliseconds };
    },
    async close() {
      redis.disconnect();
    },
  };
}
