import Type, { type TSchema } from 'typebox';

// Parts of schemas. Members that a schema does not name are refused.

export const object = <P extends Record<string, TSchema>>(members: P) =>
  Type.Object(members, { additionalProperties: false });

export const text = (maxLength?: number) =>
  Type.String(maxLength === undefined ? {} : { maxLength });

export const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

export const optional = <S extends TSchema>(schema: S) => Type.Optional(nullable(schema));

export const oneOf = <const V extends readonly string[]>(...values: V) =>
  Type.Unsafe<V[number]>(Type.Enum([...values]));

export const time = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
});

export const currency = Type.String({ pattern: '^[A-Z]{3}$' });

export const metadata = Type.Record(Type.String(), Type.Unknown());

export const cardNetwork = oneOf('Visa', 'Mastercard', 'AmericanExpress');
