import type pg from 'pg';
import { type Database, openDatabase } from '#platform/database/database.ts';
import { log } from './service.ts';

/**
 * Runs the work on a connection of its own, and returns the statements that it sent (see `during`).
 */
export async function statementsOf(
  url: string,
  work: (database: Database) => Promise<unknown>,
): Promise<string[]> {
  const database = openDatabase(url, { log, maxConnections: 1 });
  const recorder = recordStatements(database.pool);
  try {
    // The first statement of a connection sets up the connection.
    await database.pool.query('select');
    return await recorder.during(() => work(database));
  } finally {
    await database.close();
  }
}

/** The driver's connection. Its functions write the messages of PostgreSQL's protocol. */
type Wire = {
  query(text: string): void;
  parse(statement: { name?: string; text: string }): void;
  bind(statement: { statement?: string }): void;
  parsedStatements: Record<string, string>;
  submittedNamedStatements: Record<string, string>;
};

/** Records the statements that all connections of a pool send. */
export function recordStatements(pool: pg.Pool): {
  /**
   * Returns the statements that the work sent, in order, each as its verb and its first table. A
   * `with` statement is `write` with the tables that it inserts into or updates. `locked` marks a
   * statement that locks rows.
   */
  during(work: () => Promise<unknown>): Promise<string[]>;
} {
  let statements: string[] = [];
  const known = new WeakSet<pg.ClientBase>();
  pool.on('acquire', (client) => {
    if (known.has(client)) return;
    known.add(client);
    const wire = (client as unknown as { connection: Wire }).connection;
    const { query, parse, bind } = wire;
    let unnamed = '';
    wire.query = (text) => {
      statements.push(describe(text));
      query.call(wire, text);
    };
    wire.parse = (statement) => {
      if (!statement.name) unnamed = statement.text;
      parse.call(wire, statement);
    };
    wire.bind = (bound) => {
      const { statement: name } = bound;
      const named = name && (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]);
      statements.push(describe(named || unnamed));
      bind.call(wire, bound);
    };
  });
  return {
    async during(work) {
      statements = [];
      await work();
      return statements;
    },
  };
}

function describe(text: string): string {
  const written = [...text.matchAll(/(?:\binsert into|\bupdate) "?(\w+)/g)].map(([, name]) => name);
  if (/^\s*with\b/.test(text)) return ['write', ...written].join(' ');
  const verb = /\w+/.exec(text)?.[0].toLowerCase();
  const table = /\b(?:from|into|update) "?(\w+)/i.exec(text)?.[1];
  const lock = /for (?:no key )?update\b/.test(text) ? ' locked' : '';
  return [verb, table].filter(Boolean).join(' ') + lock;
}
