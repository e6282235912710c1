import Type from 'typebox';
import { longActKinds } from '#operating/acts/long-act.ts';
import { Id, nullable, oneOf, Time } from './list.schema.ts';

/**
 * Several actions as one: a row with due work, which goes on when the browser is closed. The answer
 * of GET /api/acts/:id, and of the request that begins one.
 */
export const LongAct = Type.Object({
  id: Id,
  kind: oneOf(longActKinds),
  by: Type.String(),
  created_at: Time,
  finished_at: nullable(Time),
  /** How many there are to do; null if they are too many to count. */
  total: nullable(Type.Integer()),
  done: Type.Integer(),
  failed: Type.Integer(),
  /** The reason of the first failure. */
  problems: Type.Array(Type.Object({ id: Id, problem: Type.String() })),
});
export type LongAct = Type.Static<typeof LongAct>;

/** GET /api/acts: the person's own, the newest first. */
export const LongActs = Type.Object({ data: Type.Array(LongAct) });
export type LongActs = Type.Static<typeof LongActs>;
