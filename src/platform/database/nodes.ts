import { hostname } from 'node:os';
import type pg from 'pg';
import type { Clock } from '#platform/shared/clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Database } from './database.ts';

// Each process of the service announces itself. A migration that breaks older programs refuses to
// run while one of them is alive.

const announceMilliseconds = 20_000;

/** A process that has been silent for this long counts as dead. */
const silentMinutes = 2;

type NodeDeps = { database: Database; clock: Clock; random: Random; log: Logger };

/** Announces this process until it stops. Resolves after the first announcement. */
export async function announceNode(
  deps: NodeDeps,
  program_version: number,
): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const id = deps.random.uuid();
  const started_at = timestamp(deps.clock.now());
  const node = { id, host: hostname(), process_id: process.pid, program_version, started_at };
  await announce(deps, node);
  const announced = (async () => {
    const warn = (error: unknown) =>
      deps.log.warn({ err: error }, 'this process could not announce itself');
    await deleteSilent(deps).catch(warn);
    for (;;) {
      await deps.clock.sleep(announceMilliseconds, stopping.signal);
      if (stopping.signal.aborted) return;
      await announce(deps, node).catch(warn);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await announced;
      // If its row stays, the process counts as dead after two minutes.
      await deps.database.db
        .deleteFrom('nodes')
        .where('id', '=', id)
        .execute()
        .catch(() => {});
    },
  };
}

async function announce(
  { database: { db }, clock }: NodeDeps,
  node: {
    id: string;
    host: string;
    process_id: number;
    program_version: number;
    started_at: string;
  },
): Promise<void> {
  const seen_at = timestamp(clock.now());
  await db
    .insertInto('nodes')
    .values({ ...node, seen_at })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at }))
    .execute();
}

/**
 * Deletes the rows of processes that crashed and have been silent for a day. A process that stops
 * deletes its own row.
 */
async function deleteSilent({ database: { db }, clock }: NodeDeps): Promise<void> {
  const yesterday = timestamp(clock.now().subtract({ hours: 24 }));
  await db.deleteFrom('nodes').where('seen_at', '<', yesterday).execute();
}

/**
 * At most twenty living processes whose program is older than a migration, each as text for
 * operators.
 */
export async function listOlderNodes(client: pg.ClientBase, version: number): Promise<string[]> {
  const known = await client.query(`select to_regclass('nodes') is not null as found`);
  if (!known.rows[0].found) return [];
  const { rows } = await client.query(
    `select host, process_id, program_version from nodes
     where program_version < $1 and seen_at > now() - make_interval(mins => $2)
     order by host, process_id limit 20`,
    [version, silentMinutes],
  );
  return rows.map(
    (node) => `process ${node.process_id} on ${node.host} (migration ${node.program_version})`,
  );
}
