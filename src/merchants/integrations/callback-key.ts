import { selectClocks } from '#merchants/merchant.sql.ts';
import { compileOnce } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { sealingContext } from './callers.ts';
import { listInForce, selectSigningKeysInForce } from './credential.sql.ts';
import { currentSigningKey, type SigningKey } from './integration.ts';

/**
 * The keys that currently sign integrations' callbacks, and how far merchants' clocks are ahead. A
 * revoked integration keeps its keys, because its open checkouts still send callbacks when they end
 * (decision 0005).
 */
export async function findKeysAndClocks(
  deps: { sealing: Sealing },
  db: Handle,
  of: { integration_ids: string[]; merchant_ids: string[]; now: Timestamp },
): Promise<{ keys: Map<string, string>; clocks: Map<string, number> }> {
  const [rows] = await selectKeysAndClocks(db, of);
  const byIntegration = Map.groupBy(asRows(rows?.keys ?? []), (one) => one.integration_id);
  const keys = new Map(
    [...byIntegration].flatMap(([integration_id, inForce]) => {
      const key = currentSigningKey(inForce);
      return key ? [[integration_id, deps.sealing.open(key.sealed_key, sealingContext(key))]] : [];
    }),
  );
  const clocks = rows?.clocks.map(({ id, clock_ahead_ms }) => [id, clock_ahead_ms] as const);
  return { keys, clocks: new Map(clocks) };
}

const selectKeysAndClocks = compileOnce(
  (db, of: { integration_ids: string[]; merchant_ids: string[]; now: Timestamp }) =>
    together({
      keys: selectSigningKeysInForce(db, of.integration_ids, of.now),
      clocks: selectClocks(db, of.merchant_ids),
    }),
);

/**
 * Decrypts the signing keys of an integration that are in force, the newest first. There are two
 * during a rotation.
 */
export async function openSigningKeys(
  deps: { sealing: Sealing },
  db: Handle,
  integration_id: string,
  now: Timestamp,
): Promise<SigningKey[]> {
  const inForce = await listInForce(db, 'signing_keys', integration_id, now);
  return inForce.map((one) => ({
    id: one.id,
    key: deps.sealing.open(one.sealed_key, sealingContext(one)),
    first_used_at: one.first_used_at,
  }));
}
