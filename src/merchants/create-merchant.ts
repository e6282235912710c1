import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import { findMerchant, hasTerritory, insertMerchant } from './merchant.sql.ts';
import { explainBadPreselection, explainBadRules, type Merchant, type Rule } from './merchant.ts';

export async function createMerchant(
  deps: OperatorDeps,
  operator: string,
  merchant: { name: string; territory: string; rules: unknown; preselected_term?: number | null },
): Promise<Merchant> {
  const name = merchant.name.trim();
  if (name.length < 1 || name.length > 255 || !name.isWellFormed() || name.includes('\0')) {
    throw new OperatorError('The name must have 1 to 255 characters.');
  }
  const preselected_term = merchant.preselected_term ?? null;
  const problem = explainBadRules(merchant.rules) ?? explainBadPreselection(preselected_term);
  if (problem !== null) throw new OperatorError(problem);
  const rules = merchant.rules as Rule[];
  const id = deps.random.uuid();
  return await operate(deps, operator, 'merchants create', async (db, now) => {
    if (!(await hasTerritory(db, merchant.territory))) {
      throw new OperatorError(`There is no territory ${merchant.territory}.`);
    }
    const { territory } = merchant;
    await insertMerchant(db, { id, name, territory, rules, created_at: now, preselected_term });
    const result = (await findMerchant(db, id)) as Merchant;
    const details = { name, territory, rules, ...(preselected_term && { preselected_term }) };
    return { subject_id: id, details, result };
  });
}
