import Type from 'typebox';
import { refundPartKinds, refundPartStatuses, refundStatuses } from '#purchases/refunds/refund.ts';
import { ActorSummary } from './audit.schema.ts';
import { Cents, FilterDay, Id, nullable, oneOf, owner, paging, Time } from './list.schema.ts';

/** `review`: requested and not approved yet. `approved`: approved and not begun. */
export const refundViews = ['review', 'approved', 'pending', 'complete', 'failed'] as const;

/**
 * GET /api/refunds. The views of refunds that have not begun show the oldest first, all others the
 * newest first.
 */
export const RefundsQuery = Type.Object({
  ...paging,
  /** `requested` is `review` and `approved` together. */
  view: Type.Optional(oneOf(['requested', ...refundViews])),
  /** Days on which the refund was requested; both are included. */
  from: Type.Optional(FilterDay),
  to: Type.Optional(FilterDay),
});

export const PlannedPart = Type.Object({
  instalment: Type.Integer(),
  /**
   * `cancel`: the payment is not collected yet, and is reduced. `hold`: less of the hold is
   * captured. `card`: the money returns to the card.
   */
  kind: oneOf(refundPartKinds),
  amount: Cents,
});

export const RefundPart = Type.Object({
  round: Type.Integer(),
  number: Type.Integer(),
  instalment: Type.Integer(),
  kind: oneOf(refundPartKinds),
  status: oneOf(refundPartStatuses),
  amount: Cents,
  payment_ref: nullable(Type.String()),
  refund_ref: nullable(Type.String()),
  settled_at: nullable(Time),
});

export const RefundRow = Type.Object({
  id: Id,
  checkout_id: Id,
  ...owner,
  status: oneOf(refundStatuses),
  view: oneOf(refundViews),
  amount: Cents,
  currency: Type.String(),
  checkout_amount: Cents,
  /** When the purchase was made, and how many whole days later the refund was requested. */
  purchased_at: nullable(Time),
  days_since_purchase: nullable(Type.Integer()),
  created_at: Time,
  approved_at: nullable(Time),
  completed_at: nullable(Time),
  reason: nullable(Type.String()),
  /**
   * The payments that the refund would be taken from if it began now. Null if it has begun, must
   * wait or cannot be split.
   */
  planned: nullable(Type.Array(PlannedPart)),
  /**
   * Refunds as a share of the merchant's sales in its last `recentDays`. Null if nothing was sold,
   * or if the person may not see sales.
   */
  refund_rate: nullable(Type.Number()),
  /** The operator who requested it. Null if it came over the API. */
  requested_by: nullable(ActorSummary),
  request_reason: nullable(Type.String()),
  /**
   * Whether two people have to agree: a person requested the refund, or its amount, together with
   * the checkout's refunds to which fewer than two people agreed, is above the merchant's
   * threshold.
   */
  needs_second_person: Type.Boolean(),
  /** Whether the next approval is only the first of two. Any other approval starts the refund. */
  is_first_of_two: Type.Boolean(),
  first_approved_by: nullable(ActorSummary),
  first_approved_at: nullable(Time),
  /**
   * Whether the signed-in person may approve it now. Permission and re-authentication are checked
   * separately.
   */
  may_approve: Type.Boolean(),
});
export type RefundRow = Type.Static<typeof RefundRow>;

/** GET /api/refunds/:id, and the answer to every action on a refund. */
export const RefundDetails = Type.Object({
  ...RefundRow.properties,
  parts: Type.Array(RefundPart),
  /** The payment that is being collected. There is no split until its outcome is known. */
  waits_for: nullable(Type.Integer()),
});
export type RefundDetails = Type.Static<typeof RefundDetails>;

/** POST /api/refunds/:id/approve. `as_first`: the person read that their approval is the first. */
export const ApproveRefund = Type.Object({ as_first: Type.Optional(Type.Boolean()) });

/** POST /api/refunds/:id/decline. The merchant sees the reason in the API. */
export const DeclineRefund = Type.Object({ reason: Type.String({ minLength: 1, maxLength: 500 }) });
