import type { Handle } from '#platform/database/database.ts';

/** The names of people by their ids. */
export async function listPersonNames(
  db: Handle,
  ids: (string | null)[],
): Promise<Map<string, string>> {
  const known = [...new Set(ids)].filter((id) => id !== null);
  if (known.length === 0) return new Map();
  const rows = await db
    .selectFrom('people')
    .select(['id', 'name'])
    .where('id', 'in', known)
    .execute();
  return new Map(rows.map(({ id, name }) => [id, name]));
}
