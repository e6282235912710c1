import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type Passkey = {
  id: string;
  person_id: string;
  /** The authenticator's id for the passkey, in base64url. */
  credential_id: string;
  public_key: Buffer;
  counter: number;
  transports: string[];
  name: string;
  created_at: Timestamp;
  used_at: Timestamp | null;
};

/** Returns whether the passkey is new. A credential belongs to one person. */
export async function insertPasskey(db: Handle, passkey: Passkey): Promise<boolean> {
  const result = await db
    .insertInto('passkeys')
    .values(passkey)
    .onConflict((conflict) => conflict.column('credential_id').doNothing())
    .executeTakeFirst();
  return Number(result.numInsertedOrUpdatedRows) === 1;
}

export async function findPasskey(db: Handle, credential_id: string): Promise<Passkey | null> {
  const query = db.selectFrom('passkeys').selectAll().where('credential_id', '=', credential_id);
  return (await query.executeTakeFirst()) ?? null;
}

export async function listPasskeys(db: Handle, person_id: string): Promise<Passkey[]> {
  const query = db.selectFrom('passkeys').selectAll().where('person_id', '=', person_id);
  return await query.orderBy('created_at').execute();
}

/**
 * The people among these who have a passkey. With `at`, those whose passkey existed at that time.
 */
export async function listWithPasskey(
  db: Handle,
  person_ids: string[],
  at: Timestamp | null = null,
): Promise<Set<string>> {
  if (person_ids.length === 0) return new Set();
  let query = db
    .selectFrom('passkeys')
    .select('person_id')
    .distinct()
    .where('person_id', 'in', person_ids);
  if (at !== null) query = query.where('created_at', '<=', at);
  const rows = await query.execute();
  return new Set(rows.map(({ person_id }) => person_id));
}

/** Returns false if the passkey was deleted after it answered. */
export async function movePasskeyUsed(
  db: Handle,
  id: string,
  counter: number,
  used_at: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('passkeys')
    .set({ counter, used_at })
    .where('id', '=', id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function deletePasskey(db: Handle, id: string): Promise<void> {
  await db.deleteFrom('passkeys').where('id', '=', id).execute();
}

/** Returns how many were deleted. */
export async function deletePasskeysOf(db: Handle, person_id: string): Promise<number> {
  const result = await db
    .deleteFrom('passkeys')
    .where('person_id', '=', person_id)
    .executeTakeFirst();
  return Number(result.numDeletedRows);
}
