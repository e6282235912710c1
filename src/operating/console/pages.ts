import { createHash } from 'node:crypto';
import Type, { type TObject, type TSchema } from 'typebox';
import { hasPersonalData, openCsv } from '#operating/operations/csv.ts';
import { pageOf } from '#operating/operations/list.schema.ts';
import {
  BadCursor,
  type List,
  type ListDefinition,
  type PageRequest,
} from '#operating/operations/list.ts';
import type { Permission } from '#operating/people/permission.ts';
import { operate } from '#record/actions/operate.ts';
import { answerDownload, typedFilters } from './download.ts';
import { ConsoleError } from './errors.ts';
import { requireReauthentication } from './reauthentication.ts';
import { type ConsoleRoute, type Context, consoleRoute, detailRoute } from './route.ts';
import { sharesOf } from './shares.ts';

const limitDefault = 50;

/**
 * Turns a list into two routes under one permission: one for a page, and one for the whole list as
 * a file.
 */
export function listRoutes<Query extends TObject, Row>(
  list: ListDefinition<Query, Row>,
): ConsoleRoute[] {
  const { name, permission, columns } = list;
  const read = (context: Context, query: Type.Static<Query>) => (page: PageRequest) =>
    list.read(context, query, page).catch(refuse);
  return [
    consoleRoute({
      url: `/api/${name}`,
      permission,
      schema: { query: list.query, response: pageOf(list.row) },
      async handle(context, { query }) {
        if (hasPersonalData(list)) await countPage(context, name, query as object);
        return await readPage(
          query as Partial<PageRequest>,
          read(context, query as Type.Static<Query>),
        );
      },
    }),
    consoleRoute({
      url: `/api/${name}.csv`,
      permission,
      ...(hasPersonalData(list) && { fresh: true }),
      schema: { query: list.query, response: Type.String() },
      handle: (context, { query }) =>
        answerDownload(
          context,
          { name: `${name}.csv`, ...aboutOf(query as object), filters: query as object },
          () => openCsv(columns, read(context, query as Type.Static<Query>)),
        ),
    }),
  ];
}

/**
 * Counts a page of a list that names people, or the people that a search found. A person who reads
 * more different pages in an hour than work needs is reading in bulk: that requires
 * re-authentication, and the audit records each further page.
 */
export async function countPage(
  context: Context,
  list: string,
  query: object,
  /** The rows shown, if the same rows should count only once when another query finds them. */
  shown: object = query,
  /** The merchants of the rows shown, if these are known. */
  merchants?: (string | null)[],
): Promise<void> {
  await countRead(context, 'pages', list, query, shown, merchants);
}

/**
 * Counts a row that names a shopper. A reader may know its id from a list that is not counted, such
 * as the lines of a payout or the payment links.
 */
export async function countRow(
  context: Context,
  name: string,
  { id, merchant_id }: { id: string; merchant_id: string },
  /** Whether the row names many shoppers, so that it counts as a page of a list does. */
  namesMany = false,
): Promise<void> {
  const row = { merchant: merchant_id, id: id.toLowerCase() };
  await countRead(context, namesMany ? 'pages' : 'rows', name, row);
}

/** Makes the route of one row that names a shopper: `GET /api/NAME/:id`. */
export const shopperRoute = <
  const Response extends TSchema,
  Row extends Type.Static<Response> & { merchant_id: string },
>(
  name: string,
  permission: Permission,
  response: Response,
  read: (context: Context, id: string) => Promise<Row>,
  namesMany: (row: Row) => boolean = () => false,
): ConsoleRoute =>
  detailRoute(name, permission, response, async (context, id) => {
    const row = await read(context, id);
    await countRow(context, name, { id, merchant_id: row.merchant_id }, namesMany(row));
    return row;
  });

async function countRead(
  context: Context,
  of: Parameters<Context['deps']['rateLimits']['bulkRead']>[0],
  list: string,
  query: object,
  shown: object = query,
  merchants?: (string | null)[],
): Promise<void> {
  const { deps, person } = context;
  const hash = createHash('sha256')
    .update(JSON.stringify([list, shown]))
    .digest('base64url');
  const { isBulk, noteShown } = await deps.rateLimits.bulkRead(of, person.id, hash);
  if (isBulk) {
    requireReauthentication(context);
    const details = { list, filters: typedFilters(query) };
    const about = aboutOf(query);
    const shares = sharesOf(context, about.merchant_id, details, merchants);
    await operate(deps, context.operator, 'lists read', async () => ({
      ...{ ...about, details, shares, result: null },
    }));
  }
  await noteShown();
}

/**
 * A list is not about a single row. It is about one merchant if it is filtered by that merchant.
 */
const aboutOf = (query: { merchant?: string }) => ({
  subject_id: null,
  merchant_id: query.merchant ?? null,
});

/** The page of a list that the query asks for. */
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
