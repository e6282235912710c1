import type pg from 'pg';

/** Changes rows that the database protects, as an attacker with superuser rights could. */
export async function tamper(
  pool: pg.Pool,
  text: string,
  values: unknown[] = [],
): Promise<pg.QueryResult> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    // Triggers do not fire in a replication session.
    await client.query('set local session_replication_role = replica');
    // Many rows may take longer than the service may take over a statement.
    await client.query('set local statement_timeout = 0');
    const result = await client.query(text, values);
    await client.query('commit');
    return result;
  } finally {
    client.release(true);
  }
}
