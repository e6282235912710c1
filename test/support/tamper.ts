import type pg from 'pg';

const tamperMilliseconds = 600_000;

/** Changes rows that the database protects, as an attacker with superuser rights could. */
export async function tamper(
  pool: pg.Pool,
  text: string,
  values: unknown[] = [],
): Promise<pg.QueryResult> {
  const client = await pool.connect();
  let isDone = false;
  try {
    await client.query('begin');
    // Triggers do not fire in a replication session.
    await client.query('set local session_replication_role = replica');
    // Many rows may take longer than the service may take over a statement, here and in the driver.
    await client.query('set local statement_timeout = 0');
    const patient = { text, values, query_timeout: tamperMilliseconds };
    const result = await client.query(patient as pg.QueryConfig);
    await client.query('commit');
    isDone = true;
    return result;
  } finally {
    client.release(!isDone);
  }
}
