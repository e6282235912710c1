import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';

export async function listAccessIds(db: Handle, person_id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('people')
    .select('id')
    .where((where) => where.or([where('id', '=', person_id), where('identity_id', '=', person_id)]))
    .execute();
  return rows.map(({ id }) => id);
}

type Actor = {
  id: string;
  email: string;
  name: string;
  roles: string[];
  merchant_ids: string[] | null;
};

/**
 * People by their ids, as a reader of these merchants (or of all, if null) knows them. The staff of
 * the service are shown with their access to all merchants, so a merchant that guesses their e-mail
 * address and invites them does not see a name. Other people are shown with the access to the
 * reader's merchants that they accepted, or else their first.
 */
export async function listActors(
  db: Handle,
  merchant_ids: string[] | null,
  ids: (string | null)[],
): Promise<Map<string, Actor>> {
  const known = [...new Set(ids)].filter((id) => id !== null);
  if (known.length === 0) return new Map();
  const rows = await db
    .selectFrom('people')
    .select(['id', 'identity_id', 'email', 'name', 'roles', 'merchant_ids'])
    .where((where) => where.or([where('id', 'in', known), where('identity_id', 'in', known)]))
    .orderBy(sql`case
      when merchant_ids is null and revoked_at is null then 1
      when registered_at is null then 4
      when merchant_ids && ${merchant_ids}::uuid[] then case when revoked_at is null then 2 else 3 end
      else 4 end`)
    .orderBy(sql`identity_id is not null`)
    .orderBy('id')
    .execute();
  const actors = new Map<string, Actor>();
  for (const { identity_id, ...row } of rows) {
    const id = identity_id ?? row.id;
    if (!actors.has(id)) actors.set(id, row);
  }
  return actors;
}
