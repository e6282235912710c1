import type { Heartbeat } from '#gateway/gateway.ts';
import type { DatabaseHeartbeat } from './gateway-heartbeat.sql.ts';

// Decides from what the database and the gateway know whether money must stop (decision 0097). An
// `explain…` function returns the reason to stop, or null if it finds none.

export function explainAhead(
  { id, heartbeat }: Pick<DatabaseHeartbeat, 'id' | 'heartbeat'>,
  heartbeats: readonly Pick<Heartbeat, 'database' | 'count'>[],
  environment: 'sandbox' | 'production',
  gateway = 'The gateway',
): string | null {
  const own = heartbeats.find(({ database }) => database === id);
  if (own !== undefined && own.count > heartbeat) {
    return `${gateway} is ahead of this database (heartbeat ${own.count} there, ${heartbeat} here): the database was restored from a backup, or a server that lacked the last changes took over.`;
  }
  // In a sandbox several databases may share an account of the gateway.
  if (own === undefined && heartbeats.length > 0 && environment === 'production') {
    return `Another database has used this account at ${lowerFirst(gateway)}: this one is new, or was restored from a backup without a heartbeat.`;
  }
  return null;
}

const correct = 'Nothing is sent there. Correct the settings and start the service again.';

/**
 * Compares the name under which this database wrote its heartbeat with the name in the settings.
 */
export function explainOtherName(
  name: string,
  { gateway }: Pick<Heartbeat, 'gateway'>,
): string | null {
  return gateway === undefined || gateway === name
    ? null
    : `The settings of the gateway ${name} lead to the account that is called ${gateway} here: keys were exchanged, or the gateway was renamed. ${correct}`;
}

/** Compares a row with the highest heartbeat that the process knew before reading it. */
export function explainFall(
  { stopped_reason, heartbeat }: Pick<DatabaseHeartbeat, 'stopped_reason' | 'heartbeat'>,
  highestHeartbeat: number,
): string | null {
  if (stopped_reason !== null || heartbeat >= highestHeartbeat) return null;
  return `The heartbeat of the database fell from ${highestHeartbeat} to ${heartbeat}.`;
}

export const explainLostChanges = (lost: string, gateway = 'The gateway') =>
  `The database runs on another server and does not know ${lost}, which ${lowerFirst(gateway)} has: that server lacked the last changes.`;

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

/** How a stop names the gateway. If there is only one, it is "the gateway". */
export const nameGateway = (name: string, names: readonly string[]) =>
  names.length === 1 ? 'The gateway' : `The gateway ${name}`;

/** The reason as operators read it, with what to do. */
export const describeStop = (why: string) =>
  `${why} No money moves until \`tranche gateway reconcile --record\` has recorded what the gateway did.`;
