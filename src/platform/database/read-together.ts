import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';

// biome-ignore lint/suspicious/noExplicitAny: any query, whatever tables it reads.
type Query<Row> = SelectQueryBuilder<any, any, Row> | RawBuilder<Row>;

/**
 * Reads several lists of rows in one statement: in one round trip, and as of one moment. Their rows
 * travel as JSON, so `asRows` has to convert them to the driver's form.
 *
 * The queries of one statement must be about one merchant: Citus sends it to the merchant's node.
 */
export function together<Lists extends Record<string, object>>(
  queries: {
    [Name in keyof Lists]: Query<Lists[Name]>;
  },
): RawBuilder<{ [Name in keyof Lists]: Lists[Name][] }> {
  const lists = Object.entries(queries).map(
    ([name, query]) =>
      // An aggregate such as json_agg costs more to prepare than these rows to read (decision
      // 0058).
      sql`array_to_json(array(select to_json(r) from (${query}) r)) as ${sql.ref(name)}`,
  );
  return sql`select ${sql.join(lists)}`;
}

/** The columns of type timestamptz whose names do not end in `_at`. */
const times = new Set([
  'leased_until',
  'capture_before',
  'due_by',
  'submitting_until',
  'asked_until',
]);

export const isTime = (name: string) => name.endsWith('_at') || times.has(name);

/** Converts rows that travelled as JSON to the driver's form, in place. */
export function asRows<Row extends object>(rows: Row[]): Row[] {
  for (const row of rows as Record<string, unknown>[]) {
    for (const name in row) {
      const value = row[name];
      if (typeof value !== 'string') continue;
      if (isTime(name)) row[name] = asTimestamp(value);
      else if (name.startsWith('sealed_')) row[name] = Buffer.from(value.slice(2), 'hex');
    }
  }
  return rows;
}

/** Converts `2026-11-15T08:00:00.5+00:00` to the form of the API. */
function asTimestamp(text: string): string {
  const fraction = text.slice(20, -6).padEnd(3, '0');
  return `${text.slice(0, 19)}.${fraction}Z`;
}
