import type pg from 'pg';

/** Changes rows that the database guards, as an attacker with a superuser's rights could. */
export async function tamper(
  pool: pg.Pool,
  text: string,
  values: unknown[] = [],
): Promise<pg.QueryResult> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    // Triggers do not fire in a session that replicates.
    await client.query('set local session_replication_role = replica');
    const result = await client.query(text, values);
    await client.query('commit');
    return result;
  } finally {
    client.release(true);
  }
}
