import type { Gateway } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Database } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { listOwnRows, ownIdsOf } from './reconciliation.sql.ts';

/** The gateway's clock and ours may differ a little. */
const marginMinutes = 5;
const pagesMax = 1_000;

/**
 * Finds a payment or refund since the last heartbeat that the gateway made for this service but the
 * database does not know, and returns its reference. Null if the database knows all of them. A row
 * is committed before the gateway is called, so the row of a record without one was lost.
 */
export async function findLost(
  { database, gateway, name }: { database: Database; gateway: Gateway; name: GatewayName },
  heartbeat_at: Timestamp | null,
): Promise<string | null> {
  const from =
    heartbeat_at &&
    Temporal.Instant.from(heartbeat_at).subtract({ minutes: marginMinutes }).toString();
  for (const kind of ['payments', 'refunds'] as const) {
    let after: string | null = null;
    for (let page = 0; page < pagesMax; page += 1) {
      const { records, next } = await gateway.listRecords(kind, { from, to: null, after });
      const ours = records.filter(({ own_id }) => own_id !== null);
      const rows = await listOwnRows(database.pool, name, kind, ours);
      // An attempt gets its customer before it is sent. If the gateway knows an attempt whose row
      // has no customer, the database was restored.
      const known = new Set(rows.filter(({ attempt }) => attempt !== 'unsent').flatMap(ownIdsOf));
      const lost = ours.find(
        ({ own_id, reference }) => !known.has(own_id ?? '') && !known.has(reference),
      );
      if (lost) return lost.reference;
      if (next === null) break;
      after = next;
    }
  }
  return null;
}
