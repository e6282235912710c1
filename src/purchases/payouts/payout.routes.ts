import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import {
  listTarget,
  type MerchantApiDeps,
  merchantFilter,
  readListRequest,
} from '#merchants/integrations/merchant-api.ts';
import { findInPath, pathOwner } from '#merchants/integrations/merchant-reads.ts';
import type { Handle } from '#platform/database/database.ts';
import { listPage } from '#platform/database/merchant-lists.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { badRequest, notFound } from '#platform/http/errors.ts';
import { Links, type Page, PageQuery, presentLinks, readPage } from '#platform/http/pagination.ts';
import { getPayoutOperation, listPayoutsOperation } from './payout.openapi.ts';
import {
  PayoutParams,
  PayoutResource,
  PayoutWithLinesResource,
  presentPayout,
  presentPayoutWithLines,
} from './payout.schema.ts';
import { findPayout, listLines } from './payout.sql.ts';
import type { Payout, PayoutLine } from './payout.ts';

/**
 * A payout may have a hundred thousand lines. The rate limit allows few requests, so pages are
 * large.
 */
const linesMax = 1_000;

const LinesQuery = {
  'page[number]': PageQuery['page[number]'],
  'page[items]': Type.Optional(
    Type.Integer({
      minimum: 1,
      default: linesMax,
      description: `Lines on a page. More than ${linesMax} is treated as ${linesMax}.`,
    }),
  ),
};

export async function payoutRoutes(
  api: FastifyInstance,
  deps: MerchantApiDeps & { baseUrl: string },
): Promise<void> {
  api.get(
    '/api/payouts/:id',
    {
      schema: {
        operation: getPayoutOperation,
        params: PayoutParams,
        querystring: Type.Object(LinesQuery),
        response: { 200: Type.Object({ data: PayoutWithLinesResource, links: Links }) },
      },
      config: { endpoint: 'GET /api/payouts/{id}', target: pathOwner(deps, 'payouts') },
    },
    async (request) => {
      const limits = { itemsDefault: linesMax, itemsMax: linesMax };
      const query = request.query as Record<string, unknown>;
      const page = readPage(query, limits);
      const found = await findInPath(deps, request, 'payouts', async (db, merchant_id, id) => {
        const payout = await findPayout(db, merchant_id, id);
        return payout && { payout, lines: await listPageOfLines(db, payout, page) };
      });
      if (!found) throw notFound('There is no payout with that ID.');
      const { payout, lines } = found;
      const address = `${deps.baseUrl}/api/payouts/${payout.id}`;
      const filter = merchantFilter in query ? { [merchantFilter]: payout.merchant_id } : {};
      return {
        data: presentPayoutWithLines(payout, lines),
        links: presentLinks(address, filter, payout.lines, page),
      };
    },
  );

  api.get(
    '/api/payouts',
    {
      schema: {
        operation: listPayoutsOperation,
        querystring: Type.Object(PageQuery),
        response: { 200: Type.Object({ data: Type.Array(PayoutResource), links: Links }) },
      },
      config: { endpoint: 'GET /api/payouts', target: listTarget },
    },
    async (request) => {
      const { merchant_id, client_reference_id, page, filter } = await readListRequest(
        deps.callers,
        request,
      );
      if (client_reference_id !== null) {
        throw badRequest(
          'A payout has many orders: filter[client_reference_id] is not for payouts.',
        );
      }
      const { total, rows } = await reading(deps, (db) =>
        listPage(db, 'payouts', merchant_id, page),
      );
      return {
        data: rows.map(presentPayout),
        links: presentLinks(`${deps.baseUrl}/api/payouts`, filter, total, page),
      };
    },
  );
}

async function listPageOfLines(db: Handle, payout: Payout, page: Page): Promise<PayoutLine[]> {
  const first = (page.number - 1) * page.items + 1;
  if (first > payout.lines) return [];
  return await listLines(db, payout, { first, last: first + page.items - 1 });
}
