import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { insertLongAct } from './long-act.sql.ts';
import type { LongActKind, LongActWanted } from './long-act.ts';

/**
 * A person begins a bulk action. The worker does it, in their name, as they were then. It is one
 * row of the audit, and every single action is another. Returns its id.
 */
export async function beginLongAct(
  deps: OperatorDeps,
  operator: string,
  kind: LongActKind,
  wanted: LongActWanted,
  total: number | null,
): Promise<string> {
  const { origin } = deps;
  if (!origin || !('person_id' in origin)) {
    throw new OperatorError('Only a person with a session begins a long act.');
  }
  const id = deps.random.uuid();
  const actor = { operator, ...origin };
  await operate(deps, operator, `${kind} many`, async (db, created_at) => {
    await insertLongAct(db, { id, kind, actor, wanted, created_at, total });
    return { subject_id: id, details: { ...wanted, total }, result: null };
  });
  return id;
}
