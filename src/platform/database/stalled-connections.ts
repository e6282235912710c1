import type { Duplex } from 'node:stream';
import type pg from 'pg';
import { type Cancel, systemClock } from '#platform/shared/clock.ts';

// A server that loses its power or its network says nothing. Without this watch, a statement on
// such a connection would use up the whole deadline of its request (decision 0058).

/** Facts that a connection's server stated when the connection opened. */
export type Backend = {
  /** The server process of this connection; null if a pooler is in between, which may change it. */
  pid: number | null;
  /** Distinguishes two servers, or two starts of one server. */
  startedAt: string;
};

/** A backend with the number of its server among the hosts of DATABASE_URL. */
type Peer = Backend & { server: number };

type Watched = { backend: Peer; bytesRead: number; since: number; strikes: number };

export type StallWatch = {
  add(client: pg.ClientBase, backend: Peer): void;
  remove(client: pg.ClientBase): void;
  stop(): void;
};

/** A connection to one server, and what is known about the connection. */
type Stalled = [pg.ClientBase, Watched];

/**
 * Finds which of these processes are at work on a server. Returns null if the server answers but
 * does not say, and throws if it does not answer.
 */
type Ask = (
  server: number,
  pids: number[],
) => Promise<{ startedAt: string; active: Set<number> } | null>;

/**
 * Cuts connections whose statements wait for a server that is gone. A slow statement is not cut: a
 * second connection asks the server which of its processes are at work. A connection is dead if the
 * server twice in a row does not name its process, or does not answer.
 *
 * Connections through a pooler are left alone: we see the pooler's processes, not the server's.
 */
export function watchForStalls(
  ask: Ask,
  cut: (client: pg.ClientBase) => void,
  /** A statement that gets no byte of an answer for this long may be on a dead connection. */
  stallMilliseconds: number,
): StallWatch {
  const watched = new Map<pg.ClientBase, Watched>();
  let isStopped = false;
  let cancel: Cancel | null = null;

  const look = async () => {
    const all = listStalled(watched, stallMilliseconds);
    const byServer = Map.groupBy(all, ([, { backend }]) => backend.server);
    for (const [server, stalled] of byServer) {
      for (const dead of await findDead(ask, server, stalled)) cut(dead);
    }
  };

  /** Looks again and again while there are connections. Without any, it leaves no timer behind. */
  function lookLater(): void {
    cancel ??= systemClock.after(stallMilliseconds / 4, async () => {
      await look();
      cancel = null;
      if (watched.size > 0 && !isStopped) lookLater();
    });
  }

  return {
    add(client, backend) {
      const { bytesRead } = streamOf(client);
      watched.set(client, { backend, bytesRead, since: systemClock.monotonic(), strikes: 0 });
      lookLater();
    },
    remove: (client) => void watched.delete(client),
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}

/**
 * The connections whose statement has waited long for an answer. Counting starts again for the
 * others.
 */
function listStalled(
  watched: ReadonlyMap<pg.ClientBase, Watched>,
  stallMilliseconds: number,
): Stalled[] {
  const now = systemClock.monotonic();
  const stalled: Stalled[] = [];
  for (const [client, one] of watched) {
    const { bytesRead } = streamOf(client);
    if (!isWaiting(client) || bytesRead !== one.bytesRead) {
      Object.assign(one, { bytesRead, since: now, strikes: 0 });
    } else if (one.backend.pid !== null && now - one.since >= stallMilliseconds) {
      stalled.push([client, one]);
    }
  }
  return stalled;
}

/**
 * Asks one server about the connections that were opened to it, and returns the dead ones. If
 * another server now answers at its address, perhaps a standby, it does not know the connections.
 */
async function findDead(ask: Ask, number: number, stalled: Stalled[]): Promise<pg.ClientBase[]> {
  const pids = stalled.flatMap(([, { backend }]) => backend.pid ?? []);
  const server = await ask(number, pids).catch(() => 'away' as const);
  if (server === null) return [];
  const dead: pg.ClientBase[] = [];
  for (const [client, one] of stalled) {
    const { pid, startedAt } = one.backend;
    const isAtWork =
      server !== 'away' && server.startedAt === startedAt && server.active.has(pid ?? 0);
    const isSilent = isWaiting(client) && streamOf(client).bytesRead === one.bytesRead;
    one.strikes = isAtWork || !isSilent ? 0 : one.strikes + 1;
    if (one.strikes >= 2) dead.push(client);
  }
  return dead;
}

type Internals = {
  connection: { stream: Duplex & { bytesRead: number } };
  _activeQuery: unknown;
  _sentQueryQueue: unknown[];
};

const streamOf = (client: pg.ClientBase) => (client as unknown as Internals).connection.stream;

/** Whether a statement was sent and its answer is not complete. */
function isWaiting(client: pg.ClientBase): boolean {
  const { _activeQuery, _sentQueryQueue } = client as unknown as Internals;
  return Boolean(_activeQuery) || _sentQueryQueue.length > 0;
}
