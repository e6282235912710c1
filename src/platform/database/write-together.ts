import { type OperationNodeSource, type SelectQueryBuilder, sql } from 'kysely';
import { type Built, compileStatements, type Statement, sendCompiled } from './compile-once.ts';
import type { Handle } from './database.ts';
import type { Transaction } from './transaction.ts';

/** Writes by name. Null writes are skipped. */
export type Writes = Record<string, Statement<object> | null>;

type Returned<Writes> = {
  [Name in keyof Writes]: Writes[Name] extends Statement<infer Row> | null
    ? [Row, ...Row[]]
    : never;
};

/**
 * Sends several writes as one statement, which writes everything or nothing. Each write sees the
 * tables as they were before the statement, and no two may write the same row. Returns the rows
 * that each write returns, as JSON. If a write that should return rows wrote nothing, another actor
 * has won, and the statement fails. The outcome of a payment writes eight tables in one round trip.
 */
export async function writeTogether<Named extends Writes>(
  db: Handle,
  writes: Named,
): Promise<Returned<Named>> {
  const named = Object.entries(writes).filter((entry): entry is [string, Statement<object>] =>
    Boolean(entry[1]),
  );
  const names = named.map(([name]) => name);
  const query = compileStatements(
    db,
    named.map(([, one]) => one),
    names.join(),
    (queries) => combine(db, names, queries),
  );
  const [row] = await sendCompiled(db, query);
  return row as Returned<Named>;
}

/**
 * Writes like `writeTogether`, as the last statement of a transaction: COMMIT is sent with it. The
 * server decides whether everything was written, so that COMMIT rolls back if it was not.
 */
export async function writeAndCommit<Named extends Writes>(
  { db, commit }: Transaction,
  writes: Named,
): Promise<Returned<Named>> {
  const [written] = await Promise.all([writeTogether(db, writes), commit()]);
  return written;
}

// biome-ignore lint/suspicious/noExplicitAny: any query, whatever tables it writes.
type Query = SelectQueryBuilder<any, any, object>;

function combine(db: Handle, names: string[], queries: Built<unknown>[]): Built<object> {
  const writing = names.reduce(
    (all, name, at) => all.with(name, () => queries[at] as Query) as unknown as Handle,
    db,
  );
  const returning = names.filter((_, at) => isReturning(queries[at] as unknown as Query));
  // Casting a text that is not a number fails the statement. The text depends on the count, so that
  // it is not evaluated early. Citus refuses an array of rows.
  const lists = returning.map((name) =>
    sql`(select case when cardinality(rows) = 0
      then to_json((${sql.lit(`${name} was not written: `)} || cardinality(rows))::integer)
      else array_to_json(rows) end
      from (select array(select to_json(r) from ${sql.table(name)} r) as rows offset 0) w)`.as(
      name,
    ),
  );
  return writing.selectNoFrom(lists.length > 0 ? lists : [sql`1`.as('written')]);
}

const isReturning = (query: OperationNodeSource) =>
  (query.toOperationNode() as { returning?: unknown }).returning !== undefined;
