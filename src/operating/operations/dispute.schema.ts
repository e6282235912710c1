import Type from 'typebox';
import { evidenceFileKinds } from '#gateway/evidence.ts';
import { fileTypes } from '#platform/shared/file-type.ts';
import { evidenceFileBytesMax } from '#platform/shared/uploads.ts';
import { disputeStatuses } from '#purchases/disputes/dispute.ts';
import { fileNameMax, lineMax, statementMax, suppliedNames } from '#purchases/disputes/supplied.ts';
import { Action } from './audit.schema.ts';
import {
  base64,
  Cents,
  Day,
  GatewayName,
  Id,
  nullable,
  oneOf,
  owner,
  paging,
  Time,
} from './list.schema.ts';

/** GET /api/disputes. The newest first. */
export const DisputesQuery = Type.Object({
  ...paging,
  status: Type.Optional(oneOf(disputeStatuses)),
  gateway: Type.Optional(GatewayName),
});

export const DisputeRow = Type.Object({
  id: Id,
  checkout_id: Id,
  ...owner,
  gateway: Type.String(),
  /** The gateway's id for the dispute. */
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
  /** Whether evidence can still be submitted, or the dispute accepted. */
  is_answerable: Type.Boolean(),
  /** Whether it pauses the plan, so that nothing is collected. */
  is_pausing: Type.Boolean(),
  /** The amount that the gateway withdrew and did not reinstate, and its charge for the dispute. */
  withdrawn: Cents,
  fee: Cents,
  created_at: Time,
  due_by: nullable(Time),
  /** When the merchant was last asked for evidence by mail, and the deadline for its answer. */
  asked_at: nullable(Time),
  asked_until: nullable(Time),
  supplied_at: nullable(Time),
  staged_at: nullable(Time),
  staged_hash: nullable(Type.String()),
  submitting_at: nullable(Time),
  submitted_at: nullable(Time),
  closed_at: nullable(Time),
});
export type DisputeRow = Type.Static<typeof DisputeRow>;

const line = Type.Optional(Type.String({ minLength: 1, maxLength: lineMax }));
const supplied = {
  carrier: line,
  tracking_number: line,
  shipped_on: Type.Optional(Day),
  delivered_on: Type.Optional(Day),
  statement: Type.Optional(Type.String({ minLength: 1, maxLength: statementMax })),
};

/** POST /api/disputes/:id/supply. A fact that is absent is removed. */
export const SupplyEvidence = Type.Object({
  ...supplied,
  /** `supplied_at` of the facts that the person saw. */
  seen_at: nullable(Time),
});

const FileKind = oneOf(evidenceFileKinds);

/** POST /api/disputes/:id/add-file. The file replaces the one of the same kind. */
export const AddFile = Type.Object({
  kind: FileKind,
  name: Type.String({ minLength: 1, maxLength: fileNameMax }),
  content: base64(evidenceFileBytesMax),
});

/** POST /api/disputes/:id/remove-file */
export const RemoveFile = Type.Object({ kind: FileKind });

export const FileParams = Type.Object({ id: Id, file: Id });

const File = Type.Object({
  id: Id,
  kind: FileKind,
  name: Type.String(),
  media_type: oneOf(fileTypes),
  size: Type.Integer(),
  added_at: Time,
});
export type DisputeFile = Type.Static<typeof File>;

/** GET /api/disputes/:id, and the answer to every action on a dispute. */
export const DisputeDetails = Type.Object({
  ...DisputeRow.properties,
  supplied: nullable(Type.Object(supplied)),
  /** The facts that banks ask for in disputes with this reason. */
  wanted: Type.Array(oneOf(suppliedNames)),
  /** The files as they are now, which may differ from those in `evidence_files`. */
  files: Type.Array(File),
  /**
   * The hash of `evidence` and `evidence_files`. If `is_staged`, they are the staged evidence, or
   * else what staging would store now.
   */
  evidence_hash: Type.String(),
  is_staged: Type.Boolean(),
  /** Whether our evidence has changed since it was staged. */
  is_outdated: Type.Boolean(),
  evidence: Type.Array(Type.Object({ name: Type.String(), text: Type.String() })),
  evidence_files: Type.Array(File),
  /** People's actions on it, the oldest first. */
  audit: Type.Array(Action),
});
/** POST /api/disputes/:id/submit. Only the evidence that the person looked at is submitted. */
export const SubmitEvidence = Type.Object({
  evidence_hash: Type.String({ minLength: 64, maxLength: 64 }),
});

/** POST /api/disputes/:id/accept. `was`: the status that the person read. */
export const AcceptDispute = Type.Object({
  was: Type.Optional(
    Type.Object({ status: oneOf(disputeStatuses) }, { additionalProperties: false }),
  ),
});

export type DisputeDetails = Type.Static<typeof DisputeDetails>;
