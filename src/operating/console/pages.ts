import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import Type, { type TSchema } from 'typebox';
import { type Column, openCsv } from '#operating/operations/csv.ts';
import type { whose } from '#operating/operations/list.schema.ts';
import { BadCursor, type List, type PageRequest } from '#operating/operations/lists.ts';
import { findMerchantWithin, type ListedMerchant } from '#operating/operations/registers.ts';
import type { Permission } from '#operating/people/permission.ts';
import { narrowed, type Scope } from '#operating/search/scope.sql.ts';
import { type FoundRow, findRowById } from '#operating/search/search.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { ConsoleError, notFound } from './errors.ts';
import { type ConsoleRoute, type Context, consoleRoute } from './route.ts';

const limitDefault = 50;

type ListQuery = { after?: string; limit?: number };

/** The scope of a list: the person's, or one merchant of it. */
export const scopeOf = ({ person }: Context, query: { merchant?: string }): Scope =>
  narrowed(person.scope, query.merchant);

type Read<Row> = (page: PageRequest) => Promise<List<Row>>;

/** A list as two routes under one permission: a page of it, and all of it as a file. */
export function listRoutes<Query extends TSchema, Row>(list: {
  /** `/api/` with this name, and the name of the file. */
  name: string;
  permission: Permission;
  query: Query;
  page: TSchema;
  columns: Column<Row>[];
  read(context: Context, query: Type.Static<Query>): Read<Row>;
}): ConsoleRoute[] {
  const { name, permission, columns } = list;
  const read = (context: Context, query: unknown) =>
    list.read(context, query as Type.Static<Query>);
  return [
    consoleRoute({
      method: 'GET',
      url: `/api/${name}`,
      permission,
      schema: { query: list.query, response: list.page },
      handle: (context, { query }) => answerPage(query as ListQuery, read(context, query)),
    }),
    consoleRoute({
      method: 'GET',
      url: `/api/${name}.csv`,
      permission,
      schema: { query: list.query, response: Type.String() },
      handle: (context, { query }) => answerCsv(context, name, columns, read(context, query)),
    }),
  ];
}

/** One page of a list. */
async function answerPage<Row>(query: ListQuery, read: Read<Row>): Promise<List<Row>> {
  const page = { after: query.after ?? null, limit: query.limit ?? limitDefault };
  return await read(page).catch(refuseBadCursor);
}

function refuseBadCursor(error: unknown): never {
  if (!(error instanceof BadCursor)) throw error;
  throw new ConsoleError(400, 'bad_cursor', 'This page is not one of the list. Begin again.');
}

/** All rows of a list as a file. */
async function answerCsv<Row>(
  { reply }: Context,
  name: string,
  columns: Column<Row>[],
  read: Read<Row>,
): Promise<FastifyReply> {
  const lines = await openCsv(columns, read);
  return reply
    .type('text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(Readable.from(lines));
}

/** A file to save. It is never shown by the browser, whatever is in it. */
export function answerFile({ reply }: Context, name: string, text: string): FastifyReply {
  const type = name.endsWith('.csv') ? 'text/csv' : 'text/html';
  return reply
    .type(`${type}; charset=utf-8`)
    .header('content-disposition', `attachment; filename="${name.replaceAll(/[^\w.-]/g, '_')}"`)
    .send(text);
}

type Whose = Type.Static<Type.TObject<typeof whose>>;

/** Whose a row is, and nothing else of it. */
export const presentWhose = (row: Whose): Whose => ({
  merchant_id: row.merchant_id,
  merchant_name: row.merchant_name,
  time_zone: row.time_zone,
  locale: row.locale,
  client_reference_id: row.client_reference_id,
  email: row.email,
  name: row.name,
});

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

export async function mustSeeMerchant(
  { deps, person }: Context,
  id: string,
): Promise<ListedMerchant> {
  const merchant = await findMerchantWithin(deps, person.scope, id);
  if (!merchant) throw notFound();
  return merchant;
}
