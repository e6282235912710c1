import Type from 'typebox';
import { type RefundRequest, refundStatuses } from './refund.ts';

const members = {
  checkout_id: Type.String({
    format: 'uuid',
    description: 'The `data.id` of the checkout to refund.',
  }),
  amount: Type.Integer({
    minimum: 1,
    description: 'Cents; at most the checkout amount minus previously refunded amounts.',
  }),
};
const example = { checkout_id: '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24', amount: 50000 };

export const CreateRefundBody = Type.Object(members, {
  title: 'RefundCreateRequest',
  examples: [example],
});
export type CreateRefundBody = Type.Static<typeof CreateRefundBody>;

/** An intermediary may name the merchant (decision 0020). */
export const IntermediaryCreateRefundBody = Type.Object(
  {
    ...members,
    merchant_id: Type.Optional(
      Type.String({
        format: 'uuid',
        description:
          'The managed merchant that must own the checkout. If it does not, the answer is a 404.',
      }),
    ),
  },
  { title: 'RefundCreateRequest', examples: [example] },
);

export const RefundParams = Type.Object({
  id: Type.String({
    format: 'uuid',
    description: 'The refund request ID.',
    examples: ['0199b3d0-64e8-7a1b-9c2f-8d7e6f5a4b31'],
  }),
});

export const RefundResource = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Refund request ID.' }),
    type: Type.Literal('refund_requests'),
    attributes: Type.Object({
      amount: Type.Integer({ description: 'Refund amount in cents.' }),
      currency: Type.String({ description: 'ISO 4217 code.' }),
      status: Type.Enum([...refundStatuses], {
        type: 'string',
        description: 'Status of the request.',
      }),
      created_at: Type.String({ format: 'date-time', description: 'Creation time.' }),
      checkout_id: Type.String({ format: 'uuid', description: 'The refunded checkout.' }),
      reason: Type.Optional(
        Type.String({
          description: 'Why the refund failed, in words for people. Only on `failed` requests.',
        }),
      ),
    }),
  },
  { title: 'RefundRequest', description: 'A request to refund all or part of a checkout.' },
);

/** A row as answers and events present it. */
export function refundResource(refund: RefundRequest): Type.Static<typeof RefundResource> {
  const { amount, currency, status, created_at, checkout_id, reason } = refund;
  const isShown = status === 'failed' && reason !== null;
  return {
    id: refund.id,
    type: 'refund_requests',
    attributes: { amount, currency, status, created_at, checkout_id, ...(isShown && { reason }) },
  };
}
