import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import {
  listTarget,
  type MerchantApiDeps,
  readListRequest,
} from '#merchants/integrations/merchant-api.ts';
import { findManagedOwner, listPage } from '#platform/database/merchant-lists.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { badRequest, notFound } from '#platform/http/errors.ts';
import { Links, PageQuery, presentLinks, readPage } from '#platform/http/pagination.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { getPayoutOperation, listPayoutsOperation } from './payout.openapi.ts';
import {
  PayoutParams,
  PayoutResource,
  PayoutWithLinesResource,
  presentPayout,
  presentPayoutWithLines,
} from './payout.schema.ts';
import { findPayout, listLines } from './payout.sql.ts';

/** A payout may have a hundred thousand lines, and five requests a minute are allowed. */
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
      config: { endpoint: 'GET /api/payouts/{id}', target: payoutMerchantId },
    },
    async (request) => {
      const { id } = request.params as { id: string };
      const limits = { itemsDefault: linesMax, itemsMax: linesMax };
      const page = readPage(request.query as Record<string, unknown>, limits);
      const merchant_id = request.caller.merchant_id ?? (await payoutMerchantId(request));
      const found =
        merchant_id !== null && isUuid(id)
          ? await reading(deps, async (db) => {
              const payout = await findPayout(db, merchant_id, id);
              const first = (page.number - 1) * page.items + 1;
              const isThere = payout !== null && first <= payout.lines;
              const range = { first, last: first + page.items - 1 };
              return payout && { payout, lines: isThere ? await listLines(db, payout, range) : [] };
            })
          : null;
      if (!found) throw notFound('There is no payout with that ID.');
      const { payout, lines } = found;
      const address = `${deps.baseUrl}/api/payouts/${payout.id}`;
      return {
        data: presentPayoutWithLines(payout, lines),
        links: presentLinks(address, {}, payout.lines, page),
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

  /** For an intermediary: the merchant of the path's payout. */
  async function payoutMerchantId(request: FastifyRequest): Promise<string | null> {
    const { id } = request.params as { id: string };
    if (!isUuid(id)) return null;
    return await reading(deps, (db) => findManagedOwner(db, 'payouts', request.caller.id, id));
  }
}
