import type { Heartbeat } from '#gateway/gateway.ts';
import type { DatabaseHeartbeat } from './gateway-heartbeat.sql.ts';

// Decides from what the database and the gateway know whether money must stop (decision 0097). Each
// function returns the reason, or null if money may move.

/** Compares this database's heartbeat with those at the gateway. */
export function explainAhead(
  { id, heartbeat }: Pick<DatabaseHeartbeat, 'id' | 'heartbeat'>,
  heartbeats: readonly Pick<Heartbeat, 'database' | 'count'>[],
  environment: 'sandbox' | 'production',
): string | null {
  const own = heartbeats.find(({ database }) => database === id);
  if (own !== undefined && own.count > heartbeat) {
    return `The gateway is ahead of this database (heartbeat ${own.count} there, ${heartbeat} here): the database was restored from a backup, or a server took over that lacked the last changes.`;
  }
  // In a sandbox several databases may share an account of the gateway.
  if (own === undefined && heartbeats.length > 0 && environment === 'production') {
    return 'Another database has used this account of the gateway: this one is new, or was restored from a backup without a heartbeat.';
  }
  return null;
}

/** Compares a row with the highest heartbeat that the process knew before reading it. */
export function explainFall(
  { stopped_reason, heartbeat }: Pick<DatabaseHeartbeat, 'stopped_reason' | 'heartbeat'>,
  highestHeartbeat: number,
): string | null {
  if (stopped_reason !== null || heartbeat >= highestHeartbeat) return null;
  return `The heartbeat of the database fell from ${highestHeartbeat} to ${heartbeat}.`;
}

export const explainLost = (lost: string) =>
  `The database runs on another server and does not know the gateway's ${lost}: that server lacked the last changes.`;

/** The reason as operators read it, with what to do. */
export const describeStop = (why: string) =>
  `${why} No money moves until \`tranche gateway reconcile --record\` has recorded what the gateway did.`;
