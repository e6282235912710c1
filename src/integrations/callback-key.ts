import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Sealing } from '../shared/sealing.ts';
import { sealingContext } from './callers.ts';
import { listInForce } from './credential.sql.ts';

/**
 * The key that signs an integration's callbacks now, also after it was revoked (D29). During a
 * rotation that is the old one until the integration has signed with the new one, so that a
 * receiver never meets a key that it does not have yet (D15).
 */
export async function findCallbackKey(
  deps: { sealing: Sealing },
  db: Handle,
  integration_id: string,
  now: Timestamp,
): Promise<string | null> {
  const inForce = await listInForce(db, 'signing_keys', [integration_id], now);
  const key = inForce.find((one) => one.first_used_at !== null) ?? inForce.at(-1);
  return key ? deps.sealing.open(key.sealed_key, sealingContext(key)) : null;
}
