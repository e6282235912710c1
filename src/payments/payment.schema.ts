import Type from 'typebox';
import { compileSchema } from '../http/validation.ts';

const Payment = Type.Object({
  number: Type.Integer({ minimum: 1 }),
  amount: Type.Integer({ minimum: 1 }),
  due_on: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
});

const PayRequestSchema = Type.Object({
  number_of_payments: Type.Integer({ minimum: 1 }),
  card_token: Type.String({ minLength: 1, maxLength: 255 }),
  consent: Type.Union([
    Type.Object({
      version: Type.String({ minLength: 1, maxLength: 40 }),
      payments: Type.Array(Payment, { maxItems: 120 }),
    }),
    Type.Null(),
  ]),
});

const CancelRequestSchema = Type.Object({ number_of_payments: Type.Integer({ minimum: 1 }) });

export const explainPayRequest = compileSchema(PayRequestSchema);
export const explainCancelRequest = compileSchema(CancelRequestSchema);
