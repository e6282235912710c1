import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { buildConnector, errors } from 'undici';
import type { Clock } from '#platform/shared/clock.ts';
import { type Destinations, isReachable } from './destination.ts';
import { Blocked, Unresolved } from './failure-reason.ts';
import { connectMilliseconds } from './limits.ts';
import type { Resolve } from './resolve-name.ts';

// Opens connections to receivers. Merchants choose the addresses, so only public and explicitly
// allowed addresses may be reached (decision 0033).

export type Phase = 'dns' | 'connect' | 'tls';

/** How a connection was made, or how far the attempt to make it got. */
export type Connection = {
  /** How many milliseconds each phase took. Phases that were not reached are missing. */
  phases: Partial<Record<Phase, number>>;
  address: string | null;
  tls_version: string | null;
  /** Whether a request was sent over it before. */
  isUsed: boolean;
};

export type GuardDeps = {
  clock: Clock;
  allowed: Destinations;
  resolve: Resolve;
  deadlineMilliseconds: number;
  /** Certificates to trust instead of the system's. */
  authorities?: string[];
};

const connections = new WeakMap<object, Connection>();

/** The connection that belongs to a socket, or to the error with which connecting failed. */
export const connectionOf = (socket: object): Connection | undefined => connections.get(socket);

/** A stopwatch in milliseconds with one decimal. */
export function stopwatch(clock: Clock): () => number {
  const start = clock.monotonic();
  return () => Math.round((clock.monotonic() - start) * 10) / 10;
}

/**
 * Opens connections for undici. The guard resolves the name itself, and every address that it finds
 * must be allowed. The connected socket is checked again.
 */
export function guardedConnector(deps: GuardDeps): buildConnector.connector {
  return (options, callback) => {
    const elapsed = stopwatch(deps.clock);
    const connection: Connection = { phases: {}, address: null, tls_version: null, isUsed: false };
    const { phases } = connection;
    const sinceLastPhase = () => {
      const sum = Object.values(phases).reduce((total, one) => total + one, 0);
      return Math.round((elapsed() - sum) * 10) / 10;
    };
    const fail = (error: Error) => {
      connections.set(error, connection);
      callback(error, null);
    };
    const hostname = options.hostname.replace(/^\[|\]$/g, '');
    const isLiteral = isIP(hostname) !== 0;
    // A literal address is not looked up, so it must be checked before the socket opens.
    if (isLiteral && !isReachable(hostname, deps.allowed)) return fail(new Blocked());

    const lookUp: LookupFunction = (_hostname, { all }, done) => {
      findAddresses(deps, hostname).then(
        (found) => {
          phases.dns = sinceLastPhase();
          const [first] = found as [LookupAddress];
          if (all) done(null, found);
          else done(null, first.address, first.family);
        },
        (error) => done(error, ''),
      );
    };
    const connect = buildConnector({
      timeout: connectMilliseconds(deps.deadlineMilliseconds),
      allowH2: false,
      maxCachedSessions: 0,
      lookup: lookUp,
      autoSelectFamily: true,
      ...(deps.authorities && { ca: deps.authorities }),
    });
    const opening = connect({ ...options, hostname }, (...[error, socket]) => {
      if (error) {
        const isSlow = error instanceof errors.ConnectTimeoutError;
        return fail(isSlow && !isLiteral && phases.dns === undefined ? new Unresolved() : error);
      }
      // Only the address that the socket is connected to counts.
      if (!isReachable(socket.remoteAddress ?? '', deps.allowed)) {
        socket.destroy();
        return fail(new Blocked());
      }
      if ('getProtocol' in socket) {
        phases.tls = sinceLastPhase();
        connection.tls_version = (socket as TLSSocket).getProtocol();
      }
      connections.set(socket, connection);
      return callback(null, socket);
    }) as unknown as Socket;
    // This runs before undici's own listener, so that the address is known when the request is
    // written.
    opening.prependOnceListener('connect', () => {
      phases.connect = sinceLastPhase();
      connection.address = opening.remoteAddress ?? null;
    });
  };
}

async function findAddresses(deps: GuardDeps, hostname: string): Promise<LookupAddress[]> {
  const found = await deps.resolve(hostname).catch((error) => {
    throw new Unresolved('', { cause: error });
  });
  if (found.length === 0) throw new Unresolved();
  // A forbidden address among good ones is an attack, not an accident.
  if (!found.every(({ address }) => isReachable(address, deps.allowed))) throw new Blocked();
  return found;
}
