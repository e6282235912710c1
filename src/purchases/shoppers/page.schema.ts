import Type from 'typebox';
import { compileSchema } from '#platform/http/validation.ts';
import { languages } from '#platform/shared/language.ts';
import { payableParts } from './plan-attempt.ts';

const LanguageSchema = Type.Union(languages.map((language) => Type.Literal(language)));

const Payment = Type.Object({
  number: Type.Integer({ minimum: 1 }),
  amount: Type.Integer({ minimum: 1 }),
  due_on: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
});

const CardToken = Type.String({ minLength: 1, maxLength: 255 });

const Consent = Type.Object({
  version: Type.String({ minLength: 1, maxLength: 40 }),
  payments: Type.Array(Payment, { maxItems: 120 }),
});

const PayRequestSchema = Type.Object({
  number_of_payments: Type.Integer({ minimum: 1 }),
  card_token: CardToken,
  consent: Type.Union([Consent, Type.Null()]),
  language: Type.Optional(LanguageSchema),
});

const CancelRequestSchema = Type.Object({ number_of_payments: Type.Integer({ minimum: 1 }) });

const LanguageRequestSchema = Type.Object({ language: LanguageSchema });

const PayPlanRequestSchema = Type.Object({
  what: Type.Union(payableParts.map((part) => Type.Literal(part))),
  payments: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 120 }),
  amount: Type.Integer({ minimum: 1 }),
  card_token: Type.Union([CardToken, Type.Null()]),
  keep_card: Type.Boolean(),
  consent: Type.Union([Consent, Type.Null()]),
});

const ReplaceCardRequestSchema = Type.Object({ card_token: CardToken, consent: Consent });

export const explainPayRequest = compileSchema(PayRequestSchema);
export const explainCancelRequest = compileSchema(CancelRequestSchema);
export const explainLanguageRequest = compileSchema(LanguageRequestSchema);
export const explainPayPlanRequest = compileSchema(PayPlanRequestSchema);
export const explainReplaceCardRequest = compileSchema(ReplaceCardRequestSchema);
