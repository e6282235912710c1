import Type from 'typebox';
import { IntegrationRow } from './integration.schema.ts';
import { Cents, Id, nullable, oneOf, paging, Time } from './list.schema.ts';
import { Payee } from './payee.schema.ts';
import { orders } from './range.sql.ts';

export const Band = Type.Object({
  from_amount: Type.Integer({ minimum: 1 }),
  to_amount: Type.Integer({ minimum: 1 }),
  terms: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 120 }),
});
export type Band = Type.Static<typeof Band>;
/** A refund above this many cents needs two people; with `none` one person is enough for any. */
const Threshold = Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('none')]);
const Bands = Type.Array(Band, { minItems: 1, maxItems: 100 });

/** GET /api/merchants. The newest first, unless the order is given. */
export const MerchantsQuery = Type.Object({
  after: paging.after,
  limit: paging.limit,
  order: Type.Optional(oneOf(orders)),
});
export const MerchantRow = Type.Object({
  id: Id,
  name: Type.String(),
  territory: Type.String(),
  currency: Type.String(),
  time_zone: Type.String(),
  locale: Type.String(),
  rules: Type.Array(Band),
  preselected_term: nullable(Type.Integer()),
  /** The merchant's own threshold. Null if the default of all merchants holds. */
  four_eyes_above: nullable(Threshold),
  /** A refund above this many cents needs two people, unless the merchant has its own threshold. */
  four_eyes_default: nullable(Cents),
  /**
   * The merchant's name on card statements. If it is null, the beginning of its own name is used.
   */
  short_name: nullable(Type.String()),
  /** Whether the hosted page may say that instalments cost the shopper nothing. */
  no_fees: Type.Boolean(),
  created_at: Time,
  /** How far a sandbox merchant's clock is ahead of real time. */
  clock_ahead_ms: Type.Integer(),
  /** The merchant's time. */
  now: Time,
  /** Sums of the last 30 days. */
  sold: Cents,
  collected: Cents,
  refunded: Cents,
  refund_rate: nullable(Type.Number()),
});
export type MerchantRow = Type.Static<typeof MerchantRow>;

/** GET /api/merchants/:id */
export const MerchantDetails = Type.Object({
  ...MerchantRow.properties,
  integrations: Type.Array(IntegrationRow),
  /** When the merchant's next row falls due, on its clock. */
  next_event_at: nullable(Time),
  /** Null if the person may not read payouts. */
  payee: nullable(Payee),
});
export type MerchantDetails = Type.Static<typeof MerchantDetails>;

/** POST /api/merchants */
export const CreateMerchant = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 255 }),
  territory: Type.Optional(Type.String({ maxLength: 2 })),
  rules: Bands,
  preselected_term: Type.Optional(nullable(Type.Integer({ minimum: 1 }))),
  four_eyes_above: Type.Optional(nullable(Threshold)),
});

const Rules = {
  rules: Type.Optional(Bands),
  preselected_term: Type.Optional(nullable(Type.Integer({ minimum: 1 }))),
  four_eyes_above: Type.Optional(nullable(Threshold)),
};

/** PATCH /api/merchants/:id. What is absent stays as it is. */
export const ChangeMerchant = Type.Object({
  short_name: Type.Optional(nullable(Type.String({ maxLength: 20 }))),
  no_fees: Type.Optional(Type.Boolean()),
  ...Rules,
  /** The values that the person read. If they were changed since, the change is refused. */
  was: Type.Optional(Type.Object(Rules, { additionalProperties: false })),
});

/** POST /api/merchants/:id/clock: a sandbox merchant's clock moves forward. */
export const MoveClock = Type.Object({
  /** Absent: to the next event. */
  by_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 366 * 24 * 3600 })),
});
export const MovedClock = Type.Object({
  merchant_id: Id,
  now: Time,
  next_event_at: nullable(Time),
});
export type MovedClock = Type.Static<typeof MovedClock>;
