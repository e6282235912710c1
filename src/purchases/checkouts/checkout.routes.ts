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
import { notManaged } from '#merchants/not-managed.ts';
import { findManagedOwner, listMatches, listPage } from '#platform/database/merchant-lists.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from '#platform/http/errors.ts';
import { Links, presentLinks } from '#platform/http/pagination.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { AllowedRange } from '#purchases/callbacks/delivery/destination.ts';
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
  presentCheckout,
} from './checkout.schema.ts';
import { findCheckout } from './checkout.sql.ts';
import { type CommitCheckout, createCheckout } from './create-checkout.ts';
import { paymentToken } from './payment-token.ts';
import { validateCheckout } from './validate-checkout.ts';

export type CheckoutDeps = MerchantApiDeps & {
  baseUrl: string;
  sealing: Sealing;
  callbackAllow: AllowedRange[];
  commitCheckout: CommitCheckout;
};

export async function checkoutRoutes(api: FastifyInstance, deps: CheckoutDeps): Promise<void> {
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
        const merchant = await bodyMerchant(request);
        const valid = validateCheckout(body, caller.intermediary, merchant, deps.callbackAllow);
        return await createCheckout(deps, post, merchant as Merchant, valid);
      });
      const payment_url = `${deps.baseUrl}/pay/${paymentToken(deps.sealing, answer)}`;
      return { data: { id: answer.id, payment_url } };
    },
  );

  api.get(
    '/api/checkouts/:id',
    {
      schema: {
        operation: getCheckoutOperation,
        params: CheckoutParams,
        response: { 200: Type.Object({ data: CheckoutResource }) },
      },
      config: { endpoint: 'GET /api/checkouts/{id}', target: checkoutMerchantId },
    },
    async (request) => {
      const { id } = request.params as { id: string };
      const merchant_id = request.caller.merchant_id ?? (await checkoutMerchantId(request));
      const checkout =
        merchant_id !== null && isUuid(id)
          ? await reading(deps, (db) => findCheckout(db, merchant_id, id))
          : null;
      if (!checkout) throw notFound('There is no checkout with that ID.');
      return { data: presentCheckout(checkout) };
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
      const { merchant_id, client_reference_id, page, filter } = await readListRequest(
        deps.callers,
        request,
      );
      const { total, rows } = await reading(deps, (db) =>
        client_reference_id === null
          ? listPage(db, 'checkouts', merchant_id, page)
          : listMatches(db, 'checkouts', merchant_id, client_reference_id, page),
      );
      return {
        data: rows.map(presentCheckout),
        links: presentLinks(`${deps.baseUrl}/api/checkouts`, filter, total, page),
      };
    },
  );

  /** The merchant of the new checkout; null when an intermediary names none. */
  async function bodyMerchant(request: FastifyRequest): Promise<Merchant | null> {
    if (!request.caller.intermediary) return await deps.callers.ownMerchant(request.caller);
    const merchant_id = namedMerchantId(request);
    if (merchant_id === null) return null;
    const merchant = await deps.callers.addressMerchant(request.caller, merchant_id);
    if (!merchant) throw notManaged();
    return merchant;
  }

  /** For an intermediary: the merchant that owns the checkout in the path. */
  async function checkoutMerchantId(request: FastifyRequest): Promise<string | null> {
    const { id } = request.params as { id: string };
    if (!isUuid(id)) return null;
    return await reading(deps, (db) => findManagedOwner(db, 'checkouts', request.caller.id, id));
  }
}

function namedMerchantId(request: FastifyRequest): string | null {
  const { checkout } = request.body as { checkout?: { merchant_id?: unknown } };
  const merchant_id = checkout?.merchant_id;
  return typeof merchant_id === 'string' ? merchant_id : null;
}
