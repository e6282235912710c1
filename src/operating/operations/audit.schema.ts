import Type from 'typebox';
import { alertStates } from '#record/alerts/alert.sql.ts';
import { OverdueRow } from './callback.schema.ts';
import { Id, nullable, oneOf, paging, Time } from './list.schema.ts';

/**
 * The person or operator who acted. `person_id` is null for the command line, and for staff whom
 * the reader may not see.
 */
export const ActorSummary = Type.Object({ person_id: nullable(Id), name: Type.String() });
export type ActorSummary = Type.Static<typeof ActorSummary>;

/** One operator's action. `details` may hold `before` and `after`. */
export const Action = Type.Object({
  id: Id,
  number: nullable(Type.Integer()),
  at: Time,
  operator: Type.String(),
  /** The person's current name; the operator's name if there is no person. */
  name: Type.String(),
  person_id: nullable(Id),
  roles: nullable(Type.Array(Type.String())),
  address: nullable(Type.String()),
  session_id: nullable(Type.String()),
  /**
   * The system's user and host at the command line. The service found these out itself, while
   * `operator` is only stated.
   */
  os_user: nullable(Type.String()),
  host: nullable(Type.String()),
  action: Type.String(),
  subject_id: nullable(Id),
  /** The merchant, if one of its own people or API keys took the action. */
  merchant_id: nullable(Id),
  details: Type.Unknown(),
});
export type Action = Type.Static<typeof Action>;

/** GET /api/audit, the newest first. `merchant` selects the actions of its own people and keys. */
export const AuditQuery = Type.Object({
  ...paging,
  subject: Type.Optional(Id),
  person: Type.Optional(Id),
  /** The name that an action was recorded under. */
  operator: Type.Optional(Type.String({ maxLength: 254 })),
});

/** GET /api/alerts. The newest first. Without `state`: open and taken. */
export const AlertsQuery = Type.Object({
  ...paging,
  state: Type.Optional(oneOf(alertStates)),
  kind: Type.Optional(Type.String({ maxLength: 60, pattern: '^[a-z_]+$' })),
});
export const AlertRow = Type.Object({
  id: Id,
  at: Time,
  /** When it was raised, on the merchant's clock; null without a merchant. */
  merchant_at: nullable(Time),
  time_zone: nullable(Type.String()),
  /** How far the merchant's clock is ahead of the real one, in a sandbox. */
  clock_ahead_ms: Type.Integer(),
  kind: Type.String(),
  state: oneOf(alertStates),
  integration_id: nullable(Id),
  merchant_id: nullable(Id),
  merchant_name: nullable(Type.String()),
  subject_id: nullable(Id),
  /** One sentence for a person, with the order, its amount and its shopper as they are now. */
  text: Type.String(),
  checkout_id: nullable(Id),
  client_reference_id: nullable(Type.String()),
  /** A late payment of the order that a retry may charge. */
  late: nullable(OverdueRow),
  detail: Type.String(),
  /** The operator whose action raised it; null if the service itself did. */
  caused_by: nullable(Type.String()),
  caused_by_name: nullable(Type.String()),
  /**
   * Why the reader may not close this alert, apart from permissions. Null if nothing else prevents
   * it.
   */
  close_refusal: nullable(Type.String()),
  taken_at: nullable(Time),
  taken_by: nullable(Type.String()),
  /** The people's current names; an operator's name if there is no person. */
  taken_by_name: nullable(Type.String()),
  closed_at: nullable(Time),
  closed_by: nullable(Type.String()),
  closed_by_name: nullable(Type.String()),
  close_reason: nullable(Type.String()),
});
export type AlertRow = Type.Static<typeof AlertRow>;

/** POST /api/alerts/:id/close */
export const CloseAlert = Type.Object({ reason: Type.String({ minLength: 1, maxLength: 500 }) });
