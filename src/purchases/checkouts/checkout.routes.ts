import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Gateways } from '#gateway/gateways.ts';
import {
  answerPost,
  bodyMerchant,
  ListQuery,
  listTarget,
  type MerchantApiDeps,
} from '#merchants/integrations/merchant-api.ts';
import { findInPath, pathOwner, readMerchantList } from '#merchants/integrations/merchant-reads.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { notFound } from '#platform/http/errors.ts';
import { Links } from '#platform/http/pagination.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import {
  createCheckoutOperation,
  getCheckoutOperation,
  listCheckoutsOperation,
} from './checkout.openapi.ts';
import {
  CheckoutParams,
  CheckoutResource,
  CreateCheckoutBody,
  CreatedCheckout,
  checkoutResource,
} from './checkout.schema.ts';
import { findCheckout } from './checkout.sql.ts';
import { type CommitCheckout, createCheckout } from './create-checkout.ts';
import { paymentToken } from './payment-token.ts';
import { validateCheckout } from './validate-checkout.ts';

export type CheckoutDeps = MerchantApiDeps & {
  baseUrl: string;
  sealing: Sealing;
  callbackAllow: Destinations;
  commitCheckout: CommitCheckout;
  gateways: Pick<Gateways, 'choose'>;
};

export async function checkoutRoutes(api: FastifyInstance, deps: CheckoutDeps): Promise<void> {
  addCreate(api, deps);

  api.get(
    '/api/checkouts/:id',
    {
      schema: {
        operation: getCheckoutOperation,
        params: CheckoutParams,
        response: { 200: Type.Object({ data: CheckoutResource }) },
      },
      config: { endpoint: 'GET /api/checkouts/{id}', target: pathOwner(deps, 'checkouts') },
    },
    async (request) => {
      const checkout = await findInPath(deps, request, 'checkouts', findCheckout);
      if (!checkout) throw notFound('There is no checkout with that ID.');
      return { data: checkoutResource(checkout) };
    },
  );

  api.get(
    '/api/checkouts',
    {
      schema: {
        operation: listCheckoutsOperation,
        querystring: Type.Object(ListQuery),
        response: { 200: Type.Object({ data: Type.Array(CheckoutResource), links: Links }) },
      },
      config: { endpoint: 'GET /api/checkouts', target: listTarget },
    },
    async (request) => {
      const { rows, links } = await readMerchantList(deps, request, 'checkouts', '/api/checkouts');
      return { data: rows.map(checkoutResource), links };
    },
  );
}

function addCreate(api: FastifyInstance, deps: CheckoutDeps): void {
  api.post(
    '/api/checkouts',
    {
      schema: {
        operation: createCheckoutOperation,
        body: CreateCheckoutBody,
        response: { 200: CreatedCheckout },
      },
      config: { endpoint: 'POST /api/checkouts', members: ['checkout'], target: namedMerchantId },
    },
    async (request, reply) => {
      const { body, caller, post } = request;
      const answer = await answerPost(deps, request, reply, async () => {
        const merchant = await bodyMerchant(deps.callers, caller, namedMerchantId(request));
        const valid = validateCheckout(body, caller.intermediary, merchant, deps.callbackAllow);
        return await createCheckout(deps, post, merchant as Merchant, valid);
      });
      const payment_url = `${deps.baseUrl}/pay/${paymentToken(deps.sealing, answer)}`;
      return { data: { id: answer.id, payment_url } };
    },
  );
}

function namedMerchantId(request: FastifyRequest): string | null {
  const { checkout } = request.body as { checkout?: { merchant_id?: unknown } };
  const merchant_id = checkout?.merchant_id;
  return typeof merchant_id === 'string' ? merchant_id : null;
}
