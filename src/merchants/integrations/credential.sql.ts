import { type Selectable, type SelectQueryBuilder, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

type Life = { created_at: Timestamp; expires_at: Timestamp | null };
export type StoredClientSecret = Life & {
  secret_hash: Buffer;
  integration_id: string;
  /**
   * True if the secret was created, and so seen, by a person without the right to end the review of
   * refunds (decision 0074).
   */
  seen_without_lift: boolean;
};
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

/** The tables of credentials. A credential is in force until it expires, if it ever does. */
export type CredentialTable = 'client_secrets' | 'signing_keys';

export const isInForce = (then: Timestamp) =>
  sql<boolean>`(expires_at is null or expires_at > ${then}::timestamptz)`;

/** An integration's credentials in force at a time, the newest first. */
export async function listInForce<Table extends CredentialTable>(
  db: Handle,
  table: Table,
  integration_id: string,
  now: Timestamp,
): Promise<Selectable<Tables[Table]>[]> {
  const query = selectInForce(db, table as 'signing_keys', [integration_id], now).selectAll();
  const order = table === 'signing_keys' ? query.orderBy('id', 'desc') : query;
  return (await order.execute()) as Selectable<Tables[Table]>[];
}

/** The signing keys of several integrations in force, the newest first. */
export const selectSigningKeysInForce = (
  db: Handle,
  integration_ids: string[],
  now: Timestamp,
): SelectQueryBuilder<Tables, 'signing_keys', StoredSigningKey> =>
  selectInForce(db, 'signing_keys', integration_ids, now)
    .select(['id', 'integration_id', 'sealed_key', 'created_at', 'expires_at', 'first_used_at'])
    .orderBy('id', 'desc');

const selectInForce = (
  db: Handle,
  table: 'signing_keys',
  integration_ids: string[],
  now: Timestamp,
) =>
  db
    .selectFrom(table)
    .where(sql<boolean>`integration_id = any(${integration_ids}::uuid[])`)
    .where(isInForce(now))
    .orderBy('created_at', 'desc');

/** Makes every credential in force expire at `expires_at`, unless it expires earlier. */
export async function moveExpiry(
  db: Handle,
  table: CredentialTable,
  integration_id: string,
  expires_at: Timestamp,
): Promise<void> {
  await db
    .updateTable(table as 'signing_keys')
    .set({ expires_at })
    .where('integration_id', '=', integration_id)
    .where(isInForce(expires_at))
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

/** A batch of sealed keys that follow an id, in order of id. */
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

/** UUIDs of version 7 grow with time, so the greatest is the newest. */
export async function findNewestSealedKey(db: Handle): Promise<Buffer | null> {
  const row = await db
    .selectFrom('signing_keys')
    .select('sealed_key')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.sealed_key ?? null;
}

/** Replaces a sealed key. Returns false if the key has changed since it was read. */
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
