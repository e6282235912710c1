import Type from 'typebox';
import { languages } from '#platform/shared/language.ts';
import { logoBounds } from '#platform/shared/uploads.ts';
import { IntegrationRow } from './integration.schema.ts';
import { base64, Cents, Id, nullable, oneOf, paging, Time } from './list.schema.ts';
import { Payee } from './payee.schema.ts';
import { sortOrders } from './range.sql.ts';
import { TermsRow } from './terms.schema.ts';

export const Band = Type.Object({
  from_amount: Type.Integer({ minimum: 1 }),
  to_amount: Type.Integer({ minimum: 1 }),
  terms: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 120 }),
});
export type Band = Type.Static<typeof Band>;
/**
 * A refund above this many cents needs two people; `none` means that one person is enough for any
 * refund.
 */
const Threshold = Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('none')]);
const Bands = Type.Array(Band, { minItems: 1, maxItems: 100 });

/** GET /api/merchants. The newest first, unless the order is given. */
export const MerchantsQuery = Type.Object({
  after: paging.after,
  limit: paging.limit,
  order: Type.Optional(oneOf(sortOrders)),
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
  /** The merchant's own threshold. Null if the default applies. */
  four_eyes_above: nullable(Threshold),
  /** A refund above this many cents needs two people, unless the merchant has its own threshold. */
  four_eyes_default: nullable(Cents),
  /** The merchant's name on card statements. If it is null, the beginning of `name` is used. */
  short_name: nullable(Type.String()),
  /** Whether the hosted page may say that instalments cost the shopper nothing. */
  no_fees: Type.Boolean(),
  /** The language of the merchant's statements. */
  language: oneOf(languages),
  /** Pages, mails and receipts show these to shoppers. */
  contact: nullable(Type.String()),
  address: nullable(Type.String()),
  vat_number: nullable(Type.String()),
  /** The SHA-256 of the logo. */
  logo: nullable(Type.String()),
  /**
   * The gateway for the merchant's new checkouts, and the one that stands in for it. If `gateway`
   * is null, the service's default applies.
   */
  gateway: nullable(Type.String()),
  second_gateway: nullable(Type.String()),
  created_at: Time,
  /** How far a sandbox merchant's clock is ahead of real time. */
  clock_ahead_ms: Type.Integer(),
  now: Time,
  /** Sums for the last `recentDays`. */
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
  /** Where shoppers load the logo. */
  logo_url: nullable(Type.String()),
  /** When the merchant's next row falls due, on its clock. */
  next_event_at: nullable(Time),
  /** Null if the person may not read payouts. */
  payee: nullable(Payee),
  /** Its fees, the newest first. Null if the person may not read payouts. */
  terms: nullable(Type.Array(TermsRow)),
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

/** The members that `changeRules` stores: rules for checkouts, and the threshold for refunds. */
export const Rules = {
  rules: Type.Optional(Bands),
  preselected_term: Type.Optional(nullable(Type.Integer({ minimum: 1 }))),
  four_eyes_above: Type.Optional(nullable(Threshold)),
};

/** The members that `changePage` stores, with the logo as its digest. */
export const Page = {
  short_name: Type.Optional(nullable(Type.String({ maxLength: 20 }))),
  no_fees: Type.Optional(Type.Boolean()),
  language: Type.Optional(oneOf(languages)),
  contact: Type.Optional(nullable(Type.String({ minLength: 1, maxLength: 200 }))),
  address: Type.Optional(nullable(Type.String({ minLength: 1, maxLength: 300 }))),
  vat_number: Type.Optional(nullable(Type.String({ minLength: 1, maxLength: 20 }))),
  /** The SHA-256 of the logo. */
  logo: Type.Optional(nullable(Type.String({ maxLength: 64 }))),
};

/** PATCH /api/merchants/:id. Absent members stay as they are. */
export const ChangeMerchant = Type.Object({
  ...Page,
  /** A PNG in base64. */
  logo: Type.Optional(nullable(base64(logoBounds.bytesMax))),
  ...Rules,
  /** The values that the person read. If they have changed since, the change is refused. */
  was: Type.Optional(Type.Object({ ...Page, ...Rules }, { additionalProperties: false })),
});

/** POST /api/merchants/:id/clock: moves a sandbox merchant's clock forward. */
export const MoveClock = Type.Object({
  /** If absent, the clock moves to the next event. */
  by_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 366 * 24 * 3600 })),
});
export const MovedClock = Type.Object({
  merchant_id: Id,
  now: Time,
  next_event_at: nullable(Time),
});
export type MovedClock = Type.Static<typeof MovedClock>;
