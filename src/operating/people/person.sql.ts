import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * A person who may use the console, with one access. If `merchant_ids` is null, they may see all
 * merchants. Merchants that do not know of each other give the same person separate accesses, each
 * in its own row (decision 0072).
 */
export type Person = {
  id: string;
  email: string;
  name: string;
  roles: string[];
  merchant_ids: string[] | null;
  oidc_subject: string | null;
  created_at: Timestamp;
  /** When they first accepted this access. It stays when the access ends. */
  registered_at: Timestamp | null;
  /** When their access was given or last grew. */
  access_since: Timestamp;
  /**
   * Since when they have had unconfirmed access: a merchant's administrator gave it, or the
   * administrator who released it saw its link, and no other administrator of all merchants has
   * confirmed it. An unconfirmed person cannot be the second approver. Null if confirmed.
   */
  unconfirmed_since: Timestamp | null;
  /** The person who gave that access, or saw its link. */
  unconfirmed_by: string | null;
  revoked_at: Timestamp | null;
  /** The person's first row, which has their passkeys. Null if this is the first row. */
  identity_id: string | null;
};

/** The id of the row with the person's passkeys, which is the same in each of their accesses. */
export const identityOf = ({ id, identity_id }: Pick<Person, 'id' | 'identity_id'>): string =>
  identity_id ?? id;

/**
 * The order in which one of several accesses is chosen: live ones first, then the one revoked last.
 */
export const liveFirst = (one: Person, other: Person): number =>
  (other.revoked_at ?? '9').localeCompare(one.revoked_at ?? '9');

