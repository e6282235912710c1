import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import { isUuid } from '../shared/uuid.ts';
import { findMerchant, movePreselectedTerm, moveRules } from './merchant.sql.ts';
import { explainBadPreselection, explainBadRules, type Merchant, type Rule } from './merchant.ts';

/**
 * Sets the bands and terms of new checkouts; existing ones keep theirs (decision 0011). Sets the term
 * that the hosted page selects at first, on open checkouts too. What is absent stays as it is.
 */
export async function changeRules(
  deps: OperatorDeps,
  operator: string,
  wanted: { id: string; rules?: unknown; preselected_term?: number | null },
): Promise<Merchant> {
  const { id, preselected_term } = wanted;
  const rules = wanted.rules as Rule[] | undefined;
  const problem =
    (rules === undefined ? null : explainBadRules(rules)) ??
    explainBadPreselection(preselected_term ?? null);
  if (problem !== null) throw new OperatorError(problem);
  return await operate(deps, operator, 'merchants rules', async (db) => {
    if (!isUuid(id)) throw noMerchant(id);
    if (rules !== undefined && !(await moveRules(db, id, rules))) throw noMerchant(id);
    if (preselected_term !== undefined && !(await movePreselectedTerm(db, id, preselected_term))) {
      throw noMerchant(id);
    }
    const result = (await findMerchant(db, id)) as Merchant;
    const details = {
      ...(rules !== undefined && { rules }),
      ...(preselected_term !== undefined && { preselected_term }),
    };
    return { subject_id: result.id, details, result };
  });
}

const noMerchant = (id: string) => new OperatorError(`There is no merchant ${id}.`);
