import type { CompiledQuery } from 'kysely';
import type { Handle } from './database.ts';
import type { SendQuery } from './name-statements.ts';

// Statements that run all the time are built only once. Later uses fill in their values. Before
// this, the query builder took 12 % of the service's time while shoppers paid.

/** A query that is built and not sent yet. */
export type Built<Row> = { compile(db: Handle): CompiledQuery<Row> };

/** A statement with its values, which is not sent yet. */
export type Statement<Row> = {
  readonly id: number;
  readonly build: (db: Handle, values: never) => Built<Row>;
  readonly values: object;
};

let declared = 0;

/**
 * Declares a statement for one row of values, or for a list of rows that all have the same columns.
 * `build` must not look at the values, and must pass each one as a parameter of the statement.
 */
export function statement<Values extends object, Row>(
  build: (db: Handle, values: Values) => Built<Row>,
): (values: Values) => Statement<Row> {
  declared += 1;
  const id = declared;
  return (values) => ({ id, build, values });
}

/** A placeholder for a value while the query is built. */
class Placeholder {
  readonly at: number;
  readonly row: number | null;
  readonly name: string;

  constructor(at: number, row: number | null, name: string) {
    this.at = at;
    this.row = row;
    this.name = name;
  }

  /** The value of this placeholder in statements of the same shape. */
  in(statements: Statement<unknown>[]): unknown {
    const values = statements[this.at]?.values as Record<string, unknown>;
    const row = this.row === null ? values : (values[this.row] as Record<string, unknown>);
    return row[this.name];
  }
}

function placeholders(values: object, at: number): never {
  const of = (one: object, row: number | null) =>
    Object.fromEntries(Object.keys(one).map((name) => [name, new Placeholder(at, row, name)]));
  return (Array.isArray(values) ? values.map(of) : of(values, null)) as never;
}

/** Statements of the same shape have the same text. */
function shapeOf({ id, values }: Statement<unknown>): string {
  if (!Array.isArray(values)) return `${id} ${Object.keys(values)}`;
  return `${id} ${values.length} ${Object.keys(values[0])}`;
}

/** At most this many SQL texts are cached. */
const textsMax = 1_000;

/** The SQL text for more rows than this is not cached: it is long and rarely used again. */
const keptRowsMax = 20;

const isKept = ({ values }: Statement<unknown>) =>
  !Array.isArray(values) || values.length <= keptRowsMax;

const texts = new Map<string, CompiledQuery>();

/**
 * The query that `combine` makes from statements. It is built when statements of these shapes are
 * first used, so `of` must name everything else that the query depends on.
 */
export function compileStatements<Row>(
  db: Handle,
  statements: Statement<unknown>[],
  of: string,
  combine: (queries: Built<unknown>[]) => Built<Row>,
): CompiledQuery<Row> {
  const shape = `${of} ${statements.map(shapeOf).join(';')}`;
  let compiled = texts.get(shape) as CompiledQuery<Row> | undefined;
  if (!compiled) {
    const queries = statements.map(({ build, values }, at) => build(db, placeholders(values, at)));
    compiled = combine(queries).compile(db);
    if (texts.size >= textsMax) texts.clear();
    if (statements.every(isKept)) texts.set(shape, compiled);
  }
  const parameters = compiled.parameters.map((parameter) =>
    parameter instanceof Placeholder ? parameter.in(statements) : parameter,
  );
  return { ...compiled, parameters };
}

/** The function with which each handle sends the text of a statement, without the query builder. */
const senders = new WeakMap<Handle, SendQuery>();

/** Makes compiled statements go to the connections of a handle directly. */
export function sendDirectly(handle: Handle, send: SendQuery): void {
  senders.set(handle, send);
}

/**
 * Sends a compiled statement. In a transaction it is sent before the call returns, so statements
 * that do not need each other's answers, and COMMIT, can be sent in their order at once.
 */
export async function sendCompiled<Row>(
  db: Handle,
  { sql, parameters, ...rest }: CompiledQuery<Row>,
): Promise<Row[]> {
  const send = senders.get(db);
  if (send) return (await send(sql, parameters as unknown[])).rows;
  return (await db.executeQuery<Row>({ sql, parameters, ...rest })).rows;
}

export const send = <Row>(db: Handle, one: Statement<Row>): Promise<Row[]> =>
  sendCompiled(
    db,
    compileStatements(db, [one], 'one', ([query]) => query as Built<Row>),
  );

/** A function that sends a statement whose text never changes. */
export function compileOnce<Values extends object, Row>(
  build: (db: Handle, values: Values) => Built<Row>,
): (db: Handle, values: Values) => Promise<Row[]> {
  const of = statement(build);
  return (db, values) => send(db, of(values));
}
