import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** Someone who may use the console. `merchant_ids` null means all merchants. */
export type Person = {
  id: string;
  email: string;
  name: string;
  roles: string[];
  merchant_ids: string[] | null;
  oidc_subject: string | null;
  created_at: Timestamp;
  /** When they first had a way in. It stays when that way ends. */
  registered_at: Timestamp | null;
  /** When their access was given or last grew. */
  access_since: Timestamp;
  revoked_at: Timestamp | null;
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
  const query = db.selectFrom('people').selectAll().where('email', '=', email).forUpdate();
  return (await query.executeTakeFirst()) ?? null;
}

export async function findPersonByEmail(db: Handle, email: string): Promise<Person | null> {
  const query = db.selectFrom('people').selectAll().where('email', '=', email);
  return (await query.executeTakeFirst()) ?? null;
}

export async function findPersonBySubject(db: Handle, subject: string): Promise<Person | null> {
  const query = db.selectFrom('people').selectAll().where('oidc_subject', '=', subject);
  return (await query.executeTakeFirst()) ?? null;
}

/** By address, after a person's address. */
export async function listPeople(
  db: Handle,
  after: string | null,
  limit: number,
): Promise<Person[]> {
  let query = db.selectFrom('people').selectAll().orderBy('email').limit(limit);
  if (after !== null) query = query.where('email', '>', after);
  return await query.execute();
}

/** Whether the row is new. Another transaction may have inserted the same address. */
export async function insertPerson(db: Handle, person: Person): Promise<boolean> {
  const result = await db
    .insertInto('people')
    .values(person)
    .onConflict((conflict) => conflict.column('email').doNothing())
    .executeTakeFirst();
  return Number(result.numInsertedOrUpdatedRows) === 1;
}

export async function updatePerson(
  db: Handle,
  id: string,
  change: Partial<Omit<Person, 'id' | 'email' | 'created_at' | 'registered_at'>>,
): Promise<void> {
  await db.updateTable('people').set(change).where('id', '=', id).execute();
}

/** Notes that a person has a way in. The first time stays. */
export async function moveRegistered(db: Handle, id: string, now: Timestamp): Promise<void> {
  await db
    .updateTable('people')
    .set({ registered_at: now })
    .where('id', '=', id)
    .where('registered_at', 'is', null)
    .execute();
}

/** Those of the ids that are merchants. */
export async function listKnownMerchants(db: Handle, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db.selectFrom('merchants').select('id').where('id', 'in', ids).execute();
  return rows.map(({ id }) => id);
}
