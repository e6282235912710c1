import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import {
  answerPost,
  bodyMerchant,
  listTarget,
  type MerchantApiDeps,
  readListRequest,
} from '#merchants/integrations/merchant-api.ts';
import { findInPath, pathOwner } from '#merchants/integrations/merchant-reads.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { listPage } from '#platform/database/merchant-lists.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { badRequest, notFound } from '#platform/http/errors.ts';
import { Links, PageQuery, presentLinks } from '#platform/http/pagination.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { createPaymentLink, presentLink } from './create-payment-link.ts';
import {
  createLinkOperation,
  getLinkOperation,
  listLinksOperation,
} from './payment-link.openapi.ts';
import { CreateLinkBody, LinkParams, LinkResource, linkResource } from './payment-link.schema.ts';
import { findLink, withCheckouts } from './payment-link.sql.ts';
import { validateLink } from './validate-link.ts';

export type LinkDeps = MerchantApiDeps &
  QueueDeps & {
    baseUrl: string;
    sealing: Sealing;
    callbackAllow: Destinations;
  };

const OneLink = Type.Object({ data: LinkResource });

export async function paymentLinkRoutes(api: FastifyInstance, deps: LinkDeps): Promise<void> {
  addCreate(api, deps);

  api.get(
    '/api/payment-links/:id',
    {
      schema: { operation: getLinkOperation, params: LinkParams, response: { 200: OneLink } },
      config: { endpoint: 'GET /api/payment-links/{id}', target: pathOwner(deps, 'payment_links') },
    },
    async (request) => {
      const link = await findInPath(deps, request, 'payment_links', findLink);
      const merchant =
        link && (await deps.callers.addressMerchant(request.caller, link.merchant_id));
      if (!merchant) throw notFound('There is no payment link with that ID.');
      return { data: linkResource(deps, presentLink(link, merchant)) };
    },
  );

  api.get(
    '/api/payment-links',
    {
      schema: {
        operation: listLinksOperation,
        querystring: Type.Object(PageQuery),
        response: { 200: Type.Object({ data: Type.Array(LinkResource), links: Links }) },
      },
      config: { endpoint: 'GET /api/payment-links', target: listTarget },
    },
    async (request) => {
      const asked = await readListRequest(deps.callers, request);
      if (asked.client_reference_id !== null) {
        throw badRequest('filter[client_reference_id] is not for payment links.');
      }
      const { total, links } = await reading(deps, async (db) => {
        const { total, rows } = await listPage(db, 'payment_links', asked.merchant_id, asked.page);
        const read = await withCheckouts(db, rows);
        return { total, links: read.map((link) => presentLink(link, asked.merchant)) };
      });
      return {
        data: links.map((link) => linkResource(deps, link)),
        links: presentLinks(`${deps.baseUrl}/api/payment-links`, asked.filter, total, asked.page),
      };
    },
  );
}

function addCreate(api: FastifyInstance, deps: LinkDeps): void {
  api.post(
    '/api/payment-links',
    {
      schema: {
        operation: createLinkOperation,
        body: CreateLinkBody,
        response: { 200: OneLink },
      },
      config: {
        endpoint: 'POST /api/payment-links',
        members: [...Object.keys(CreateLinkBody.properties), 'merchant_id'],
        bodyBytesMax: 32 * 1024,
        target: namedMerchantId,
      },
    },
    async (request, reply) => {
      const { body, caller, post } = request;
      const link = await answerPost(deps, request, reply, async () => {
        const merchant = await bodyMerchant(deps.callers, caller, namedMerchantId(request));
        const valid = validateLink(body, caller.intermediary, merchant, deps.callbackAllow);
        return await createPaymentLink(deps, post, merchant as Merchant, valid);
      });
      return { data: linkResource(deps, link) };
    },
  );
}

function namedMerchantId(request: FastifyRequest): string | null {
  const { merchant_id } = request.body as { merchant_id?: unknown };
  return typeof merchant_id === 'string' ? merchant_id : null;
}
