import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import { isUuid } from '../shared/uuid.ts';
import { findMerchant, moveRules } from './merchant.sql.ts';
import { explainBadRules, type Merchant, type Rule } from './merchant.ts';

/** Sets the bands and terms of new checkouts. Existing ones keep theirs (decision 0011). */
export async function changeRules(
  deps: OperatorDeps,
  operator: string,
  wanted: { id: string; rules: unknown },
): Promise<Merchant> {
  const problem = explainBadRules(wanted.rules);
  if (problem !== null) throw new OperatorError(problem);
  const rules = wanted.rules as Rule[];
  return await operate(deps, operator, 'merchants rules', async (db) => {
    if (!isUuid(wanted.id) || !(await moveRules(db, wanted.id, rules))) {
      throw new OperatorError(`There is no merchant ${wanted.id}.`);
    }
    const result = (await findMerchant(db, wanted.id)) as Merchant;
    return { subject_id: result.id, details: { rules }, result };
  });
}
