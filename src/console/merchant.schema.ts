import Type from 'typebox';
import { refundModes } from '../integrations/integration.ts';
import { Cents, Id, nullable, oneOf, pageOf, paging, Time } from './list.schema.ts';

export const Band = Type.Object({
  from_amount: Type.Integer({ minimum: 1 }),
  to_amount: Type.Integer({ minimum: 1 }),
  terms: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: 120 }),
});
export type Band = Type.Static<typeof Band>;
const Bands = Type.Array(Band, { minItems: 1, maxItems: 100 });

/** GET /api/merchants. The newest first. */
export const MerchantsQuery = Type.Object({ after: paging.after, limit: paging.limit });
export const MerchantRow = Type.Object({
  id: Id,
  name: Type.String(),
  territory: Type.String(),
  currency: Type.String(),
  time_zone: Type.String(),
  locale: Type.String(),
  rules: Type.Array(Band),
  preselected_term: nullable(Type.Integer()),
  /** A refund above this many cents needs two people. Null: none does. */
  four_eyes_above: nullable(Cents),
  /** What card statements call the merchant; null: the beginning of its name. */
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
export const MerchantsPage = pageOf(MerchantRow);
export type MerchantsPage = Type.Static<typeof MerchantsPage>;

const Life = { created_at: Time, expires_at: nullable(Time) };

export const IntegrationRow = Type.Object({
  id: Id,
  merchant_id: nullable(Id),
  merchant_name: nullable(Type.String()),
  intermediary: Type.Boolean(),
  refund_mode: oneOf(refundModes),
  signing_required_at: nullable(Time),
  revoked_at: nullable(Time),
  created_at: Time,
  /** The merchants that an intermediary manages, of those that the person may see. */
  managed_merchants: Type.Array(Type.Object({ id: Id, name: Type.String() })),
  limits: Type.Array(
    Type.Object({
      endpoint: Type.String(),
      max_requests: Type.Integer(),
      window_seconds: Type.Integer(),
    }),
  ),
  /** In force now, the newest first. One that expires is being rotated out. */
  client_secrets: Type.Array(Type.Object(Life)),
  signing_keys: Type.Array(Type.Object({ id: Id, ...Life, first_used_at: nullable(Time) })),
  v1: nullable(
    Type.Object({
      client_id: Id,
      created_at: Time,
      disabled_at: nullable(Time),
      /** Of the last 30 days. */
      logins: Type.Integer(),
      checkouts: Type.Integer(),
    }),
  ),
});
export type IntegrationRow = Type.Static<typeof IntegrationRow>;
/** GET /api/integrations. The newest first. With `merchant` also the intermediaries that manage it. */
export const IntegrationsQuery = Type.Object(paging);
export const IntegrationsPage = pageOf(IntegrationRow);
export type IntegrationsPage = Type.Static<typeof IntegrationsPage>;

/** GET /api/merchants/:id */
export const MerchantDetails = Type.Object({
  ...MerchantRow.properties,
  integrations: Type.Array(IntegrationRow),
  /** When the merchant's next row falls due, on its clock. */
  next_event_at: nullable(Time),
});
export type MerchantDetails = Type.Static<typeof MerchantDetails>;

/** POST /api/merchants */
export const CreateMerchant = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 255 }),
  territory: Type.Optional(Type.String({ maxLength: 2 })),
  rules: Bands,
  preselected_term: Type.Optional(nullable(Type.Integer({ minimum: 1 }))),
  four_eyes_above: Type.Optional(nullable(Type.Integer({ minimum: 0 }))),
});

/** PATCH /api/merchants/:id. What is absent stays as it is. */
export const ChangeMerchant = Type.Object({
  short_name: Type.Optional(nullable(Type.String({ maxLength: 20 }))),
  no_fees: Type.Optional(Type.Boolean()),
  rules: Type.Optional(Bands),
  preselected_term: Type.Optional(nullable(Type.Integer({ minimum: 1 }))),
  four_eyes_above: Type.Optional(nullable(Type.Integer({ minimum: 0 }))),
});

/** POST /api/integrations: of one merchant, or of an intermediary that manages several. */
export const CreateIntegration = Type.Object({
  merchant_id: Type.Optional(Id),
  managed_merchant_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 1_000 })),
  refund_mode: oneOf(refundModes),
});

/** Credentials are in this answer and never again. */
export const IssuedCredentials = Type.Object({
  id: Id,
  client_secret: Type.String(),
  signing_key: Type.String(),
});
export type IssuedCredentials = Type.Static<typeof IssuedCredentials>;

/** POST /api/integrations/:id/rotate */
export const RotateCredential = Type.Object({
  credential: oneOf(['client_secret', 'signing_key'] as const),
  /** How long the old one stays valid: 7 days at most. */
  overlap_seconds: Type.Integer({ minimum: 0, maximum: 7 * 24 * 3600 }),
});
export const RotatedCredential = Type.Object({
  id: Id,
  credential: oneOf(['client_secret', 'signing_key'] as const),
  value: Type.String(),
  old_valid_until: Time,
});
export type RotatedCredential = Type.Static<typeof RotatedCredential>;

/** POST /api/integrations/:id/revoke */
export const RevokedIntegration = Type.Object({ id: Id, revoked_at: Time });

/** POST /api/integrations/:id/limit */
export const LimitSet = Type.Object({
  id: Id,
  endpoint: Type.String(),
  max_requests: Type.Integer(),
  window_seconds: Type.Integer(),
});
export const SetLimit = Type.Object({
  endpoint: Type.String({ maxLength: 200 }),
  max_requests: Type.Integer({ minimum: 0 }),
  window_seconds: Type.Integer({ minimum: 1, maximum: 86_400 }),
});

/** POST /api/integrations/:id/require-signing. It cannot be undone. */
export const RequiredSigning = Type.Object({ id: Id, signing_required_at: Time });

/** POST /api/integrations/:id/enable-v1. The secret is in this answer and never again. */
export const IssuedV1Credentials = Type.Object({
  id: Id,
  client_id: Id,
  client_secret: Type.String(),
});
export type IssuedV1Credentials = Type.Static<typeof IssuedV1Credentials>;

/** POST /api/integrations/:id/disable-v1 */
export const DisabledV1 = Type.Object({ id: Id, client_id: Id, disabled_at: Time });

/** POST /api/integrations/:id/managed-merchants */
export const ManagedMerchants = Type.Object({ id: Id, managed_merchant_ids: Type.Array(Id) });
export const ManageMerchants = Type.Object({
  add: Type.Array(Id, { maxItems: 1_000 }),
  remove: Type.Array(Id, { maxItems: 1_000 }),
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
