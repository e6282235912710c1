import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import {
  answerPost,
  ListQuery,
  listTarget,
  type MerchantApiDeps,
  readListRequest,
} from '#merchants/integrations/merchant-api.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { findManagedOwner, listMatches, listPage } from '#platform/database/merchant-lists.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from '#platform/http/errors.ts';
import { Links, presentLinks } from '#platform/http/pagination.ts';
import { compileSchema, validationFailed } from '#platform/http/validation.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { createRefund, unknownCheckout } from './create-refund.ts';
import {
  createRefundOperation,
  getRefundOperation,
  listRefundsOperation,
} from './refund.openapi.ts';
import { CreateRefundBody, presentRefund, RefundParams, RefundResource } from './refund.schema.ts';
import { findRefund } from './refund.sql.ts';

export type RefundDeps = MerchantApiDeps & { baseUrl: string };

const explainBody = compileSchema(CreateRefundBody);

export async function refundRoutes(api: FastifyInstance, deps: RefundDeps): Promise<void> {
  const OneRefund = Type.Object({ data: RefundResource });

  api.post(
    '/api/refunds',
    {
      schema: {
        operation: createRefundOperation,
        body: CreateRefundBody,
        response: { 200: OneRefund },
      },
      config: {
        endpoint: 'POST /api/refunds',
        members: ['checkout_id', 'amount'],
        bodyBytesMax: 16 * 1024,
        target: checkoutMerchantId,
      },
    },
    async (request, reply) => {
      const answer = await answerPost(deps, request, reply, async () => {
        const errors = explainBody(request.body);
        if (errors.length > 0) throw validationFailed(errors);
        const merchant = await refundedMerchant(request);
        return await createRefund(deps, request.post, merchant, request.body as CreateRefundBody);
      });
      return { data: presentRefund(answer) };
    },
  );

  api.get(
    '/api/refunds/:id',
    {
      schema: {
        operation: getRefundOperation,
        params: RefundParams,
        response: { 200: OneRefund },
      },
      config: { endpoint: 'GET /api/refunds/{id}', target: refundMerchantId },
    },
    async (request) => {
      const { id } = request.params as { id: string };
      const merchant_id = request.caller.merchant_id ?? (await refundMerchantId(request));
      const refund =
        merchant_id !== null && isUuid(id)
          ? await reading(deps, (db) => findRefund(db, merchant_id, id))
          : null;
      if (!refund) throw notFound('There is no refund request with that ID.');
      return { data: presentRefund(refund) };
    },
  );

  api.get(
    '/api/refunds',
    {
      schema: {
        operation: listRefundsOperation,
        querystring: Type.Object(ListQuery),
        response: { 200: Type.Object({ data: Type.Array(RefundResource), links: Links }) },
      },
      config: { endpoint: 'GET /api/refunds', target: listTarget },
    },
    async (request) => {
      const { merchant_id, client_reference_id, page, filter } = await readListRequest(
        deps.callers,
        request,
      );
      const { total, rows } = await reading(deps, (db) =>
        client_reference_id === null
          ? listPage(db, 'refund_requests', merchant_id, page)
          : listMatches(db, 'refund_requests', merchant_id, client_reference_id, page),
      );
      return {
        data: rows.map(presentRefund),
        links: presentLinks(`${deps.baseUrl}/api/refunds`, filter, total, page),
      };
    },
  );

  async function refundedMerchant(request: FastifyRequest): Promise<Merchant> {
    const { caller } = request;
    if (!caller.intermediary) return await deps.callers.ownMerchant(caller);
    const merchant_id = await checkoutMerchantId(request);
    const merchant = merchant_id && (await deps.callers.addressMerchant(caller, merchant_id));
    if (!merchant) throw unknownCheckout();
    return merchant;
  }

  /** For an intermediary: the merchant of the body's checkout. */
  async function checkoutMerchantId(request: FastifyRequest): Promise<string | null> {
    const { checkout_id } = request.body as { checkout_id?: unknown };
    if (typeof checkout_id !== 'string' || !isUuid(checkout_id)) return null;
    return await reading(deps, (db) =>
      findManagedOwner(db, 'checkouts', request.caller.id, checkout_id),
    );
  }

  /** For an intermediary: the merchant of the path's refund request. */
  async function refundMerchantId(request: FastifyRequest): Promise<string | null> {
    const { id } = request.params as { id: string };
    if (!isUuid(id)) return null;
    return await reading(deps, (db) =>
      findManagedOwner(db, 'refund_requests', request.caller.id, id),
    );
  }
}
