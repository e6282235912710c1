import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '#platform/database/database.ts';
import { sharing } from '#platform/shared/cache.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { isOpenHere, moveAccessServer, readAccessServer, readServer } from './access-server.sql.ts';

/**
 * Whether sessions, links and tokens may open (decision 0097). In a restored database those that were
 * ended since the backup are valid again, until the gateway has said that it is ahead. A restore has
 * another server or timeline, and so has a standby that took over. There access opens only once the
 * gateways have answered, or an operator has confirmed it.
 */
export type AccessGuard = {
  /** Why nothing may open yet, for an operator; null if access is open. */
  accessProblem(): Promise<string | null>;
};

const accessWaits =
  'The database runs on another server than before, and may be a restored backup. Until the gateways have been compared with it, no one can sign in or act. If a gateway does not answer, or money is stopped, an operator compares people and credentials and opens access at the command line: `tranche operators confirm`.';

/** How often a process looks at the server, and how often while access waits. */
const lookMilliseconds = 10_000;
const waitingMilliseconds = 1_000;
/** A standby that takes over must not close what is open, if the gateways answer within this time. */
const graceMilliseconds = 10_000;
/** A request waits for the gateways no longer than this. */
const answerMilliseconds = 2_000;

export function createAccessGuard(
  { database: { db }, clock }: { database: Database; clock: Clock },
  /** Compares the database with all gateways. A stop ends access, and opens it for what is new. */
  findProblem: () => Promise<string | null>,
): AccessGuard {
  let isOpen = false;
  let waits = true;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let graceUntil = Number.NEGATIVE_INFINITY;
  const open = (server: string) => moveAccessServer(db, { server, at: timestamp(clock.now()) });
  const compare = sharing(async () => {
    const server = await readServer(db);
    if ((await findProblem()) !== null) return false;
    await open(server);
    return true;
  });
  const look = sharing(async () => {
    const access = await readAccessServer(db);
    if (access.access_server === null) await open(access.current_server);
    const waited = waits;
    waits = !isOpenHere(access);
    lookedAt = clock.monotonic();
    if (waits && !waited) graceUntil = lookedAt + graceMilliseconds;
    isOpen = !waits || lookedAt < graceUntil;
    // When a server takes over, the guard of money may still have the row of the other one, for a
    // second. The guard logs why a gateway did not answer.
    if (!waits || !waited) return;
    const compared = compare().catch(() => false);
    if (isOpen) return;
    if (await Promise.race([compared, sleep(answerMilliseconds, false, { ref: false })])) {
      isOpen = true;
      waits = false;
    }
  });
  return {
    async accessProblem() {
      const pause = waits ? waitingMilliseconds : lookMilliseconds;
      if (clock.monotonic() - lookedAt >= pause) await look();
      return isOpen ? null : accessWaits;
    },
  };
}
