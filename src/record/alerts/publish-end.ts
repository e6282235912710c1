import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { type ChainEnd, findChainEnd } from '#record/actions/operator-chain.sql.ts';
import { insertPublishedEnd, listPublishedEnds } from './published-end.sql.ts';
import { raiseAlert } from './raise-alert.ts';

/** An end of the chain in the form that people write down and `--since` accepts. */
export const writeEnd = ({ number, hash }: ChainEnd) => `${number}:${hash.toString('hex')}`;

/**
 * Posts the end of the chain of operators' actions once a day (decision 0060). A person who can
 * change every row can compute a new chain, but cannot change what was posted.
 */
export async function publishEnd(deps: {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
}): Promise<number> {
  const now = deps.clock.now();
  const on_date = now.toZonedDateTimeISO('UTC').toPlainDate().toString();
  const [last] = await listPublishedEnds(deps.database.db, { limit: 1 });
  if (last && last.on_date >= on_date) return 0;
  return await transaction(deps, async ({ db }) => {
    const end = await findChainEnd(db);
    if (end === null) return 0;
    const { number, hash } = end;
    if (!(await insertPublishedEnd(db, { on_date, at: timestamp(now), number, hash }))) return 0;
    const detail = `The chain of operators' actions ends with ${writeEnd(end)} on ${on_date}. \`tranche prove --since\` compares it later.`;
    await raiseAlert(deps, db, { kind: 'record_end', detail });
    return 0;
  });
}

/** The last end that was posted up to a moment, with its day. Null before the first post. */
export async function findRecordEnd(db: Handle, until: Timestamp): Promise<string | null> {
  const [end] = await listPublishedEnds(db, { until, limit: 1 });
  return end ? `${end.on_date} ${writeEnd(end)}` : null;
}
