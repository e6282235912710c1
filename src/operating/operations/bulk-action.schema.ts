import Type from 'typebox';
import { bulkActionKinds } from '#operating/bulk-actions/bulk-action.ts';
import { Id, nullable, oneOf, Time } from './list.schema.ts';

/**
 * Several actions as one. It is a row with due work, so it goes on when the browser is closed. The
 * answer of GET /api/bulk-actions/:id, and of the request that begins one.
 */
export const BulkAction = Type.Object({
  id: Id,
  kind: oneOf(bulkActionKinds),
  by: Type.String(),
  created_at: Time,
  finished_at: nullable(Time),
  /** How many there are to do; null if they are too many to count. */
  total: nullable(Type.Integer()),
  done: Type.Integer(),
  failed: Type.Integer(),
  /** Why it ended before its last item. */
  stopped: nullable(Type.String()),
  /** The reason of the first failure. */
  problems: Type.Array(Type.Object({ id: Id, problem: Type.String() })),
});
export type BulkAction = Type.Static<typeof BulkAction>;

/** GET /api/bulk-actions: the person's own, the newest first. */
export const BulkActions = Type.Object({ data: Type.Array(BulkAction) });
export type BulkActions = Type.Static<typeof BulkActions>;
