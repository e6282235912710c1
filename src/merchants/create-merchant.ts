import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import { findMerchant, hasTerritory, insertMerchant } from './merchant.sql.ts';
import { explainBadRules, type Merchant, type Rule } from './merchant.ts';

export async function createMerchant(
  deps: OperatorDeps,
  operator: string,
  merchant: { name: string; territory: string; rules: unknown },
): Promise<Merchant> {
  const name = merchant.name.trim();
  if (name.length < 1 || name.length > 255 || !name.isWellFormed() || name.includes('\0')) {
    throw new OperatorError('The name must have 1 to 255 characters.');
  }
  const problem = explainBadRules(merchant.rules);
  if (problem !== null) throw new OperatorError(problem);
  const rules = merchant.rules as Rule[];
  const id = deps.random.uuid();
  return await operate(deps, operator, 'merchants create', async (db, now) => {
    if (!(await hasTerritory(db, merchant.territory))) {
      throw new OperatorError(`There is no territory ${merchant.territory}.`);
    }
    await insertMerchant(db, { id, name, territory: merchant.territory, rules, created_at: now });
    const result = (await findMerchant(db, id)) as Merchant;
    return { subject_id: id, details: { name, territory: merchant.territory, rules }, result };
  });
}
