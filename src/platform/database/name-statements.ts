import { createHash } from 'node:crypto';
import pg from 'pg';

// Statements get a name, so that the server parses and plans each once for each connection. This is
// only for speed: the service works the same without it (decision 0058).
//
// PgBouncer supports names in every mode since version 1.21 (`verifyPooler`).

/**
 * A text gets its name when it has been sent this many times. A text that is sent only once needs
 * no name.
 */
const usesMin = 3;

/**
 * At most this many texts get names. Each costs memory in every connection's server process, and
 * PgBouncer keeps 200 by default.
 */
const namedMax = 200;

/**
 * At most this many texts are counted. Lists and filters of varying length keep making new texts.
 */
const countedMax = 2_000;

/**
 * A longer text is not worth its memory. It writes many rows, so planning is a small part of its
 * cost.
 */
const charactersMax = 8_000;

type Statement = { text: string; name?: string };

export type StatementNames = {
  /** The statement to send for a text. */
  of(text: string): Statement;
  /** Uses new texts and names from now on. Call it when the columns of a table have changed. */
  renew(): void;
};

/** The name is a hash of the text, so all connections to all databases may share it. */
export const nameOf = (text: string): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, 22);

export function createStatementNames(): StatementNames {
  const named = new Map<string, Statement>();
  const uses = new Map<string, number>();
  let renewals = 0;
  return {
    of(text) {
      const known = named.get(text);
      if (known) return known;
      if (named.size >= namedMax || text.length > charactersMax) return { text };
      const count = (uses.get(text) ?? 0) + 1;
      if (count < usesMin) {
        if (uses.size >= countedMax) uses.clear();
        uses.set(text, count);
        return { text };
      }
      uses.delete(text);
      // A pooler finds prepared statements by their text, so a new name alone would change nothing.
      const renewed = renewals === 0 ? text : `${text} /* ${renewals} */`;
      const statement = { text: renewed, name: nameOf(renewed) };
      named.set(text, statement);
      return statement;
    },
    renew() {
      renewals += 1;
      named.clear();
    },
  };
}

export const names = createStatementNames();

/**
 * Whether a named statement failed because a migration changed the columns that it returns. The
 * server did nothing, and the same statement succeeds under a new name.
 */
export function isPlanOutdated(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === '0A000' &&
    error.routine === 'RevalidateCachedQuery'
  );
}

export type SendQuery = (text: string, values: unknown[]) => Promise<pg.QueryResult>;

/**
 * Sends statements by their names. If a migration changed the columns of one, it is sent again. In
 * a transaction it is not, because the transaction has failed; that error is transient, so the
 * whole transaction runs again.
 */
export function queryByName(client: pg.ClientBase, isInTransaction = false): SendQuery {
  const send = (text: string, values: unknown[]) => client.query({ ...names.of(text), values });
  return async (text, values) => {
    const isAlone = !isInTransaction && client.getTransactionStatus() !== 'T';
    try {
      return await send(text, values);
    } catch (error) {
      if (!isPlanOutdated(error)) throw error;
      names.renew();
      if (!isAlone) throw error;
      return await send(text, values);
    }
  };
}