export async function findPerson(db: Handle, id: string): Promise<Person | null> {
  const query = db.selectFrom('people').selectAll().where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/**
 * Whether an access was given to a person on the service's staff, who has all merchants already.
 */
export async function isOfStaff(db: Handle, { identity_id }: Person): Promise<boolean> {
  if (identity_id === null) return false;
  const first = await findPerson(db, identity_id);
  return first?.merchant_ids === null && first.revoked_at === null;
}

/**
 * The lock is held until the transaction ends. The person's first row is locked first, so that
 * changes to two of their accesses wait for each other.
 */
export async function lockPerson(db: Handle, id: string): Promise<Person | null> {
  const rows = await db
    .selectFrom('people')
    .selectAll()
    .where(sql<boolean>`id in (${id}::uuid, (select identity_id from people where id = ${id}))`)
    .orderBy(sql`identity_id is not null`)
    .forUpdate()
    .execute();
  return rows.find((row) => row.id === id) ?? null;
}

export async function lockPersonByEmail(db: Handle, email: string): Promise<Person | null> {
  const query = withEmail(db, email).forUpdate();
  return (await query.executeTakeFirst()) ?? null;
}

const withEmail = (db: Handle, email: string) =>
  db.selectFrom('people').selectAll().where('email', '=', email).where('identity_id', 'is', null);

const ofIdentity = (identity: string) =>
  sql<boolean>`(id = ${identity}::uuid or identity_id = ${identity}::uuid)`;

export async function listAccesses(db: Handle, identity: string): Promise<Person[]> {
  return await db
    .selectFrom('people')
    .selectAll()
    .where(ofIdentity(identity))
    .orderBy(sql`identity_id is not null`)
    .orderBy('id')
    .execute();
}

/**
 * The accesses that a person has accepted and not lost. The one that they used last comes first.
 */
export async function listLiveAccesses(db: Handle, identity: string): Promise<Person[]> {
  return await db
    .selectFrom('people')
    .selectAll()
    .where(ofIdentity(identity))
    .where('registered_at', 'is not', null)
    .where('revoked_at', 'is', null)
    .orderBy(
      sql`(select max(s.created_at) from console_sessions s where s.access_id = people.id)`,
      (order) => order.desc().nullsLast(),
    )
    .orderBy('id')
    .execute();
}

/**
 * Takes merchants from the other accesses of a person, because one access has them now. If the
 * merchants are null, takes all. Returns the accesses that would have none left: these are revoked
 * and keep their merchants.
 */
export async function takeMerchants(
  db: Handle,
  person: Pick<Person, 'id' | 'identity_id' | 'merchant_ids'>,
  now: Timestamp,
): Promise<Person[]> {
  const { id, merchant_ids } = person;
  const others = db
    .updateTable('people')
    .where(ofIdentity(identityOf(person)))
    .where('id', '<>', id)
    .where('revoked_at', 'is', null);
  const ended = await others
    .set({ revoked_at: now })
    .where(
      sql<boolean>`(${merchant_ids}::uuid[] is null or merchant_ids <@ ${merchant_ids}::uuid[])`,
    )
    .returningAll()
    .execute();
  await others
    .set({
      merchant_ids: sql<string[]>`array(
        select one from unnest(merchant_ids) as one where one <> all (${merchant_ids}::uuid[]))`,
    })
    .where(sql<boolean>`merchant_ids && ${merchant_ids}::uuid[]`)
    .execute();
  return ended;
}

/** The people among these who can sign in: they have a passkey, or an account at the issuer. */
export async function listWithSignInMethod(db: Handle, identities: string[]): Promise<Set<string>> {
  if (identities.length === 0) return new Set();
  const rows = await db
    .selectFrom('people')
    .select('id')
    .where('id', 'in', identities)
    .where(sql<boolean>`(oidc_subject is not null
      or exists (select from passkeys k where k.person_id = people.id))`)
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/**
 * Locks the administrators of all merchants who are not revoked, in order of id, so that two people
 * who remove access at once wait for each other.
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
 * People in the order of their e-mail addresses, after this key. If merchants are given, lists only
 * people who belong to one of them.
 */
export async function listPeople(
  db: Handle,
  after: readonly [email: string, id: string] | null,
  limit: number,
  merchant_ids: string[] | null = null,
): Promise<Person[]> {
  let query = db.selectFrom('people').selectAll().orderBy('email').orderBy('id').limit(limit);
  if (merchant_ids !== null) {
    // A revoked access is not listed beside the same person's later access to the same merchant.
    query = query.where(sql<boolean>`merchant_ids && ${merchant_ids}::uuid[]
      and (revoked_at is null or not exists (select from people as later
        where coalesce(people.identity_id, people.id) in (later.id, later.identity_id)
          and later.merchant_ids && people.merchant_ids and later.merchant_ids && ${merchant_ids}::uuid[]
          and (later.revoked_at is null
            or (later.revoked_at, later.id) > (people.revoked_at, people.id))))`);
  }
  if (after !== null) {
    query = query.where(sql<boolean>`(email, id) > (${after[0]}, ${after[1]}::uuid)`);
  }
  return await query.execute();
}

/** A merchant's people in these roles who have registered and are not revoked. */
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

/**
 * Returns whether the row is new. Another transaction may have inserted the same e-mail address.
 */
export async function insertPerson(db: Handle, person: Person): Promise<boolean> {
  const result = await db
    .insertInto('people')
    .values(person)
    .onConflict((conflict) => conflict.column('email').where('identity_id', 'is', null).doNothing())
    .executeTakeFirst();
  return Number(result.numInsertedOrUpdatedRows) === 1;
}

export async function updatePerson(
  db: Handle,
  id: string,
  change: Partial<Omit<Person, 'id' | 'email' | 'created_at' | 'registered_at' | 'identity_id'>>,
): Promise<void> {
  await db.updateTable('people').set(change).where('id', '=', id).execute();
}

export async function updateAccesses(
  db: Handle,
  identity: string,
  change: Pick<Person, 'unconfirmed_since' | 'unconfirmed_by'>,
): Promise<void> {
  await db.updateTable('people').set(change).where(ofIdentity(identity)).execute();
}

/** Records that a person accepted an access. If they accept it again, the first time stays. */
export async function moveRegistered(db: Handle, id: string, now: Timestamp): Promise<void> {
  await db
    .updateTable('people')
    .set({ registered_at: now })
    .where('id', '=', id)
    .where('registered_at', 'is', null)
    .execute();
}

/** The ids among these that belong to merchants. */
export async function listKnownMerchants(db: Handle, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await db.selectFrom('merchants').select('id').where('id', 'in', ids).execute();
  return rows.map(({ id }) => id);
}
