import pg from 'pg';
import { type Database, type Handle, releaseClient } from '#platform/database/database.ts';
import { groupCommit } from '#platform/database/group-commit.ts';
import { rowGroup } from '#platform/database/row-group.ts';
import { retryTransient } from '#platform/database/transaction.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Count, RateLimitStore } from './rate-limits.ts';

const statementHitsMax = 500;

/**
 * Counts shared by all processes on one database. Hits that arrive while a statement is in flight
 * share the next one. The table is unlogged, so counting never waits for the disk.
 */
export function postgresRateLimitStore(deps: { database: Database; clock: Clock }): RateLimitStore {
  const hit = groupCommit(deps, (hits: Hit[]) => count(deps, hits), statementHitsMax);
  return {
    hit: (key, windowSeconds, weight = 1) => hit({ key, windowSeconds, weight }),
    close: hit.settled,
  };
}

/** A node with a wrong clock wrote a window that ends over a minute later than a new one would. */
const hasEnded = `(r.resets_at <= $4 or r.resets_at > excluded.resets_at + interval '1 minute')`;

type Hit = { key: string; windowSeconds: number; weight: number };

const counted = rowGroup({ key: 'text', count: 'int', resets_at: 'timestamptz' });

async function count(deps: { database: Database; clock: Clock }, hits: Hit[]): Promise<Count[]> {
  const now = deps.clock.now();
  const byKey = new Map<string, { hits: number; windowSeconds: number }>();
  for (const { key, windowSeconds, weight } of hits) {
    const same = byKey.get(key);
    if (same) same.hits += weight;
    else byKey.set(key, { hits: weight, windowSeconds });
  }
  // Lock rows in the order of their keys, so that two processes cannot deadlock.
  const keys = [...byKey].sort(([a], [b]) => (a < b ? -1 : 1));
  // If an answer is lost, the hits may be counted already. The retry then only reads: a merchant
  // who stays within a limit of one must not be refused, and one uncounted hit does little harm.
  let isCounted = false;
  const { rows } = await retryTransient(deps.clock, async () => {
    const client = await deps.database.pool.connect();
    const asked = client.query<{ key: string; count: number; resets_at: Timestamp }>({
      name: 'rate-limits-hit',
      // Every request waits for its count. A dead connection must not hold all of them for long.
      query_timeout: 5_000,
      text: `
        insert into rate_limits as r (key, count, resets_at)
        select i.* from ${counted.from}
        on conflict (key) do update set
          count = case when ${hasEnded} then excluded.count else r.count + excluded.count end,
          resets_at = case when ${hasEnded} then excluded.resets_at else r.resets_at end
        returning key, count, resets_at`,
      values: [
        ...counted.values(
          keys.map(([key, ours]) => ({
            key,
            count: isCounted ? 0 : ours.hits,
            resets_at: timestamp(secondsAfter(now, ours.windowSeconds)),
          })),
        ),
        timestamp(now),
      ],
    } as pg.QueryConfig);
    try {
      const answer = await asked;
      releaseClient(client);
      return answer;
    } catch (error) {
      isCounted ||= !(error instanceof pg.DatabaseError);
      releaseClient(client, error);
      throw error;
    }
  });
  const results = new Map(rows.map((row) => [row.key, row]));
  const placed = new Map<string, number>();
  return hits.map(({ key, weight }) => {
    const row = results.get(key);
    const ours = byKey.get(key);
    if (!row || !ours) throw new Error('a rate limit was not counted');
    // The row has counted the whole batch. The count after each single hit is computed from it.
    const place = (placed.get(key) ?? 0) + weight;
    placed.set(key, place);
    return {
      count: Math.max(row.count - ours.hits, 0) + place,
      resetsInMilliseconds:
        Temporal.Instant.from(row.resets_at).epochMilliseconds - now.epochMilliseconds,
    };
  });
}

/** Deletes a batch of windows that have ended. */
export async function deleteEndedWindows(
  db: Handle,
  now: Timestamp,
  batchSize: number,
): Promise<number> {
  const ended = await db
    .selectFrom('rate_limits')
    .select('key')
    .where('resets_at', '<=', now)
    .orderBy('resets_at')
    .limit(batchSize)
    .execute();
  if (ended.length === 0) return 0;
  await db
    .deleteFrom('rate_limits')
    .where(
      'key',
      'in',
      ended.map(({ key }) => key),
    )
    .where('resets_at', '<=', now)
    .execute();
  return ended.length;
}
