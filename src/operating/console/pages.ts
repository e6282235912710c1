import { finished, Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import Type, { type TObject } from 'typebox';
import { openCsv } from '#operating/operations/csv.ts';
import { pageOf } from '#operating/operations/list.schema.ts';
import {
  BadCursor,
  type List,
  type ListDefinition,
  type PageRequest,
} from '#operating/operations/list.ts';
import { ConsoleError } from './errors.ts';
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
      handle: (context, { query }) =>
        readPage(query as Partial<PageRequest>, read(context, query as Type.Static<Query>)),
    }),
    consoleRoute({
      method: 'GET',
      url: `/api/${name}.csv`,
      permission,
      schema: { query: list.query, response: Type.String() },
      handle: (context, { query }) =>
        answerDownload(context, `${name}.csv`, () =>
          openCsv(columns, read(context, query as Type.Static<Query>)),
        ),
    }),
  ];
}

/** One page of a list, as the query asks for it. */
export const readPage = <Row>(
  { after = null, limit = limitDefault }: { after?: string | null; limit?: number },
  read: (page: PageRequest) => Promise<List<Row>>,
): Promise<List<Row>> => read({ after, limit }).catch(refuse);

function refuse(error: unknown): never {
  if (!(error instanceof BadCursor)) throw error;
  throw new ConsoleError(400, 'bad_cursor', 'This page is not one of the list. Begin again.');
}

const downloading = new Set<string>();

/**
 * A file that is read and written page by page. A person has one at a time, so that other requests
 * wait for one page at most.
 */
export async function answerDownload(
  context: Context,
  name: string,
  open: () => Promise<AsyncIterable<string>>,
): Promise<FastifyReply> {
  const { id } = context.person;
  if (downloading.has(id)) {
    const text = 'You are downloading a file. Take the next one when that has ended.';
    throw new ConsoleError(429, 'downloading', text);
  }
  downloading.add(id);
  try {
    const stream = Readable.from(await open());
    finished(stream, () => downloading.delete(id));
    return answerFile(context, name, stream);
  } catch (error) {
    downloading.delete(id);
    throw error;
  }
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
