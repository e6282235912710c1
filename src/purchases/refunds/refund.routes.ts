import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import {
  answerPost,
  ListQuery,
  listTarget,
  type MerchantApiDeps,
} from '#merchants/integrations/merchant-api.ts';
import {
  findInPath,
  managedOwner,
  pathOwner,
  readMerchantList,
} from '#merchants/integrations/merchant-reads.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { notFound } from '#platform/http/errors.ts';
import { Links } from '#platform/http/pagination.ts';
import { compileSchema, validationFailed } from '#platform/http/validation.ts';
import { createRefund, unknownCheckout } from './create-refund.ts';
import {
  createRefundOperation,
  getRefundOperation,
  listRefundsOperation,
} from './refund.openapi.ts';
import { CreateRefundBody, RefundParams, RefundResource, refundResource } from './refund.schema.ts';
import { findRefund } from './refund.sql.ts';

export type RefundDeps = MerchantApiDeps & { baseUrl: string };

const explainBody = compileSchema(CreateRefundBody);

const OneRefund = Type.Object({ data: RefundResource });

export async function refundRoutes(api: FastifyInstance, deps: RefundDeps): Promise<void> {
  addCreate(api, deps);

  api.get(
    '/api/refunds/:id',
    {
      schema: {
        operation: getRefundOperation,
        params: RefundParams,
        response: { 200: OneRefund },
      },
      config: { endpoint: 'GET /api/refunds/{id}', target: pathOwner(deps, 'refund_requests') },
    },
    async (request) => {
      const refund = await findInPath(deps, request, 'refund_requests', findRefund);
      if (!refund) throw notFound('There is no refund request with that ID.');
      return { data: refundResource(refund) };
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
      const { rows, links } = await readMerchantList(
        deps,
        request,
        'refund_requests',
        '/api/refunds',
      );
      return { data: rows.map(refundResource), links };
    },
  );
}

function addCreate(api: FastifyInstance, deps: RefundDeps): void {
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
        target: (request) => checkoutOwner(deps, request),
      },
    },
    async (request, reply) => {
      const answer = await answerPost(deps, request, reply, async () => {
        const errors = explainBody(request.body);
        if (errors.length > 0) throw validationFailed(errors);
        const merchant = await refundedMerchant(deps, request);
        return await createRefund(deps, request.post, merchant, request.body as CreateRefundBody);
      });
      return { data: refundResource(answer) };
    },
  );
}

async function refundedMerchant(deps: RefundDeps, request: FastifyRequest): Promise<Merchant> {
  const { caller } = request;
  if (!caller.intermediary) return await deps.callers.ownMerchant(caller);
  const merchant_id = await checkoutOwner(deps, request);
  const merchant = merchant_id && (await deps.callers.addressMerchant(caller, merchant_id));
  if (!merchant) throw unknownCheckout();
  return merchant;
}

/**
 * For an intermediary: the managed merchant that owns the checkout in the body. Null if there is
 * none.
 */
function checkoutOwner(deps: RefundDeps, request: FastifyRequest): Promise<string | null> {
  const { checkout_id } = request.body as { checkout_id?: unknown };
  return managedOwner(deps, request, 'checkouts', checkout_id);
}
