import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { reading } from '../database/transaction.ts';
import { BadCursor, type List, type PageRequest } from '../search/lists.ts';
import { narrowed, type Scope } from '../search/scope.sql.ts';
import { type FoundRow, findRowById } from '../search/search.sql.ts';
import { type Column, csvRowsMax, writeCsv } from './csv.ts';
import { ConsoleError, notFound } from './errors.ts';
import type { Context } from './route.ts';

const limitDefault = 50;
/** A download reads its rows in pages of this size. */
const csvPageSize = 500;

type ListQuery = { after?: string; limit?: number; merchant?: string };

/** The scope of a list: the person's, or one merchant of it. */
export const scopeOf = ({ person }: Context, query: { merchant?: string }): Scope =>
  narrowed(person.scope, query.merchant);

/** One page of a list. */
export async function answerPage<Row>(
  query: ListQuery,
  read: (page: PageRequest) => Promise<List<Row>>,
): Promise<List<Row>> {
  const page = { after: query.after ?? null, limit: query.limit ?? limitDefault };
  return await read(page).catch(refuseBadCursor);
}

function refuseBadCursor(error: unknown): never {
  if (!(error instanceof BadCursor)) throw error;
  throw new ConsoleError(400, 'bad_cursor', 'This page is not one of the list. Begin again.');
}

/** The rows of a list as a file, page by page, so that no download holds all of them in memory. */
export async function answerCsv<Row>(
  { reply }: Context,
  name: string,
  columns: Column<Row>[],
  read: (page: PageRequest) => Promise<List<Row>>,
): Promise<FastifyReply> {
  // The first page before the headers, so that a refusal is still an answer.
  const first = await read({ after: null, limit: csvPageSize });
  async function* rows(): AsyncGenerator<Row | 'more'> {
    let page = first;
    for (let count = 0; ; ) {
      for (const row of page.data) {
        if (count === csvRowsMax) {
          yield 'more';
          return;
        }
        count += 1;
        yield row;
      }
      if (page.next === null) return;
      page = await read({ after: page.next, limit: csvPageSize });
    }
  }
  return reply
    .type('text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(Readable.from(writeCsv(columns, rows())));
}

/** A row of the person's scope. Any other is not found, whether it exists or not. */
export async function mustSee(
  { deps, person }: Context,
  table: 'checkouts' | 'refund_requests' | 'callbacks',
  id: string,
): Promise<FoundRow> {
  const row = await reading(deps, (db) => findRowById(db, person.scope, table, id));
  if (!row) throw notFound();
  return row;
}
