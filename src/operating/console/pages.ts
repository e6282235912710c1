import { finished, Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import Type, { type TObject } from 'typebox';
import { hasPersonalData, openCsv } from '#operating/operations/csv.ts';
import { pageOf } from '#operating/operations/list.schema.ts';
import {
  BadCursor,
  type List,
  type ListDefinition,
  type PageRequest,
} from '#operating/operations/list.ts';
import { operate } from '#record/actions/operate.ts';
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
      ...(hasPersonalData(list) && { fresh: true }),
      schema: { query: list.query, response: Type.String() },
      handle: (context, { query }) =>
        answerDownload(
          context,
          { name: `${name}.csv`, subject_id: null, filters: query as object },
          () => openCsv(columns, read(context, query as Type.Static<Query>)),
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
  throw new ConsoleError(
    400,
    'bad_cursor',
    'This page is not part of the list. Go back to the first page.',
  );
}

const downloading = new Set<string>();

export type Download = {
  /** The name of the file. */
  name: string;
  /** The row that it is about; null for a list. */
  subject_id: string | null;
  filters: object;
};

/**
 * A file that is read and written page by page. A person has one at a time, so that other requests
 * wait for one page at most. The audit records the file, its filters and how many lines were sent.
 */
export async function answerDownload(
  context: Context,
  download: Download,
  open: () => Promise<AsyncIterable<string>>,
): Promise<FastifyReply> {
  const { id } = context.person;
  if (downloading.has(id)) {
    const text = 'You are already downloading a file. Try again when that has finished.';
    throw new ConsoleError(429, 'downloading', text);
  }
  downloading.add(id);
  try {
    const stream = Readable.from(recorded(context, download, await open()));
    finished(stream, () => downloading.delete(id));
    return answerFile(context, download.name, stream);
  } catch (error) {
    downloading.delete(id);
    throw error;
  }
}

async function* recorded(
  { deps, operator }: Context,
  { name, subject_id, filters }: Download,
  pieces: AsyncIterable<string>,
): AsyncGenerator<string> {
  let lines = 0;
  let is_whole = false;
  try {
    for await (const piece of pieces) {
      lines += piece.split('\n').length - 1;
      yield piece;
    }
    is_whole = true;
  } finally {
    const details = { file: name, filters, lines, is_whole };
    await operate(deps, operator, 'files read', async () => ({
      subject_id,
      details,
      result: null,
    }));
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
