import Type from 'typebox';
import { type MerchantRow, payableRules } from './merchant.ts';

const RuleSchema = Type.Object(
  {
    from_amount: Type.Integer({ description: 'Band minimum in cents, inclusive.' }),
    to_amount: Type.Integer({ description: 'Band maximum in cents, inclusive.' }),
    terms: Type.Array(Type.Integer(), {
      description: 'Instalment terms in months available in the band; 1 means once-off.',
    }),
  },
  { title: 'Rule', description: 'An amount band with its instalment terms.' },
);

export const MerchantParams = Type.Object({
  merchant_id: Type.String({
    format: 'uuid',
    description: 'The identifier of the managed merchant, given at its onboarding.',
    examples: ['0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11'],
  }),
});

export const MerchantResource = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Merchant identifier.' }),
    type: Type.Literal('merchants'),
    attributes: Type.Object({
      name: Type.String({ description: 'Merchant display name shown to shoppers.' }),
      rules: Type.Array(RuleSchema, { description: 'Amount bands with instalment terms.' }),
    }),
  },
  { title: 'Merchant', description: 'A merchant and its rules.' },
);

export function presentMerchant(merchant: MerchantRow): Type.Static<typeof MerchantResource> {
  return {
    id: merchant.id,
    type: 'merchants',
    attributes: { name: merchant.name, rules: payableRules(merchant) },
  };
}
