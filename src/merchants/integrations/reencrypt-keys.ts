import { reading } from '#platform/database/transaction.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { type OperatorDeps, operate } from '#record/actions/operate.ts';
import { sealingContext } from './callers.ts';
import { listSealedKeysAfter, moveSealedKey } from './credential.sql.ts';

export type Reencryption = {
  /** How many signing keys were read. */
  examined: number;
  /** How many were sealed under a previous master key and are now under the current one. */
  reencrypted: number;
  /** The ids of keys that none of the given master keys opens. They stay as they are. */
  unreadable: string[];
};

/**
 * Re-encrypts every signing key under the current master key, in batches. An operator can interrupt
 * it and run it again. The service keeps running, because it can open keys under both master keys.
 */
export async function reencryptKeys(
  deps: OperatorDeps & { sealing: Sealing },
  operator: string,
  options: { batchSize?: number; onProgress?: (soFar: Reencryption) => void } = {},
): Promise<Reencryption> {
  const batchSize = options.batchSize ?? 200;
  const soFar: Reencryption = { examined: 0, reencrypted: 0, unreadable: [] };
  let batch: SealedKey[];
  let lastId: string | null = null;
  do {
    batch = await listAfter(deps, lastId, batchSize);
    lastId = batch.at(-1)?.id ?? null;
    const stale = batch.filter(({ sealed_key }) => !deps.sealing.isCurrent(sealed_key));
    const opened = stale.flatMap((key) => {
      const value = openOrNull(deps.sealing, key);
      if (value === null) soFar.unreadable.push(key.id);
      return value === null ? [] : [{ ...key, value }];
    });
    if (opened.length > 0) soFar.reencrypted += await reseal(deps, operator, opened);
    soFar.examined += batch.length;
    options.onProgress?.(soFar);
  } while (batch.length === batchSize);
  return soFar;
}

type SealedKey = Awaited<ReturnType<typeof listSealedKeysAfter>>[number];

function listAfter(deps: OperatorDeps, id: string | null, count: number): Promise<SealedKey[]> {
  return reading(deps, (db) => listSealedKeysAfter(db, id, count));
}

/** A row that was tampered with or copied cannot be opened. It must not stop the others. */
function openOrNull(sealing: Sealing, key: SealedKey): string | null {
  if (!sealing.isKnown(key.sealed_key)) return null;
  try {
    return sealing.open(key.sealed_key, sealingContext(key));
  } catch {
    return null;
  }
}

async function reseal(
  deps: OperatorDeps & { sealing: Sealing },
  operator: string,
  keys: (SealedKey & { value: string })[],
): Promise<number> {
  return await operate(deps, operator, 'keys reencrypt', async (db) => {
    let count = 0;
    for (const key of keys) {
      const resealed = deps.sealing.seal(key.value, sealingContext(key));
      // A concurrent run may have re-encrypted the key first.
      if (await moveSealedKey(db, key.id, key.sealed_key, resealed)) count += 1;
    }
    return { subject_id: null, details: { signing_keys: count }, result: count };
  });
}
