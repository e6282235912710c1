import { sql } from 'kysely';
import type { Handle } from './database.ts';
import { distribution } from './distribute-database.ts';

/** The size of each of our tables with its indexes. On Citus that is the sum over all nodes. */
export async function listTableBytes(db: Handle): Promise<{ table: string; bytes: number }[]> {
  const citus = await sql`select from pg_extension where extname = 'citus'`.execute(db);
  const bytes =
    citus.rows.length === 0
      ? sql`pg_total_relation_size(c.oid)`
      : sql`case when exists (select from pg_dist_partition where logicalrelid = c.oid)
          then citus_total_relation_size(c.oid) else pg_total_relation_size(c.oid) end`;
  const names = distribution.map(({ table }) => table);
  const { rows } = await sql<{ table: string; bytes: number }>`
    select c.relname as table, ${bytes} as bytes
    from pg_class c
    where c.oid in (select to_regclass(name) from unnest(${names}::text[]) as t (name))
    order by c.relname`.execute(db);
  return rows;
}
