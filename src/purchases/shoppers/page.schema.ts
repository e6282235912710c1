import Type from 'typebox';
import type { CardEntry } from '#gateway/gateway.ts';
import { compileSchema, type FieldError } from '#platform/http/validation.ts';
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
  card_token: Type.Union([CardToken, Type.Null()]),
  consent: Type.Union([Consent, Type.Null()]),
  language: Type.Optional(LanguageSchema),
  gateway: Type.Optional(Type.String({ maxLength: 20 })),
});

const CancelRequestSchema = Type.Object({ number_of_payments: Type.Integer({ minimum: 1 }) });

const LanguageRequestSchema = Type.Object({ language: LanguageSchema });

const PayPlanRequestSchema = Type.Object({
  what: Type.Union(payableParts.map((part) => Type.Literal(part))),
  payments: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 120 }),
  amount: Type.Integer({ minimum: 1 }),
  card_token: Type.Union([CardToken, Type.Null()]),
  enters_card: Type.Optional(Type.Boolean()),
  keep_card: Type.Boolean(),
  consent: Type.Union([Consent, Type.Null()]),
});

const ReplaceCardRequestSchema = Type.Object({
  card_token: Type.Union([CardToken, Type.Null()]),
  consent: Consent,
});

/**
 * Checks that the card comes in the form that this gateway takes: as a token, or in the session
 * that begins.
 */
export function explainCard(
  entry: Pick<CardEntry, 'entersCard'> | null,
  card_token: string | null,
): FieldError[] {
  // Without a gateway, payments are paused whatever the card.
  if (entry === null) return [];
  const { entersCard } = entry;
  if ((card_token === null) === (entersCard === 'after')) return [];
  const problem = entersCard === 'after' ? 'must be null' : 'must be a string';
  return [{ path: 'card_token', problem }];
}

export const explainPayRequest = compileSchema(PayRequestSchema);
export const explainCancelRequest = compileSchema(CancelRequestSchema);
export const explainLanguageRequest = compileSchema(LanguageRequestSchema);
export const explainPayPlanRequest = compileSchema(PayPlanRequestSchema);
export const explainReplaceCardRequest = compileSchema(ReplaceCardRequestSchema);
