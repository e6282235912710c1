import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { insertBulkAction } from './bulk-action.sql.ts';
import type { BulkActionKind, BulkActionWanted } from './bulk-action.ts';

/**
 * A person begins a bulk action. The worker carries it out in their name, with the roles that they
 * had then. The audit has one row for it, and one for every single action. Returns its id.
 */
export async function beginBulkAction(
  deps: OperatorDeps,
  operator: string,
  kind: BulkActionKind,
  wanted: BulkActionWanted,
  total: number | null,
): Promise<string> {
  const { origin } = deps;
  if (!origin || !('person_id' in origin)) {
    throw new OperatorError('Only a person with a session begins a bulk action.');
  }
  const id = deps.random.uuid();
  const { counts_from: _, ...from } = origin;
  const actor = { operator, ...from };
  await operate(deps, operator, `${kind} many`, async (db, created_at) => {
    await insertBulkAction(db, { id, kind, actor, wanted, created_at, total });
    // The merchants of rows that were picked one by one are in the audit of each row's action.
    const [merchant_id, ...others] = ('merchant_ids' in wanted && wanted.merchant_ids) || [];
    const about = others.length === 0 && { merchant_id: merchant_id ?? null };
    return { subject_id: id, ...about, details: { ...wanted, total }, result: null };
  });
  return id;
}
