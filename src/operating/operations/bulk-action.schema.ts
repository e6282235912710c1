import Type from 'typebox';
import { bulkActionKinds } from '#operating/bulk-actions/bulk-action.ts';
import { Id, nullable, oneOf, Time } from './list.schema.ts';

/**
 * Many actions in one. It is a row with due work, so it continues after the browser is closed. This
 * is the answer to GET /api/bulk-actions/:id, and to the request that begins one.
 */
export const BulkAction = Type.Object({
  id: Id,
  kind: oneOf(bulkActionKinds),
  by: Type.String(),
  created_at: Time,
  finished_at: nullable(Time),
  /** How many items there are; null if there are too many to count. */
  total: nullable(Type.Integer()),
  done: Type.Integer(),
  failed: Type.Integer(),
  /** Why it ended before its last item. */
  stopped: nullable(Type.String()),
  /** Why items failed. Only the first problems are kept. */
  problems: Type.Array(Type.Object({ id: Type.String(), problem: Type.String() })),
});
export type BulkAction = Type.Static<typeof BulkAction>;

/** GET /api/bulk-actions: the person's own, the newest first. */
export const BulkActions = Type.Object({ data: Type.Array(BulkAction) });
export type BulkActions = Type.Static<typeof BulkActions>;

const idsMax = 500;

const ManyIds = Type.Object({
  ids: Type.Array(Id, { minItems: 1, maxItems: idsMax }),
});

const uuid = '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';

const manyOf = (pattern: string) =>
  Type.Object({
    ids: Type.Array(Type.String({ pattern }), { minItems: 1, maxItems: idsMax }),
  });

/**
 * POST /api/refunds/approve. An id is followed by `:first` if the person read that their approval
 * is the first of two.
 */
export const ManyReviews = manyOf(`^${uuid}(:first)?$`);

/**
 * POST /api/payouts/approve. An id consists of the payout's id and the number of the account that
 * the person saw, or `none`.
 */
export const ManyApprovals = manyOf(`^${uuid}:([1-9]\\d{0,8}|none)$`);

/** POST /api/payouts/paid: one bank reference for all of them. */
export const ManyPaid = Type.Object({
  ...ManyIds.properties,
  bank_reference: Type.String({ minLength: 1, maxLength: 200 }),
});

/** POST /api/instalments/retry. An id consists of the checkout's id and the payment's number. */
export const ManyInstalments = manyOf(`^${uuid}:[1-9]\\d{0,2}$`);
