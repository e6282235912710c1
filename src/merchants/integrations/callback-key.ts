import type { Handle } from '#platform/database/database.ts';
import type { Transaction } from '#platform/database/transaction.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { sealingContext } from './callers.ts';
import { listInForce, listSigningKeysInForce } from './credential.sql.ts';
import { currentSigningKey, type SigningKey } from './integration.ts';

/**
 * The keys that sign integrations' callbacks now. A revoked integration keeps its keys, because
 * its open checkouts still end in callbacks (decision 0005).
 */
export async function findCallbackKeys(
  deps: { sealing: Sealing },
  tx: Pick<Transaction, 'db' | 'client'>,
  integration_ids: Set<string>,
  now: Timestamp,
): Promise<Map<string, string>> {
  const inForce = await listSigningKeysInForce(tx, [...integration_ids], now);
  const byIntegration = Map.groupBy(inForce, ({ integration_id }) => integration_id);
  return new Map(
    [...byIntegration].flatMap(([integration_id, keys]) => {
      const key = currentSigningKey(keys);
      return key ? [[integration_id, deps.sealing.open(key.sealed_key, sealingContext(key))]] : [];
    }),
  );
}

/** The keys of an integration in force, the newest first. There are two during a rotation. */
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
