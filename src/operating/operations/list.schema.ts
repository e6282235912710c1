import Type, { type TSchema } from 'typebox';

// The common parts of the console API's answers. The browser application imports only the types of
// these schemas from the service.

export const Id = Type.String({ format: 'uuid' });
export const Time = Type.String({ format: 'date-time' });
export const GatewayName = Type.String({ pattern: '^[a-z][a-z0-9]{0,19}$' });
export const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' });
/**
 * A day in a filter. The years are limited, because the database does not accept every four-digit
 * year.
 */
export const FilterDay = Type.String({ pattern: '^2[01]\\d{2}-\\d{2}-\\d{2}$' });
export const Cents = Type.Integer();
export const nullable = <Schema extends TSchema>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);
/** The content of a file of at most this many bytes. */
export const base64 = (bytesMax: number) =>
  Type.String({ pattern: '^[A-Za-z0-9+/]+={0,2}$', maxLength: Math.ceil(bytesMax / 3) * 4 });
export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  Type.Unsafe<Values[number]>(Type.Enum([...values], { type: 'string' }));

/** One page of a list. `next` is the `after` of the following page, or null on the last one. */
export const pageOf = <Row extends TSchema>(row: Row) =>
  Type.Object({ data: Type.Array(row), next: nullable(Type.String()) });

/** The part of a query that every list takes. */
export const paging = {
  after: Type.Optional(Type.String({ maxLength: 1_000 })),
  /** 1 to 100 rows; 50 by default. */
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  merchant: Type.Optional(Id),
};

export const IdParams = Type.Object({ id: Id });

/** The owner of a row: the merchant with its zone and locale, the order, the shopper. */
export const owner = {
  merchant_id: Id,
  merchant_name: Type.String(),
  time_zone: Type.String(),
  locale: Type.String(),
  /** How far the merchant's clock is ahead of the real one, in a sandbox. */
  clock_ahead_ms: Type.Integer(),
  client_reference_id: Type.String(),
  email: Type.String(),
  name: nullable(Type.String()),
};

/** A count that stops at 1,000; `more` means that there are more. */
export const BoundedCount = Type.Object({ count: Type.Integer(), more: Type.Boolean() });

/** The body of every refusal. */
export type ApiErrorBody = { error: { code: string; message: string } };
