import { type Database, openDatabase } from '#platform/database/database.ts';
import { log } from './service.ts';

/**
 * Runs the work on connections of its own. Returns its statements in order, each as its verb and
 * its first table.
 */
export async function statementsOf(
  url: string,
  work: (database: Database) => Promise<unknown>,
): Promise<string[]> {
  const database = openDatabase(url, { log, maxConnections: 1 });
  const statements: string[] = [];
  database.pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    client.query = ((...args: unknown[]) => {
      const [first] = args as [string | { text: string }];
      statements.push(describe(typeof first === 'string' ? first : first.text));
      return query(...args);
    }) as typeof client.query;
  });
  try {
    await work(database);
  } finally {
    await database.close();
  }
  return statements;
}

function describe(text: string): string {
  const verb = /\w+/.exec(text)?.[0].toLowerCase();
  const table = /\b(?:from|into|update) "?(\w+)/i.exec(text)?.[1];
  const lock = /for (?:no key )?update\b/.test(text) ? ' locked' : '';
  return [verb, table].filter(Boolean).join(' ') + lock;
}
