import type { Static, TObject, TSchema } from 'typebox';
import type { Permission } from '#operating/people/permission.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Column } from './csv.ts';
import { BadKey, type Key, type Page, type PageOf } from './range.sql.ts';
import type { Viewer } from './viewer.ts';

/** One page of a list. `after` is the previous page's `next`; null begins at the start. */
export type PageRequest = { after: string | null; limit: number };
export type List<Row> = { data: Row[]; next: string | null };

/**
 * A list for operators. The console makes two routes from it, a page and a file, and the command
 * line makes a command.
 */
export type ListDefinition<Query extends TObject, Row> = {
  /** The name below `/api/`, which is also the name of the file. */
  name: string;
  permission: Permission;
  /** The filters, including `after` and `limit`. */
  query: Query;
  /** The members of a row in the console's answer. A row may have more. */
  row: TSchema;
  read(viewer: Viewer, query: Static<Query>, page: PageRequest): Promise<List<Row>>;
  /** Whether its rows have names and e-mail addresses of people other than the shopper. */
  namesPeople?: boolean;
  columns: Column<Row>[];
};

export function defineList<
  const Query extends TObject,
  Schema extends TSchema,
  Row extends Static<Schema>,
>(
  list: Omit<ListDefinition<Query, Row>, 'row' | 'columns'> & {
    row: Schema;
    columns: Column<Static<Schema>>[];
  },
): ListDefinition<Query, Row> {
  return list;
}

/** The cursor does not come from a list of this kind. */
export class BadCursor extends Error {}

/** Reads one page: its rows as a range of an index, and then what is shown about them. */
export async function readList<Row, Listed>(
  deps: { database: Database; clock: Clock },
  page: PageRequest,
  read: (db: Handle, page: PageOf) => Promise<Page<Row>>,
  present: (db: Handle, rows: Row[]) => Promise<Listed[]>,
): Promise<List<Listed>> {
  const after = page.after === null ? null : readCursor(page.after);
  return await reading(deps, async (db) => {
    const { rows, last } = await read(db, { after, limit: page.limit }).catch((error) => {
      // A cursor of another list may hold a value that is not of the column's type (SQLSTATE class
      // 22).
      if (error instanceof BadKey || (after && error.code?.startsWith('22'))) throw new BadCursor();
      throw error;
    });
    return { data: await present(db, rows), next: last && writeCursor(last) };
  });
}

const writeCursor = (key: Key) => Buffer.from(JSON.stringify(key)).toString('base64url');

function readCursor(text: string): Key {
  try {
    const key = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (Array.isArray(key) && key.length > 0 && key.every((value) => typeof value === 'string')) {
      return key;
    }
  } catch {
    // The text is not base64 or not JSON. The check below refuses it.
  }
  throw new BadCursor();
}
