import type { Handle } from '#platform/database/database.ts';

/** The names of people by their ids. Those without merchants are the staff of the service. */
export async function listPersonNames(
  db: Handle,
  ids: (string | null)[],
): Promise<Map<string, { name: string; merchant_ids: string[] | null }>> {
  const known = [...new Set(ids)].filter((id) => id !== null);
  if (known.length === 0) return new Map();
  const rows = await db
    .selectFrom('people')
    .select(['id', 'name', 'merchant_ids'])
    .where('id', 'in', known)
    .execute();
  return new Map(rows.map(({ id, ...person }) => [id, person]));
}
