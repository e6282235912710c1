import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import Type, { type TObject } from 'typebox';
import { openCsv } from '#operating/operations/csv.ts';
import { pageOf } from '#operating/operations/list.schema.ts';
import {
  BadCursor,
  BadFilter,
  type ListDefinition,
  type PageRequest,
} from '#operating/operations/list.ts';
import { ConsoleError, invalid } from './errors.ts';
import { type ConsoleRoute, type Context, consoleRoute } from './route.ts';

const limitDefault = 50;

/** A list as two routes under one permission: a page of it, and all of it as a file. */
export function listRoutes<Query extends TObject, Row>(
  list: ListDefinition<Query, Row>,
): ConsoleRoute[] {
  const { name, permission, columns } = list;
  const read = (context: Context, query: Type.Static<Query>) => (page: PageRequest) =>
    list.read(context, query, page).catch(refuse);
  return [
    consoleRoute({
      method: 'GET',
      url: `/api/${name}`,
      permission,
      schema: { query: list.query, response: pageOf(list.row) },
      handle(context, { query }) {
        const { after = null, limit = limitDefault } = query as Partial<PageRequest>;
        return read(context, query as Type.Static<Query>)({ after, limit });
      },
    }),
    consoleRoute({
      method: 'GET',
      url: `/api/${name}.csv`,
      permission,
      schema: { query: list.query, response: Type.String() },
      async handle(context, { query }) {
        const lines = await openCsv(columns, read(context, query as Type.Static<Query>));
        return answerFile(context, `${name}.csv`, Readable.from(lines));
      },
    }),
  ];
}

function refuse(error: unknown): never {
  if (error instanceof BadFilter) throw invalid([{ path: error.filter, problem: error.message }]);
  if (!(error instanceof BadCursor)) throw error;
  throw new ConsoleError(400, 'bad_cursor', 'This page is not one of the list. Begin again.');
}

/** A file to save. It is never shown by the browser, whatever is in it. */
export function answerFile(
  { reply }: Context,
  name: string,
  text: string | Readable,
): FastifyReply {
  const type = name.endsWith('.csv') ? 'text/csv' : 'text/html';
  return reply
    .type(`${type}; charset=utf-8`)
    .header('content-disposition', `attachment; filename="${name.replaceAll(/[^\w.-]/g, '_')}"`)
    .send(text);
}
