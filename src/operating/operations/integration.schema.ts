import Type from 'typebox';
import { eventKinds, refundModes } from '#merchants/integrations/integration.ts';
import { Id, nullable, oneOf, paging, Time } from './list.schema.ts';
import { sortOrders } from './range.sql.ts';

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
  /** The events that it gets besides payment results, and the URL that they go to. */
  events: Type.Array(oneOf(eventKinds)),
  events_url: nullable(Type.String()),
  /** The first merchants that an intermediary manages, among those that the person may see. */
  managed_merchants: Type.Array(Type.Object({ id: Id, name: Type.String() })),
  /** Whether there are more such merchants. /api/managed-merchants lists all of them. */
  manages_more: Type.Boolean(),
  /** The limits of every endpoint: the integration's own, or else the contract's. */
  limits: Type.Array(
    Type.Object({
      endpoint: Type.String(),
      max_requests: Type.Integer(),
      window_seconds: Type.Integer(),
      is_own: Type.Boolean(),
    }),
  ),
  /**
   * The client secrets in force, the newest first. A secret with an expiry is being rotated out.
   */
  client_secrets: Type.Array(Type.Object(Life)),
  /** For people who see only some merchants, the first use of an intermediary's key is left out. */
  signing_keys: Type.Array(
    Type.Object({ id: Id, ...Life, first_used_at: Type.Optional(nullable(Time)) }),
  ),
  v1: nullable(
    Type.Object({
      client_id: Id,
      created_at: Time,
      disabled_at: nullable(Time),
      /**
       * Counts for the last `recentDays`. They cover all merchants of an integration, so those of
       * an intermediary are null in a list for one merchant, and for people who see only some
       * merchants.
       */
      logins: nullable(Type.Integer()),
      checkouts: nullable(Type.Integer()),
    }),
  ),
});
export type IntegrationRow = Type.Static<typeof IntegrationRow>;
/**
 * GET /api/integrations, the newest first unless `order` is given. With `merchant`, includes the
 * intermediaries that manage it.
 */
export const IntegrationsQuery = Type.Object({
  ...paging,
  order: Type.Optional(oneOf(sortOrders)),
});

/** GET /api/managed-merchants: the merchants that an intermediary manages, the oldest first. */
export const ManagedMerchantsQuery = Type.Object({
  after: paging.after,
  limit: paging.limit,
  integration: Id,
});
export const ManagedMerchant = Type.Object({ id: Id, name: Type.String(), added_at: Time });
export type ManagedMerchant = Type.Static<typeof ManagedMerchant>;

/** POST /api/integrations: for one merchant, or for an intermediary that manages several. */
export const CreateIntegration = Type.Object({
  merchant_id: Type.Optional(Id),
  managed_merchant_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 1_000 })),
  refund_mode: oneOf(refundModes),
});

/** Only this answer contains the credentials. */
export const IssuedCredentials = Type.Object({
  id: Id,
  client_secret: Type.String(),
  signing_key: Type.String(),
});
export type IssuedCredentials = Type.Static<typeof IssuedCredentials>;

/** POST /api/integrations/:id/rotate */
export const RotateCredential = Type.Object({
  credential: oneOf(['client_secret', 'signing_key'] as const),
  /** How long the old credential stays valid: 7 days at most. */
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

/** POST /api/integrations/:id/events. Kinds that are not mentioned stay as they are. */
export const SetEvents = Type.Object({
  enable: Type.Optional(Type.Array(oneOf(eventKinds), { maxItems: eventKinds.length })),
  disable: Type.Optional(Type.Array(oneOf(eventKinds), { maxItems: eventKinds.length })),
  /** `none` removes the URL: events then go to the notify_url of the checkout. */
  url: Type.Optional(Type.String({ maxLength: 2048 })),
});
export const EventsSet = Type.Object({
  id: Id,
  events: Type.Array(oneOf(eventKinds)),
  events_url: nullable(Type.String()),
});

/** POST /api/integrations/:id/require-signing. It cannot be undone. */
export const RequiredSigning = Type.Object({ id: Id, signing_required_at: Time });

/** POST /api/integrations/:id/enable-v1. Only this answer contains the secret. */
export const IssuedV1Credentials = Type.Object({
  id: Id,
  client_id: Id,
  client_secret: Type.String(),
});
export type IssuedV1Credentials = Type.Static<typeof IssuedV1Credentials>;

/** POST /api/integrations/:id/disable-v1 */
export const DisabledV1 = Type.Object({ id: Id, client_id: Id, disabled_at: Time });

/** POST /api/integrations/:id/managed-merchants. Adding a merchant twice adds it once. */
export const ManagedMerchants = Type.Object({
  id: Id,
  added: Type.Array(Id),
  removed: Type.Array(Id),
});
export const ManageMerchants = Type.Object({
  add: Type.Array(Id, { maxItems: 1_000 }),
  remove: Type.Array(Id, { maxItems: 1_000 }),
});

/** POST /api/integrations/:id/refund-mode, for refunds requested from now on. */
export const SetRefundMode = Type.Object({ refund_mode: oneOf(refundModes) });
export const RefundModeSet = Type.Object({ id: Id, refund_mode: oneOf(refundModes) });

/** GET /api/integrations/:id/refused-requests: the newest requests whose signature was wrong. */
export const RefusedRequests = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Id,
      at: Time,
      request: Type.String(),
      header: Type.String(),
      user_agent: nullable(Type.String()),
      /** The body, or its beginning if it is long. */
      body: Type.String(),
      body_bytes: Type.Integer(),
      expected: Type.String(),
      mistake: nullable(Type.String()),
    }),
  ),
  /** The address of the signature doctor. */
  doctor_url: Type.String(),
});
export type RefusedRequests = Type.Static<typeof RefusedRequests>;

/** POST /api/integrations/:id/test-callback */
export const TestCallback = Type.Object({ url: Type.String({ maxLength: 2048 }) });
export const TestedCallback = Type.Object({
  id: Id,
  url: Type.String(),
  /** The body as it was sent. */
  payload: Type.String(),
  delivered: Type.Boolean(),
  reason: nullable(Type.String()),
  /** A sentence about the outcome. */
  summary: Type.String(),
  response_status: nullable(Type.Integer()),
  /** The beginning of the answer's body. */
  response_body: nullable(Type.String()),
  response_body_bytes: nullable(Type.Integer()),
  milliseconds: nullable(Type.Number()),
});
export type TestedCallback = Type.Static<typeof TestedCallback>;
