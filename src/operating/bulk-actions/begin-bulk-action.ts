import { type OperatorDeps, OperatorError, operate, type Share } from '#record/actions/operate.ts';
import { insertBulkAction } from './bulk-action.sql.ts';
import type { BulkActionKind, BulkActionWanted } from './bulk-action.ts';

/**
 * A person begins a bulk action. The worker carries it out in their name, with the roles that they
 * had at that time. The audit gets one row for the bulk action, and one for every single action.
 * Returns the bulk action's id.
 */
export async function beginBulkAction(
  deps: OperatorDeps,
  operator: string,
  kind: BulkActionKind,
  wanted: BulkActionWanted,
  { total, shares }: { total: number | null; shares: Share[] },
): Promise<string> {
  const { origin } = deps;
  if (!origin || !('person_id' in origin)) {
    throw new OperatorError('Only a person who is signed in can begin a bulk action.');
  }
  const id = deps.random.uuid();
  const { counts_from: _, ...from } = origin;
  const actor = { operator, ...from };
  await operate(deps, operator, `${kind} many`, async (db, created_at) => {
    await insertBulkAction(db, { id, kind, actor, wanted, created_at, total });
    return { subject_id: id, details: { ...wanted, total }, shares, result: null };
  });
  return id;
}
