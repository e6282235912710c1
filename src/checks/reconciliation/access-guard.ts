import type { Database, Handle } from '#platform/database/database.ts';
import { sharing } from '#platform/shared/cache.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import { isAlive, type LifeSign, moveAlive, readLifeSign, readServer } from './life-sign.sql.ts';

/**
 * Whether sessions, links and tokens may open (decision 0097). In a restored database those that were
 * ended since the backup are valid again, until the gateway has said that it is ahead. So access opens
 * in a process only once it knows that the database is no old backup: a process with open access has
 * left a sign of life in it a moment ago, or the gateways have answered.
 */
export type AccessGuard = {
  /** Why nothing may open yet, for an operator; null if access is open. An open process reads no row. */
  accessProblem(): Promise<string | null>;
  /** Leaves a sign of life, if access is open in this process. It needs no gateway. */
  noteLife(): Promise<void>;
};

const accessWaits =
  'It is not known yet whether this database was restored from a backup, because it was not compared with the gateway since the start. Until then no one can sign in or act. If the gateway does not answer, an operator compares people and credentials and opens access at the command line: `tranche operators confirm`.';

/** How often a sign of life is left. */
const noteSeconds = 60;
/** While access is closed, the rows are read and the gateways are asked at most once in this time. */
const askAgainMilliseconds = 1_000;

export function createAccessGuard(
  deps: { database: Database; clock: Clock },
  /** Compares the database with all gateways. A stop ends access and leaves a sign of life. */
  findProblem: () => Promise<string | null>,
): AccessGuard {
  const { database, clock } = deps;
  /** The server on which access is open in this process; null while it is closed. */
  let openServer: string | null = null;
  let askedAt = Number.NEGATIVE_INFINITY;
  let notedAt = Number.NEGATIVE_INFINITY;
  const look = async (): Promise<LifeSign> => {
    const sign = await readLifeSign(database.db);
    if (isAlive(sign, clock.now())) openServer = sign.current_server;
    return sign;
  };
  const ask = sharing(async () => {
    if (clock.monotonic() - askedAt < askAgainMilliseconds) return;
    const { current_server } = await look();
    if (openServer === null) {
      // The guard of money has logged the failure. An account that is not the right one says nothing.
      const problem = await findProblem().catch(() => accessWaits);
      if (problem === null) openServer = current_server;
      else await look();
    }
    askedAt = clock.monotonic();
  });
  return {
    async accessProblem() {
      if (openServer === null) await ask();
      return openServer === null ? accessWaits : null;
    },

    async noteLife() {
      if (openServer === null) await ask();
      if (openServer === null || clock.monotonic() - notedAt < noteSeconds * 1_000) return;
      const server = await readServer(database.db);
      if (server === openServer) await noteLifeAt(database.db, clock, server);
      // Another server took over, which may lack changes. This process asks again.
      else openServer = null;
      notedAt = clock.monotonic();
    },
  };
}

/** Several workers share one sign of life a minute. */
async function noteLifeAt(db: Handle, clock: Clock, server: string): Promise<void> {
  const now = clock.now();
  const before = timestamp(secondsAfter(now, -noteSeconds / 2));
  await moveAlive(db, { at: timestamp(now), server }, before);
}
