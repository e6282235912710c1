import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** A person who may use the console. If `merchant_ids` is null, they may see all merchants. */
export type Person = {
  id: string;
  email: string;
  name: string;
  roles: string[];
  merchant_ids: string[] | null;
  oidc_subject: string | null;
  created_at: Timestamp;
  /** When they could first sign in. It stays when that access ends. */
  registered_at: Timestamp | null;
  /** When their access was given or last grew. */
  access_since: Timestamp;
  /**
   * The time since which they have had access that a merchant's administrator gave and no
   * administrator of all merchants has confirmed. Until then they do not count as one of two people.
   * Null if they may count.
   */
  unconfirmed_since: Timestamp | null;
  /** The person who gave that access. */
  unconfirmed_by: string | null;
  revoked_at: Timestamp | null;
  /**
   * The person who already has this address. This row only stands for an invitation; it cannot sign
   * in.
   */
  duplicate_of: string | null;
};

export async function findPerson(db: Handle, id: string): Promise<Person | null> {
  const query = db.selectFrom('people').selectAll().where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** The lock is held until the transaction ends. */
export async function lockPerson(db: Handle, id: string): Promise<Person | null> {
  const query = db.selectFrom('people').selectAll().where('id', '=', id).forUpdate();
  return (await query.executeTakeFirst()) ?? null;
}

export async function lockPersonByEmail(db: Handle, email: string): Promise<Person | null> {
  const query = withEmail(db, email).forUpdate();
  return (await query.executeTakeFirst()) ?? null;
}

const withEmail = (db: Handle, email: string) =>
  db.selectFrom('people').selectAll().where('email', '=', email).where('duplicate_of', 'is', null);

/** The invitations of merchants that cannot see the person, ordered by the lock of the person. */
export async function listDuplicates(db: Handle, id: string): Promise<Person[]> {
  return await db.selectFrom('people').selectAll().where('duplicate_of', '=', id).execute();
}

/**
 * The administrators of all merchants who are not revoked. Locks them in order of id, so that two
 * people who remove access at once wait for each other.
 */
export async function lockAdministrators(db: Handle): Promise<Person[]> {
  return await db
    .selectFrom('people')
    .selectAll()
    .where('merchant_ids', 'is', null)
    .where('revoked_at', 'is', null)
    .where(sql<boolean>`roles @> '{admin}'`)
    .orderBy('id')
    .forUpdate()
    .execute();
}

export async function findPersonByEmail(db: Handle, email: string): Promise<Person | null> {
  const query = withEmail(db, email);
  return (await query.executeTakeFirst()) ?? null;
}

export async function findPersonBySubject(db: Handle, subject: string): Promise<Person | null> {
  const query = db.selectFrom('people').selectAll().where('oidc_subject', '=', subject);
  return (await query.executeTakeFirst()) ?? null;
}

/**
 * People in the order of their addresses, from the one after this key. With merchants, only people
 * who belong to one of them.
 */
export async function listPeople(
  db: Handle,
  after: readonly [email: string, id: string] | null,
  limit: number,
  merchant_ids: string[] | null = null,
): Promise<Person[]> {
  let query = db.selectFrom('people').selectAll().orderBy('email').orderBy('id').limit(limit);
  if (merchant_ids !== null) {
    // Once the person with an address belongs to the merchant, the separate invitation is obsolete.
    query = query.where(sql<boolean>`merchant_ids && ${merchant_ids}::uuid[]
      and not exists (select from people as known
        where known.id = people.duplicate_of and known.merchant_ids && ${merchant_ids}::uuid[])`);
  }
  if (after !== null) {
    query = query.where(sql<boolean>`(email, id) > (${after[0]}, ${after[1]}::uuid)`);
  }
  return await query.execute();
}

/** A merchant's people in these roles who can or could sign in. */
export async function listToMail(
  db: Handle,
  { merchant_id, roles }: { merchant_id: string; roles: string[] },
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('people')
    .select('id')
    .where(sql<boolean>`merchant_ids @> array[${merchant_id}::uuid]`)
    .where(sql<boolean>`roles && ${roles}::text[]`)
    .where('registered_at', 'is not', null)
    .where('revoked_at', 'is', null)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Returns whether the row is new. Another transaction may have inserted the same address. */
export async function insertPerson(db: Handle, person: Person): Promise<boolean> {
  const result = await db
    .insertInto('people')
    .values(person)
    .onConflict((conflict) =>
      conflict.column('email').where('duplicate_of', 'is', null).doNothing(),
    )
    .executeTakeFirst();
  return Number(result.numInsertedOrUpdatedRows) === 1;
}

export async function updatePerson(
  db: Handle,
  id: string,
  change: Partial<Omit<Person, 'id' | 'email' | 'created_at' | 'registered_at' | 'duplicate_of'>>,
): Promise<void> {
  await db.updateTable('people').set(change).where('id', '=', id).execute();
}

/** Records that a person can sign in. The first time stays. */
export async function moveRegistered(db: Handle, id: string, now: Timestamp): Promise<void> {
  await db
    .updateTable('people')
    .set({ registered_at: now })
    .where('id', '=', id)
    .where('registered_at', 'is', null)
    .execute();
}

/** Those of these ids that belong to merchants. */
export async function listKnownMerchants(db: Handle, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db.selectFrom('merchants').select('id').where('id', 'in', ids).execute();
  return rows.map(({ id }) => id);
}
