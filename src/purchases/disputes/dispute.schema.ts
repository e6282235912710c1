import Type from 'typebox';
import { type Dispute, disputeStatuses } from './dispute.ts';

const time = (description: string) => Type.String({ format: 'date-time', description });

/** A dispute as it appears in events. No endpoint returns it. */
export const DisputeResource = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Dispute ID.' }),
    type: Type.Literal('disputes'),
    attributes: Type.Object({
      amount: Type.Integer({ description: 'The disputed amount in cents.' }),
      currency: Type.String({ description: 'ISO 4217 code.' }),
      status: Type.Enum([...disputeStatuses], {
        type: 'string',
        description:
          '`inquiry` while the bank only asks, `needs_response` until evidence is submitted, `under_review` while the bank decides, then `won`, `lost` or `closed`.',
      }),
      reason: Type.String({
        description: 'Why the cardholder disputes it, according to the card network.',
      }),
      created_at: time('When the service learned of it.'),
      checkout_id: Type.String({ format: 'uuid', description: 'The disputed checkout.' }),
      respond_by: Type.Optional(time('The deadline for evidence. Only if the bank set one.')),
      closed_at: Type.Optional(time('When it ended. Only once it has.')),
    }),
  },
  { title: 'Dispute', description: 'A payment that the cardholder reverses through the bank.' },
);

export function disputeResource(dispute: Dispute): Type.Static<typeof DisputeResource> {
  const { amount, currency, status, reason, created_at, checkout_id, due_by, closed_at } = dispute;
  return {
    id: dispute.id,
    type: 'disputes',
    attributes: {
      ...{ amount, currency, status, reason, created_at, checkout_id },
      ...(due_by !== null && { respond_by: due_by }),
      ...(closed_at !== null && { closed_at }),
    },
  };
}
