import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { MerchantApiDeps } from '#merchants/integrations/merchant-api.ts';
import { notFound } from '#platform/http/errors.ts';
import { getConfigOperation, getMerchantConfigOperation } from './merchant.openapi.ts';
import { MerchantParams, MerchantResource, presentMerchant } from './merchant.schema.ts';
import { notManaged } from './not-managed.ts';

export async function merchantRoutes(api: FastifyInstance, deps: MerchantApiDeps): Promise<void> {
  const Config = Type.Object({ data: MerchantResource });

  api.get(
    '/api/config',
    {
      schema: { operation: getConfigOperation, response: { 200: Config } },
      config: { endpoint: 'GET /api/config' },
    },
    async (request) => {
      if (request.caller.intermediary) {
        throw notFound(
          'An intermediary reads the configuration of one merchant at /api/merchants/{merchant_id}/config.',
        );
      }
      return { data: presentMerchant(await deps.callers.ownMerchant(request.caller)) };
    },
  );

  api.get(
    '/api/merchants/:merchant_id/config',
    {
      schema: {
        operation: getMerchantConfigOperation,
        params: MerchantParams,
        response: { 200: Config },
      },
      config: { endpoint: 'GET /api/merchants/{merchant_id}/config', target: pathMerchantId },
    },
    async (request) => {
      if (!request.caller.intermediary) {
        throw notFound(
          'This path is for intermediaries. Read your own configuration at /api/config.',
        );
      }
      const merchant = await deps.callers.addressMerchant(request.caller, pathMerchantId(request));
      if (!merchant) throw notManaged();
      return { data: presentMerchant(merchant) };
    },
  );
}

function pathMerchantId(request: FastifyRequest): string {
  return (request.params as { merchant_id: string }).merchant_id;
}
