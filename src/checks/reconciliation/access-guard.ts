import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '#platform/database/database.ts';
import { sharing } from '#platform/shared/cache.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { isOpenHere, moveAccessServer, readAccessServer, readServer } from './access-server.sql.ts';

/**
 * Decides whether sessions, links and tokens are accepted (decision 0097). In a restored database
 * those that ended after the backup are valid again. A restore changes the database server's
 * identifier or timeline, but a failover does so too. After either, access opens only once the
 * gateways were compared, or an operator has confirmed it.
 */
export type AccessGuard = {
  /** Why access is closed, in words for operators; null if it is open. */
  accessProblem(): Promise<string | null>;
};

const accessWaits =
  'No one can sign in or act at the moment: the database runs on another server than before and may be a restored backup, so it is compared with the gateways first. If a gateway does not answer, or money is stopped, an operator reviews people and credentials, then opens access at the command line: `tranche operators confirm`.';

/**
 * How often a process reads the database server's identity, and how often it does so while access
 * waits to be opened.
 */
const lookMilliseconds = 10_000;
const waitingMilliseconds = 1_000;
/** If the gateways answer within this time after a standby took over, access stays open. */
const graceMilliseconds = 10_000;
/** A request waits for the gateways no longer than this. */
const answerMilliseconds = 2_000;

export function createAccessGuard(
  { database: { db }, clock }: { database: Database; clock: Clock },
  /**
   * Compares the database with all gateways. Returns why money may not move, or null. When the
   * comparison stops money, all sessions, links and tokens end. Then access is opened, because none
   * that the restore brought back is valid any more.
   */
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
    // The first look compares nothing, because after a failover the money guard may use the row of
    // the former server for up to a second. The money guard logs why a gateway did not answer.
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
