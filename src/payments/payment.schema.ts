import Type from 'typebox';
import { compileSchema } from '../http/validation.ts';
import { languages } from '../shared/language.ts';

const LanguageSchema = Type.Union(languages.map((language) => Type.Literal(language)));

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
  language: Type.Optional(LanguageSchema),
});

const CancelRequestSchema = Type.Object({ number_of_payments: Type.Integer({ minimum: 1 }) });

const LanguageRequestSchema = Type.Object({ language: LanguageSchema });

export const explainPayRequest = compileSchema(PayRequestSchema);
export const explainCancelRequest = compileSchema(CancelRequestSchema);
export const explainLanguageRequest = compileSchema(LanguageRequestSchema);
