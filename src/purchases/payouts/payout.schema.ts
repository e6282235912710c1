import Type from 'typebox';
import { type Payout, type PayoutLine, payoutStatuses } from './payout.ts';

export const PayoutParams = Type.Object({
  id: Type.String({
    format: 'uuid',
    description: 'The payout ID.',
    examples: ['0199c2d4-5b1e-7f60-8a9c-3e2d1c0b9a88'],
  }),
});

const attributes = {
  reference: Type.String({ description: 'The reference on your bank statement.' }),
  business_date: Type.String({ format: 'date', description: 'The business day of the payout.' }),
  amount: Type.Integer({ description: 'Cents. The `net` amounts of all lines sum to it.' }),
  currency: Type.String({ description: 'ISO 4217 code.' }),
  status: Type.Enum([...payoutStatuses], {
    type: 'string',
    description:
      '`draft` until it is approved, `exported` when the bank has the order, then `paid` or `returned`.',
  }),
  number_of_lines: Type.Integer({ description: 'How many lines it has.' }),
  created_at: Type.String({ format: 'date-time', description: 'Creation time.' }),
  paid_at: Type.Optional(
    Type.String({ format: 'date-time', description: 'When the bank paid it. Only once it has.' }),
  ),
  bank_reference: Type.Optional(
    Type.String({ description: "The bank's reference. Only once it was paid." }),
  ),
};

const PayoutLineResource = Type.Object(
  {
    kind: Type.String({
      description:
        '`sale`, `refund`, `refund_reversed`, `dispute`, `dispute_reversed`, `dispute_fee`, `reserve`, `reserve_released` or `payout_returned`. More kinds may follow.',
    }),
    checkout_id: Type.Union([Type.String({ format: 'uuid' }), Type.Null()], {
      description: 'The checkout that it belongs to, or null.',
    }),
    client_reference_id: Type.Union([Type.String(), Type.Null()], {
      description: 'Your identifier for the order.',
    }),
    gross: Type.Integer({ description: 'Cents before fees; negative if you owe them.' }),
    fee: Type.Integer({ description: 'Our fee, excluding VAT.' }),
    vat: Type.Integer({ description: 'The VAT on the fee.' }),
    net: Type.Integer({ description: '`gross` minus `fee` and `vat`.' }),
    at: Type.String({ format: 'date-time', description: 'When it happened.' }),
  },
  { title: 'PayoutLine', description: 'One line of a payout.' },
);

const id = Type.String({ format: 'uuid', description: 'Payout ID.' });
const type = Type.Literal('payouts');

export const PayoutResource = Type.Object(
  { id, type, attributes: Type.Object(attributes) },
  { title: 'Payout', description: 'The amount that you are paid on one business day.' },
);

export const PayoutWithLinesResource = Type.Object(
  {
    id,
    type,
    attributes: Type.Object({
      ...attributes,
      lines: Type.Array(PayoutLineResource, { description: 'One page of its lines, in order.' }),
    }),
  },
  { title: 'PayoutWithLines', description: 'A payout with one page of its lines.' },
);

/** The answer's members have different names from the columns, so the row is mapped. */
export function presentPayout(payout: Payout): Type.Static<typeof PayoutResource> {
  return {
    id: payout.id,
    type: 'payouts',
    attributes: {
      reference: payout.reference,
      business_date: payout.business_on,
      amount: payout.amount,
      currency: payout.currency,
      status: payout.status,
      number_of_lines: payout.lines,
      created_at: payout.created_at,
      ...(payout.paid_at !== null && { paid_at: payout.paid_at }),
      ...(payout.bank_reference !== null && { bank_reference: payout.bank_reference }),
    },
  };
}

export function presentPayoutWithLines(
  payout: Payout,
  lines: PayoutLine[],
): Type.Static<typeof PayoutWithLinesResource> {
  const { attributes, ...rest } = presentPayout(payout);
  return { ...rest, attributes: { ...attributes, lines } };
}
