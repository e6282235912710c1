import { randomBytes } from 'node:crypto';
import { findNodes, onNode, urlOf } from './database-server.ts';

// A backup of a test's database. PostgreSQL's own `create database … template …` stands in for
// pg_dump and pg_restore, which the embedded distribution lacks: both give a database with the rows
// of one moment.

/** Copies a database as it is now. Its connections are closed; a pool opens new ones. */
export async function backUp(databaseUrl: string): Promise<{ url: string; drop(): Promise<void> }> {
  const source = new URL(databaseUrl).pathname.slice(1);
  const name = `test_${randomBytes(8).toString('hex')}`;
  const { urls } = await findNodes();
  const onEveryNode = async (statement: string) => {
    for (const node of urls) await onNode(node, (client) => client.query(statement));
  };
  // PostgreSQL does not copy a database that has connections.
  await onEveryNode(`alter database ${source} with allow_connections false`);
  await onEveryNode(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${source}'`,
  );
  await onEveryNode(`create database ${name} template ${source}`);
  await onEveryNode(`alter database ${source} with allow_connections true`);
  return {
    url: urlOf(name),
    drop: () => onEveryNode(`drop database if exists ${name} with (force)`),
  };
}
