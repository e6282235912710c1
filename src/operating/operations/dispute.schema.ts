import Type from 'typebox';
import { disputeStatuses } from '#purchases/disputes/dispute.ts';
import { Action } from './audit.schema.ts';
import { Cents, Id, nullable, oneOf, owner, paging, Time } from './list.schema.ts';

/** GET /api/disputes. The newest first. */
export const DisputesQuery = Type.Object({
  ...paging,
  status: Type.Optional(oneOf(disputeStatuses)),
});

export const DisputeRow = Type.Object({
  id: Id,
  checkout_id: Id,
  ...owner,
  /** The gateway's own ID. */
  dispute_ref: Type.String(),
  /**
   * The number of the first instalment that the disputed payment covered, and how many it covered.
   */
  instalment: Type.Integer(),
  number_of_payments: Type.Integer(),
  payment_ref: Type.String(),
  amount: Cents,
  currency: Type.String(),
  reason: Type.String(),
  network_reason_code: nullable(Type.String()),
  status: oneOf(disputeStatuses),
  /** Whether evidence can still be submitted, or the dispute be accepted. */
  is_answerable: Type.Boolean(),
  /** The plan collects nothing. */
  is_pausing: Type.Boolean(),
  /** The amount that the gateway withdrew and did not reinstate, and its charge for the dispute. */
  withdrawn: Cents,
  fee: Cents,
  created_at: Time,
  due_by: nullable(Time),
  staged_at: nullable(Time),
  staged_hash: nullable(Type.String()),
  submitting_at: nullable(Time),
  submitted_at: nullable(Time),
  closed_at: nullable(Time),
});
export type DisputeRow = Type.Static<typeof DisputeRow>;

/** GET /api/disputes/:id, and the answer of every action on a dispute. */
export const DisputeDetails = Type.Object({
  ...DisputeRow.properties,
  /** The evidence that is staged, or that staging would store, and the hash that names it. */
  evidence_hash: Type.String(),
  is_staged: Type.Boolean(),
  /** The evidence that we hold has changed since it was staged. */
  is_outdated: Type.Boolean(),
  evidence: Type.Array(Type.Object({ name: Type.String(), text: Type.String() })),
  /** People's actions on it, the oldest first. */
  audit: Type.Array(Action),
});
/** POST /api/disputes/:id/submit. Only the evidence that the person looked at is submitted. */
export const SubmitEvidence = Type.Object({
  evidence_hash: Type.String({ minLength: 64, maxLength: 64 }),
});

export type DisputeDetails = Type.Static<typeof DisputeDetails>;
