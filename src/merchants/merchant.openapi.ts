import type Type from 'typebox';
import type { Operation } from '#platform/http/openapi.ts';
import type { MerchantResource } from './merchant.schema.ts';
import { notManaged } from './not-managed.ts';

export const exampleMerchant: Type.Static<typeof MerchantResource> = {
  id: '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11',
  type: 'merchants',
  attributes: {
    name: 'Bean There',
    rules: [
      { from_amount: 10000, to_amount: 99999, terms: [1, 3] },
      { from_amount: 100000, to_amount: 2000000, terms: [1, 3, 6, 12] },
    ],
  },
};

const answer = {
  description: 'The configuration.',
  example: { data: exampleMerchant },
};

export const getConfigOperation: Operation = {
  operationId: 'getConfig',
  tag: 'Configuration',
  summary: 'Get your configuration',
  description:
    'The amount bands that are accepted, and the instalment terms that shoppers can choose in each. A checkout whose amount lies in no band is refused. Keep the answer: it changes rarely.',
  audience: 'merchants',
  answer,
};

export const getMerchantConfigOperation: Operation = {
  operationId: 'getMerchantConfig',
  tag: 'Configuration',
  summary: 'Get the configuration of a merchant',
  description:
    'The amount bands that are accepted for a managed merchant, and the instalment terms that shoppers can choose in each. A checkout whose amount lies in no band is refused. Keep the answer: it changes rarely.',
  audience: 'intermediaries',
  answer,
  refusals: {
    404: {
      description: 'The merchant is not managed by this integration.',
      details: { not_managed: notManaged().message },
    },
  },
};
