import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

type Life = { created_at: Timestamp; expires_at: Timestamp | null };
export type StoredClientSecret = Life & { secret_hash: Buffer; integration_id: string };
export type StoredSigningKey = Life & {
  id: string;
  integration_id: string;
  sealed_key: Buffer;
  first_used_at: Timestamp | null;
};

export async function insertClientSecret(db: Handle, secret: StoredClientSecret): Promise<void> {
  await db.insertInto('client_secrets').values(secret).execute();
}

export async function insertSigningKey(db: Handle, key: StoredSigningKey): Promise<void> {
  await db.insertInto('signing_keys').values(key).execute();
}

/** The credentials in force at a time, newest first. */
export async function listClientSecrets(
  db: Handle,
  integration_id: string,
  now: Timestamp,
): Promise<StoredClientSecret[]> {
  return await db
    .selectFrom('client_secrets')
    .selectAll()
    .where('integration_id', '=', integration_id)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .orderBy('created_at', 'desc')
    .execute();
}

export async function listSigningKeys(
  db: Handle,
  integration_id: string,
  now: Timestamp,
): Promise<StoredSigningKey[]> {
  return await db
    .selectFrom('signing_keys')
    .selectAll()
    .where('integration_id', '=', integration_id)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
}

/** Gives everything in force an end, never a later one than it had. */
export async function moveClientSecretsExpiry(
  db: Handle,
  integration_id: string,
  expires_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('client_secrets')
    .set({ expires_at })
    .where('integration_id', '=', integration_id)
    .where((where) =>
      where.or([where('expires_at', 'is', null), where('expires_at', '>', expires_at)]),
    )
    .execute();
}

export async function moveSigningKeysExpiry(
  db: Handle,
  integration_id: string,
  expires_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('signing_keys')
    .set({ expires_at })
    .where('integration_id', '=', integration_id)
    .where((where) =>
      where.or([where('expires_at', 'is', null), where('expires_at', '>', expires_at)]),
    )
    .execute();
}

export async function moveSigningKeyUsed(
  db: Handle,
  ids: string[],
  first_used_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('signing_keys')
    .set({ first_used_at })
    .where('id', 'in', ids)
    .where('first_used_at', 'is', null)
    .execute();
}

/** Walks all sealed keys in the order of their ids, some at a time. */
export async function listSealedKeysAfter(
  db: Handle,
  afterId: string | null,
  count: number,
): Promise<{ id: string; integration_id: string; sealed_key: Buffer }[]> {
  let query = db
    .selectFrom('signing_keys')
    .select(['id', 'integration_id', 'sealed_key'])
    .orderBy('id')
    .limit(count);
  if (afterId !== null) query = query.where('id', '>', afterId);
  return await query.execute();
}

/** Ids of version 7 ascend with time, so the last one is the newest. */
export async function findNewestSealedKey(db: Handle): Promise<Buffer | null> {
  const row = await db
    .selectFrom('signing_keys')
    .select('sealed_key')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.sealed_key ?? null;
}

/** Whether it still was what was read. */
export async function moveSealedKey(
  db: Handle,
  id: string,
  from: Buffer,
  sealed_key: Buffer,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('signing_keys')
    .set({ sealed_key })
    .where('id', '=', id)
    .where('sealed_key', '=', from)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}
